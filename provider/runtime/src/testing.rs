//! Kinds for tests.

use api::condition::{Condition, Conditioned};
use api::managed::ProviderConfigStatus;
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{self, Verdict};

/// A managed resource.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Thing",
    namespaced,
    status = "ThingStatus"
)]
pub struct ThingSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub struct ThingStatus {
    conditions: Vec<Condition>,
}

impl Conditioned for ThingStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// A provider configuration.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Config",
    status = "ProviderConfigStatus"
)]
pub struct ConfigSpec {}

/// A usage.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(group = "example.org", version = "v1", kind = "Use", namespaced)]
pub struct UseSpec {}

/// An object of the kind `Thing` in the namespace `default`, as the API server shows it.
pub fn thing(name: &str, conditions: &[(&'static str, bool)]) -> Thing {
    let mut thing = Thing::new(name, ThingSpec {});
    thing.metadata.namespace = Some("default".into());
    thing.metadata.uid = Some(format!("uid-of-{name}"));
    let mut status = ThingStatus::default();
    for (type_, holds) in conditions {
        let verdict = Verdict::new(type_, (*holds).into(), "Because", "");
        let now = Timestamp::UNIX_EPOCH;
        conditions::set(&mut status.conditions, verdict, None, now);
    }
    thing.status = Some(status);
    thing
}
