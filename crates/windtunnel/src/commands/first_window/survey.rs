//! Runs a survey over real sockets.

use super::finding::Finding;
use super::kernel::Kernels;
use super::net::Net;
use super::targets::{OptOut, Url};
use super::tls::{Tls, config};
use crate::commands::probing::Ip;
use crate::edge::Failure;
use rand_chacha::ChaCha8Rng;
use rustls::ClientConfig;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wt_probe::Time;
use wt_probe::first_window::{Goal, Opener, Plain, Session, Survey, SurveyConfig, request};
use wt_sys::poll::Waker;

/// So many names are looked up at once.
const RESOLVERS: usize = 16;
/// So many addresses wait for their turn at most, so that a long list fills no memory.
const AHEAD: usize = 20_000;
/// Between two looks at whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(200);
/// Packets that have waited so long for us mean that this host is busy: then nobody else is begun for as long. It is more
/// than two threads on one core make each other wait, and far less than any timer of a server's.
const LAG: Duration = Duration::from_millis(30);
/// After packets have found no room on this host, nobody is begun for so long.
const FULL: Duration = Duration::from_millis(100);
/// From so many hosts on packets are waited for together: the kernel says when each came, and being woken for every one of
/// them takes more than reading it.
const MANY: usize = 64;
/// For so long.
const TOGETHER: Duration = Duration::from_micros(300);
/// So many packets are read before others may leave.
const BATCH: usize = 256;

/// Makes sessions of either kind.
pub(super) struct Applications {
    tls: Arc<ClientConfig>,
    agent: String,
}

impl Opener for Applications {
    fn open(&self, goal: &Goal) -> Box<dyn Session> {
        let request = request(&goal.authority(), &goal.path, &self.agent);
        if goal.tls { Box::new(Tls::new(&self.tls, &goal.host, request)) } else { Box::new(Plain::new(request)) }
    }
}

/// What a survey is asked to do.
pub(super) struct Plan<'a> {
    pub(super) urls: &'a [Url],
    pub(super) ip: Option<Ip>,
    pub(super) opt_out: &'a OptOut,
    pub(super) config: SurveyConfig,
    pub(super) agent: String,
    pub(super) stop: Arc<AtomicBool>,
}

/// Where hosts are asked: by connections of our own, or by the kernel's.
pub(super) trait Asked {
    /// One more.
    fn add(&mut self, number: usize, goal: Goal);
    /// Does what is due, and tells what was found.
    fn step(&mut self, now: Time, found: &mut Vec<(usize, Finding)>) -> Result<(), Failure>;
    /// When something is due; `None` if never.
    fn wakeup(&self, now: Time) -> Option<Time>;
    /// Whether everything has been found that will be; packets may still be under way.
    fn has_found(&self) -> bool;
    /// Everything has been found: only our ports are still needed.
    fn settle(&mut self) {}
    /// Whether nothing is left to do.
    fn is_done(&self, now: Time) -> bool;
    /// Ends all.
    fn stop(&mut self, now: Time, found: &mut Vec<(usize, Finding)>);
    /// Whether so much comes that it is better read together.
    fn is_crowded(&self) -> bool {
        false
    }
    /// What to wait for, beside time.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What is told while hosts are asked.
pub(super) enum News {
    /// Hosts are being asked: there is time for what takes a while.
    Begun,
    /// Something was found.
    Found(Finding),
    /// That was all; only our ports are kept for what is still under way.
    All,
}

/// Connections of our own.
struct Ours<'a> {
    net: Net,
    survey: Survey<&'a Applications>,
    /// Until when what is still under way must find our ports in use.
    quiet_at: Time,
    stopped: bool,
}

impl Ours<'_> {
    fn take(&mut self, found: &mut Vec<(usize, Finding)>) {
        while let Some(send) = self.survey.poll() {
            self.net.send(&send);
        }
        for (number, one) in self.survey.take_found() {
            self.quiet_at = self.quiet_at.max(one.quiet_at);
            found.push((number, Finding::of(&one)));
        }
    }
}

impl Asked for Ours<'_> {
    fn add(&mut self, number: usize, goal: Goal) {
        self.survey.add(number, goal);
    }

    fn step(&mut self, now: Time, found: &mut Vec<(usize, Finding)>) -> Result<(), Failure> {
        let survey = &mut self.survey;
        let (mut lag, mut last) = (Duration::ZERO, Time::ZERO);
        let drained = self.net.hear(BATCH, |(at, from, port, to, segment)| {
            (lag, last) = (lag.max(now.saturating_sub(at)), at);
            survey.handle(at, from, port, to, &segment);
        });
        if lag >= LAG {
            survey.hold(now + lag);
        }
        // A ring that was full gives more than is read at once.
        if !drained && self.net.take_drops() > 0 {
            survey.hold(now + FULL);
        }
        // Timers don't overtake packets that wait.
        survey.wake(if drained { now } else { last });
        self.take(found);
        Ok(())
    }

    fn wakeup(&self, _: Time) -> Option<Time> {
        if self.has_found() { Some(self.quiet_at) } else { self.survey.wakeup() }
    }

    fn has_found(&self) -> bool {
        self.stopped || self.survey.is_done()
    }

    fn settle(&mut self) {
        self.net.deafen();
    }

    fn is_done(&self, now: Time) -> bool {
        self.has_found() && now >= self.quiet_at
    }

    fn stop(&mut self, now: Time, found: &mut Vec<(usize, Finding)>) {
        self.survey.stop(now);
        self.stopped = true;
        self.take(found);
    }

    fn is_crowded(&self) -> bool {
        self.survey.running() >= MANY
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.net.descriptor()
    }
}

