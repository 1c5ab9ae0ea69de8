//! What a StatefulSet's pods are made from, written down on the StatefulSet itself.
//!
//! Crossplane writes the XR's status last, and not at all while something composed is
//! refused. So status may be older than the pods, and a restored XR has none.

use api::cluster::ChosenPods;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::seen::StatefulSet;

/// The annotation of a StatefulSet that holds its record.
pub const ANNOTATION: &str = "platform.acme.io/made-from";

/// Everything that a pod template is rendered from, besides names that never change.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What the pods are made of.
    pub pods: ChosenPods,
    /// Whose they are.
    pub owner: String,
    /// The cluster's DNS domain, in which pods find each other.
    pub domain: String,
}

impl Record {
    /// The record of an observed StatefulSet.
    pub fn of(set: StatefulSet<'_>) -> Option<Self> {
        serde_json::from_str(set.annotation(ANNOTATION)?).ok()
    }

    /// As the annotation has it.
    pub fn written(&self) -> String {
        json!(self).to_string()
    }
}
