//! The app, which is inside the program.

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use portal_core::problem::Problem;
use rust_embed::RustEmbed;

use crate::refusal::Refusal;

/// What Vite has built, each file also compressed, with `.gz` after its name. It is empty if the app was not built before the program.
#[derive(RustEmbed)]
#[folder = "web/dist"]
struct App;

/// A file of the app; the app's page for every path that is none of them, since pages of the app have
/// paths.
pub(crate) async fn asset(method: Method, uri: Uri, headers: HeaderMap) -> Response {
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
    let compressed = takes_gzip(&headers).then(|| App::get(&format!("{name}.gz")));
    let compressed = compressed.flatten();
    let is_compressed = compressed.is_some();
    let told = [
        (CONTENT_TYPE, media),
        (CACHE_CONTROL, kept.to_owned()),
        (VARY, ACCEPT_ENCODING.to_string()),
    ];
    let mut answer = (told, compressed.unwrap_or(file).data).into_response();
    if is_compressed {
        let gzip = HeaderValue::from_static("gzip");
        answer.headers_mut().insert(CONTENT_ENCODING, gzip);
    }
    answer
}

/// Whether a client takes gzip (RFC 9110, 12.5.3). Browsers name it without a weight.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter();
    let named = named.filter_map(|header| header.to_str().ok());
    named
        .flat_map(|header| header.split(','))
        .any(|coding| coding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_takes_gzip_gets_it() {
        let takes = |header: &str| {
            let header = (ACCEPT_ENCODING, header.parse().unwrap());
            takes_gzip(&HeaderMap::from_iter([header]))
        };
        assert!(takes("gzip, deflate, br, zstd"));
        assert!(takes("br,gzip"));
        assert!(!takes("br"));
        assert!(!takes("gzip;q=0"));
        assert!(!takes("identity"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
