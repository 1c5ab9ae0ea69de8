//! The kinds that the API reference describes, and who writes their objects.

use std::error::Error;

use api::catalogue::Catalogue;
use api::dev_user::DevUserPolicy;
use api::flavor::FlavorPolicy;
use api::lease::SpotLease;
use api::limits::WorkspaceLimits;
use api::policy::WorkspacePolicy;
use api::pool::SpotPool;
use api::provider_config::{ClusterProviderConfig, ProviderConfig};
use api::record::WorkspaceRecord;
use serde_json::Value;

use super::reference::Section;
use super::{input_schema, patterns, xrds};

/// The kinds that people write or read, the most used ones first.
pub(super) fn sections() -> Result<Vec<Section>, Box<dyn Error>> {
    let mut sections = workspaces()?;
    sections.extend(pools()?);
    sections.extend(inputs());
    Ok(sections)
}

fn workspaces() -> Result<Vec<Section>, Box<dyn Error>> {
    let section =
        |kind, about, xrd: Value| of_group(api::WORKSPACE_GROUP, kind, about, schema(&xrd));
    Ok(vec![
        section(
            "GpuDevWorkspaceClaim",
            "a workspace, by its developer",
            xrds::workspace()?,
        ),
        section(
            "WorkspaceFlavor",
            "what pods there are, by the platform team",
            xrds::flavor()?,
        ),
        section(
            "DevUser",
            "a person and their namespace, by the platform team",
            xrds::dev_user()?,
        ),
        section(
            "WorkspaceRecord",
            "what the function remembers of a workspace without a claim, by the function",
            patterns::crd::<WorkspaceRecord>()?,
        ),
    ])
}

fn pools() -> Result<Vec<Section>, Box<dyn Error>> {
    let section = |kind, about, crd: Value| of_group(api::POOL_GROUP, kind, about, schema(&crd));
    Ok(vec![
        section(
            "SpotPool",
            "equal instances, by teams or by the function",
            patterns::crd::<SpotPool>()?,
        ),
        section(
            "SpotLease",
            "one instance of a pool, by its user",
            patterns::crd::<SpotLease>()?,
        ),
        section(
            "ProviderConfig",
            "credentials of a namespace",
            patterns::crd::<ProviderConfig>()?,
        ),
        section(
            "ClusterProviderConfig",
            "credentials of the cluster",
            patterns::crd::<ClusterProviderConfig>()?,
        ),
    ])
}

fn inputs() -> [Section; 5] {
    [
        of_group(
            api::POLICY_GROUP,
            "WorkspacePolicy",
            "the input of the Composition of workspaces",
            input_schema::<WorkspacePolicy>(),
        ),
        of_group(
            api::POLICY_GROUP,
            "DevUserPolicy",
            "the input of the Composition of users",
            input_schema::<DevUserPolicy>(),
        ),
        of_group(
            api::POLICY_GROUP,
            "FlavorPolicy",
            "the input of the Composition of flavors",
            input_schema::<FlavorPolicy>(),
        ),
        Section {
            kind: "Catalogue",
            api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
            about: "the `data` of an EnvironmentConfig, by operations",
            schema: input_schema::<Catalogue>(),
        },
        Section {
            kind: "WorkspaceLimits",
            api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
            about: "the `data` of the EnvironmentConfig that the function's flag `--limits` names",
            schema: input_schema::<WorkspaceLimits>(),
        },
    ]
}

fn of_group(group: &str, kind: &'static str, about: &'static str, schema: Value) -> Section {
    Section {
        kind,
        api_version: format!("{group}/{}", api::VERSION),
        about,
        schema,
    }
}

/// The schema of an XRD or a CRD.
fn schema(definition: &Value) -> Value {
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}
