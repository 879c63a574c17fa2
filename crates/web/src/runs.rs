use crate::ask::ExperimentRequest;
use crate::command::{self, Program};
use crate::error::{ApiError, Problem};
use axum::http::StatusCode;
use futures_util::Stream;
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
/// So many experiments that have ended are kept; the journal has all.
const KEPT_RUNS: usize = 16;
/// A line longer than this is no event.
const LONGEST_LINE: u64 = 32 << 20;
/// How long an experiment may take to end cleanly.
const GRACE: Duration = Duration::from_secs(10);

/// An experiment that this server started.
#[derive(Debug)]
pub(crate) struct Run {
    id: String,
    request: ExperimentRequest,
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
    experiment: Option<String>,
    end: Option<End>,
}

/// One thing that happened, as the command line told it.
#[derive(Debug)]
pub(crate) struct Event {
    /// Counts from 0 in each experiment.
    pub(crate) number: u64,
    /// `begin`, `trial`, `round`, `result` or `end`.
    pub(crate) kind: String,
    /// The object in one line.
    pub(crate) data: String,
}

/// How an experiment ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct End {
    /// 0: something is faster; 1: no difference shown; else it failed.
    exit_code: u8,
    /// What went wrong, if anything did.
    error: Option<Problem>,
}

/// An experiment that this server started, as it stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// Its name here.
    id: String,
    /// What was asked for.
    request: ExperimentRequest,
    /// When, in µs since 1970.
    started_unix_us: i64,
    /// Its name in the journal, once it has one.
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

    fn has_ended(&self) -> bool {
        self.log().end.is_some()
    }

    /// Notes a line that the experiment printed; what isn't an object is no event.
    fn note(&self, line: &str) {
        if let Ok(head) = serde_json::from_str::<Head>(line) {
            self.add(head.event.unwrap_or_else(|| "result".to_owned()), line.to_owned(), |log| {
                if log.experiment.is_none() {
                    log.experiment = head.id;
                }
            });
        }
    }

    fn add(&self, kind: String, data: String, also: impl FnOnce(&mut Log)) {
        let mut log = self.log();
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
        self.add("end".to_owned(), data, |log| log.end = Some(end));
    }

    /// Its events from a number on, those that are kept at once and the others as they come; ends with the experiment.
    ///
    /// Nothing is buffered for a slow reader: it reads on in the log, and misses what has left it.
    pub(crate) fn events(self: Arc<Self>, from: u64) -> impl Stream<Item = Arc<Event>> + Send {
        let grown = self.grown.subscribe();
        futures_util::stream::unfold((self, grown, from), |(run, mut grown, from)| async move {
            loop {
                grown.mark_unchanged();
                match run.after(from) {
                    Some(Ok(event)) => {
                        let next = event.number + 1;
                        return Some((event, (run, grown, next)));
                    }
                    Some(Err(Ended)) => return None,
                    None => grown.changed().await.ok()?,
                }
            }
        })
    }

    /// The first event with this number or a later one.
    fn after(&self, from: u64) -> Option<Result<Arc<Event>, Ended>> {
        let log = self.log();
        let first = log.next - log.events.len() as u64;
        let place = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        match log.events.get(place) {
            Some(event) => Some(Ok(Arc::clone(event))),
            None => log.end.is_some().then_some(Err(Ended)),
        }
    }
}

/// Nothing comes any more.
struct Ended;

/// The experiments that this server started.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<VecDeque<Arc<Run>>>);

impl Runs {
    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an experiment. Only one runs at a time: two would share the processor, and each would be the other's noise.
    ///
    /// # Errors
    /// [`ApiError`]: 409 while another one runs; 400 where the request can't be a command line.
    pub(crate) fn start(&self, program: &Program, request: ExperimentRequest) -> Result<Arc<Run>, ApiError> {
        let args = request.args()?;
        let mut runs = self.list();
        if runs.iter().any(|run| !run.has_ended()) {
            let what = "an experiment is running, and two at once would disturb each other";
            return Err(ApiError::new(StatusCode::CONFLICT, what).hint("wait for its end, or stop it"));
        }
        let child = program.start(&args)?;
        let run = Arc::new(Run {
            id: crate::server::random_hex(6).map_err(|error| ApiError::ours(error.to_string()))?,
            request,
            started_unix_us: wt_sys::clock::unix_us(),
            log: Mutex::default(),
            grown: watch::Sender::new(()),
            cancel: Notify::new(),
        });
        runs.push_front(Arc::clone(&run));
        runs.truncate(KEPT_RUNS);
        tokio::spawn(follow(Arc::clone(&run), child));
        Ok(run)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Run>> {
        self.list().iter().find(|run| run.id == id).cloned()
    }

    /// The newest first.
    pub(crate) fn summaries(&self) -> Vec<RunSummary> {
        self.list().iter().map(|run| run.summary()).collect()
    }

    /// Stops every experiment and waits until all have ended.
    pub(crate) async fn stop_all(&self) {
        let running: Vec<_> = self.list().iter().filter(|run| !run.has_ended()).cloned().collect();
        for run in running {
            run.cancel();
            let mut grown = run.grown.subscribe();
            let _ = tokio::time::timeout(GRACE * 2, grown.wait_for(|()| run.has_ended())).await;
        }
    }
}

/// Reads what an experiment says until it ends.
async fn follow(run: Arc<Run>, mut child: Child) {
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let lines = async {
        let Some(stdout) = stdout else { return };
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while matches!((&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await, Ok(n) if n > 0) {
            run.note(String::from_utf8_lossy(&line).trim());
            line.clear();
        }
    };
    let told = futures_util::future::join(lines, command::message(stderr));
    tokio::pin!(told);
    let said = tokio::select! {
        said = &mut told => Some(said.1),
        () = run.cancel.notified() => None,
    };
    let said = match said {
        Some(said) => said,
        None => {
            if let Some(pid) = child.id() {
                // It may have ended just now; then there is nothing to stop.
                let _ = wt_sys::process::signal(pid, SIGINT);
            }
            tokio::time::timeout(GRACE, &mut told).await.map_or_else(|_| String::new(), |said| said.1)
        }
    };
    let status = match tokio::time::timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            let _ = child.start_kill();
            child.wait().await
        }
    };
    let exit_code = status.map_or(u8::MAX, command::exit_code);
    let error = (exit_code > 1).then(|| ApiError::of_exit(exit_code, &said).problem);
    run.end(End { exit_code, error });
}

/// signal(7).
const SIGINT: i32 = 2;
