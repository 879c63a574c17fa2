//! Runs a survey over real sockets.

use super::connections::Connections;
use super::finding::HostFinding;
use super::kernel::KernelConnections;
use super::net::Net;
use super::opt_out::OptOut;
use super::raw::RawConnections;
use super::sessions::Sessions;
use super::targets::{UnaskedHost, Url};
use crate::IpVersion;
use crate::clock::now;
use rand_chacha::ChaCha8Rng;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use wt_probe::first_window::{Goal, Survey, SurveyConfig};
use wt_problem::Problem;
use wt_sys::poll::Waker;
use wt_trial::Cancel;

/// So many names are looked up at once.
const RESOLVERS: usize = 16;
/// So many addresses wait for their turn at most, so that a long list fills no memory.
const AHEAD: usize = 20_000;
/// Between two looks at whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(200);
/// Where much comes packets are waited for together for so long: the kernel says when each came, and being woken for every
/// one of them takes more than reading it.
const TOGETHER: Duration = Duration::from_micros(300);
/// What a survey is asked to do.
pub(super) struct SurveyPlan<'a> {
    pub(super) urls: &'a [Url],
    pub(super) ip: Option<IpVersion>,
    pub(super) opt_out: &'a OptOut,
    pub(super) config: SurveyConfig,
    /// The sizes of segments to offer first, if any were asked for.
    pub(super) mss: &'a [u16],
    pub(super) agent: String,
    pub(super) cancel: &'a Cancel,
}

/// What is told while hosts are connections.
pub(super) enum SurveyEvent {
    /// Hosts are being asked: there is time for what takes a while.
    Begun,
    /// Something was found.
    Found(Box<HostFinding>),
    /// That was all; only our ports are kept for what is still under way.
    All,
}

/// Asks all of them, by connections of our own over `net`, or by the kernel's where there is none; `tell` gets each finding
/// as it comes, and [`SurveyEvent::All`] unless it has failed before.
///
/// Whoever listens to packets does nothing else: names are looked up and findings are told by other threads, since a file
/// that is written slowly would hold up timers and fill the ring.
///
/// # Errors
/// A failure when this host can't.
pub(super) fn run(
    plan: &SurveyPlan<'_>,
    net: Option<Net>,
    rng: ChaCha8Rng,
    tell: impl FnMut(SurveyEvent) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let sessions = Sessions::new(plan.agent.clone())?;
    let waker = Waker::new().map_err(|error| Problem::internal(error.to_string()))?;
    let (next, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (next, closed, waker, sessions) = (&next, &closed, &waker, &sessions);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        for _ in 0..RESOLVERS.min(plan.urls.len()) {
            let sender = sender.clone();
            scope.spawn(move || resolve(plan, next, &sender, waker));
        }
        drop(sender);
        let (teller, told) = mpsc::channel();
        let asking = scope.spawn(move || {
            wt_sys::poll::sharpen_timers();
            let mut connections: Box<dyn Connections + '_> = match net {
                Some(net) => Box::new(RawConnections::new(net, Survey::new(plan.config, sessions, rng))),
                None => Box::new(KernelConnections::new(plan.config, plan.mss, sessions)),
            };
            let result = drive(plan, connections.as_mut(), &receiver, waker, closed, teller);
            // Resolvers that still have something to say find nobody who listens.
            next.store(plan.urls.len(), Ordering::Relaxed);
            result
        });
        let news = std::iter::once(SurveyEvent::Begun)
            .chain(told.into_iter().map(|finding| SurveyEvent::Found(Box::new(finding))))
            .chain([SurveyEvent::All]);
        let result = news.map(tell).find(Result::is_err).unwrap_or(Ok(()));
        // Nobody tells what is found from now on.
        closed.store(result.is_err(), Ordering::Relaxed);
        waker.wake();
        let outcome = asking.join().unwrap_or_else(|_| Err(Problem::internal("the thread that asks has died")));
        result.and(outcome)
    })
}

/// `None` of a name on the opt-out list, which nobody looks up.
type ResolvedHost = (usize, Option<Result<Goal, UnaskedHost>>);

fn resolve(plan: &SurveyPlan<'_>, next: &AtomicUsize, sender: &mpsc::SyncSender<ResolvedHost>, waker: &Waker) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(url) = plan.urls.get(number) else { return waker.wake() };
        let goal = if plan.opt_out.has_name(url.host()) { None } else { Some(url.resolve(plan.ip, plan.cancel)) };
        if sender.send((number, goal)).is_err() {
            return;
        }
        waker.wake();
    }
}

fn drive(
    plan: &SurveyPlan<'_>,
    connections: &mut dyn Connections,
    resolved: &mpsc::Receiver<ResolvedHost>,
    waker: &Waker,
    closed: &AtomicBool,
    tell: mpsc::Sender<HostFinding>,
) -> Result<(), Problem> {
    let (mut open, mut stopped) = (true, false);
    let (mut found, mut tell) = (Vec::new(), Some(tell));
    loop {
        while open {
            match resolved.try_recv() {
                Ok((number, goal)) => {
                    let nothing = |address, why: &str| (number, HostFinding::nothing(address, why));
                    let is_out = |address: IpAddr| plan.opt_out.has_address(address);
                    match goal {
                        None => found.push(nothing(None, OPTED_OUT)),
                        Some(Ok(goal)) if is_out(goal.address) => found.push(nothing(Some(goal.address), OPTED_OUT)),
                        Some(Ok(goal)) => connections.add(number, goal),
                        // It may be the look-up that was stopped.
                        Some(Err(_)) if plan.cancel.is_cancelled() => {}
                        Some(Err(UnaskedHost { address, why })) => {
                            let why = if address.is_some_and(is_out) { OPTED_OUT } else { &why };
                            found.push(nothing(address, why));
                        }
                    }
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => open = false,
            }
        }
        connections.step(now(), &mut found)?;
        if !stopped && (plan.cancel.is_cancelled() || closed.load(Ordering::Relaxed)) {
            connections.stop(now(), &mut found);
            (stopped, open) = (true, false);
        }
        for (number, finding) in found.drain(..) {
            let url = &plan.urls[number];
            let (host, provider) = (url.host().to_ascii_lowercase(), url.provider());
            // Whoever listened has had trouble, and reports it.
            if let Some(tell) = &tell {
                let _ = tell.send(HostFinding { url: url.text.clone(), host, provider, ..finding });
            }
        }
        if !open && connections.has_found() && tell.take().is_some() {
            connections.settle();
        }
        if !open && connections.is_done(now()) {
            return Ok(());
        }
        if connections.is_crowded() {
            let waited = wt_sys::poll::wait_readable(&[], Some(TOGETHER));
            waited.map_err(|error| Problem::internal(error.to_string()))?;
        }
        let wait = connections.wakeup(now()).map_or(LOOK, |at| at.saturating_sub(now())).min(LOOK);
        let descriptors: Vec<BorrowedFd<'_>> = [waker.as_fd()].into_iter().chain(connections.descriptor()).collect();
        let ready = wt_sys::poll::wait_readable(&descriptors, Some(wait));
        if ready.map_err(|error| Problem::internal(error.to_string()))? & 1 != 0 {
            waker.clear();
        }
    }
}

/// Why somebody on the list isn't connections.
const OPTED_OUT: &str = "on the opt-out list";
