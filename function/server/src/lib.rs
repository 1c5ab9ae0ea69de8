//! The gRPC server of the function. Crossplane calls it.
//!
//! It follows Crossplane's function specification, and adds rules from practice. Certificates are
//! read again when Crossplane rotates them ([`listen::certificates`]). A slow handshake does not
//! delay other clients ([`listen::accept`]). Both versions of the protocol are served
//! ([`grpc::endpoint`]). SIGTERM does not end running calls ([`run`]).
//!
//! # Limits
//!
//! `--max-recv-message-size` limits the size of a request. prost reads messages that are nested up
//! to 100 levels deep. A JSON object takes three of them, so objects may nest 32 levels deep.
//! Deeper objects get a fatal result ([`grpc::codec`]). Without its limit, prost would let 4 MB of
//! nesting overflow the stack of a thread, and the process would end for every client.

pub mod answer;
mod arguments;
pub mod decode;
pub mod encode;
mod error;
pub mod grpc;
mod listen;
mod metrics;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use function_runtime::kind::Kinds;
use prometheus_client::collector::Collector;
use rustls::ServerConfig;
use tokio::sync::{oneshot, watch};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{error, info, warn};

pub use arguments::Arguments;
pub use error::Error;

use grpc::descriptors;
use grpc::endpoint::{Endpoint, Function, Observe, Package, V1, V1Beta1};
use listen::accept;
use listen::address::Listener;
use listen::certificates::Certificates;
use metrics::calls::{Counted, Metrics};
use metrics::endpoint;
use signals::Signals;

/// Longest time for running calls after the first signal. Kubernetes kills the process after 30
/// seconds.
const DRAIN: Duration = Duration::from_secs(20);
/// Time without traffic after which the server checks that a client is still connected.
const KEEPALIVE: Duration = Duration::from_mins(1);
/// The HTTP/2 flow control window: bytes that a client may send before the server must allow more.
/// A request is read only after it has arrived completely. With HTTP/2's default of 64 KiB, a
/// client would pause during a large request, and most calls would need window updates.
const WINDOW: u32 = 1024 * 1024;
const MEGABYTE: usize = 1024 * 1024;

/// Serves a function until SIGTERM or SIGINT. Then it waits at most 20 seconds for running calls. A
/// second signal ends the server at once. The metrics include those of `collectors`.
///
/// # Errors
///
/// Arguments, certificates or addresses cannot be used; then no call was served.
/// [`Error::Interrupted`] after a second signal.
pub async fn run(
    kinds: Kinds,
    observe: Observe,
    collectors: Vec<Box<dyn Collector>>,
    arguments: &Arguments,
) -> Result<(), Error> {
    let client = arguments.client_name.as_ref();
    let certificates = arguments.certificates()?;
    let certificates = certificates.map(|folder| Certificates::read(folder, client.cloned()));
    let certificates = certificates.transpose()?;
    let mut signals = Signals::install()?;
    let listener = Listener::bind("--address", &arguments.address, arguments.network)?;
    let metrics = Arc::new(Metrics::new(collectors));
    serve_metrics(arguments, &metrics)?;
    let limit = arguments.max_recv_message_size.get() as usize * MEGABYTE;
    let function = Function {
        kinds,
        now: arguments.now,
        observe,
    };
    let (health, routes) = routes(function, limit).await?;

    let address = listener.address;
    let transport = if certificates.is_some() {
        "mTLS"
    } else {
        "insecure"
    };
    let connections = accept::connections(listener, certificates.map(follow));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .serve_with_incoming_shutdown(Counted::new(routes, metrics), connections, async {
            // The sender is dropped to stop the server.
            let _ = stopped.await;
        });
    let mut serving = std::pin::pin!(serving);
    info!(%address, transport, "serving");

    let signal = tokio::select! {
        ended = &mut serving => return Ok(ended?),
        signal = signals.next() => signal,
    };
    info!(signal, "finishing the running calls");
    announce_end(health).await;
    drop(stop);
    tokio::select! {
        ended = tokio::time::timeout(DRAIN, serving) => if let Ok(ended) = ended {
            ended?;
        } else {
            warn!(seconds = DRAIN.as_secs(), "calls are still running and are cut off");
        },
        signal = signals.next() => return Err(Error::Interrupted { signal }),
    }
    info!("stopped");
    Ok(())
}

/// All services: the function in both versions of the protocol, health and reflection.
async fn routes(function: Function, limit: usize) -> Result<(HealthReporter, Routes), Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in SERVICES {
        health
            .set_service_status(service, ServingStatus::Serving)
            .await;
    }
    let routes = Routes::new(Endpoint::<V1>::new(function, limit))
        .add_service(Endpoint::<V1Beta1>::new(function, limit))
        .add_service(health_service)
        .add_service(descriptors::reflection()?.build_v1()?)
        .add_service(descriptors::reflection()?.build_v1alpha()?);
    Ok((health, routes.prepare()))
}

/// The services whose health is reported: the whole server, and both versions of the protocol.
const SERVICES: [&str; 3] = ["", V1::SERVICE, V1Beta1::SERVICE];

/// Reports that the server stops, and ends the health watches. Otherwise their connections would
/// stay open until the time for running calls is over.
async fn announce_end(mut health: HealthReporter) {
    for service in SERVICES {
        health
            .set_service_status(service, ServingStatus::NotServing)
            .await;
        health.clear_service_status(service).await;
    }
}

/// Keeps the certificates up to date. Returns a receiver for the newest usable configuration.
fn follow(certificates: Certificates) -> watch::Receiver<Arc<ServerConfig>> {
    let newest = certificates.newest();
    tokio::spawn(certificates.follow());
    newest
}

/// Serves the metrics if an address is given. If the port is in use, the error is only logged, as
/// in Go's functions, and the function still runs.
fn serve_metrics(arguments: &Arguments, metrics: &Arc<Metrics>) -> Result<(), Error> {
    let Some(address) = arguments.metrics_address() else {
        return Ok(());
    };
    match Listener::bind("--metrics-address", address, arguments.network) {
        Ok(listener) => {
            info!(address = %listener.address, "serving metrics");
            tokio::spawn(endpoint::serve(listener, Arc::clone(metrics)));
            Ok(())
        }
        Err(problem @ Error::Listen { .. }) => {
            error!("metrics are not served: {problem}");
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}
