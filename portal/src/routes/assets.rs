//! The app, which is inside the program.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, StatusCode, Uri};
use portal_core::problem::Problem;
use rust_embed::RustEmbed;

use crate::refusal::Refusal;

/// What Vite has built. It is empty if the app was not built before the program.
#[derive(RustEmbed)]
#[folder = "web/dist"]
struct App;

/// A file of the app; the app's page for every path that is none of them, since pages of the app have
/// paths.
pub(crate) async fn asset(method: Method, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if method != Method::GET || path.starts_with("api/") {
        let detail = format!("the portal has no {method} {}", uri.path());
        return Refusal::from(Problem::new(404, "not-found", "No such path", detail))
            .into_response();
    }
    // Vite puts a hash of the contents into the names of these files.
    let is_fixed = path.starts_with("assets/");
    let found = App::get(path).map(|file| (path, file));
    let found = found.or_else(|| {
        let page = App::get("index.html").filter(|_| !is_fixed);
        page.map(|file| ("index.html", file))
    });
    let Some((name, file)) = found else {
        let detail = "the app is not in this program: build portal/web before the program";
        return (StatusCode::NOT_FOUND, detail).into_response();
    };
    let kept = if is_fixed {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let media = file.metadata.mimetype().to_owned();
    let media = if name == "index.html" {
        "text/html; charset=utf-8".to_owned()
    } else {
        media
    };
    let headers = [(CONTENT_TYPE, media), (CACHE_CONTROL, kept.to_owned())];
    (headers, file.data).into_response()
}
