//! The name of a configuration in messages.

use std::fmt;

use api::managed::{ProviderConfigKind, ProviderConfigReference};

/// A configuration's kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigName {
    kind: ProviderConfigKind,
    name: String,
}

impl From<&ProviderConfigReference> for ConfigName {
    fn from(reference: &ProviderConfigReference) -> Self {
        Self {
            kind: reference.kind,
            name: reference.name.clone(),
        }
    }
}

impl fmt::Display for ConfigName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind.as_str(), self.name)
    }
}