/// Asks all of them, by connections of our own over `net`, or by the kernel's where there is none; `tell` gets each finding
/// as it comes, and [`News::All`] unless it has failed before.
///
/// Whoever listens to packets does nothing else: names are looked up and findings are told by other threads, since a file
/// that is written slowly would hold up timers and fill the ring.
///
/// # Errors
/// A failure when this host can't.
pub(super) fn run(
    plan: &Plan<'_>,
    net: Option<Net>,
    rng: ChaCha8Rng,
    tell: impl FnMut(News) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ours = |error: &dyn std::fmt::Display| Failure::ours(error.to_string());
    let tls = config().map_err(|error| ours(&error))?;
    let ends = Applications { tls, agent: plan.agent.clone() };
    let waker = Waker::new().map_err(|error| ours(&error))?;
    let (next, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (next, closed, waker, ends) = (&next, &closed, &waker, &ends);
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
            let mut asked: Box<dyn Asked + '_> = match net {
                Some(net) => {
                    let quiet_at = Time::ZERO;
                    Box::new(Ours { net, survey: Survey::new(plan.config, ends, rng), quiet_at, stopped: false })
                }
                None => Box::new(Kernels::new(plan.config, ends)),
            };
            let result = drive(plan, asked.as_mut(), &receiver, waker, closed, teller);
            // Resolvers that still have something to say find nobody who listens.
            next.store(plan.urls.len(), Ordering::Relaxed);
            result
        });
        let news = std::iter::once(News::Begun).chain(told.into_iter().map(News::Found)).chain([News::All]);
        let result = news.map(tell).find(Result::is_err).unwrap_or(Ok(()));
        // Nobody tells what is found from now on.
        closed.store(result.is_err(), Ordering::Relaxed);
        waker.wake();
        let asked = asking.join().unwrap_or_else(|_| Err(Failure::ours("the thread that asks has died")));
        result.and(asked)
    })
}

type Resolved = (usize, Option<Goal>);

fn resolve(plan: &Plan<'_>, next: &AtomicUsize, sender: &mpsc::SyncSender<Resolved>, waker: &Waker) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(url) = plan.urls.get(number) else { return waker.wake() };
        let goal = if plan.opt_out.has_name(&url.host) { None } else { url.resolve(plan.ip) };
        if sender.send((number, goal)).is_err() {
            return;
        }
        waker.wake();
    }
}

fn drive(
    plan: &Plan<'_>,
    asked: &mut dyn Asked,
    resolved: &mpsc::Receiver<Resolved>,
    waker: &Waker,
    closed: &AtomicBool,
    tell: mpsc::Sender<Finding>,
) -> Result<(), Failure> {
    let now = || Time::from_nanos(wt_sys::clock::monotonic_ns());
    let (mut open, mut stopped) = (true, false);
    let (mut found, mut tell) = (Vec::new(), Some(tell));
    loop {
        while open {
            match resolved.try_recv() {
                Ok((number, goal)) => {
                    let nothing = |address, why| Some((number, Finding::nothing(address, why)));
                    let refusal = match &goal {
                        None if plan.opt_out.has_name(&plan.urls[number].host) => nothing(None, OPTED_OUT),
                        None => nothing(None, "the name has no address"),
                        Some(goal) if plan.opt_out.has_address(goal.address) => nothing(Some(goal.address), OPTED_OUT),
                        Some(_) => None,
                    };
                    match (refusal, goal) {
                        (None, Some(goal)) => asked.add(number, goal),
                        (refusal, _) => found.extend(refusal),
                    }
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => open = false,
            }
        }
        asked.step(now(), &mut found)?;
        if !stopped && (plan.stop.load(Ordering::Relaxed) || closed.load(Ordering::Relaxed)) {
            asked.stop(now(), &mut found);
            (stopped, open) = (true, false);
        }
        for (number, finding) in found.drain(..) {
            let url = &plan.urls[number];
            let (host, provider) = (url.host.to_ascii_lowercase(), url.provider());
            // Whoever told has had trouble, and says so himself.
            if let Some(tell) = &tell {
                let _ = tell.send(Finding { url: url.text.clone(), host, provider, ..finding });
            }
        }
        if !open && asked.has_found() && tell.take().is_some() {
            asked.settle();
        }
        if !open && asked.is_done(now()) {
            return Ok(());
        }
        if asked.is_crowded() {
            let waited = wt_sys::poll::wait_readable(&[], Some(TOGETHER));
            waited.map_err(|error| Failure::ours(error.to_string()))?;
        }
        let wait = asked.wakeup(now()).map_or(LOOK, |at| at.saturating_sub(now())).min(LOOK);
        let descriptors: Vec<BorrowedFd<'_>> = [waker.as_fd()].into_iter().chain(asked.descriptor()).collect();
        let ready = wt_sys::poll::wait_readable(&descriptors, Some(wait));
        if ready.map_err(|error| Failure::ours(error.to_string()))? & 1 != 0 {
            waker.clear();
        }
    }
}

/// Why somebody on the list isn't asked.
const OPTED_OUT: &str = "on the opt-out list";
