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
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    if !takes_gzip(accepted) {
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

/// Whether a client takes gzip, by its `Accept-Encoding`: a coding is written in any case, `*` stands for those that aren't named, and a
/// weight of 0 is a refusal.
///
/// # Source
/// RFC 9110, sections 8.4.1.3, 12.4.2 and 12.5.3
fn takes_gzip<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut named, mut any) = (None, None);
    for coding in accepted.flat_map(|value| value.split(',')) {
        let (name, more) = coding.split_once(';').unwrap_or((coding, ""));
        let weight =
            more.split_once('=').filter(|(q, _)| q.trim().eq_ignore_ascii_case("q")).map(|(_, weight)| weight.trim());
        let is_taken = weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0));
        match name.trim() {
            "*" => any = Some(is_taken),
            name if ["gzip", "x-gzip"].iter().any(|gzip| name.eq_ignore_ascii_case(gzip)) => {
                // Each name stands for the same coding: one of them is enough.
                named = Some(named.unwrap_or(false) || is_taken);
            }
            _ => {}
        }
    }
    named.or(any).unwrap_or(false)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_gzip_is_read_as_the_standard_has_it() {
        for (accepted, taken) in [
            (&["gzip, deflate, br"][..], true),
            (&["br", "GZIP;q=0.5"], true),
            (&["x-gzip"], true),
            (&["*"], true),
            (&["deflate, *;q=0.1"], true),
            (&["gzip ; q=1.000"], true),
            (&["gzip;q=0"], false),
            (&["gzip;Q=0.000, *"], false),
            (&["*;q=0"], false),
            (&["gzipped, deflate"], false),
            (&["identity"], false),
            (&[""], false),
            (&[], false),
        ] {
            assert_eq!(takes_gzip(accepted.iter().copied()), taken, "{accepted:?}");
        }
    }
}
