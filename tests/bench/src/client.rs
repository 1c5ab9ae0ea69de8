//! A client that costs little: it sends a request that is encoded already, and
//! takes the response as it comes.

use bytes::{Buf as _, BufMut as _, Bytes};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::Outcome;

const METHOD: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// One connection to a server, as Crossplane keeps one to each function.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    channel: Channel,
    runner: Grpc<Channel>,
}

impl Client {
    /// Connects by mTLS, which is how Crossplane calls functions.
    pub(crate) async fn connect(address: &str, tls: &ClientTlsConfig) -> Outcome<Self> {
        let endpoint = Endpoint::from_shared(format!("https://{address}"))?;
        let channel = endpoint.tls_config(tls.clone())?.connect().await?;
        Ok(Self {
            runner: Grpc::new(channel.clone()),
            channel,
        })
    }

    /// Runs the function; the response is encoded.
    pub(crate) async fn run(&mut self, request: Bytes) -> Outcome<Bytes> {
        self.runner.ready().await?;
        let method = PathAndQuery::from_static(METHOD);
        let response = self.runner.unary(Request::new(request), method, Encoded);
        Ok(response.await?.into_inner())
    }

    /// Whether the server says that it serves. One without the health service
    /// serves as soon as it answers; Python's SDK has none.
    pub(crate) async fn serves(&self) -> bool {
        let mut health = HealthClient::new(self.channel.clone());
        match health.check(HealthCheckRequest::default()).await {
            Ok(response) => response.into_inner().status() == ServingStatus::Serving,
            Err(status) => status.code() == Code::Unimplemented,
        }
    }
}

/// Messages that stay encoded.
#[derive(Clone, Copy, Debug)]
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
