//! What another policy would do to the workspaces of a cluster, and what a claim would get that does not exist
//! yet.
//!
//! The function is pure: a composite, its composed resources and the fetched resources give the
//! desired state. So [`preview`] decides about each workspace twice, under its own policy and under
//! the proposed one, and compares the decisions. It reads a cluster and writes nothing. [`wish`] decides
//! about a claim that a person has not created yet.

pub mod calls;
pub mod composed;
pub mod composition;
mod decision;
mod effect;
mod error;
mod granting;
pub mod menu;
pub mod outlook;
pub mod platform;
pub mod price;
mod proposal;
pub mod selection;
pub mod snapshot;
mod table;
pub mod wish;

use function_runtime::composite::{Composite, Origin};
use function_runtime::json::Json;
use function_runtime::kind::Kinds;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

pub use crate::effect::Effect;
pub use crate::error::Error;
pub use crate::proposal::Proposal;
use crate::snapshot::{Snapshot, Source};

/// The kinds of composites that are workspaces: with a claim, and namespaced.
const WORKSPACES: [&str; 2] = ["GpuDevWorkspace", "GpuDevWorkspaceClaim"];

/// What a proposed policy would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// One row for each workspace of the Composition, by namespace and name.
    pub workspaces: Vec<Row>,
}

/// What a proposed policy would do to one workspace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The namespace of the claim.
    pub namespace: String,
    /// The name of the claim.
    pub name: String,
    /// The effect.
    pub effect: Effect,
    /// Whether the workspace has a machine that runs or starts.
    pub is_on: bool,
    /// Why, or what changes; empty if nothing does.
    pub message: String,
    /// The fields of composed resources that change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The highest price in US dollars per hour under the policy in force, if the catalogue has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_usd: Option<f64>,
    /// The same under the proposed policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_hourly_usd: Option<f64>,
}

impl Preview {
    /// Whether a machine that runs would end.
    pub fn ends_a_machine(&self) -> bool {
        let mut rows = self.workspaces.iter();
        rows.any(|row| row.is_on && row.effect.ends_a_machine())
    }
}

/// Decides about every workspace of the proposal's Composition, as of `now`.
///
/// # Errors
///
/// The source cannot be read.
pub fn preview(
    proposal: &Proposal,
    source: &mut dyn Source,
    kinds: Kinds,
    now: Timestamp,
) -> Result<Preview, Error> {
    let mut snapshot = Snapshot::new(source);
    let mut workspaces = Vec::new();
    for kind in WORKSPACES {
        for composite in snapshot.all("platform.acme.io/v1alpha1", kind)?.to_vec() {
            let Some(origin) = Composite::new(&Json::from(&composite)).origin() else {
                continue;
            };
            // A claim is no composite. Only composites have a Composition and composed resources.
            if proposal::composition_of(&composite) != Some(proposal.composition.as_str()) {
                continue;
            }
            workspaces.push(row(
                proposal,
                &mut snapshot,
                kinds,
                now,
                &composite,
                origin,
            )?);
        }
    }
    workspaces
        .sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    Ok(Preview { workspaces })
}

fn row(
    proposal: &Proposal,
    snapshot: &mut Snapshot<'_>,
    kinds: Kinds,
    now: Timestamp,
    composite: &Value,
    Origin { namespace, name }: Origin,
) -> Result<Row, Error> {
    let observed = snapshot.composed_of(composite)?;
    let mut decide = |policy: Option<&Value>| {
        decision::decide(snapshot, kinds, now, composite, &observed, policy)
    };
    let in_force = decide(proposal.in_force.as_ref())?;
    let proposed = decide(Some(&proposal.policy))?;
    let compared = effect::compare(&observed, &in_force.response, &proposed.response);
    Ok(Row {
        namespace,
        name,
        is_on: effect::is_on(&observed),
        effect: compared.effect,
        message: compared.message,
        fields: compared.fields,
        hourly_usd: price::highest(&in_force),
        proposed_hourly_usd: price::highest(&proposed),
    })
}
