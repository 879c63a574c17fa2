use crate::checked::text;
use crate::error::ApiError;
use crate::guest::GuestId;
use crate::inside::Inside;
use crate::turns::{Turn, busy};
use axum::body::Body;
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use utoipa::{IntoParams, ToSchema};
use wt_api::Request;
use wt_report::AnalyseAnswer;
use wt_setup::analyse::AnalyseRequest;
use wt_tune::TuneAnswer;

/// The largest file that is taken.
const LARGEST: usize = 256 << 20;
/// A file that isn't here by then isn't taken.
const SENT_BY: Duration = Duration::from_secs(120);
/// So many connections of a capture are told of.
const MOST_CONNECTIONS: usize = 200;
/// So many files lie on the disk at once, each another guest's.
const MOST_FILES: usize = 4;
/// Whose files they are.
static SENDERS: Mutex<Vec<GuestId>> = Mutex::new(Vec::new());
/// One file at a time is analysed. Whoever sends one doesn't have the turn yet: that may take as long as it likes.
static TURN: Semaphore = Semaphore::const_new(1);

/// A guest's place for a file, until it is dropped.
struct FilePlace(GuestId);

impl FilePlace {
    /// # Errors
    /// [`ApiError`], 429 where there is none.
    fn take(who: GuestId) -> Result<Self, ApiError> {
        let mut senders = SENDERS.lock().unwrap_or_else(PoisonError::into_inner);
        if senders.contains(&who) {
            return Err(busy("another file of yours isn't analysed yet"));
        } else if senders.len() >= MOST_FILES {
            return Err(busy("too many files wait to be analysed"));
        }
        senders.push(who);
        Ok(Self(who))
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        SENDERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|who| *who != self.0);
    }
}

/// How a file is analysed: the options of `windtunnel analyse`.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AnalyseQuery {
    /// What the file is called
    #[param(max_length = 256)]
    file: Option<String>,
    /// Of a table: the column of outcomes
    #[param(max_length = 256)]
    value: Option<String>,
    /// Of a table: the column of settings that are compared
    #[param(max_length = 256)]
    factor: Option<String>,
    /// Of a table: the column of blocks within which settings are compared
    #[param(max_length = 256)]
    block: Option<String>,
    /// Of a capture: only these packets, in tcpdump's words
    #[param(max_length = 256)]
    filter: Option<String>,
}

impl AnalyseQuery {
    fn request(&self) -> Result<AnalyseRequest, ApiError> {
        let checked = |name, value: &Option<String>| {
            value.as_deref().map(|value| text(name, value).map(str::to_owned)).transpose()
        };
        Ok(AnalyseRequest {
            values: checked("value", &self.value)?.into_iter().collect(),
            factor: checked("factor", &self.factor)?,
            block: checked("block", &self.block)?,
            filter: checked("filter", &self.filter)?,
            connections: MOST_CONNECTIONS,
            ..AnalyseRequest::default()
        })
    }

    /// The file's name as it may stand in a folder of ours: whatever else a name can hold is left out.
    fn name(&self) -> String {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
        let name: String = self.file.iter().flat_map(|name| name.chars()).filter(plain).take(100).collect();
        let name = name.trim_start_matches(['.', '-']);
        if name.is_empty() { "file".to_owned() } else { name.to_owned() }
    }
}

