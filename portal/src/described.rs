//! Bodies and answers, and what the description of the API says of them.

use std::marker::PhantomData;

use aide::generate::GenContext;
use aide::openapi::{self, MediaType, Operation, SchemaObject};
use aide::{OperationInput, OperationOutput};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use portal_core::problem::Problem;
use portal_core::shape::PlainProblem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::SignedIn;
use crate::refusal::{Plain, Refusal};
use crate::request::document;

/// A body of JSON in the shape of a `T`. It is read as JSON, so that each wrong field is told in words of its own.
pub(crate) struct Body<T>(pub(crate) Value, PhantomData<T>);

impl<S: Send + Sync, T> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let read = Bytes::from_request(request, state).await;
        let bytes = read.map_err(|error| {
            let detail = format!("the body cannot be read: {error}");
            Problem::new(400, "invalid", "The body is wrong", detail)
        })?;
        Ok(Self(document(&bytes)?, PhantomData))
    }
}

impl<T: JsonSchema> OperationInput for Body<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Json::<T>::operation_input(ctx, operation);
    }
}

/// An answer of JSON in the shape of a `T`.
pub(crate) struct Shaped<T>(Response, PhantomData<T>);

impl<T> Shaped<T> {
    /// The answer with a status. `value` has the shape.
    pub(crate) fn of(status: StatusCode, value: &impl Serialize) -> Self {
        Self((status, Json(value)).into_response(), PhantomData)
    }
}

impl<T> IntoResponse for Shaped<T> {
    fn into_response(self) -> Response {
        self.0
    }
}

impl<T: JsonSchema> OperationOutput for Shaped<T> {
    type Inner = T;

    fn operation_response(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Option<openapi::Response> {
        Json::<T>::operation_response(ctx, operation)
    }
}

/// The workspace of a path.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Named {
    /// The namespace of the claim.
    pub(crate) namespace: String,
    /// The name of the claim.
    pub(crate) name: String,
}

impl OperationInput for SignedIn {}

impl OperationOutput for Refusal {
    type Inner = Problem;

    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        Some(refused::<Problem>(ctx, "application/problem+json"))
    }

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        by_default::<Self>(ctx, operation)
    }
}

impl OperationOutput for Plain {
    type Inner = PlainProblem;

    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        Some(refused::<PlainProblem>(ctx, "application/json"))
    }

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        by_default::<Self>(ctx, operation)
    }
}

/// The answer of a refusal, for each status that an operation does not name.
fn by_default<T: OperationOutput>(
    ctx: &mut GenContext,
    operation: &mut Operation,
) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
    let refused = T::operation_response(ctx, operation);
    let refused = refused.into_iter();
    refused.map(|response| (None, response)).collect()
}

fn refused<T: JsonSchema>(ctx: &mut GenContext, media: &str) -> openapi::Response {
    let schema = SchemaObject {
        json_schema: ctx.schema.subschema_for::<T>(),
        example: None,
        external_docs: None,
    };
    let content = MediaType {
        schema: Some(schema),
        ..MediaType::default()
    };
    openapi::Response {
        description: "What is wrong, and what to do.".to_owned(),
        content: [(media.to_owned(), content)].into_iter().collect(),
        ..openapi::Response::default()
    }
}
