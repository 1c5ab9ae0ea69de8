//! Crossplane's side of a call.

use std::net::SocketAddr;

use function_sdk_rust::proto::v1::{RequestMeta, RunFunctionRequest, RunFunctionResponse};
use function_server::grpc::endpoint::{Package, V1};
use futures::stream;
use http::uri::PathAndQuery;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Error, Identity};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::process::PATIENCE;
use crate::secret::{self, Authority, CROSSPLANE, NAME};

/// A connection without TLS.
pub async fn plain(address: SocketAddr) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect_timeout(PATIENCE).connect().await
}

/// A connection as Crossplane with a certificate of one authority, to a
/// function with a certificate of another.
pub async fn connect(
    address: SocketAddr,
    client: &Authority,
    server: &Authority,
) -> Result<Channel, Error> {
    connect_as(address, client.client(CROSSPLANE), server).await
}

/// A connection with a client's certificate, to a function with a certificate of an authority.
pub async fn connect_as(
    address: SocketAddr,
    client: secret::Identity,
    server: &Authority,
) -> Result<Channel, Error> {
    let secret::Identity { certificate, key } = client;
    let tls = ClientTlsConfig::new()
        .domain_name(NAME)
        .ca_certificate(Certificate::from_pem(server.certificate()))
        .identity(Identity::from_pem(certificate, key));
    let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap();
    let endpoint = endpoint.tls_config(tls).unwrap();
    endpoint.connect_timeout(PATIENCE).connect().await
}

/// A request that the function answers with a fatal result. This is enough to see that the request
/// arrived.
pub fn request(tag: &str) -> RunFunctionRequest {
    RunFunctionRequest {
        meta: Some(RequestMeta {
            tag: tag.to_owned(),
            ..RequestMeta::default()
        }),
        ..RunFunctionRequest::default()
    }
}

/// Calls the function, and expects the tag back. With TLS 1.3, a refused client learns of the
/// refusal only with the first answer.
pub async fn call(channel: &Channel) -> Result<(), Status> {
    let response = run(channel, request("tag")).await?;
    assert_eq!(response.meta.unwrap().tag, "tag");
    Ok(())
}

/// Calls the function.
pub async fn run(
    channel: &Channel,
    request: RunFunctionRequest,
) -> Result<RunFunctionResponse, Status> {
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
    let ready = timeout(PATIENCE, grpc.ready()).await;
    ready
        .expect("the connection hangs")
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static(V1::RUN_FUNCTION);
    let codec = ProstCodec::<RunFunctionRequest, RunFunctionResponse>::new();
    let call = grpc.unary(Request::new(request), path, codec);
    let answered = timeout(PATIENCE, call).await;
    answered.expect("no answer").map(Response::into_inner)
}

/// A call that runs until the test sends its request message.
pub struct Slow {
    rest: oneshot::Sender<()>,
    answer: tokio::task::JoinHandle<Result<RunFunctionResponse, Status>>,
}

impl Slow {
    /// Begins a call, without its message.
    pub fn begin(channel: &Channel) -> Self {
        let mut grpc = Grpc::new(channel.clone());
        let (rest, sent) = oneshot::channel();
        let message = stream::once(async move {
            sent.await.unwrap();
            request("slow")
        });
        let answer = tokio::spawn(async move {
            grpc.ready().await.unwrap();
            let path = PathAndQuery::from_static(V1::RUN_FUNCTION);
            let codec = ProstCodec::<RunFunctionRequest, RunFunctionResponse>::new();
            let call = grpc.client_streaming(Request::new(message), path, codec);
            call.await.map(Response::into_inner)
        });
        Self { rest, answer }
    }

    /// Sends the message, and expects the answer.
    pub async fn finish(self) {
        self.rest.send(()).expect("the call was dropped");
        let answer = timeout(PATIENCE, self.answer).await;
        let answer = answer.expect("no answer").unwrap().unwrap();
        assert_eq!(answer.meta.unwrap().tag, "slow");
    }

    /// Expects that the call is cut off.
    pub async fn cut_off(self) {
        let answer = timeout(PATIENCE, self.answer).await;
        assert!(answer.expect("no end").unwrap().is_err());
    }
}
