//! Starts the provider, and stops it in an orderly way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use api::pool::SpotPool;
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::client::ClientBuilder;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Config};
use provider_runtime::events::Events;
use provider_runtime::in_flight::InFlight;
use provider_runtime::leader::{Candidate, Lost, Terms};
use provider_runtime::metrics::api_server::Requests;
use provider_runtime::metrics::calls::Calls;
use provider_runtime::metrics::happened::EventCounts;
use provider_runtime::metrics::lifecycle::Lifecycles;
use provider_runtime::metrics::reconciles::Reconciles;
use provider_runtime::metrics::{Metrics, states};
use provider_runtime::operations::{Operations, OperationsError};
use provider_runtime::poll::Intervals;
use provider_runtime::unreadable::Reports;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedSender};

use crate::access::Known;
use crate::arguments::Arguments;
use crate::context::{Context, MANAGER};
use crate::controllers::{Controllers, Stop};
use crate::identity::{self, ControlPlane};
use crate::observer::Surroundings;
use crate::regions::Regions;
use crate::replica;
use crate::sweeper::LiveOwners;

/// The Lease of `--leader-election`, named as Crossplane's providers name theirs.
const LEASE: &str = "crossplane-leader-election-provider-gpu-spot";
/// How long a process that ends writes its last events.
const LAST_EVENTS: Duration = Duration::from_secs(2);
/// The shortest poll interval that a pool may ask for.
const MINIMUM_POLL: Duration = Duration::from_secs(10);

/// Why the provider cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The process cannot listen to signals.
    #[error("cannot listen to signals: {0}")]
    Signals(#[from] io::Error),
    /// The endpoints cannot be served.
    #[error(transparent)]
    Operations(#[from] OperationsError),
    /// The process finds neither a cluster nor a kubeconfig.
    #[error("no Kubernetes API server: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// The API server cannot be reached.
    #[error("no Kubernetes API server: {0}")]
    Client(#[from] kube::Error),
    /// The identity of the control plane is unknown.
    #[error(transparent)]
    Identity(#[from] identity::IdentityError),
    /// Another process leads.
    #[error("leads no more: {0}")]
    Lost(#[from] Lost),
}

/// Reconciles until SIGTERM. A process that loses its leadership ends with an error: a new process
/// has to read the state again.
pub async fn run(args: &Arguments) -> Result<(), RunError> {
    let stop = stop()?;
    let operations = Operations::default();
    let starting = operations.readiness.wait_for("the API server");
    if !args.operations_address.is_empty() {
        let endpoints = operations.clone().bind(&args.operations_address);
        tokio::spawn(endpoints.await?.serve());
    }
    let client = client(&operations.metrics).await?;
    let control_plane = ControlPlane::read(&client, &args.namespace).await?;
    tracing::info!(cluster = control_plane.identity, "starting");
    let (wake, woken) = mpsc::unbounded_channel();
    let controllers = controllers(args, client.clone(), operations, control_plane, wake);
    let events = controllers.context.events.clone();
    starting.finish();
    if !args.leader_election {
        controllers.run(woken, stop).await;
        events.written(LAST_EVENTS).await;
        return Ok(());
    }
    let namespace = &args.namespace;
    let candidate = Candidate::new(
        client,
        namespace,
        LEASE,
        replica::this_process(),
        Terms::default(),
    );
    let mut leader = tokio::select! {
        leader = candidate.elected() => leader,
        () = stop.clone() => return Ok(()),
    };
    tracing::info!(lease = LEASE, "leading");
    tokio::select! {
        () = controllers.run(woken, stop) => {}
        lost = leader.lost() => return Err(lost.into()),
    }
    events.written(LAST_EVENTS).await;
    leader.resign().await;
    Ok(())
}

fn controllers(
    args: &Arguments,
    client: Client,
    operations: Operations,
    control_plane: ControlPlane,
    wake: UnboundedSender<ObjectRef<SpotPool>>,
) -> Controllers {
    let metrics = &operations.metrics;
    let reconciles = Reconciles::new(metrics);
    let calls = Calls::new(
        metrics,
        "aws_ec2_api_calls",
        "Operations asked of EC2, by the class of the error that ended them, or success",
    );
    let counts = EventCounts::new(
        metrics,
        "gpu_spot_events",
        "What happened to pools and configurations, by the reason of their events",
    );
    let lifecycles = Lifecycles::new(metrics);
    let events = Events::new(client.clone(), MANAGER, counts);
    let unreadable = "gpu_spot_unreadable_objects";
    let reports = Reports::new(client.clone(), events.clone(), metrics, unreadable);
    let owners = LiveOwners {
        client: client.clone(),
        events: events.clone(),
        namespace: args.namespace.clone(),
        seals: control_plane.seals.clone(),
        identity: identity::object(&args.namespace, &control_plane.identity),
    };
    let around = Surroundings {
        wake,
        owners: Box::new(owners),
        grace: SignedDuration::try_from(Duration::from(args.orphan_grace))
            .unwrap_or(SignedDuration::MAX),
    };
    let context = Context::new(
        client.clone(),
        events,
        Regions::new(control_plane, calls, around),
        Known::new(args.rights()),
        Intervals {
            default: args.poll.into(),
            minimum: MINIMUM_POLL,
        },
        lifecycles.of(&states::gvk::<SpotPool>()),
        reconciles.of("managed/spotpool"),
    );
    Controllers {
        client,
        operations,
        reconciles,
        lifecycles,
        reports,
        context: Arc::new(context),
        concurrency: args.max_reconcile_rate,
    }
}

/// The client of the API server. It counts its requests, and sends few at once.
async fn client(metrics: &Metrics) -> Result<Client, RunError> {
    let config = Config::infer().await?;
    let stack = ClientBuilder::try_from(config)?;
    let stack = stack.with_layer(&Requests::new(metrics));
    Ok(stack.with_layer(&InFlight::default()).build())
}

/// Resolves at SIGTERM, which Kubernetes sends, or at SIGINT, which a terminal sends.
fn stop() -> Result<Stop, io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    };
    Ok(stop.boxed().shared())
}
