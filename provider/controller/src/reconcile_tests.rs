use api::managed::ManagementAction;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use memory_api_server::ApiServer;
use provider_runtime::events::Events;
use provider_runtime::metrics::Metrics;
use provider_runtime::metrics::calls::Calls;
use provider_runtime::metrics::happened::EventCounts;
use provider_runtime::metrics::lifecycle::Lifecycles;
use provider_runtime::metrics::reconciles::Reconciles;
use provider_runtime::poll::Intervals;
use serde_json::{Value, json};

use super::*;
use crate::access::{Known, Rights};
use crate::identity::{self, ControlPlane};
use crate::observer::Surroundings;
use crate::regions::Regions;
use crate::seals::SEALS;
use crate::simulation::pool_for_tests;
use crate::sweeper::LiveOwners;

const NAMESPACE: &str = "crossplane-system";

/// A provider of an API server that has one pool. It reaches no AWS.
struct Provider {
    server: ApiServer,
    context: Arc<Context>,
    path: String,
}

impl Provider {
    fn of(pool: &SpotPool) -> Self {
        let server = ApiServer::default();
        let namespace = pool.namespace();
        let path = SpotPool::url_path(&(), namespace.as_deref());
        let path = format!("{path}/{}", pool.name_any());
        server.put(&path, serde_json::to_value(pool).unwrap());
        let context = Arc::new(context(&server));
        Self {
            server,
            context,
            path,
        }
    }

    fn pool(&self) -> Value {
        self.server.object(&self.path).unwrap()
    }

    fn has_finalizer(&self) -> bool {
        let finalizers = &self.pool()["metadata"]["finalizers"];
        finalizers
            .as_array()
            .is_some_and(|all| all.contains(&json!(finalizer::MANAGED)))
    }

    async fn reconcile(&self) -> Result<Requeue, ReconcileError> {
        let pool: SpotPool = serde_json::from_value(self.pool()).unwrap();
        reconcile(Arc::new(pool), self.context.clone()).await
    }
}

fn context(server: &ApiServer) -> Context {
    let metrics = Metrics::new();
    let control_plane = ControlPlane {
        identity: "cluster".into(),
        seals: SEALS.clone(),
    };
    let (wake, _) = tokio::sync::mpsc::unbounded_channel();
    let around = Surroundings {
        wake,
        owners: Box::new(LiveOwners::for_tests(server)),
        grace: jiff::SignedDuration::from_mins(10),
    };
    let calls = Calls::new(&metrics, "calls", "Calls");
    let counts = EventCounts::new(&metrics, "events", "Events");
    let rights = Rights {
        identity: false,
        endpoints: Vec::new(),
    };
    Context::new(
        server.client(),
        Events::new(server.client(), MANAGER, counts),
        Regions::new(control_plane, calls, around),
        Known::new(rights),
        Intervals {
            default: CALM,
            minimum: CALM,
        },
        Lifecycles::new(&metrics).of("SpotPool"),
        Reconciles::new(&metrics).of("managed/spotpool"),
    )
}

/// A pool that its owner deleted a moment ago. It has instances.
fn deleted() -> SpotPool {
    let mut pool = pool_for_tests();
    pool.metadata.finalizers = Some(vec![finalizer::MANAGED.into()]);
    pool.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
    pool
}

#[tokio::test]
async fn a_request_that_is_never_answered_keeps_a_pool_for_minutes_at_most() {
    let answered = async { Ok(Requeue::await_change()) };
    assert!(in_time(DEADLINE, answered).await.is_ok());
    let ended = in_time(Duration::ZERO, std::future::pending()).await;
    assert!(matches!(ended, Err(ReconcileError::Deadline)));
}

#[tokio::test]
async fn a_deleted_pool_without_its_configuration_stays_because_its_instances_run() {
    let provider = Provider::of(&deleted());
    provider.reconcile().await.unwrap();
    assert!(provider.has_finalizer(), "{}", provider.pool());
    let conditions = provider.pool()["status"]["conditions"].clone();
    let synced = conditions.as_array().unwrap().iter();
    let mut synced = synced.filter(|one| one["type"] == SYNCED);
    let said = synced.next().unwrap();
    assert_eq!(said["status"], "False");
    let name = &provider.pool()["spec"]["providerConfigRef"]["name"];
    let message = said["message"].as_str().unwrap();
    assert!(message.contains(name.as_str().unwrap()), "{message}");
}

#[tokio::test]
async fn a_pool_whose_instances_stay_goes_only_after_the_provider_noted_them() {
    let mut pool = deleted();
    pool.spec.management_policies = vec![ManagementAction::Observe, ManagementAction::Create];
    let provider = Provider::of(&pool);
    // The ConfigMap for the note does not exist yet.
    provider.reconcile().await.unwrap_err();
    assert!(provider.has_finalizer(), "the sweeper would end them");

    let map = identity::object(NAMESPACE, "uid-of-map");
    let path = ConfigMap::url_path(&(), Some(NAMESPACE));
    let path = format!("{path}/{}", identity::NAME);
    provider
        .server
        .put(&path, serde_json::to_value(map).unwrap());
    provider.reconcile().await.unwrap();
    assert!(!provider.has_finalizer());
    let uid = pool.metadata.uid.unwrap();
    let kept = identity::kept(&provider.context.client, NAMESPACE).await;
    assert!(kept.unwrap().contains(&uid));
}

#[tokio::test]
async fn a_deleted_pool_waits_for_another_controller_that_needs_its_instances() {
    let mut pool = deleted();
    let finalizers = pool.metadata.finalizers.as_mut().unwrap();
    finalizers.push("example.org/backup".into());
    let provider = Provider::of(&pool);
    provider.reconcile().await.unwrap();
    assert!(provider.has_finalizer());
    let said = provider.pool()["status"]["conditions"][0]["message"].clone();
    assert_eq!(said, "waits until example.org/backup is removed");
}

#[tokio::test]
async fn a_paused_pool_changes_in_nothing_but_its_condition() {
    let mut pool = pool_for_tests();
    let annotations = pool.metadata.annotations.get_or_insert_default();
    annotations.insert("crossplane.io/paused".into(), "true".into());
    let provider = Provider::of(&pool);
    let before = provider.pool();
    provider.reconcile().await.unwrap();
    let after = provider.pool();
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(
        after["metadata"]["finalizers"],
        before["metadata"]["finalizers"]
    );
    assert_eq!(
        after["status"]["conditions"][0]["reason"],
        "ReconcilePaused"
    );
}