/// Takes a file, analyses it, and forgets it.
///
/// # Errors
/// [`ApiError`]: what is wrong with the file, or that it is too large or too slow.
pub(crate) async fn analyse(
    inside: &Inside,
    who: GuestId,
    ask: &AnalyseQuery,
    body: Body,
) -> Result<(FileAnalysis, Turn), ApiError> {
    let request = ask.request()?;
    let _place = FilePlace::take(who)?;
    let failed = |error: std::io::Error| ApiError::ours(format!("can't keep the file: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join(ask.name());
    let receive = async {
        let mut file = std::fs::File::create_new(&path).map_err(failed)?;
        let (mut body, mut size) = (body.into_data_stream(), 0);
        while let Some(part) = body.next().await {
            let part = part.map_err(|error| ApiError::bad(format!("the file didn't come whole: {error}")))?;
            size += part.len();
            if size > LARGEST {
                let what = format!("the file is larger than {} MiB", LARGEST >> 20);
                let hint = format!("windtunnel analyse {} in a terminal takes files of any size", ask.name());
                return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, what).hint(hint));
            }
            file.write_all(&part).map_err(failed)?;
        }
        Ok(size)
    };
    let late =
        |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, format!("the file took longer than {} s", SENT_BY.as_secs()));
    if tokio::time::timeout(SENT_BY, receive).await.map_err(late)?? == 0 {
        return Err(ApiError::bad("the file is empty").hint("drop a capture (pcap, pcapng) or a table (csv)"));
    }
    let _turn = TURN.acquire().await.map_err(|_| ApiError::ours("the server is ending"))?;
    let folder_name = format!("{}/", folder.path().display());
    let request = AnalyseRequest { file: Some(path), ..request };
    match inside.ask(who, Request::Analyse(Box::new(request))).await {
        Ok((wt_api::Answer::Analyse(answer), turn)) => Ok((FileAnalysis::of(&answer, &folder_name)?, turn)),
        Ok(_) => Err(ApiError::ours("an analysis is no such answer")),
        Err(mut error) => {
            let problem = &mut error.problem;
            problem.what = problem.what.replace(&folder_name, "");
            for text in [&mut problem.cause, &mut problem.hint].into_iter().flatten() {
                *text = text.replace(&folder_name, "");
            }
            Err(error)
        }
    }
}

/// What a file allows one to say.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Analysed)]
pub(crate) struct FileAnalysis {
    /// 1.
    schema_version: u32,
    /// What it was.
    kind: FileKind,
    /// As `windtunnel analyse` prints it.
    text: String,
    /// Its plots.
    charts: Vec<NamedChart>,
    /// As `windtunnel analyse --json` prints it.
    #[schema(value_type = Object)]
    answer: Value,
}

/// What a file is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum FileKind {
    /// Packets.
    Capture,
    /// Measurements.
    Table,
}

/// A picture.
#[derive(Debug, Serialize, ToSchema)]
struct NamedChart {
    /// What it shows.
    name: &'static str,
    /// The picture.
    svg: String,
}

impl FileAnalysis {
    fn of(answer: &AnalyseAnswer, folder: &str) -> Result<Self, ApiError> {
        let kind = if matches!(answer, AnalyseAnswer::Capture(_)) { FileKind::Capture } else { FileKind::Table };
        let whole = serde_json::to_value(answer).map_err(|error| ApiError::ours(error.to_string()))?;
        let charts = answer.charts().into_iter().map(|(name, chart)| NamedChart { name, svg: chart.to_svg(640, 320) });
        let text = answer.to_text().replace(folder, "");
        Ok(Self { schema_version: 1, kind, text, charts: charts.collect(), answer: whole })
    }
}

