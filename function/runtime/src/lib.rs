//! Crossplane's contract with a composition function, for any kind of composite.
//!
//! A [`request::Request`] holds the input of a decision. A [`response::Response`] is the decision.
//! A [`kind::Kind`] turns a request into a response. All code is pure: the same request gives the
//! same response.
//!
//! Two rules apply to every kind. If the function lacks information, it holds the observed
//! resources and does not drop them ([`keep`]). If a claim is wrong, the function refuses the whole
//! claim and applies no part of it ([`outcome`]).
//!
//! # A function of one kind
//!
//! ```
//! use std::time::Duration;
//!
//! use function_runtime::composite::Composite;
//! use function_runtime::desired::{Composed, Desired};
//! use function_runtime::kind::{GroupKind, Kind, Kinds};
//! use function_runtime::request::Request;
//! use function_runtime::response::Response;
//! use serde_json::json;
//!
//! /// A team, which has a namespace.
//! struct Team;
//!
//! impl Kind for Team {
//!     fn group_kinds(&self) -> &'static [GroupKind] {
//!         const { &[GroupKind { group: "example.org", kind: "Team" }] }
//!     }
//!
//!     fn owns(&self, resource_name: &str) -> bool {
//!         resource_name == "namespace"
//!     }
//!
//!     fn render(&self, request: &Request, team: Composite<'_>) -> Response {
//!         let metadata = json!({"name": team.name()});
//!         let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
//!         let ready = request.observed.contains_key("namespace");
//!         let namespace = Composed { object, ready };
//!         Response::desiring(Duration::from_mins(10), Desired {
//!             resources: [("namespace".to_owned(), namespace)].into(),
//!             ..Desired::default()
//!         })
//!     }
//! }
//!
//! let vision = json!({"apiVersion": "example.org/v1", "kind": "Team", "metadata": {"name": "vision"}});
//! let call = Request { composite: Some(vision.into()), ..Request::default() };
//! let desired = Kinds(&[&Team]).render(&call).desired.unwrap();
//! assert_eq!(desired.resources["namespace"].object["metadata"]["name"], "vision");
//! ```

pub mod composite;
pub mod connection;
pub mod desired;
pub mod input;
pub mod json;
pub mod keep;
pub mod kind;
pub mod message;
pub mod object;
pub mod outcome;
pub mod request;
pub mod requirement;
pub mod resource_names;
pub mod response;
pub mod validation;
