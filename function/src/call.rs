//! A call as it arrives: what is decided from, and what is passed on.
//!
//! Numbers of fields are those of Crossplane's `run_function.proto`.

use function_sdk_rust::proto::v1::{Ready, RequestMeta, Resource, State};
use pbjson_types::Struct;
use prost::Message;
use serde_json::Value;

use crate::request::Request;
use crate::wire::{self, Content, Fields, Malformed, once};
use crate::{json, keys};

/// A request of Crossplane's, taken apart. What is passed on is read by prost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// With the tag, which the response repeats.
    pub meta: Option<RequestMeta>,
    /// What earlier steps of the pipeline desire.
    pub desired: Option<State>,
    /// What the pipeline's steps tell each other.
    pub context: Option<Struct>,
    /// What is decided from.
    pub request: Request,
}

impl Call {
    /// Reads an encoded `RunFunctionRequest`.
    ///
    /// # Errors
    ///
    /// It is none, or its objects nest too deep. prost says where.
    pub fn read(encoded: &[u8]) -> Result<Self, Malformed> {
        let mut sent = Sent::default();
        let mut fields = Fields::of(encoded);
        while let Some((number, content)) = fields.next_field()? {
            let Content::Bytes(bytes) = content else {
                return Err(Malformed);
            };
            match number {
                1 => once(&mut sent.meta, bytes)?,
                2 => once(&mut sent.observed, bytes)?,
                3 => once(&mut sent.desired, bytes)?,
                4 => once(&mut sent.input, bytes)?,
                5 => once(&mut sent.context, bytes)?,
                8 => sent.required.push(bytes),
                _ => {}
            }
        }
        sent.call()
    }
}

/// The fields of a request, each still encoded.
#[derive(Default)]
struct Sent<'a> {
    meta: Option<&'a [u8]>,
    observed: Option<&'a [u8]>,
    desired: Option<&'a [u8]>,
    input: Option<&'a [u8]>,
    context: Option<&'a [u8]>,
    required: Vec<&'a [u8]>,
}

impl Sent<'_> {
    fn call(self) -> Result<Call, Malformed> {
        let desired = self.desired.map(decode).transpose()?;
        let mut request = Request {
            policy: self.input.map(json::object).transpose()?,
            others_decide_readiness: desired.as_ref().is_some_and(decides_readiness),
            ..Request::default()
        };
        if let Some(observed) = self.observed {
            observe(&mut request, observed)?;
        }
        for entry in self.required {
            let (name, found) = wire::entry(entry)?;
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

/// Reads a `State` of observed resources.
fn observe(request: &mut Request, state: &[u8]) -> Result<(), Malformed> {
    let mut composite = None;
    let mut fields = Fields::of(state);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => once(&mut composite, bytes)?,
            (2, Content::Bytes(bytes)) => {
                let (key, value) = wire::entry(bytes)?;
                if keys::is_owned(key)
                    && let Some(object) = object(value)?
                {
                    request.observed.insert(key.to_owned(), object);
                }
            }
            (1 | 2, _) => return Err(Malformed),
            _ => {}
        }
    }
    request.composite = composite.map(object).transpose()?.flatten();
    Ok(())
}

/// The object of a `Resource`.
fn object(resource: &[u8]) -> Result<Option<Value>, Malformed> {
    let mut object = None;
    let mut fields = Fields::of(resource);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => once(&mut object, bytes)?,
            (1, _) => return Err(Malformed),
            _ => {}
        }
    }
    object.map(json::object).transpose()
}

/// The objects of `Resources`.
fn items(resources: &[u8]) -> Result<Vec<Value>, Malformed> {
    let mut items = Vec::new();
    let mut fields = Fields::of(resources);
    while let Some(field) = fields.next_field()? {
        match field {
            (1, Content::Bytes(bytes)) => items.extend(object(bytes)?),
            (1, _) => return Err(Malformed),
            _ => {}
        }
    }
    Ok(items)
}

fn decode<T: Message + Default>(encoded: &[u8]) -> Result<T, Malformed> {
    T::decode(encoded).map_err(|_| Malformed)
}

/// Whether earlier steps desire resources of their own, or have said themselves
/// whether the XR is ready.
fn decides_readiness(desired: &State) -> bool {
    let said = desired.composite.as_ref().map(Resource::ready);
    desired.resources.keys().any(|key| !keys::is_owned(key))
        || said.is_some_and(|ready| ready != Ready::Unspecified)
}
