//! The pools in the API server: the objects that they need, their creation, and the times at which
//! they become ready.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::condition::{self, ConditionStatus, READY};
use api::pool::SpotPool;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, conditions, wait::await_condition, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Outcome;
use crate::account::{IMAGE, REGION};

const NAMESPACE: &str = "gpu";
const SYSTEM: &str = "crossplane-system";
/// The longest time until the API server serves a new kind.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many pools the benchmark creates at the same time.
const TOGETHER: usize = 16;
/// The instance types of a pool, in the order of preference.
const TYPES: [&str; 2] = ["g4dn.xlarge", "g5.xlarge"];

/// The times at which each pool was created and became ready, by the pool's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Arc<Mutex<BTreeMap<String, Time>>>);

#[derive(Clone, Copy, Debug)]
struct Time {
    created: Instant,
    ready: Option<Instant>,
}

impl Times {
    /// Ignores poisoning: no code panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Time>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of pools that became ready.
    pub(crate) fn ready(&self) -> usize {
        self.lock()
            .values()
            .filter(|time| time.ready.is_some())
            .count()
    }

    /// The time from creation to readiness, of every pool that became ready.
    pub(crate) fn to_capacity(&self) -> Vec<Duration> {
        let times = self.lock();
        let taken = times
            .values()
            .filter_map(|t| Some(t.ready?.duration_since(t.created)));
        taken.collect()
    }

    /// Starts to note when pools become ready. This goes on until the process ends.
    pub(crate) fn follow(&self, client: Client) {
        let times = self.clone();
        tokio::spawn(async move {
            let pools: Api<SpotPool> = Api::namespaced(client, NAMESPACE);
            let seen = watcher(pools, watcher::Config::default()).default_backoff();
            let mut seen = seen.applied_objects().boxed();
            while let Some(pool) = seen.next().await {
                let Ok(pool) = pool else { continue };
                if is_ready(&pool)
                    && let Some(time) = times.lock().get_mut(&pool.name_any())
                {
                    time.ready.get_or_insert_with(Instant::now);
                }
            }
        });
    }
}

/// Whether all of the pool's instances run and the provider has set the condition `Ready`.
fn is_ready(pool: &SpotPool) -> bool {
    let Some(status) = &pool.status else {
        return false;
    };
    let running = usize::try_from(status.at_provider.size.running);
    let wanted = usize::try_from(pool.spec.for_provider.size.minimum);
    running == wanted
        && condition::find(&status.conditions, READY)
            .is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Creates the provider's kinds, the namespaces, credentials, and a provider configuration that
/// sends the provider's AWS calls to `endpoint`.
pub(crate) async fn install(client: &Client, root: &Path, endpoint: &str) -> Outcome<()> {
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for entry in fs::read_dir(root.join("package/provider/crds"))? {
        let text = fs::read_to_string(entry?.path())?;
        let kind: CustomResourceDefinition = serde_yaml::from_str(&text)?;
        let name = kind.name_any();
        kinds.create(&PostParams::default(), &kind).await?;
        let served = await_condition(kinds.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(PATIENCE, served).await??;
    }
    for name in [NAMESPACE, SYSTEM] {
        let object = json!({"metadata": {"name": name}});
        create(&Api::<Namespace>::all(client.clone()), object).await?;
    }
    let profile = "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\n\
                   aws_secret_access_key = none\n";
    let secret = json!({"metadata": {"name": "aws"}, "stringData": {"profile": profile}});
    create(&Api::<Secret>::namespaced(client.clone(), SYSTEM), secret).await?;
    let config = json!({
        "metadata": {"name": "default"},
        "spec": {
            "credentials": {
                "source": "Secret",
                "secretRef": {"namespace": SYSTEM, "name": "aws", "key": "profile"},
            },
            "endpoint": {"url": {"type": "Static", "static": endpoint}},
            "eventQueues": {REGION: format!("{endpoint}/123456789012/events")},
        },
    });
    let configs: Api<api::provider_config::ClusterProviderConfig> = Api::all(client.clone());
    create(&configs, config).await
}

/// One pool in this many reads the consoles of its instances, as the pools of workspaces do. Those
/// have one instance each: there are about as many as pools here.
pub(crate) const CONSOLE_EACH: usize = 10;

/// Creates pools of these sizes.
pub(crate) async fn create_all(client: &Client, sizes: Vec<usize>, times: &Times) -> Outcome<()> {
    let pools: Api<SpotPool> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(sizes.into_iter().enumerate().map(Ok))
        .try_for_each_concurrent(TOGETHER, |(number, size)| {
            let pools = pools.clone();
            async move {
                let name = format!("pool-{number:04}");
                let time = Time {
                    created: Instant::now(),
                    ready: None,
                };
                times.lock().insert(name.clone(), time);
                let reads_console = number.is_multiple_of(CONSOLE_EACH);
                create(&pools, pool(&name, size, reads_console)).await
            }
        })
        .await
}

/// The names of all pools, by the identity that tags their instances.
pub(crate) async fn names(client: &Client) -> Outcome<BTreeMap<String, String>> {
    let pools: Api<SpotPool> = Api::namespaced(client.clone(), NAMESPACE);
    let mut names = BTreeMap::new();
    for pool in pools.list(&ListParams::default()).await? {
        let name = pool.name_any();
        let status = pool.status.unwrap_or_default().at_provider;
        let identity = status.pool_identity;
        let identity = identity.ok_or_else(|| format!("pool {name} has no identity"))?;
        // What follows the first point is the provider's signature.
        let identity = identity.split('.').next().unwrap_or_default();
        names.insert(identity.to_owned(), name);
    }
    Ok(names)
}

/// Gives each named pool an end.
pub(crate) async fn end_at(client: &Client, ends: BTreeMap<String, Timestamp>) -> Outcome<()> {
    let pools: Api<SpotPool> = Api::namespaced(client.clone(), NAMESPACE);
    stream::iter(ends.into_iter().map(Ok))
        .try_for_each_concurrent(TOGETHER, |(name, end)| {
            let pools = pools.clone();
            async move {
                let change = json!({"spec": {"forProvider": {"endsAt": end}}});
                let params = PatchParams::default();
                pools.patch(&name, &params, &Patch::Merge(change)).await?;
                Ok(())
            }
        })
        .await
}

fn pool(name: &str, size: usize, reads_console: bool) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"forProvider": {
            "region": REGION,
            "size": {"minimum": size, "maximum": size + 1},
            "capacityType": "Spot",
            "instanceTypes": TYPES,
            "image": {"id": IMAGE},
            "userData": "#cloud-config\n",
            "readConsole": reads_console,
            "ssh": {"allowedCidrs": ["203.0.113.0/24"]},
        }},
    })
}

async fn create<K>(api: &Api<K>, mut object: Value) -> Outcome<()>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    let object: K = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}
