//! The kinds of composites that a function serves.

use std::fmt;

use crate::composite::Composite;
use crate::json::Json;
use crate::request::Request;
use crate::response::Response;

/// A kind of composite.
pub trait Kind: Sync {
    /// The Kubernetes kinds of this kind: that of composites with claims, and that of namespaced
    /// composites.
    fn group_kinds(&self) -> &'static [GroupKind];

    /// Whether a composed resource with this composition resource name belongs to this kind. The
    /// function ignores all other composed resources: other steps of the pipeline own them.
    fn owns(&self, resource_name: &str) -> bool;

    /// Decides what is desired. `composite` is the composite of the request and is of this kind.
    fn render(&self, request: &Request, composite: Composite<'_>) -> Response;
}

/// An API group and a kind, as in the `compositeTypeRef` of a Composition. Any version matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKind {
    /// The API group, for example `platform.acme.io`.
    pub group: &'static str,
    /// The kind, for example `DevUser`.
    pub kind: &'static str,
}

/// The kinds that a function serves.
#[derive(Clone, Copy)]
pub struct Kinds(pub &'static [&'static dyn Kind]);

impl GroupKind {
    fn is_of(self, composite: &Json<'_>) -> bool {
        let (group, kind) = of(composite);
        group == self.group && kind == self.kind
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kind, self.group)
    }
}

impl Kinds {
    /// The kind of a composite; none if the function does not serve it.
    pub fn of(self, composite: &Json<'_>) -> Option<&'static dyn Kind> {
        let known = |kind: &&&dyn Kind| kind.group_kinds().iter().any(|g| g.is_of(composite));
        self.0.iter().find(known).copied()
    }

    /// Decides what is desired, by the kind of the composite. An unknown kind gives a fatal result:
    /// Crossplane then applies nothing of the pipeline, and deletes nothing.
    pub fn render(self, request: &Request) -> Response {
        let Some(composite) = &request.composite else {
            let message = format!(
                "the request has no observed composite resource; this function serves {self}"
            );
            return Response::refused("CompositeInvalid", message);
        };
        if let Some(kind) = self.of(composite) {
            return kind.render(request, Composite::new(composite));
        }
        let (group, kind) = of(composite);
        let message = format!(
            "{kind}.{group} is not a kind that this function serves: its Composition needs \
             another function, or a compositeTypeRef of {self}"
        );
        Response::refused("KindUnknown", message)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.iter().flat_map(|kind| kind.group_kinds());
        for (n, known) in known.enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            write!(f, "{separator}{known}")?;
        }
        Ok(())
    }
}

/// The API group and the kind of an object.
fn of<'a>(object: &'a Json<'_>) -> (&'a str, &'a str) {
    let text = |field: &str| object.get(field).and_then(Json::as_str).unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
    (group, text("kind"))
}
