use crate::error::ApiError;
use crate::guest::GuestId;
use crate::turns::{Turn, Turns};
use std::path::PathBuf;
use std::time::Duration;
use wt_api::{Answer, Request, Services};
use wt_trial::Cancel;

/// An answer that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is computed in this process: so many requests at once, others wait. What takes long doesn't keep what is read at once.
#[derive(Debug)]
pub(crate) struct Inside {
    quick: Turns,
    long: Turns,
    /// What is read from the journal of many hosts, if there is one.
    common: Option<Services>,
}

/// Stops what is computed when nobody waits for it any more.
struct Abandon(Cancel);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Inside {
    /// As many at once as there are processors, of both kinds.
    pub(crate) fn new(journal: Option<PathBuf>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from).max(2);
        let common = journal.map(|journal| Services { journal: Some(journal), ..Services::default() });
        Self { quick: Turns::new(processors), long: Turns::new(processors), common }
    }

    /// Whether a journal of many hosts is read.
    pub(crate) fn has_common(&self) -> bool {
        self.common.is_some()
    }

    /// Computes an answer on a thread of its own, as JSON, and hands out the turn with it. Dropping the future gives it up; the turn
    /// comes back only when the thread has noticed.
    ///
    /// # Errors
    /// [`ApiError`] for a [`Problem`](wt_problem::Problem), or for one who asks for too much at once.
    pub(crate) async fn answer(&self, who: GuestId, request: Request) -> Result<(Vec<u8>, Turn), ApiError> {
        let (json, turn) = self.compute(who, request, |answer| serde_json::to_vec(&answer)).await?;
        Ok((json.map_err(|error| ApiError::ours(error.to_string()))?, turn))
    }

    /// The same, as the library has it.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub(crate) async fn ask(&self, who: GuestId, request: Request) -> Result<(Answer, Turn), ApiError> {
        self.compute(who, request, |answer| answer).await
    }

    /// Reads something of this machine that takes milliseconds, on a thread of its own.
    ///
    /// # Errors
    /// [`ApiError`] for one who asks for too much at once.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        who: GuestId,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Turn), ApiError> {
        let turn = self.quick.take(who).await?;
        let read = tokio::task::spawn_blocking(move || (read(), turn)).await;
        read.map_err(|error| ApiError::ours(error.to_string()))
    }

    async fn compute<T: Send + 'static>(
        &self,
        who: GuestId,
        request: Request,
        shaped: fn(Answer) -> T,
    ) -> Result<(T, Turn), ApiError> {
        if is_instant(&request) {
            let answer = wt_api::run(request, &Services::default(), &mut |_| {}, &Cancel::new()).map(shaped)?;
            return Ok((answer, Turn::instant(who)));
        }
        let turns = if takes_long(&request) { &self.long } else { &self.quick };
        let turn = turns.take(who).await?;
        let cancel = Cancel::new();
        let _abandon = Abandon(cancel.clone());
        let common = self.common.clone().filter(|_| reads_the_common(&request));
        let work = move || {
            let run = |request, services| wt_api::run(request, services, &mut |_| {}, &cancel);
            let local = Services::default();
            let answer = match common {
                // What was begun here isn't there before it is pushed.
                Some(common) if names_one(&request) => {
                    run(request.clone(), &common).or_else(|problem| run(request, &local).map_err(|_| problem))
                }
                Some(common) => run(request, &common),
                None => run(request, &local),
            };
            (answer.map(shaped), turn)
        };
        let answer = tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(work)).await;
        let answer = answer.map_err(|_| {
            let what = format!("the answer took longer than {} s", PATIENCE.as_secs());
            ApiError::new(axum::http::StatusCode::REQUEST_TIMEOUT, what)
        })?;
        let (answer, turn) = answer.map_err(|error| ApiError::ours(error.to_string()))?;
        Ok((answer?, turn))
    }
}

/// Whether a request is answered in less time than it takes to hand it to another thread.
fn is_instant(request: &Request) -> bool {
    match request {
        Request::Overhead(request) => request.sweep.is_none(),
        Request::Predict(request) => request.is_small(),
        _ => false,
    }
}

/// Whether a request reads the journal of many hosts where one is named; what is under way is under way on this host.
fn reads_the_common(request: &Request) -> bool {
    let lists = matches!(
        request,
        Request::JournalList(_) | Request::Compare(_) | Request::FleetStatus(_) | Request::FleetReport(_)
    );
    lists || names_one(request)
}

/// Whether a request reads one experiment of the journal.
fn names_one(request: &Request) -> bool {
    matches!(
        request,
        Request::Report(_)
            | Request::JournalShow(_)
            | Request::JournalSamples(_)
            | Request::TrafficReport(_)
            | Request::TestShow(_)
    )
}

/// Whether a request may take seconds, or have an answer of megabytes.
fn takes_long(request: &Request) -> bool {
    !matches!(
        request,
        Request::OverheadWords
            | Request::ControlsList
            | Request::ControlShow(_)
            | Request::JournalList(_)
            | Request::LabList
            | Request::LabShow(_)
            | Request::SettingsShow(_)
            | Request::SettingsPlan(_)
            | Request::SettingsHistory
            | Request::SettingsPending
    )
}
