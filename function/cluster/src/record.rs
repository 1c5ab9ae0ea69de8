//! Records the settings of a StatefulSet's pods in an annotation of the StatefulSet.
//!
//! Crossplane writes the composite's status after it applied the composed resources. While the API
//! server refuses one of them, Crossplane does not write the status. The status may therefore be
//! older than the pods, and a restored composite has no status.

use api::cluster::ChosenPods;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::seen::StatefulSet;

/// The annotation of the StatefulSet that holds its record.
pub const ANNOTATION: &str = "platform.acme.io/made-from";

/// The input of the pod template, except names that never change.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The settings of the pods.
    pub pods: ChosenPods,
    /// The owner of the pods.
    pub owner: String,
    /// The DNS domain of the cluster, in which the pods find each other.
    pub domain: String,
}

impl Record {
    /// The record of an observed StatefulSet; none if it has none that can be read.
    pub fn of(set: StatefulSet<'_>) -> Option<Self> {
        serde_json::from_str(set.annotation(ANNOTATION)?).ok()
    }

    /// The value of the annotation.
    pub fn written(&self) -> String {
        json!(self).to_string()
    }
}
