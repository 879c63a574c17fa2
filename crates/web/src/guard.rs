use crate::api::App;
use crate::error::ApiError;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::sync::Arc;

/// The header that carries the token. A form or an image can't send it, so that no other site can make a browser do so.
pub(crate) const TOKEN: &str = "x-windtunnel-token";

/// Nothing but our own files, no inline script or style, and nobody may frame us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The names under which this server may be asked for.
#[derive(Debug)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Those of a loopback address.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let port = address.port();
        let mut names = vec![address.to_string(), format!("localhost:{port}")];
        if port == 80 {
            names.extend([address.ip().to_string(), "localhost".to_owned()]);
        }
        Self(names)
    }

    fn has(&self, host: &str) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Lets through what may be let through, and says in every answer what browsers must not do.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let api = request.uri().path().starts_with("/api/");
    let mut response = match allowed(&app, request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    if api && response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allow = response.headers().get(header::ALLOW).cloned();
        response = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this method isn't offered here").into_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if api {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// The Host header must be ours; what other sites make a browser send is refused.
fn allowed(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = |what: &str| Err(ApiError::new(StatusCode::FORBIDDEN, what));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_some_and(|host| app.names.has(host)) {
        return refuse("this server doesn't answer to that name: use the address that it printed");
    }
    let other_site = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let navigation = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    let safe = matches!(*method, Method::GET | Method::HEAD);
    if other_site && !(safe && navigation) {
        return refuse("another site's page may not ask this");
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let ours = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        if !ours.is_some_and(|host| app.names.has(host)) {
            return refuse("another site's page may not ask this");
        }
    }
    Ok(())
}

/// Whether a request may change this host: only with the token.
///
/// # Errors
/// [`ApiError`], 401 without it and 403 with a wrong one.
pub(crate) fn may_change(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let hint = "the token is what `windtunnel web` printed when it was started";
    let Some(given) = headers.get(TOKEN) else {
        let what = "changing this host needs the token, and the request has none";
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, what).hint(hint));
    };
    if same(given.as_bytes(), app.token.as_bytes()) {
        Ok(())
    } else {
        Err(ApiError::new(StatusCode::FORBIDDEN, "this isn't the token of this server").hint(hint))
    }
}

/// Compares in a time that doesn't tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_and_localhost_are_our_names() {
        let names = Names::of(([127, 0, 0, 1], 7878).into());
        for (host, ours) in [
            ("127.0.0.1:7878", true),
            ("LocalHost:7878", true),
            ("localhost", false),
            ("127.0.0.1:7879", false),
            ("evil.example:7878", false),
            ("localhost.evil.example:7878", false),
            ("", false),
        ] {
            assert_eq!(names.has(host), ours, "{host}");
        }
    }

    #[test]
    fn tokens_are_compared_in_full() {
        assert!(same(b"abc", b"abc"));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!same(b"abc", other.as_bytes()), "{other}");
        }
    }
}
