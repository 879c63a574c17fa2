use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// A file of the page, compressed with gzip.
struct File {
    path: &'static str,
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What is said where the page should be, if it wasn't built.
const UNBUILT: &str = "This windtunnel was built without its page; the API works: /api/v1/openapi.json\n\
     To have the page, build it with make, or: cd ui && npm ci && npm run build, and then cargo build.\n";

/// Whether the page is in this program.
pub(crate) fn is_built() -> bool {
    FILES.iter().any(|file| file.path == "index.html")
}

/// Hands out a file of the page. Views have paths of their own, so that they can be linked to: those are the page itself.
pub(crate) async fn serve(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    let view = !path.contains('.') && !path.starts_with("api");
    let wanted = if view { "index.html" } else { path };
    let Some(file) = FILES.iter().find(|file| file.path == wanted) else {
        return if view {
            (StatusCode::SERVICE_UNAVAILABLE, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], UNBUILT)
                .into_response()
        } else {
            crate::error::ApiError::missing("there is nothing here").into_response()
        };
    };
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.split(',').any(|coding| coding.trim().starts_with("gzip")) {
        let what = "the page is stored compressed, and the client doesn't take gzip";
        let error = crate::error::ApiError::new(StatusCode::NOT_ACCEPTABLE, what);
        return error.hint("Accept-Encoding: gzip; with curl, --compressed").into_response();
    }
    // Files under assets/ have their content's hash in their name.
    let keep = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let head = [
        (header::CONTENT_TYPE, kind(wanted)),
        (header::CONTENT_ENCODING, "gzip"),
        (header::VARY, "accept-encoding"),
        (header::CACHE_CONTROL, keep),
    ];
    (head, crate::room::fixed(file.gzip)).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
