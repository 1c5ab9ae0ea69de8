//! Reads requests and writes responses of gRPC.
//!
//! A request that cannot be read gets a fatal result and no gRPC error. For a gRPC error Crossplane
//! would report a broken function, and users would not learn which object is wrong. The tag of such
//! a request can still be read, so the response can repeat it.

use function_sdk_rust::proto::v1::{RequestMeta, RunFunctionRequest};
use function_sdk_rust::response::{self, DEFAULT_TTL};
use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::encode::protobuf::{CAPACITY, encode};
use crate::encode::response::Answer;

/// The size of tonic's buffer for a request, in bytes. Most requests fit. tonic copies a larger one
/// into a larger buffer, several times.
const REQUEST: usize = 64 * 1024;

/// The codec of the service. A request stays encoded, because what is read of it borrows its texts.
#[derive(Clone, Copy, Debug)]
pub struct Protocol;

/// The response to a request that cannot be read: a fatal result, with the request's tag. `error` is
/// the text of prost.
///
/// # Errors
///
/// No part of the request can be read, so it is not from Crossplane.
pub fn unreadable(encoded: &[u8], error: &str) -> Result<Answer, Status> {
    let head = Head::decode(encoded).map_err(|_| Status::internal(error))?;
    let head = RunFunctionRequest {
        meta: head.meta,
        ..RunFunctionRequest::default()
    };
    let mut answer = response::to(&head, DEFAULT_TTL);
    let result = response::fatal(&mut answer, explanation(error));
    result.reason = Some("RequestUnreadable".to_owned());
    Ok(answer.into())
}

impl Codec for Protocol {
    type Encode = Answer;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Protocol {
    type Item = Answer;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(encode(&item).as_ref());
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(CAPACITY, CAPACITY)
    }
}

impl Decoder for Protocol {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(REQUEST, REQUEST)
    }
}

/// The first field of a request. prost skips all other fields.
#[derive(Clone, PartialEq, Message)]
struct Head {
    #[prost(message, optional, tag = "1")]
    meta: Option<RequestMeta>,
}

/// The message for a request that cannot be read. prost names every level from the problem
/// outwards, as `Message.field: `. The last two levels show to whom the object belongs.
fn explanation(error: &str) -> String {
    let mut what = error
        .strip_prefix("failed to decode Protobuf message: ")
        .unwrap_or(error);
    let (mut inner, mut outer) = ("", "");
    while let Some((step, rest)) = what.split_once(": ")
        && step.contains('.')
        && !step.contains(' ')
    {
        (inner, outer, what) = (outer, step, rest);
    }
    let next = if what == "recursion limit reached" {
        "objects may nest 32 levels deep, less with lists between them; flatten the one that \
         nests deeper, or let it hold its inner part as a string"
    } else {
        "check that Crossplane and this function speak the same protocol"
    };
    let within = if inner.is_empty() { "" } else { ", " };
    format!("cannot read the request ({outer}{within}{inner}: {what}): {next}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_nests_too_deep_gets_its_own_message() {
        let error = "failed to decode Protobuf message: Value.kind: Struct.fields: \
                     State.resources: RunFunctionRequest.desired: ";
        let deep = explanation(&format!("{error}recursion limit reached"));
        let place = "(RunFunctionRequest.desired, State.resources: recursion limit reached)";
        assert!(deep.contains(place) && deep.contains("32 levels"), "{deep}");
        let broken = explanation(&format!("{error}invalid wire type: A (expected B)"));
        let place = "(RunFunctionRequest.desired, State.resources: invalid wire type: A";
        assert!(broken.contains(place), "{broken}");
        assert!(!broken.contains("32 levels"), "{broken}");
    }
}
