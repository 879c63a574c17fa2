use crate::error::ApiError;
use crate::peer::Peer;
use crate::state::App;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;

/// The header that carries the token. A form or an image can't send it, so that no other site can make a browser do so.
pub(crate) const TOKEN: &str = "x-windtunnel-token";

/// Nothing but our own files, no inline script or style, and nobody may frame us.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The largest body of a request.
pub(crate) const LARGEST_BODY: usize = 64 << 10;
/// Of a body that is said to be longer nothing is read, bytes: who sends it won't have done so before its time is over. One that is a little too long
/// is read first, so that its sender hears why it is refused.
const FAR_TOO_LONG: u64 = 1 << 20;
/// A body that isn't there by then won't come any more.
const BODY_BY: Duration = Duration::from_secs(20);

/// Lets through what may be let through, and says in every answer what browsers must not do. Who is refused doesn't keep a place.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let api = is_api(&request);
    let mut response = match admitted(&app, &request) {
        Ok(()) => match whole(request).await {
            Ok(request) => next.run(request).await,
            Err(error) => closing(error.into_response()),
        },
        Err(response) => closing(*response),
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

fn is_api(request: &Request) -> bool {
    request.uri().path().starts_with("/api/")
}

/// An answer that is the connection's last.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// What takes a file, which is long: its handler bounds size and time itself.
const TAKES_FILE: &str = "/api/v1/analyse";

/// The request with its body, which is short and comes soon, or not at all.
async fn whole(request: Request) -> Result<Request, ApiError> {
    if request.method() == Method::POST && request.uri().path() == TAKES_FILE {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    // Who broke off doesn't hear that it was too long.
    let long = || ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 64 KiB");
    if axum::body::HttpBody::size_hint(&body).lower() > FAR_TOO_LONG {
        return Err(long());
    }
    let read = tokio::time::timeout(BODY_BY, axum::body::to_bytes(body, LARGEST_BODY)).await;
    let late =
        || ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the body took longer than {} s", BODY_BY.as_secs()));
    let failed = |error: axum::Error| {
        let is_long = std::iter::successors(std::error::Error::source(&error), |error| error.source())
            .any(|cause| cause.to_string() == "length limit exceeded");
        if is_long {
            long()
        } else {
            ApiError::new(StatusCode::BAD_REQUEST, format!("the body can't be read: {error}"))
        }
    };
    let bytes = read.map_err(|_| late())?.map_err(failed)?;
    Ok(Request::from_parts(parts, axum::body::Body::from(bytes)))
}

/// Who asks properly, and knows the password where there is one.
fn admitted(app: &App, request: &Request) -> Result<(), Box<Response>> {
    allowed(app, request.method(), is_api(request), request.headers())
        .map_err(|error| Box::new(error.into_response()))?;
    let Some(door) = &app.door else { return Ok(()) };
    // Without an address nobody is let in; there always is one.
    let Some(Peer { ip, .. }) = request.extensions().get() else {
        return Err(Box::new(ApiError::ours("nobody knows where this comes from").into_response()));
    };
    door.knock(*ip, request.headers())
}

/// The Host header must be ours; what other sites make a browser send is refused.
fn allowed(app: &App, method: &Method, api: bool, headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = |what: &str| Err(ApiError::new(StatusCode::FORBIDDEN, what));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_some_and(|host| app.names.has(host)) {
        return refuse("this server doesn't answer to that name: use the address that it printed");
    }
    let all = |name: &str, wanted: &[&str]| headers.get_all(name).iter().all(|value| wanted.iter().any(|w| value == w));
    let document = |name: &str, value: &str| headers.contains_key(name) && all(name, &[value]);
    let safe = matches!(*method, Method::GET | Method::HEAD);
    // A link leads to the page. A frame doesn't show it, and what computes isn't for others' pages to ask for.
    let link = safe && !api && document("sec-fetch-mode", "navigate") && document("sec-fetch-dest", "document");
    if !all("sec-fetch-site", &["same-origin", "none"]) && !link {
        return refuse("another site's page may not ask this");
    }
    let ours = |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| app.names.is_origin(origin));
    if !headers.get_all(header::ORIGIN).iter().all(ours) {
        return refuse("another site's page may not ask this");
    }
    Ok(())
}

/// Whether a request may do what reaches beyond this server, such as changing this host: only with the token.
///
/// # Errors
/// [`ApiError`], 401 without it and 403 with a wrong one.
pub(crate) fn may(app: &App, headers: &HeaderMap, doing: &str) -> Result<(), ApiError> {
    let hint = "the token is what `windtunnel web` printed when it was started";
    let Some(given) = headers.get(TOKEN) else {
        let what = format!("{doing} needs the token, and the request has none");
        return Err(ApiError::new(StatusCode::UNAUTHORIZED, what).hint(hint));
    };
    if app.token.is(given.as_bytes()) {
        Ok(())
    } else {
        Err(ApiError::new(StatusCode::FORBIDDEN, "this isn't the token of this server").hint(hint))
    }
}

/// Whether a request may start or stop something: with the password, which its owner gave, or where there is none from an account of
/// the owner, or with the token.
///
/// # Errors
/// [`ApiError`] as of [`may`].
pub(crate) fn may_start(app: &App, peer: &Peer, headers: &HeaderMap) -> Result<(), ApiError> {
    if app.door.is_some() || peer.own {
        return Ok(());
    }
    may(app, headers, "starting and stopping").map_err(|mut error| {
        if error.status == StatusCode::UNAUTHORIZED {
            error.problem.what =
                "starting and stopping is for the account that runs this server, or needs its token".to_owned();
        }
        error
    })
}
