//! How much servers send before anything is acknowledged: their initial congestion windows.
//!
//! Two connections with different MSS ask for a URL and acknowledge nothing; what is claimed of what comes is
//! [`wt_probe::first_window`]'s. With `CAP_NET_RAW` connections of our own ask, without it the kernel's.

/// Where hosts are asked.
mod connections;
/// What is known of one URL.
mod finding;
/// What earlier runs have found.
mod history;
/// Without privilege.
mod kernel;
/// URLs and opt-out lists as people write them.
mod lists;
/// The raw sockets.
mod net;
/// Who doesn't want to be asked.
mod opt_out;
/// Hosts by their providers.
mod providers;
/// With raw sockets.
mod raw;
/// Into the journal.
mod recorder;
/// What is asked for.
mod request;
/// HTTP and HTTPS over those connections.
mod sessions;
/// A survey over real sockets.
mod survey;
/// URLs.
mod targets;
/// HTTPS.
mod tls;

pub use finding::{HostFinding, SynAck, verdict_word};
pub use history::{HistoryAnswer, HistoryRequest, history};
pub use lists::{UrlRequest, opt_out_of, urls_of};
pub use providers::{ProviderTally, Providers};
pub use request::{FirstWindowRequest, is_contact};
pub use targets::SkippedLine;

use kernel::SIZES;
use net::Net;
use opt_out::OptOut;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use recorder::Recorder;
use serde::Serialize;
use survey::{SurveyEvent, SurveyPlan};
use wt_probe::first_window::Verdict;
use wt_problem::Problem;
use wt_trial::Cancel;

/// What happens while hosts are asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum FirstWindowEvent {
    /// Raw sockets aren't allowed: the kernel's own connections ask.
    WithoutRawSockets,
    /// A line of the list is no URL; the others go on.
    Skipped {
        /// Which, from 1.
        line: u32,
        /// Why.
        problem: Problem,
    },
    /// A host has been asked.
    Found {
        /// What it showed.
        finding: Box<HostFinding>,
    },
    /// The usual journal can't be written: findings are told, but not kept (any more).
    NotKept {
        /// Why.
        problem: Problem,
        /// Whether earlier findings of this run were kept.
        began: bool,
    },
}

/// What a survey of first windows found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstWindowAnswer {
    /// The version of this contract.
    pub schema_version: u32,
    /// URL by URL in the order of their answers, if the request wanted them collected.
    pub targets: Vec<HostFinding>,
    /// How many showed a first window, or a bound of one.
    #[serde(skip)]
    pub answered: usize,
    /// Whether somebody stopped it before all were asked.
    #[serde(skip)]
    pub stopped: bool,
}

impl FirstWindowAnswer {
    /// Why it isn't a whole answer, if it isn't: stopped, or no host showed anything.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        if self.stopped {
            return Some(Problem::stopped("stopped before all hosts were asked"));
        }
        let nothing = || {
            Problem::remote("no host showed a first window")
                .hint("what each answered says why; with --csv it is the column \"why\"")
        };
        (self.answered == 0).then(nothing)
    }
}

/// Asks servers how much they send before anything is acknowledged; an answer even when it was cancelled.
///
/// # Errors
/// A usage problem for an invalid request, an environment problem where this host can't ask or a journal that was named
/// can't be written.
pub fn first_window(
    request: &FirstWindowRequest,
    cancel: &Cancel,
    events: &mut dyn FnMut(FirstWindowEvent),
) -> Result<FirstWindowAnswer, Problem> {
    let (urls, skipped) = request.check()?;
    skipped.into_iter().for_each(|(line, problem)| events(FirstWindowEvent::Skipped { line, problem }));
    let opt_out = OptOut::read(&request.opt_out)?;
    let net = if request.unprivileged { None } else { open_net(urls.len(), events)? };
    if let (None, Some(mss)) = (&net, request.mss.iter().find(|mss| !SIZES.contains(*mss))) {
        let what =
            format!("the kernel's own connections measure by an MSS of {} to {} bytes", SIZES.start(), SIZES.end());
        return Err(Problem::usage(format!("{what}, not {mss}"))
            .hint("others need raw sockets: CAP_NET_RAW (root), and no --unprivileged"));
    }
    let (config, agent) = (request.config(), request.agent());
    let plan = SurveyPlan { urls: &urls, ip: request.ip, opt_out: &opt_out, config, mss: &request.mss, agent, cancel };
    let rng = ChaCha8Rng::seed_from_u64(request.seed.unwrap_or_else(wt_sys::clock::monotonic_ns));
    let mut survey = Survey::open(request, events)?;
    survey::run(&plan, net, rng, |event| survey.hear(event))?;
    Ok(FirstWindowAnswer { stopped: cancel.is_cancelled(), ..survey.answer })
}

