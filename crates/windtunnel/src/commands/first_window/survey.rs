//! Runs a survey over real sockets.

use super::net::Net;
use super::targets::{OptOut, Url};
use super::tls::{Tls, config};
use crate::commands::probing::Ip;
use crate::edge::Failure;
use rand_chacha::ChaCha8Rng;
use rustls::ClientConfig;
use std::collections::HashSet;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wt_probe::Time;
use wt_probe::first_window::{Found, Goal, Limit, Opener, Plain, Session, Survey, SurveyConfig, Verdict, Why, request};
use wt_sys::poll::Waker;

/// So many names are looked up at once.
const RESOLVERS: usize = 16;
/// So many addresses wait for their turn at most, so that a long list fills no memory.
const AHEAD: usize = 20_000;
/// Between two looks at whether somebody pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(200);
/// So many packets are read before others may leave.
const BATCH: usize = 256;

/// What is known of one URL.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) url: String,
    pub(super) address: Option<IpAddr>,
    pub(super) verdict: Verdict,
    pub(super) segments: u32,
    pub(super) bytes: u32,
    pub(super) mss: u32,
    pub(super) limit: Option<Limit>,
    pub(super) why: String,
    pub(super) method: &'static str,
    pub(super) facts: Option<Facts>,
    pub(super) probes: usize,
    pub(super) packets: u32,
    pub(super) seconds: f64,
}

/// What a SYN-ACK said; `None` for what it wasn't asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) mss: Option<u16>,
    pub(super) sack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) window_scale: Option<u8>,
    pub(super) window: Option<u16>,
    pub(super) ecn: Option<bool>,
    pub(super) fast_open: Option<bool>,
}

impl Finding {
    /// Of a URL that wasn't asked.
    pub(super) fn nothing(url: &Url, address: Option<IpAddr>, why: &str) -> Self {
        Self {
            url: url.text.clone(),
            address,
            verdict: Verdict::Unknown,
            segments: 0,
            bytes: 0,
            mss: 0,
            limit: None,
            why: why.to_owned(),
            method: "none",
            facts: None,
            probes: 0,
            packets: 0,
            seconds: 0.0,
        }
    }

    fn of(url: &Url, found: &Found) -> Self {
        let decision = found.decision;
        let facts = found.syn_ack.map(|said| Facts {
            mss: said.options.mss,
            sack: found.offered_all.then_some(said.options.sack),
            timestamps: found.offered_all.then_some(said.options.timestamps),
            window_scale: said.options.window_scale,
            window: Some(said.window),
            ecn: found.offered_all.then_some(said.options.ecn),
            fast_open: found.offered_all.then_some(said.options.fast_open),
        });
        Self {
            verdict: decision.verdict,
            segments: decision.segments,
            bytes: decision.bytes,
            mss: decision.mss,
            limit: decision.limit,
            method: "withheld-ack",
            facts,
            probes: found.readings.len(),
            packets: found.packets,
            seconds: found.time.as_secs_f64(),
            ..Self::nothing(url, Some(found.goal.address), decision.why.text())
        }
    }
}

/// Makes sessions of either kind.
struct Applications {
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

/// Asks all of them; `tell` gets each finding as it comes.
///
/// # Errors
/// A failure when this host can't.
pub(super) fn run(
    plan: &Plan<'_>,
    mut net: Net,
    rng: ChaCha8Rng,
    mut tell: impl FnMut(Finding),
) -> Result<(), Failure> {
    let ours = |error: &dyn std::fmt::Display| Failure::ours(error.to_string());
    let tls = config().map_err(|error| ours(&error))?;
    let opener = Applications { tls, agent: plan.agent.clone() };
    let mut survey = Survey::new(plan.config, opener, rng);
    let waker = Waker::new().map_err(|error| ours(&error))?;
    wt_sys::poll::sharpen_timers();
    let next = AtomicUsize::new(0);
    let (next, waker) = (&next, &waker);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(AHEAD);
        for _ in 0..RESOLVERS.min(plan.urls.len()) {
            let sender = sender.clone();
            scope.spawn(move || resolve(plan, next, &sender, waker));
        }
        drop(sender);
        let result = drive(plan, &mut net, &mut survey, &receiver, waker, &mut tell);
        // Resolvers that still have something to say find nobody who listens.
        next.store(plan.urls.len(), Ordering::Relaxed);
        drop(receiver);
        result
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
    net: &mut Net,
    survey: &mut Survey<Applications>,
    resolved: &mpsc::Receiver<Resolved>,
    waker: &Waker,
    tell: &mut impl FnMut(Finding),
) -> Result<(), Failure> {
    let now = || Time::from_nanos(wt_sys::clock::monotonic_ns());
    let mut refused: HashSet<(IpAddr, u16)> = HashSet::new();
    let (mut open, mut stopped) = (true, false);
    let mut quiet_at = now();
    loop {
        while open {
            match resolved.try_recv() {
                Ok((number, goal)) => {
                    let url = &plan.urls[number];
                    match goal {
                        None if plan.opt_out.has_name(&url.host) => tell(Finding::nothing(url, None, OPTED_OUT)),
                        None => tell(Finding::nothing(url, None, "the name has no address")),
                        Some(goal) if plan.opt_out.has_address(goal.address) => {
                            tell(Finding::nothing(url, Some(goal.address), OPTED_OUT));
                        }
                        Some(goal) if refused.contains(&(goal.address, goal.port)) => {
                            tell(Finding::nothing(url, Some(goal.address), Why::Refused.text()));
                        }
                        Some(goal) => survey.add(number, goal),
                    }
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => open = false,
            }
        }
        survey.wake(now());
        while let Some(send) = survey.poll() {
            net.send(&send);
        }
        for (number, found) in survey.take_found() {
            if found.decision.why == Why::Refused {
                refused.insert((found.goal.address, found.goal.port));
            }
            quiet_at = quiet_at.max(found.quiet_at);
            tell(Finding::of(&plan.urls[number], &found));
        }
        let done = stopped || (!open && survey.is_done());
        // What is still under way must find our ports in use.
        if done && now() >= quiet_at {
            return Ok(());
        }
        if !stopped && plan.stop.load(Ordering::Relaxed) {
            survey.stop(now());
            (stopped, open) = (true, false);
            continue;
        }
        let next = if done { Some(quiet_at) } else { survey.wakeup() };
        let wait = next.map_or(LOOK, |at| at.saturating_sub(now())).min(LOOK);
        let ready = wt_sys::poll::wait_readable(&[net.descriptor(), waker.as_fd()], Some(wait));
        if ready.map_err(|error| Failure::ours(error.to_string()))? & 2 != 0 {
            waker.clear();
        }
        let hear = |(at, from, port, to, segment): super::net::Heard<'_>| survey.handle(at, from, port, to, &segment);
        net.hear(BATCH, hear).map_err(|error| Failure::ours(error.to_string()))?;
    }
}

/// Why somebody on the list isn't asked.
const OPTED_OUT: &str = "on the opt-out list";
