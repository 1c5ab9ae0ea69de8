//! Protects a user with homes from deletion.

use api::dev_user::DevUserPolicy;
use api::home::HomeOnDelete;
use function_runtime::json::Json;
use function_runtime::request::Request;
use function_runtime::requirement::{Requirement, Selector};

const HOMES: &str = "homes";

/// What the deletion of the user's namespace would delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Crossplane has not fetched the homes yet.
    Unknown,
    /// The names of the homes (`PersistentVolumeClaim`s).
    Homes(Vec<String>),
}

impl Contents {
    /// The names of the homes; none while they are unknown.
    pub fn homes(&self) -> Option<&[String]> {
        match self {
            Self::Homes(homes) => Some(homes),
            Self::Unknown => None,
        }
    }

    /// The names of the homes; empty while they are unknown.
    pub fn into_homes(self) -> Vec<String> {
        match self {
            Self::Homes(homes) => homes,
            Self::Unknown => Vec::new(),
        }
    }
}

/// Asks Crossplane for all `PersistentVolumeClaim`s in the namespace, because all would be deleted
/// with it. Labels do not select them, because an owner may change those. Claims are not required: Crossplane watches
/// required resources, and claims change all the time.
pub fn requirements(namespace: &str) -> Vec<Requirement> {
    vec![Requirement {
        name: HOMES.to_owned(),
        api_version: "v1",
        kind: "PersistentVolumeClaim",
        selector: Selector::Every {
            namespace: Some(namespace.to_owned()),
        },
    }]
}

/// Reads the homes that Crossplane fetched.
pub fn contents(request: &Request) -> Contents {
    let Some(found) = request.required.get(HOMES) else {
        return Contents::Unknown;
    };
    let name = |object: &Json<'_>| Some(object.pointer("/metadata/name")?.as_str()?.to_owned());
    let mut homes: Vec<String> = found.iter().filter_map(name).collect();
    homes.sort();
    Contents::Homes(homes)
}

/// Why the user must not be deleted; none if the user may be deleted. Without a readable policy,
/// homes are protected.
pub fn reason(
    policy: Option<&DevUserPolicy>,
    namespace: &str,
    contents: &Contents,
) -> Option<String> {
    if policy.is_some_and(|policy| policy.home.on_delete == HomeOnDelete::Delete) {
        return None;
    }
    let held = match contents {
        Contents::Unknown => "what is in it, which nobody has looked at yet".to_owned(),
        Contents::Homes(homes) if homes.is_empty() => return None,
        Contents::Homes(homes) => {
            format!("the homes (PersistentVolumeClaims) {}", homes.join(", "))
        }
    };
    Some(format!(
        "namespace {namespace} would go with {held}: delete its \
         claims and these first, or set home.onDelete: Delete in the Composition's input"
    ))
}
