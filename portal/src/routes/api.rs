//! The routes of the API, and their description.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use aide::openapi::{Info, OpenApi};
use aide::transform::TransformOperation;
use api::cost::CostStatus;
use axum::Json;
use axum::response::{IntoResponse, Response};
use axum::routing::Router;
use function_preview::menu::Menu;
use http::header::CONTENT_TYPE;
use portal_core::shape::{Budget, Catalogue, Listed, Me, Timeline, Whole};
use portal_core::view::{PlainRow, Row};
use serde_json::Value;

use super::{actions, parameters, plain, preview, stream, v1};
use crate::app::Shared;

/// The description as it is in the repository. A test keeps it in step with the handlers.
const DESCRIPTION: &str = include_str!("../../openapi.json");

/// The routes of the API.
pub(crate) fn router() -> Router<Shared> {
    described().0
}

/// `GET /api/v1/openapi.json`: the description of the API.
async fn description() -> Response {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION).into_response()
}

/// The routes, and the description that follows from their handlers.
fn described() -> (Router<Shared>, OpenApi) {
    aide::generate::extract_schemas(true);
    let mut document = OpenApi {
        info: Info {
            title: "GPU workspaces".to_owned(),
            description: Some(
                "The API of the portal. A person signs in at /login. Requests that write are from the \
                 portal's own page, with the value of the cookie XSRF-TOKEN in X-XSRF-TOKEN."
                    .to_owned(),
            ),
            version: "v1".to_owned(),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let router = ApiRouter::new()
        .merge(first())
        .merge(platform())
        .merge(workspaces())
        .route("/api/v1/openapi.json", axum::routing::get(description))
        .finish_api(&mut document);
    (router, document)
}

/// The first API.
fn first() -> ApiRouter<Shared> {
    ApiRouter::new()
        .api_route(
            "/api/workspaces",
            get_with(plain::list, |op| {
                op.summary("The workspaces of the person, for the first dashboard")
                    .response::<200, Json<Vec<PlainRow>>>()
            })
            .post_with(plain::create, |op| {
                op.summary("Creates a workspace, for the first dashboard")
                    .response::<202, Json<Value>>()
            }),
        )
        .api_route(
            "/api/workspaces/{name}",
            delete_with(plain::remove, |op| {
                op.summary("Deletes a workspace, for the first dashboard")
                    .response::<204, ()>()
            }),
        )
}

/// What the platform has, and who the person is.
fn platform() -> ApiRouter<Shared> {
    ApiRouter::new()
        .api_route(
            "/api/v1/me",
            get_with(v1::me, |op| {
                op.summary("Who the person is, for Kubernetes and here")
                    .response::<200, Json<Me>>()
            }),
        )
        .api_route(
            "/api/v1/catalogue",
            get_with(v1::catalogue, |op| {
                op.summary("What the platform offers, with prices")
                    .response::<200, Json<Catalogue<Menu>>>()
            }),
        )
        .api_route(
            "/api/v1/budget",
            get_with(v1::budget, |op| {
                op.summary("The person's own budget of the month")
                    .response::<200, Json<Budget>>()
            }),
        )
        .api_route(
            "/api/v1/schemas/workspace",
            get_with(preview::schema, |op| {
                op.summary("The schema of the parameters, as the cluster has it")
                    .response::<200, Json<Value>>()
            }),
        )
        .api_route(
            "/api/v1/preview",
            post_with(preview::preview, |op| {
                op.summary("What a workspace would get, before it exists")
                    .response::<200, Json<preview::Forecast>>()
            }),
        )
        .api_route(
            "/api/v1/watch",
            get_with(stream::watch, |op| {
                op.summary("Changes after a version, as server-sent events")
            }),
        )
}

/// Workspaces.
fn workspaces() -> ApiRouter<Shared> {
    ApiRouter::new()
        .api_route(
            "/api/v1/workspaces",
            get_with(v1::list, |op| {
                op.summary("The workspaces that the person sees")
                    .response::<200, Json<Listed>>()
            })
            .post_with(v1::create, |op| {
                op.summary("Creates a workspace")
                    .response::<201, Json<Row>>()
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}",
            get_with(v1::show, |op| {
                op.summary("One workspace").response::<200, Json<Whole>>()
            })
            .delete_with(v1::remove, |op| {
                op.summary("Deletes a workspace").response::<202, ()>()
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/parameters",
            get_with(parameters::show, |op| {
                op.summary("The parameters. ETag has their state")
                    .response::<200, Json<Value>>()
            })
            .patch_with(parameters::change, |op| {
                op.summary("Changes the parameters. If-Match has the ETag of what was edited")
                    .response::<200, Json<Value>>()
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/preview",
            post_with(preview::change, |op| {
                op.summary("What a change of the parameters would do")
                    .response::<200, Json<preview::Forecast>>()
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/timeline",
            get_with(v1::timeline, |op| {
                op.summary("What has happened to a workspace, as far as it is still known")
                    .response::<200, Json<Timeline>>()
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/cost",
            get_with(v1::cost, |op| {
                op.summary("What a workspace costs")
                    .response::<200, Json<Option<CostStatus>>>()
            }),
        )
        .merge(runs())
}

/// Stop, start and extension.
fn runs() -> ApiRouter<Shared> {
    ApiRouter::new()
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/stop",
            post_with(actions::stop, |op| done(op, "Stops a workspace")),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/start",
            post_with(actions::start, move |op| {
                done(op, "Starts a workspace again")
            }),
        )
        .api_route(
            "/api/v1/workspaces/{namespace}/{name}/extend",
            post_with(actions::extend, move |op| {
                done(op, "Lets a workspace run longer")
            }),
        )
}

fn done<'t>(operation: TransformOperation<'t>, summary: &str) -> TransformOperation<'t> {
    operation
        .summary(summary)
        .response::<200, Json<Row>>()
        .response::<202, Json<Row>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_in_the_repository_is_that_of_the_handlers() {
        let written = serde_json::to_string_pretty(&described().1).unwrap() + "\n";
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
            std::fs::write(path, &written).unwrap();
            return;
        }
        let differs = (written.lines().zip(DESCRIPTION.lines())).find(|(one, other)| one != other);
        assert!(
            written == DESCRIPTION,
            "{differs:?}: UPDATE_GOLDENS=1 writes it again"
        );
    }
}
