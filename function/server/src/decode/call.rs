//! Reads a call of Crossplane: the request for the decision, and the parts that the response
//! repeats.
//!
//! The field numbers are those of Crossplane's `run_function.proto`.

use std::collections::BTreeMap;

use function_runtime::json::Json;
use function_runtime::kind::{Kind, Kinds};
use function_runtime::request::Request;
use function_sdk_rust::proto::v1::{Ready, RequestMeta, Resource, RunFunctionRequest, State};
use pbjson_types::Struct;
use prost::Message;
use serde_json::Value;

use crate::decode::json;
use crate::decode::protobuf::{self, Content, Fields, Malformed, once};

/// A decoded call. prost reads the parts that the response repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call<'a> {
    /// The metadata. The response repeats the tag.
    pub meta: Option<RequestMeta>,
    /// The desired state of earlier steps of the pipeline.
    pub desired: Option<State>,
    /// The context that the steps of the pipeline share.
    pub context: Option<Struct>,
    /// The request for the decision.
    pub request: Request<'a>,
}

impl<'a> Call<'a> {
    /// Reads an encoded `RunFunctionRequest`. Only the composed resources of the composite's kind
    /// are read. Unknown fields are ignored.
    ///
    /// # Errors
    ///
    /// The bytes are not a request, or objects nest too deep. The text of prost names the place.
    pub fn read(encoded: &'a [u8], kinds: Kinds) -> Result<Self, String> {
        if let Ok(call) = Self::read_once(encoded, kinds) {
            return Ok(call);
        }
        // A message may come in parts, which a reader must merge. prost does that.
        let merged = RunFunctionRequest::decode(encoded).map_err(|e| e.to_string())?;
        let encoded = merged.encode_to_vec();
        let call = Call::read_once(&encoded, kinds);
        call.map(Call::into_owned)
            .map_err(|_| "an object cannot be read".to_owned())
    }

    /// Reads a request in which each field occurs at most once.
    fn read_once(encoded: &'a [u8], kinds: Kinds) -> Result<Self, Malformed> {
        let mut sent = Sent::default();
        let mut fields = Fields::of(encoded);
        while let Some(field) = fields.next_field()? {
            match field {
                (1, Content::Bytes(bytes)) => once(&mut sent.meta, bytes)?,
                (2, Content::Bytes(bytes)) => once(&mut sent.observed, bytes)?,
                (3, Content::Bytes(bytes)) => once(&mut sent.desired, bytes)?,
                (4, Content::Bytes(bytes)) => once(&mut sent.input, bytes)?,
                (5, Content::Bytes(bytes)) => once(&mut sent.context, bytes)?,
                (8, Content::Bytes(bytes)) => sent.required.push(bytes),
                (1..=5 | 8, _) => return Err(Malformed),
                _ => {}
            }
        }
        sent.call(kinds)
    }

    fn into_owned(self) -> Call<'static> {
        Call {
            meta: self.meta,
            desired: self.desired,
            context: self.context,
            request: self.request.into_owned(),
        }
    }
}

/// The fields of a request, still encoded.
#[derive(Default)]
struct Sent<'a> {
    meta: Option<&'a [u8]>,
    observed: Option<&'a [u8]>,
    desired: Option<&'a [u8]>,
    input: Option<&'a [u8]>,
    context: Option<&'a [u8]>,
    required: Vec<&'a [u8]>,
}

impl<'a> Sent<'a> {
    fn call(self, kinds: Kinds) -> Result<Call<'a>, Malformed> {
        let desired = self.desired.map(decode).transpose()?;
        let observed = self
            .observed
            .map(Observed::read)
            .transpose()?
            .unwrap_or_default();
        let kind = observed.composite.as_ref().and_then(|c| kinds.of(c));
        let mut request = Request {
            policy: self.input.map(policy).transpose()?,
            others_decide_readiness: desired.as_ref().is_some_and(|d| decides_readiness(d, kind)),
            observed: observed.resources_of(kind)?,
            composite: observed.composite,
            ..Request::default()
        };
        for entry in self.required {
            let (name, found) = protobuf::entry(entry)?;
            request.required.insert(name.to_owned(), items(found)?);
        }
        Ok(Call {
            meta: self.meta.map(decode).transpose()?,
            context: self.context.map(decode).transpose()?,
            desired,
            request,
        })
    }
}

/// The observed state. The kind of the composite decides which resources are read, and the
/// composite may come after them.
#[derive(Default)]
struct Observed<'a> {
    composite: Option<Json<'a>>,
    resources: Vec<&'a [u8]>,
}

impl<'a> Observed<'a> {
    fn read(state: &'a [u8]) -> Result<Self, Malformed> {
        let mut composite = None;
        let mut resources = Vec::new();
        let mut fields = Fields::of(state);
        while let Some(field) = fields.next_field()? {
            match field {
                (1, Content::Bytes(bytes)) => once(&mut composite, bytes)?,
                (2, Content::Bytes(bytes)) => resources.push(bytes),
                (1 | 2, _) => return Err(Malformed),
                _ => {}
            }
        }
        Ok(Self {
            composite: composite.map(composed).transpose()?.flatten(),
            resources,
        })
    }

    /// The composed resources of the composite's kind, by composition resource name.
    fn resources_of(
        &self,
        kind: Option<&dyn Kind>,
    ) -> Result<BTreeMap<String, Json<'a>>, Malformed> {
        let mut found = BTreeMap::new();
        for entry in &self.resources {
            let (name, resource) = protobuf::entry(entry)?;
            if kind.is_some_and(|kind| kind.owns(name))
                && let Some(object) = composed(resource)?
            {
                found.insert(name.to_owned(), object);
            }
        }
        Ok(found)
    }
}

/// The input of the pipeline's step.
fn policy(input: &[u8]) -> Result<Value, Malformed> {
    let policy = json::object(input, json::COMPOSED)?;
    Ok(Value::from(&policy))
}

/// A composed resource, or the composite.
fn composed(resource: &[u8]) -> Result<Option<Json<'_>>, Malformed> {
    object(resource, json::COMPOSED)
}

/// The object in a `Resource`.
fn object<'a>(resource: &'a [u8], skipped: &[&str]) -> Result<Option<Json<'a>>, Malformed> {
    let mut object = None;
    let mut fields = Fields::of(resource);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => once(&mut object, bytes)?,
            (1, _) => return Err(Malformed),
            _ => {}
        }
    }
    let object = object.map(|object| json::object(object, skipped));
    object.transpose()
}

/// The objects in `Resources`.
fn items(resources: &[u8]) -> Result<Vec<Json<'_>>, Malformed> {
    let mut items = Vec::new();
    let mut fields = Fields::of(resources);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => items.extend(object(bytes, json::REQUIRED)?),
            (1, _) => return Err(Malformed),
            _ => {}
        }
    }
    Ok(items)
}

fn decode<T: Message + Default>(encoded: &[u8]) -> Result<T, Malformed> {
    T::decode(encoded).map_err(|_| Malformed)
}

/// Whether earlier steps of the pipeline have desired resources or have set the readiness of the
/// composite.
fn decides_readiness(desired: &State, kind: Option<&dyn Kind>) -> bool {
    let said = desired.composite.as_ref().map(Resource::ready);
    let is_own = |name: &String| kind.is_some_and(|kind| kind.owns(name));
    !desired.resources.keys().all(is_own) || said.is_some_and(|ready| ready != Ready::Unspecified)
}
