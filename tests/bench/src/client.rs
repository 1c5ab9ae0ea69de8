//! A client that uses little processor time: it sends a request that is already encoded, and does
//! not decode the response.

use bench_function::encoded::Encoded;
use bytes::Bytes;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::Outcome;

const METHOD: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// One connection to a server. Crossplane also keeps one connection to each function.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    channel: Channel,
    runner: Grpc<Channel>,
}

impl Client {
    /// Connects by mTLS, as Crossplane does.
    pub(crate) async fn connect(address: &str, tls: &ClientTlsConfig) -> Outcome<Self> {
        let endpoint = Endpoint::from_shared(format!("https://{address}"))?;
        let channel = endpoint.tls_config(tls.clone())?.connect().await?;
        Ok(Self {
            runner: Grpc::new(channel.clone()),
            channel,
        })
    }

    /// Runs the function. The request and the response are encoded.
    pub(crate) async fn run(&mut self, request: Bytes) -> Outcome<Bytes> {
        self.runner.ready().await?;
        let method = PathAndQuery::from_static(METHOD);
        let response = self.runner.unary(Request::new(request), method, Encoded);
        Ok(response.await?.into_inner())
    }

    /// Whether the server's health service says that it serves. A server without this service, such
    /// as one on Python's SDK, serves as soon as it answers.
    pub(crate) async fn serves(&self) -> bool {
        let mut health = HealthClient::new(self.channel.clone());
        match health.check(HealthCheckRequest::default()).await {
            Ok(response) => response.into_inner().status() == ServingStatus::Serving,
            Err(status) => status.code() == Code::Unimplemented,
        }
    }
}
