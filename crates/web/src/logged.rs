use crate::checked::{limited, limited_number, maybe_time, read, text, url};
use crate::drawn::RequestFile;
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::jobs::as_json;
use crate::peer::Peer;
use crate::queries::named;
use crate::runs::{Job, Kind, RunSummary};
use crate::state::{App, Body, JsonBody, Place, SharedApp, place};
use crate::worker::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_api::Request;
use wt_tune::{LiveRequest, LoggedTests, TestRequest};
use wt_units::shell_word;

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(start_test)).routes(routes!(logged))
}

/// Downloads to log: the options of `windtunnel test`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LoggedTestRequest)]
pub(crate) struct TestBody {
    /// The files: `http://HOST/FILE`, `ftp://…`; servers take turns
    #[schema(min_items = 1, max_items = 64, example = json!(["http://example.org/file.iso"]))]
    targets: Vec<String>,
    /// Downloads from each server
    #[schema(minimum = 1, maximum = 100)]
    each: Option<u64>,
    /// A download ends after this time, if the file hasn't before
    #[schema(max_length = 256, example = "60s")]
    time: Option<String>,
    /// Don't ask how many hops away the servers are
    #[serde(default)]
    no_hops: bool,
    /// The version of IP: `4` or `6`
    #[schema(pattern = "^[46]$")]
    ip: Option<String>,
    /// Note stored with it
    #[schema(max_length = 256)]
    comment: Option<String>,
}

impl TestBody {
    /// What the worker is asked, and a file with the servers where there are several.
    ///
    /// # Errors
    /// [`ApiError`] where a text isn't of its grammar, or names no server.
    fn job(&self) -> Result<Job, ApiError> {
        limited("targets", self.targets.len())?;
        let targets = self.targets.iter().map(|target| url(target)).collect::<Result<Vec<_>, _>>()?;
        let (target, kept) = match targets.as_slice() {
            [] => {
                return Err(ApiError::bad("no server is named").hint(r#"{"targets": ["http://example.org/file.iso"]}"#));
            }
            [only] => ((*only).to_owned(), None),
            several => {
                // Control characters were refused: JSON's strings are TOML's then.
                let entries = several.iter().map(|url| format!("[[target]]\nurl = {}\n", Value::from(*url)));
                let file = RequestFile::write("servers.toml", &entries.collect::<String>())?;
                (file.file().display().to_string(), Some(file))
            }
        };
        let usual = TestRequest::default();
        let each = limited_number("each", self.each.unwrap_or(1), 1..=100)?;
        let request = TestRequest {
            target,
            each: usize::try_from(each).unwrap_or(1),
            time: maybe_time("time", self.time.as_deref())?.unwrap_or(usual.time),
            no_hops: self.no_hops,
            live: LiveRequest {
                ip: self.ip.as_deref().map(|ip| read("ip", ip.into())).transpose()?,
                ..LiveRequest::default()
            },
            comment: self.comment.as_deref().map_or(Ok(""), |comment| text("comment", comment))?.to_owned(),
            command: self.command(&targets),
            ..usual
        };
        let work = Work::request("test", &request);
        Ok(Job { kind: Kind::Test, request: as_json(self)?, work, kept: kept.into_iter().collect() })
    }

    /// The same in a terminal.
    fn command(&self, targets: &[&str]) -> String {
        let mut command = match targets {
            [only] => format!("windtunnel test {}", shell_word(only)),
            _ => "windtunnel test servers.toml".to_owned(),
        };
        let each = self.each.map(|each| each.to_string());
        for (flag, value) in [("each", &each), ("time", &self.time), ("ip", &self.ip), ("comment", &self.comment)] {
            if let Some(value) = value {
                command += &format!(" --{flag} {}", shell_word(value));
            }
        }
        if self.no_hops { command + " --no-hops" } else { command }
    }
}

/// Downloads with the settings as they are, and logs each: `windtunnel test`. It needs the token
#[utoipa::path(post, path = "/api/v1/tests", request_body = TestBody,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start_test(
    State(app): SharedApp,
    headers: HeaderMap,
    ask: JsonBody<TestBody>,
) -> Result<(StatusCode, Json<RunSummary>), ApiError> {
    guard::may(&app, &headers, "measuring a real path")?;
    let Body(ask) = ask?;
    let run = app.runs.start(&app.program, ask.job()?)?;
    Ok((StatusCode::ACCEPTED, Json(run.summary())))
}

/// A log of downloads: each with its number, and server by server
#[utoipa::path(get, path = "/api/v1/tests/{name}", params(("name" = String, Path, description = "Its name in the journal, the beginning of it, or `last`")),
    responses((status = 200, body = LoggedTests), (status = "4XX", body = ErrorBody)))]
async fn logged(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    app.compute(&peer, Request::TestShow(named(&place(name)?)?)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: Value) -> Result<(TestRequest, Vec<RequestFile>), ApiError> {
        let body: TestBody = serde_json::from_value(body).unwrap();
        let Job { work, kept, .. } = body.job()?;
        let Work::Request { request, .. } = work else { panic!("another program") };
        let request: Request = serde_json::from_str(&request).unwrap();
        let Request::Test(request) = request else { panic!("{request:?}") };
        Ok((*request, kept))
    }

    #[test]
    fn one_server_is_asked_by_its_address_and_several_by_a_list_that_goes_away() {
        let body =
            serde_json::json!({"targets": ["http://192.0.2.1/x"], "each": 3, "time": "5s", "comment": "new modem"});
        let (one, kept) = asked(body).unwrap();
        assert_eq!((one.target.as_str(), one.each, one.time.as_secs()), ("http://192.0.2.1/x", 3, 5));
        assert_eq!(one.command, "windtunnel test http://192.0.2.1/x --each 3 --time 5s --comment 'new modem'");
        assert!(kept.is_empty() && one.journal.is_none());
        let (two, kept) = asked(serde_json::json!({"targets": ["http://192.0.2.1/x", "ftp://192.0.2.2/y"]})).unwrap();
        let list = std::fs::read_to_string(&two.target).unwrap();
        assert_eq!(list, "[[target]]\nurl = \"http://192.0.2.1/x\"\n[[target]]\nurl = \"ftp://192.0.2.2/y\"\n");
        drop(kept);
        assert!(!std::path::Path::new(&two.target).exists());
    }

    #[test]
    fn what_is_no_server_or_a_file_is_refused() {
        for bad in [
            serde_json::json!({"targets": []}),
            serde_json::json!({"targets": ["/etc/passwd"]}),
            serde_json::json!({"targets": ["servers.toml"]}),
            serde_json::json!({"targets": ["wt://key@host"]}),
            serde_json::json!({"targets": ["http://a/b"], "each": 0}),
            serde_json::json!({"targets": ["http://a/b"], "each": 101}),
            serde_json::json!({"targets": ["http://a/b"], "time": "soon"}),
            serde_json::json!({"targets": vec!["http://a/b"; 65]}),
        ] {
            assert!(asked(bad.clone()).is_err(), "{bad}");
        }
    }
}