/// Of more hosts so much comes at once that room for it is worth its memory.
const MANY: usize = 100;

/// Raw sockets; `None` where we may not have them, so that the kernel's connections must do.
fn open_net(hosts: usize, events: &mut dyn FnMut(FirstWindowEvent)) -> Result<Option<Net>, Problem> {
    // At the pace of one's own network a thousand segments come in 12 ms; whoever asks many meets longer pauses of this thread.
    match Net::open(if hosts > MANY { 4096 } else { 2048 }) {
        Ok(net) => Ok(Some(net)),
        Err(error) if matches!(error.errno(), Some(1 | 13)) => {
            events(FirstWindowEvent::WithoutRawSockets);
            Ok(None)
        }
        Err(error) => Err(Problem::environment(error.to_string()).hint("windtunnel first-window --unprivileged")),
    }
}

/// Whether findings are kept.
enum FindingsLog {
    NotYet,
    On(Recorder),
    Off,
}

/// Keeps findings and passes them on.
struct Survey<'a> {
    request: &'a FirstWindowRequest,
    events: &'a mut dyn FnMut(FirstWindowEvent),
    keeping: FindingsLog,
    answer: FirstWindowAnswer,
}

impl<'a> Survey<'a> {
    fn open(request: &'a FirstWindowRequest, events: &'a mut dyn FnMut(FirstWindowEvent)) -> Result<Self, Problem> {
        // One that was named must be there before anybody is asked; the usual one is opened while hosts are asked.
        let keeping = match &request.journal {
            Some(file) => FindingsLog::On(Recorder::open(Some(file))?),
            None => FindingsLog::NotYet,
        };
        let answer = FirstWindowAnswer { schema_version: 1, targets: Vec::new(), answered: 0, stopped: false };
        Ok(Self { request, events, keeping, answer })
    }

    /// The journal is opened and closed while packets are under way: both wait for the disk.
    fn hear(&mut self, event: SurveyEvent) -> Result<(), Problem> {
        match event {
            SurveyEvent::Begun => self.keep(|_| Ok(())),
            SurveyEvent::Found(finding) => {
                self.answer.answered += usize::from(finding.verdict != Verdict::Unknown);
                let kept = self.keep(|recorder| recorder.add(&finding));
                if self.request.collect {
                    self.answer.targets.push((*finding).clone());
                }
                (self.events)(FirstWindowEvent::Found { finding });
                kept
            }
            SurveyEvent::All => {
                let kept = self.keep(Recorder::flush);
                self.keeping = FindingsLog::Off;
                kept
            }
        }
    }

    /// Writes into the journal; one that fails stops nobody who hasn't named it.
    fn keep(&mut self, write: impl FnOnce(&mut Recorder) -> Result<(), Problem>) -> Result<(), Problem> {
        if let FindingsLog::NotYet = self.keeping {
            self.keeping = match Recorder::open(None) {
                Ok(recorder) => FindingsLog::On(recorder),
                // Whoever has no place for a journal can ask all the same.
                Err(problem) => {
                    (self.events)(FirstWindowEvent::NotKept { problem, began: false });
                    FindingsLog::Off
                }
            };
        }
        let FindingsLog::On(recorder) = &mut self.keeping else { return Ok(()) };
        match write(recorder) {
            Err(problem) if self.request.journal.is_none() => {
                (self.events)(FirstWindowEvent::NotKept { problem, began: true });
                self.keeping = FindingsLog::Off;
                Ok(())
            }
            result => result,
        }
    }
}
