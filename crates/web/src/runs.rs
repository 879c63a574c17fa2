use crate::drawn::RequestFile;
use crate::error::{ApiError, Problem};
use crate::worker::{self, Program, Work};
use axum::http::StatusCode;
use futures_util::Stream;
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::{Notify, watch};
use utoipa::ToSchema;

/// So many events of one experiment are kept for those who come late; older ones go.
const KEPT_EVENTS: usize = 20_000;
/// And so many bytes of them.
const KEPT_BYTES: usize = 64 << 20;
/// So many samples of the transfer that runs.
const KEPT_SAMPLES: usize = 4_096;
/// The kind of event that tells how a transfer goes.
pub(crate) const SAMPLE: &str = "sample";
/// So many of each kind are kept, and so many bytes of events of those that have ended; the journal has all experiments.
pub(crate) const KEPT_RUNS: usize = 16;
const KEPT_OF_ENDED: usize = 32 << 20;
/// A line longer than this is no event.
const LONGEST_LINE: u64 = 32 << 20;
/// How long an experiment may take to end cleanly.
const GRACE: Duration = Duration::from_secs(10);

/// What runs for longer than a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// An experiment.
    Experiment,
    /// A probe of a path.
    Probe,
    /// A lab that stays up.
    Lab,
    /// Something that is done in a lab.
    Workload,
    /// An experiment on this server's own connections.
    Traffic,
    /// Transfers that are logged.
    Test,
    /// Congestion controls or stacks side by side.
    Comparison,
}

impl Kind {
    /// What doesn't disturb what else runs: a lab only waits, and connections of other people's go on anyway. Of these one goes on at a
    /// time, beside one thing that measures.
    fn goes_on_beside(self) -> Option<Self> {
        matches!(self, Self::Lab | Self::Traffic).then_some(self)
    }
}

/// Something to start.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    /// What was asked for.
    pub(crate) request: serde_json::Value,
    pub(crate) work: Work,
    /// Files that are needed for as long as it runs.
    pub(crate) kept: Vec<RequestFile>,
}

/// Something that this server started and that takes its time.
#[derive(Debug)]
pub(crate) struct Run {
    id: String,
    kind: Kind,
    request: serde_json::Value,
    /// Whether it says lines for people, rather than one object a line.
    lines: bool,
    /// Until it ends: then its files go away.
    kept: Mutex<Vec<RequestFile>>,
    started_unix_us: i64,
    log: Mutex<Log>,
    grown: watch::Sender<()>,
    cancel: Notify,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    next: u64,
    /// How the transfer goes that runs: of interest only while it does, so that these have no number of the log's.
    samples: VecDeque<Arc<Event>>,
    next_sample: u64,
    experiment: Option<String>,
    end: Option<End>,
}

/// One thing that happened, as the worker told it.
#[derive(Debug)]
pub(crate) struct Event {
    /// Counts from 0 in each run, samples by themselves.
    pub(crate) number: u64,
    /// `begin`, `trial`, `sample`, `round`, `line`, `result` or `end`.
    pub(crate) kind: String,
    /// The object in one line.
    pub(crate) data: Bytes,
}

/// How it ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct End {
    /// 0: done, or something is faster; 1: the answer is no, or no difference is shown; else it failed.
    exit_code: u8,
    /// What went wrong, if anything did.
    error: Option<Problem>,
}

/// Something that this server started, as it stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// Its name here.
    id: String,
    /// What it is.
    kind: Kind,
    /// What was asked for.
    #[schema(value_type = Object)]
    request: serde_json::Value,
    /// When, in µs since 1970.
    started_unix_us: i64,
    /// An experiment's name in the journal, once it has one.
    experiment: Option<String>,
    /// How it ended; `null` while it runs.
    end: Option<End>,
}

/// What of an event's line says which it is.
#[derive(Deserialize)]
struct Head {
    event: Option<String>,
    id: Option<String>,
}

impl Run {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn summary(&self) -> RunSummary {
        let log = self.log();
        RunSummary {
            id: self.id.clone(),
            kind: self.kind,
            request: self.request.clone(),
            started_unix_us: self.started_unix_us,
            experiment: log.experiment.clone(),
            end: log.end.clone(),
        }
    }

