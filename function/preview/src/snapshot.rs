//! The objects of a cluster, from kubectl or from a dump.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use function_runtime::requirement::Requirement;
use serde_json::{Value, json};

use crate::composed;
use crate::error::Error;
use crate::selection::{selects, text};

/// A source of objects.
pub trait Source {
    /// All objects of a kind in all namespaces; none if the cluster does not have the kind.
    ///
    /// # Errors
    ///
    /// The objects cannot be read.
    fn list(&mut self, api_version: &str, kind: &str) -> Result<Vec<Value>, Error>;
}

/// A dump: objects that were read before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump(Vec<Value>);

impl Dump {
    /// Reads YAML documents or JSON. Lists count as their items.
    ///
    /// # Errors
    ///
    /// The text is no YAML.
    pub fn read(text: &str) -> Result<Self, Error> {
        use serde::Deserialize;
        let mut objects = Vec::new();
        for document in serde_yaml::Deserializer::from_str(text) {
            let document =
                Value::deserialize(document).map_err(|e| Error::Source(e.to_string()))?;
            match document.get("items").and_then(Value::as_array) {
                Some(items) => objects.extend(items.iter().cloned()),
                None => objects.push(document),
            }
        }
        Ok(Self(objects))
    }

    /// Adds objects.
    pub fn extend(&mut self, objects: impl IntoIterator<Item = Value>) {
        self.0.extend(objects);
    }

    /// The dump as a list of Kubernetes.
    pub fn into_list(self) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": self.0})
    }
}

impl Source for Dump {
    fn list(&mut self, api_version: &str, kind: &str) -> Result<Vec<Value>, Error> {
        let is_of_kind = |object: &&Value| {
            text(object, "/apiVersion") == api_version && text(object, "/kind") == kind
        };
        Ok(self.0.iter().filter(is_of_kind).cloned().collect())
    }
}

/// The objects that were read so far, by API version and kind.
pub struct Snapshot<'a> {
    source: &'a mut dyn Source,
    read: BTreeMap<(String, String), Vec<Value>>,
}

impl<'a> Snapshot<'a> {
    /// An empty snapshot.
    pub fn new(source: &'a mut dyn Source) -> Self {
        Self {
            source,
            read: BTreeMap::new(),
        }
    }

    /// All objects of a kind. Secrets are never read: no decision depends on their contents.
    pub fn all(&mut self, api_version: &str, kind: &str) -> Result<&[Value], Error> {
        if kind == "Secret" {
            return Ok(&[]);
        }
        match self.read.entry((api_version.to_owned(), kind.to_owned())) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => Ok(unknown.insert(self.source.list(api_version, kind)?)),
        }
    }

    /// The composed resources of a composite, by composition resource name.
    pub fn composed_of(&mut self, composite: &Value) -> Result<BTreeMap<String, Value>, Error> {
        let own_namespace = text(composite, "/metadata/namespace");
        let mut composed = Vec::new();
        for reference in composed::references(composite) {
            let namespace = match text(reference, "/namespace") {
                "" => own_namespace,
                namespace => namespace,
            };
            let name = text(reference, "/name");
            let all = self.all(text(reference, "/apiVersion"), text(reference, "/kind"))?;
            let found = all.iter().find(|object| {
                let is_in = text(object, "/metadata/namespace");
                text(object, "/metadata/name") == name && (is_in.is_empty() || is_in == namespace)
            });
            composed.extend(found.cloned());
        }
        Ok(composed::by_name(composed))
    }

    /// The resources that a requirement selects.
    pub fn select(&mut self, requirement: &Requirement) -> Result<Vec<Value>, Error> {
        let all = self.all(requirement.api_version, requirement.kind)?;
        let selected = all.iter().filter(|object| selects(requirement, object));
        Ok(selected.cloned().collect())
    }
}