/// A report as a file to keep: its kind, and its text.
///
/// # Errors
/// [`ApiError`] where there is no such form of it.
pub(crate) fn report(form: &str, report: wt_api::Answer) -> Result<(&'static str, String), ApiError> {
    let none = || ApiError::missing("a report has no such form").hint("html; or csv, where settings were compared");
    const PAGE: &str = "text/html; charset=utf-8";
    Ok(match (form, report) {
        ("html", wt_api::Answer::Tune(TuneAnswer::Report(report))) => (PAGE, report.to_html()),
        ("html", wt_api::Answer::Tune(TuneAnswer::Screen(screen))) => (PAGE, screen.html()),
        ("html", wt_api::Answer::Controls(answer)) => (PAGE, answer.html()),
        ("html", wt_api::Answer::Stacks(answer)) => (PAGE, answer.html()),
        ("html", wt_api::Answer::SettingsProve(proof)) => (PAGE, proof.html()),
        ("html", wt_api::Answer::TrafficReport(report)) => (PAGE, wt_steer::page(&report)),
        ("csv", wt_api::Answer::Tune(TuneAnswer::Report(report))) => ("text/csv; charset=utf-8", report.to_csv()),
        _ => return Err(none()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_file_can_be_called_nothing_that_leads_elsewhere() {
        let called = |file: &str| AnalyseQuery { file: Some(file.to_owned()), ..Default::default() }.name();
        assert_eq!(called("../../etc/passwd"), "etcpasswd");
        assert_eq!(called("-rf"), "rf");
        assert_eq!(called("a b\n.pcap"), "ab.pcap");
        assert_eq!(called("…"), "file");
        assert_eq!(called(&"a".repeat(300)).len(), 100);
    }

    #[test]
    fn a_report_of_every_kind_is_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Some(folder.path().join("journal"));
        let services = wt_api::Services { journal: journal.clone(), ..wt_api::Services::default() };
        let stored = |kind: &str| {
            let golden = format!("{}/../windtunnel/tests/golden/journal/{kind}.json", env!("CARGO_MANIFEST_DIR"));
            let taken = wt_setup::journal::import(journal.as_deref(), &[golden.into()]).unwrap();
            let request = wt_setup::journal::ExperimentRequest { experiment: taken.imported[0].clone(), journal: None };
            wt_api::run(Request::Report(request), &services, &mut |_| {}, &wt_trial::Cancel::new()).unwrap()
        };
        let arm =
            |settings: &str| wt_traffic::TrafficArm { name: settings.into(), settings: settings.parse().unwrap() };
        let arms = vec![arm("initcwnd=10"), arm("initcwnd=32")];
        let config = wt_traffic::TrafficConfig { ports: vec![443], arms, ..wt_traffic::TrafficConfig::default() };
        let analysis = wt_traffic::TrafficAnalysis::new(config).unwrap();
        let run = wt_traffic::TrafficRun { id: "traffic-1", backend: "sockops" };
        let traffic = wt_api::Answer::TrafficReport(Box::new(analysis.report(run, &Default::default())));
        for answer in ["tune-7", "screen-7", "controls", "stacks-2"].map(stored).into_iter().chain([traffic]) {
            let (kind, page) = report("html", answer).unwrap();
            assert!(kind.starts_with("text/html") && page.starts_with("<!doctype html>"), "{page}");
        }
    }

    #[tokio::test]
    async fn a_file_that_never_ends_keeps_nobody_else_from_being_heard() {
        let who = |last| GuestId::of(std::net::IpAddr::from([192, 0, 2, last]), None);
        let (inside, ask) = (Inside::new(None), AnalyseQuery::default());
        let send = |last, body| {
            let analysed = analyse(&inside, who(last), &ask, body);
            Box::pin(async move { analysed.await.err().map(|error| error.status) })
        };
        let mut now = std::task::Context::from_waker(std::task::Waker::noop());
        let endless = || Body::from_stream(futures_util::stream::pending::<std::io::Result<Vec<u8>>>());
        let mut stalled: Vec<_> = (1..4).map(|last| send(last, endless())).collect();
        for one in &mut stalled {
            assert!(one.as_mut().poll(&mut now).is_pending());
        }
        assert_eq!(send(1, Body::empty()).await, Some(StatusCode::TOO_MANY_REQUESTS), "one of each");
        assert_eq!(send(9, Body::empty()).await, Some(StatusCode::BAD_REQUEST), "it was looked at");
        stalled.push(send(4, endless()));
        assert!(stalled[3].as_mut().poll(&mut now).is_pending());
        assert_eq!(send(9, Body::empty()).await, Some(StatusCode::TOO_MANY_REQUESTS), "so many in all");
        drop(stalled);
        assert_eq!(send(1, Body::empty()).await, Some(StatusCode::BAD_REQUEST), "who leaves has none");
    }
}
