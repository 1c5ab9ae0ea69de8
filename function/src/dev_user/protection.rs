//! What keeps a user from being deleted with everything that is theirs.

use api::dev_user::DevUserPolicy;
use api::policy::HomeOnDelete;
use serde_json::Value;

use crate::cluster::OWNER_LABEL;
use crate::request::Request;
use crate::requirements::{Requirement, Which};

const HOMES: &str = "homes";
const CLAIMS: &str = "claims";

/// What a deletion would end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nobody has looked yet.
    Unknown,
    /// These.
    Known {
        /// Volume claims with somebody's files.
        homes: Vec<String>,
        /// Workspaces.
        claims: Vec<String>,
    },
}

/// The homes and the workspaces of a namespace.
pub fn requirements(namespace: &str, owner: &str) -> Vec<Requirement> {
    vec![
        Requirement {
            name: HOMES.to_owned(),
            api_version: "v1",
            kind: "PersistentVolumeClaim",
            which: Which::Labelled {
                namespace: namespace.to_owned(),
                key: OWNER_LABEL,
                value: owner.to_owned(),
            },
        },
        Requirement {
            name: CLAIMS.to_owned(),
            api_version: "platform.acme.io/v1alpha1",
            kind: "GpuDevWorkspaceClaim",
            which: Which::Every {
                namespace: Some(namespace.to_owned()),
            },
        },
    ]
}

/// What Crossplane found.
pub fn contents(request: &Request) -> Contents {
    let names = |requirement: &str| {
        let found = request.required.get(requirement)?;
        let name = |object: &Value| {
            let name = object.pointer("/metadata/name")?.as_str()?;
            Some(name.to_owned())
        };
        let mut names: Vec<String> = found.iter().filter_map(name).collect();
        names.sort();
        Some(names)
    };
    match (names(HOMES), names(CLAIMS)) {
        (Some(homes), Some(claims)) => Contents::Known { homes, claims },
        _ => Contents::Unknown,
    }
}

/// Why the user cannot be deleted; nothing where they can.
pub fn reason(policy: &DevUserPolicy, namespace: &str, contents: &Contents) -> Option<String> {
    if policy.home.on_delete == HomeOnDelete::Delete {
        return None;
    }
    let listed = |what: &str, names: &[String]| match names {
        [] => None,
        names => Some(format!("{what} {}", names.join(", "))),
    };
    let held = match contents {
        Contents::Unknown => "what is in it, which nobody has looked at yet".to_owned(),
        Contents::Known { homes, claims } => {
            let parts = [
                listed("GpuDevWorkspaceClaims", claims),
                listed("homes (PersistentVolumeClaims)", homes),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            if parts.is_empty() {
                return None;
            }
            parts.join(" and ")
        }
    };
    Some(format!(
        "namespace {namespace} would go with {held}: delete these first, or set home.onDelete: \
         Delete in the Composition's input"
    ))
}
