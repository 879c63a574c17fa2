use crate::api::App;
use crate::error::ApiError;
use crate::server::Peer;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The header that carries the token. A form or an image can't send it, so that no other site can make a browser do so.
pub(crate) const TOKEN: &str = "x-windtunnel-token";

/// Nothing but our own files, no inline script or style, and nobody may frame us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The names under which this server may be asked for.
#[derive(Debug)]
pub(crate) struct Names {
    scheme: &'static str,
    /// The first one is where the page is.
    names: Vec<String>,
    /// The port, if any address with it will do: one that was typed as numbers can't have been rebound.
    any_address: Option<u16>,
}

impl Names {
    /// Those of an address, and further ones that somebody gave it.
    pub(crate) fn of(address: SocketAddr, more: &[String], tls: bool) -> Self {
        let (scheme, usual) = if tls { ("https", 443) } else { ("http", 80) };
        let port = address.port();
        let mut names = Vec::new();
        let mut add = |host: &str| {
            names.push(format!("{host}:{port}"));
            if port == usual {
                names.push(host.to_owned());
            }
        };
        more.iter().for_each(|name| add(name));
        match address.ip() {
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => add(&ip.to_string()),
            IpAddr::V6(ip) => add(&format!("[{ip}]")),
        }
        add("localhost");
        Self { scheme, names, any_address: (!address.ip().is_loopback()).then_some(port) }
    }

    /// Where the page is.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.names.first().map_or("", String::as_str))
    }

    fn has(&self, host: &str) -> bool {
        let is_address = |port: u16| match host.parse::<SocketAddr>() {
            Ok(address) => address.port() == port,
            Err(_) => {
                port == if self.scheme == "https" { 443 } else { 80 }
                    && host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            }
        };
        self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) || self.any_address.is_some_and(is_address)
    }

    /// Whether a page of ours sends this as its origin.
    fn is_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://")).is_some_and(|host| self.has(host))
    }
}

/// Lets through what may be let through, and says in every answer what browsers must not do.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let api = request.uri().path().starts_with("/api/");
    let mut response = match admitted(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(response) => *response,
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

/// Who asks properly, and knows the password where there is one.
fn admitted(app: &App, request: &Request) -> Result<(), Box<Response>> {
    allowed(app, request.method(), request.headers()).map_err(|error| Box::new(error.into_response()))?;
    let Some(door) = &app.door else { return Ok(()) };
    // Without an address nobody is let in; there always is one.
    let Some(Peer(from)) = request.extensions().get().copied() else {
        return Err(Box::new(ApiError::ours("nobody knows where this comes from").into_response()));
    };
    door.knock(from, request.headers())
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
    let origin = headers.get(header::ORIGIN);
    if origin.is_some_and(|origin| !origin.to_str().is_ok_and(|origin| app.names.is_origin(origin))) {
        return refuse("another site's page may not ask this");
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
    if app.token.is(given.as_bytes()) {
        Ok(())
    } else {
        Err(ApiError::new(StatusCode::FORBIDDEN, "this isn't the token of this server").hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_and_localhost_are_our_names() {
        let names = Names::of(([127, 0, 0, 1], 7878).into(), &[], false);
        assert_eq!(names.url(), "http://127.0.0.1:7878/");
        assert!(names.is_origin("http://localhost:7878") && !names.is_origin("https://localhost:7878"));
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
    fn from_elsewhere_addresses_are_names_and_so_is_what_was_given() {
        let names = Names::of(([0, 0, 0, 0], 7878).into(), &["lab.example".to_owned()], true);
        assert_eq!(names.url(), "https://lab.example:7878/");
        for (host, ours) in [
            ("lab.example:7878", true),
            ("192.0.2.1:7878", true),
            ("[2001:db8::1]:7878", true),
            ("192.0.2.1:80", false),
            ("192.0.2.1", false),
            ("evil.example:7878", false),
            ("192.0.2.1.evil.example:7878", false),
        ] {
            assert_eq!(names.has(host), ours, "{host}");
        }
        assert!(names.is_origin("https://192.0.2.1:7878") && !names.is_origin("http://192.0.2.1:7878"));
        let usual = Names::of(([192, 0, 2, 1], 443).into(), &[], true);
        assert!(usual.has("192.0.2.1") && usual.has("192.0.2.1:443") && !usual.has("192.0.2.1:80"));
    }
}
