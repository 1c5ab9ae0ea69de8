//! A server that shows the cost of the transport alone. It has the HTTP/2, TLS and gRPC stack of
//! this function. It does not decode the request, and always answers with the same encoded bytes.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::task::{Context, Poll};

use bench_function::encoded::Encoded;
use bytes::Bytes;
use clap::Parser;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

/// Answers every call with the same bytes.
#[derive(Parser)]
struct Arguments {
    /// The file with the answer
    answer: PathBuf,
    /// Where it listens
    #[arg(long)]
    address: SocketAddr,
    /// The folder of tls.crt, tls.key and ca.crt
    #[arg(long, env = "TLS_SERVER_CERTS_DIR")]
    tls_certs_dir: PathBuf,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let read = |name: &str| std::fs::read(arguments.tls_certs_dir.join(name));
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(read("tls.crt")?, read("tls.key")?))
        .client_ca_root(Certificate::from_pem(read("ca.crt")?));
    let answer = Bytes::from(std::fs::read(&arguments.answer)?);
    Server::builder()
        .tls_config(tls)?
        .add_service(Bare(answer))
        .serve(arguments.address)
        .await?;
    Ok(())
}

#[derive(Clone)]
struct Bare(Bytes);

impl NamedService for Bare {
    const NAME: &'static str = "apiextensions.fn.proto.v1.FunctionRunnerService";
}

impl Service<http::Request<Body>> for Bare {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: http::Request<Body>) -> Self::Future {
        let bare = self.clone();
        Box::pin(async move { Ok(Grpc::new(Encoded).unary(bare, call).await) })
    }
}

impl UnaryService<Bytes> for Bare {
    type Response = Bytes;
    type Future = std::future::Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        std::future::ready(Ok(Response::new(self.0.clone())))
    }
}
