//! What a placement composes for a workspace.

use std::collections::BTreeMap;

use function_runtime::desired::Composed;

use crate::access::Access;
use crate::report::Report;
use crate::setup::Setup;

/// The composed resources of a workspace, and the report about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    /// The composed resources, by composition resource name.
    pub resources: BTreeMap<String, Composed>,
    /// What the user sees.
    pub report: Report,
    /// Messages about settings that lock the owner out or have no effect. They are not errors.
    pub notices: Vec<String>,
    /// Whether anybody can reach the workspace; none if this call does not know.
    pub access: Option<Access>,
    /// Whether the software is installed; none if this call does not know.
    pub setup: Option<Setup>,
    /// The reason why the current claim could not be resolved. The running workspace is kept as it
    /// is.
    pub unresolved: Option<&'static str>,
    /// Whether the result changes only when a watched resource changes. If not, the function must
    /// be called again after some time.
    pub is_settled: bool,
}
