//! The gRPC server that Crossplane calls.
//!
//! It is what Crossplane's function specification asks for, and what running a
//! function teaches: certificates are read again when Crossplane rotates them
//! ([`listen::certificates`]), a slow handshake delays nobody ([`listen::accept`]), both
//! versions of the protocol are served ([`grpc::endpoint`]), and SIGTERM ends no
//! running call ([`run`]).
//!
//! # Limits
//!
//! A request may be as large as `--max-recv-message-size` says. prost reads
//! messages nested up to 100 deep, and a JSON object takes three of them: objects
//! may nest 32 levels. Beyond that the answer is a fatal result ([`grpc::codec`]).
//! Without its limit, prost would let 4 MB of nesting overflow the stack of a
//! thread and end the process, for every client.

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

/// How long running calls may take after the first signal. Kubernetes kills
/// after 30 seconds.
const DRAIN: Duration = Duration::from_secs(20);
/// How often a silent connection is asked whether its client still lives.
const KEEPALIVE: Duration = Duration::from_mins(1);
/// How much of requests a client may send before it hears that more is welcome. A request is
/// taken whole before it is read, and HTTP/2's own 64 KiB would make a client pause within
/// a large one, and send and read window updates with most calls.
const WINDOW: u32 = 1024 * 1024;
const MEGABYTE: usize = 1024 * 1024;

/// Serves a function of some kinds until SIGTERM or SIGINT, then until the last running
/// call is answered, at most 20 seconds. A second signal ends it at once. The metrics show
/// what `collectors` collect as well.
///
/// # Errors
///
/// Arguments, certificates or addresses that cannot be used, before anything is
/// served; [`Error::Interrupted`] after a second signal.
pub async fn run(
    kinds: Kinds,
    observe: Observe,
    collectors: Vec<Box<dyn Collector>>,
    arguments: &Arguments,
) -> Result<(), Error> {
    let certificates = arguments.certificates()?.map(Certificates::read);
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
            // Stopping and dropping the sender mean the same.
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

/// Everything that is served: the function in both versions, health, reflection.
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

/// What health is told about: the whole server, and both versions.
const SERVICES: [&str; 3] = ["", V1::SERVICE, V1Beta1::SERVICE];

/// Tells whoever watches the health, and ends their watches: they would keep
/// their connections open until the time for running calls is over.
async fn announce_end(mut health: HealthReporter) {
    for service in SERVICES {
        health
            .set_service_status(service, ServingStatus::NotServing)
            .await;
        health.clear_service_status(service).await;
    }
}

/// Keeps reading the certificates. Answers where the newest usable ones are.
fn follow(certificates: Certificates) -> watch::Receiver<Arc<ServerConfig>> {
    let newest = certificates.newest();
    tokio::spawn(certificates.follow());
    newest
}

/// Serves the metrics, if wanted. A port that is taken is no reason not to run
/// the function: Go's functions log it as well.
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
