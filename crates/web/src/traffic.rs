use crate::checked::{limited, name, text};
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::jobs::as_json;
use crate::peer::Peer;
use crate::runs::{Job, Kind, RunSummary};
use crate::state::{App, Body, JsonBody, Place, SharedApp, place};
use crate::worker::Work;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wt_api::Request;
use wt_steer::{TrafficList, TrafficOptions, TrafficPlan, TrafficReportRequest, TrafficRequest, TrafficStop};
use wt_traffic::TrafficReport;

/// What traffic needs the token for.
const ASSIGNING: &str = "assigning settings to this server's own connections";

/// The operations of this file.
pub(crate) fn operations() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(status, start)).routes(routes!(plan)).routes(routes!(report, stop))
}

/// What the worker is asked; with `dry_run` only what would be done.
///
/// # Errors
/// [`ApiError`] where a text isn't of its grammar, or the rules can't be.
fn request(options: &TrafficOptions, dry_run: bool) -> Result<TrafficRequest, ApiError> {
    limited("levels", options.levels.len())?;
    limited("include", options.include.len())?;
    for list in &options.levels {
        text("levels", list)?;
    }
    let texts = [
        ("epoch", &options.epoch),
        ("age", &options.age),
        ("burn_in", &options.burn_in),
        ("for", &options.lasts),
        ("comment", &options.comment),
    ];
    for (name, given) in texts {
        given.as_deref().map_or(Ok(""), |given| text(name, given))?;
    }
    let request = options.request()?;
    request.config.check().map_err(|error| ApiError::bad(error.to_string()))?;
    Ok(TrafficRequest { dry_run, ..request })
}

/// One of the journal.
fn one(experiment: String) -> Result<TrafficReportRequest, ApiError> {
    let experiment = name("an experiment", &experiment)?.to_owned();
    Ok(TrafficReportRequest { experiment: Some(experiment), ..TrafficReportRequest::default() })
}

/// The experiments on this server's connections that are under way: `windtunnel traffic status --json`
#[utoipa::path(get, path = "/api/v1/traffic", responses((status = 200, body = TrafficList), (status = "4XX", body = ErrorBody)))]
async fn status(State(app): SharedApp, peer: Peer) -> Result<Response, ApiError> {
    app.compute(&peer, Request::TrafficStatus(TrafficReportRequest::default())).await
}

/// Whom an experiment would touch, what assigns connections here, and how long it may take: `windtunnel traffic start --dry-run --json`
#[utoipa::path(post, path = "/api/v1/traffic/plan", request_body = TrafficOptions,
    responses((status = 200, body = TrafficPlan), (status = "4XX", body = ErrorBody)))]
async fn plan(State(app): SharedApp, peer: Peer, Body(ask): Body<TrafficOptions>) -> Result<Response, ApiError> {
    app.work(&peer, "traffic_start", &request(&ask, true)?).await
}

/// Assigns this server's new connections to settings until it is stopped: `windtunnel traffic start`. It needs the token
#[utoipa::path(post, path = "/api/v1/traffic", request_body = TrafficOptions,
    params(("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 202, body = RunSummary), (status = "4XX", body = ErrorBody)))]
async fn start(
    State(app): SharedApp,
    headers: HeaderMap,
    ask: JsonBody<TrafficOptions>,
) -> Result<(StatusCode, Json<RunSummary>), ApiError> {
    guard::may(&app, &headers, ASSIGNING)?;
    let Body(ask) = ask?;
    let work = Work::request("traffic_start", &request(&ask, false)?);
    let job = Job { kind: Kind::Traffic, request: as_json(&ask)?, work, kept: Vec::new() };
    let run = app.runs.start(&app.program, job)?;
    Ok((StatusCode::ACCEPTED, Json(run.summary())))
}

/// What an experiment on this server's connections shows: `windtunnel traffic report NAME --json`
#[utoipa::path(get, path = "/api/v1/traffic/{name}", params(("name" = String, Path, description = "An experiment's name, the beginning of it, or `last`")),
    responses((status = 200, body = TrafficReport), (status = "4XX", body = ErrorBody)))]
async fn report(State(app): SharedApp, peer: Peer, name: Place) -> Result<Response, ApiError> {
    app.compute(&peer, Request::TrafficReport(one(place(name)?)?)).await
}

/// Ends an experiment on this server's connections, whoever began it: `windtunnel traffic stop NAME --json`. It needs the token
#[utoipa::path(delete, path = "/api/v1/traffic/{name}",
    params(("name" = String, Path, description = "An experiment's whole name"), ("X-Windtunnel-Token" = Option<String>, Header, description = "Printed by `windtunnel web`")),
    responses((status = 200, body = TrafficStop), (status = "4XX", body = ErrorBody)))]
async fn stop(State(app): SharedApp, peer: Peer, headers: HeaderMap, name: Place) -> Result<Response, ApiError> {
    guard::may(&app, &headers, "ending an experiment on connections")?;
    let named = TrafficReportRequest { whole_name: true, ..one(place(name)?)? };
    app.work(&peer, "traffic_stop", &named).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wt_traffic::TrafficConfig;

    fn asked(body: Value) -> Result<TrafficRequest, ApiError> {
        request(&serde_json::from_value::<TrafficOptions>(body).unwrap(), false)
    }

    #[test]
    fn a_body_is_what_the_command_line_would_ask_and_says_how() {
        let request = asked(json!({"ports": [80, 443], "levels": ["initcwnd=10,32"]})).unwrap();
        assert_eq!(request.command, "windtunnel traffic start --port 80 --port 443 --levels initcwnd=10,32");
        let usual = TrafficConfig::default();
        assert_eq!(
            (request.config.epoch, request.config.age, request.config.unit),
            (usual.epoch, usual.age, usual.unit)
        );
        let names: Vec<&str> = request.config.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!((names, request.for_s, request.dry_run), (vec!["initcwnd=10", "initcwnd=32"], None, false));
        let all =
            asked(json!({"ports": [80], "levels": ["cc=cubic,bbr"], "unit": "slot", "backend": "slots", "epoch": "5m",
            "age": "30s", "burn_in": "10s", "private": true, "no_ramp": true, "for": "2h", "comment": "two words"}));
        let all = all.unwrap();
        assert_eq!(
            all.command,
            "windtunnel traffic start --port 80 --levels cc=cubic,bbr --unit slot --backend slots --epoch 5m --age 30s \
             --burn-in 10s --for 2h --no-ramp --private --comment 'two words'"
        );
        assert_eq!(all.for_s, Some(7200.0));
        let written = serde_json::to_value(&all).unwrap();
        let request: Request =
            serde_json::from_value(json!({"operation": "traffic_start", "request": written})).unwrap();
        let Request::TrafficStart(read) = request else { panic!("{request:?}") };
        assert_eq!((read.config, read.backend), (all.config, all.backend));
    }

    #[test]
    fn what_cant_be_is_refused_before_anything_is_started() {
        for bad in [
            json!({"ports": [], "levels": ["initcwnd=10,32"]}),
            json!({"ports": [443], "levels": []}),
            json!({"ports": [443], "levels": ["initcwnd=10,65"]}),
            json!({"ports": [443], "levels": ["mtu=1400"]}),
            json!({"ports": [443], "levels": ["initcwnd=10,32"], "epoch": "soon"}),
            json!({"ports": [443], "levels": ["initcwnd=10,32"], "unit": "slot", "mixed": true}),
        ] {
            assert!(asked(bad.clone()).is_err(), "{bad}");
        }
        assert!(one("../x".to_owned()).is_err() && one("--help".to_owned()).is_err());
    }
}