    /// Asks it to stop and to keep what was measured, as Ctrl-C does.
    pub(crate) fn cancel(&self) {
        self.cancel.notify_one();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.log().end.is_some()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// What it said last as its answer, if it has.
    pub(crate) fn result(&self) -> Option<serde_json::Value> {
        let log = self.log();
        let event = log.events.iter().rfind(|event| event.kind == "result")?;
        serde_json::from_slice(&event.data).ok()
    }

    /// Notes a line that it printed; where events are expected, what isn't an object is none.
    fn note(&self, line: &str) {
        if self.lines {
            return self.add("line".to_owned(), serde_json::json!({"event": "line", "text": line}).to_string(), |_| {});
        }
        let Ok(Head { event, id }) = serde_json::from_str(line) else { return };
        let kind = match (self.kind, event) {
            // Of a lab the answer is that it is up; that it was isn't news.
            (Kind::Lab, Some(_)) => "result".to_owned(),
            (Kind::Lab, None) => return,
            (_, event) => event.unwrap_or_else(|| "result".to_owned()),
        };
        self.add(kind, line.to_owned(), |log| log.experiment = log.experiment.take().or(id));
    }

    fn add(&self, kind: String, data: String, also: impl FnOnce(&mut Log)) {
        let data = Bytes::from(data);
        let mut log = self.log();
        if kind == SAMPLE {
            let number = log.next_sample;
            log.next_sample += 1;
            log.samples.push_back(Arc::new(Event { number, kind, data }));
            if log.samples.len() > KEPT_SAMPLES {
                log.samples.pop_front();
            }
            drop(log);
            self.grown.send_replace(());
            return;
        }
        if kind == "trial" {
            // What was measured is in the journal.
            log.samples.clear();
        }
        let number = log.next;
        log.next += 1;
        log.bytes += data.len();
        log.events.push_back(Arc::new(Event { number, kind, data }));
        while log.events.len() > KEPT_EVENTS || (log.bytes > KEPT_BYTES && log.events.len() > 1) {
            let gone = log.events.pop_front().map_or(0, |event| event.data.len());
            log.bytes -= gone;
        }
        also(&mut log);
        drop(log);
        self.grown.send_replace(());
    }

    fn end(&self, end: End) {
        let data = serde_json::to_string(&end).unwrap_or_default();
        self.add("end".to_owned(), data, |log| {
            log.samples.clear();
            log.end = Some(end);
        });
    }

    /// Its events from a number on, those that are kept at once and the others as they come; ends with it.
    ///
    /// Nothing is buffered for a slow reader: it reads on in the log, and misses what has left it.
    pub(crate) fn events(self: Arc<Self>, from: u64) -> impl Stream<Item = Arc<Event>> + Send {
        let grown = self.grown.subscribe();
        let at = Place { event: from, sample: 0 };
        futures_util::stream::unfold((self, grown, at), |(run, mut grown, at)| async move {
            loop {
                grown.mark_unchanged();
                match run.after(at) {
                    Some(Ok((event, next))) => return Some((event, (run, grown, next))),
                    Some(Err(RunOver)) => return None,
                    None => grown.changed().await.ok()?,
                }
            }
        })
    }

    /// Whether it has ended, and no event from this number on is left to be told.
    pub(crate) fn is_over(&self, from: u64) -> bool {
        let log = self.log();
        log.end.is_some() && from >= log.next
    }

    /// The first event from a place on, and the place behind it.
    fn after(&self, at: Place) -> Option<Result<(Arc<Event>, Place), RunOver>> {
        let log = self.log();
        let first = log.next - log.events.len() as u64;
        let number = usize::try_from(at.event.saturating_sub(first)).unwrap_or(usize::MAX);
        if let Some(event) = log.events.get(number) {
            return Some(Ok((Arc::clone(event), Place { event: event.number + 1, ..at })));
        }
        if let Some(sample) = log.samples.iter().find(|sample| sample.number >= at.sample) {
            return Some(Ok((Arc::clone(sample), Place { sample: sample.number + 1, ..at })));
        }
        log.end.is_some().then_some(Err(RunOver))
    }
}

/// How far somebody has read.
#[derive(Debug, Clone, Copy)]
struct Place {
    event: u64,
    sample: u64,
}

/// Nothing comes any more.
struct RunOver;

/// All that this server started.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<VecDeque<Arc<Run>>>);

impl Runs {
    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts something. Only one thing that measures runs at a time, since two would share the processor, and each would be
    /// the other's noise; and one lab stays up.
    ///
    /// # Errors
    /// [`ApiError`]: 409 while another one runs.
    pub(crate) fn start(&self, program: &Program, job: Job) -> Result<Arc<Run>, ApiError> {
        let mut runs = self.list();
        let in_the_way = |run: &&Arc<Run>| !run.has_ended() && run.kind.goes_on_beside() == job.kind.goes_on_beside();
        if let Some(other) = runs.iter().find(in_the_way) {
            let what = match other.kind {
                Kind::Experiment => "an experiment is running, and two at once would disturb each other",
                Kind::Probe => "a path is being probed, and two at once would disturb each other",
                Kind::Workload => "something is running in the lab, and two at once would disturb each other",
                Kind::Lab => "a lab is up already",
                Kind::Traffic => "connections of this server are assigned already",
                Kind::Test => "a test is running, and two at once would disturb each other",
                Kind::Comparison => "a comparison is running, and two at once would disturb each other",
            };
            return Err(ApiError::new(StatusCode::CONFLICT, what).hint("wait for its end, or stop it"));
        }
        let lines = matches!(job.work, Work::Lines(_));
        let child = program.start(job.work)?;
        let run = Arc::new(Run {
            id: crate::secret::random_hex(6)?,
            kind: job.kind,
            request: job.request,
            lines,
            kept: Mutex::new(job.kept),
            started_unix_us: wt_sys::clock::unix_us(),
            log: Mutex::default(),
            grown: watch::Sender::new(()),
            cancel: Notify::new(),
        });
        runs.push_front(Arc::clone(&run));
        while let Some(place) = surplus(&runs) {
            runs.remove(place);
        }
        tokio::spawn(follow(Arc::clone(&run), child));
        Ok(run)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Run>> {
        self.list().iter().find(|run| run.id == id).cloned()
    }

    /// Those of a kind, or all; the newest first.
    pub(crate) fn summaries(&self, kind: Option<Kind>) -> Vec<RunSummary> {
        let wanted = |run: &&Arc<Run>| kind.is_none_or(|kind| kind == run.kind);
        self.list().iter().filter(wanted).map(|run| run.summary()).collect()
    }

    /// Stops everything and waits until all have ended.
    pub(crate) async fn stop_all(&self) {
        let running: Vec<_> = self.list().iter().filter(|run| !run.has_ended()).cloned().collect();
        for run in running {
            run.cancel();
            let mut grown = run.grown.subscribe();
            let _ = tokio::time::timeout(GRACE * 2, grown.wait_for(|()| run.has_ended())).await;
        }
    }
}

/// Which of those that have ended goes next: the oldest of a kind of which there are too many, or of all where their events are too
/// long. What is short and often done, as probes are, doesn't push out an experiment.
fn surplus(runs: &VecDeque<Arc<Run>>) -> Option<usize> {
    let bytes: usize = runs.iter().filter(|run| run.has_ended()).map(|run| run.log().bytes).sum();
    let so_many = |kind: Kind| runs.iter().filter(|run| run.kind == kind).count();
    runs.iter().rposition(|run| run.has_ended() && (bytes > KEPT_OF_ENDED || so_many(run.kind) > KEPT_RUNS))
}

/// Reads what it says until it ends.
async fn follow(run: Arc<Run>, mut child: Child) {
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let lines = async {
        let Some(stdout) = stdout else { return };
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while matches!((&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await, Ok(n) if n > 0) {
            run.note(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
    };
    let told = futures_util::future::join(lines, worker::message(stderr));
    tokio::pin!(told);
    let said = tokio::select! {
        said = &mut told => Some(said.1),
        () = run.cancel.notified() => None,
    };
    let stopped = said.is_none();
    let said = match said {
        Some(said) => said,
        None => {
            if let Some(pid) = child.id() {
                // What takes a worker into a lab doesn't hand a signal on.
                let all = run.kind == Kind::Workload;
                let send = if all { wt_sys::process::signal_group } else { wt_sys::process::signal };
                // It may have ended just now; then there is nothing to stop.
                let _ = send(pid, SIGINT);
            }
            tokio::time::timeout(GRACE, &mut told).await.map_or_else(|_| String::new(), |said| said.1)
        }
    };
    let status = match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            if let Some(pid) = child.id().filter(|_| run.kind == Kind::Workload) {
                // What it took into the lab would go on.
                let _ = wt_sys::process::signal_group(pid, SIGKILL);
            }
            let _ = child.start_kill();
            child.wait().await
        }
    };
    let exit_code = status.map_or(u8::MAX, wt_sys::process::exit_code);
    // A lab has no end of its own, and whatever was stopped needs no reason.
    let failed = match run.kind {
        Kind::Experiment | Kind::Traffic | Kind::Test | Kind::Comparison => exit_code > 1,
        Kind::Lab => exit_code != 0 && !stopped,
        Kind::Probe | Kind::Workload => exit_code > 1 && !stopped || exit_code == 1 && !said.is_empty(),
    };
    let kept = std::mem::take(&mut *run.kept.lock().unwrap_or_else(PoisonError::into_inner));
    let said = kept.iter().fold(said, |said, drawn| drawn.plain(&said));
    drop(kept);
    let error = failed.then(|| ApiError::of_exit(exit_code, &said).problem);
    run.end(End { exit_code, error });
}

/// signal(7).
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: usize, kind: Kind, ended: bool) -> Arc<Run> {
        let run = Run {
            id: id.to_string(),
            kind,
            request: serde_json::Value::Null,
            lines: false,
            kept: Mutex::default(),
            started_unix_us: 0,
            log: Mutex::default(),
            grown: watch::Sender::new(()),
            cancel: Notify::new(),
        };
        if ended {
            run.end(End { exit_code: 0, error: None });
        }
        Arc::new(run)
    }

    #[test]
    fn probes_push_out_the_oldest_probe_and_no_experiment() {
        let mut runs: VecDeque<_> = (0..KEPT_RUNS).map(|id| run(id, Kind::Probe, true)).collect();
        runs.push_back(run(100, Kind::Experiment, true));
        assert_eq!(surplus(&runs), None);
        runs.push_front(run(101, Kind::Probe, false));
        assert_eq!(surplus(&runs), Some(KEPT_RUNS), "the oldest probe");
        runs[0].log().bytes = KEPT_OF_ENDED + 1;
        runs.remove(KEPT_RUNS);
        assert_eq!(surplus(&runs), None, "what runs isn't counted, and doesn't go");
        runs[1].log().bytes = KEPT_OF_ENDED + 1;
        assert_eq!(surplus(&runs), Some(KEPT_RUNS), "the oldest of all");
    }
}
