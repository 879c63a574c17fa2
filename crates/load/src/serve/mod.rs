//! `serve`: our own peer, for clients that share its key. One TCP port for everything; nobody without the key gets a
//! byte, and nobody gets more than others.

/// The client's side.
mod client;
/// Workloads of several connections.
mod far;
/// Who comes in, and who waits.
mod gate;
/// Tests that are under way.
mod groups;
/// Who may.
mod key;
/// What is said.
mod message;
/// What is counted.
mod metrics;
/// Who is next, and who has had enough.
mod queue;
#[cfg(test)]
mod tests;

pub use client::NO_GREETING;
pub(crate) use client::test;
pub(crate) use far::run as work;
pub use key::{KeyError, SharedKey};
pub use queue::Quota;

use crate::transfer::EndReport;
use crate::turns::Turns;
use gate::Gate;
use groups::{Groups, TestPlace};
use metrics::Metrics;
use queue::Accounts;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::Waker;
use wt_sys::{SysError, SysResult};
use wt_trial::Cancel;

/// Reports that are kept until somebody asks for them; the oldest go first.
const MOST_REPORTS: usize = 1024;
/// A server that stops keeps a report for so long: a client asks for it as soon as its end of the test is over.
const REPORT_WAIT: Duration = Duration::from_secs(5);

/// Bounds of a server for everybody who has the key.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Who may.
    pub key: SharedKey,
    /// Tests at once; more wait for their turn.
    pub max_tests: usize,
    /// Clients that wait; more are sent away.
    pub max_waiting: usize,
    /// The longest test.
    pub longest: Duration,
    /// What one client may have within a day.
    pub quota: Quota,
    /// The congestion controls that clients may ask for, with what the kernel calls them.
    pub congestion_controls: BTreeMap<String, String>,
}

/// What all threads of a server share.
#[derive(Debug)]
struct ServerState {
    config: ServeConfig,
    /// What connections get for which nothing is asked, where that isn't what they begin with.
    usual: Option<String>,
    /// Ends everything at once.
    cancel: Cancel,
    /// Begins no test any more.
    draining: AtomicBool,
    wake: Waker,
    state: Mutex<Reports>,
    /// Reports that are asked for, or on their way.
    reporting: AtomicU64,
    arrived: Condvar,
    accounts: Mutex<Accounts>,
    groups: Groups<TestPlace>,
    /// Which of many tests at once moves its next piece.
    turns: Arc<Turns>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct Reports {
    by_token: HashMap<u64, EndReport>,
    /// Their tokens, with when each came.
    order: VecDeque<(u64, Duration)>,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Serve {
    shared: Arc<ServerState>,
    addresses: Vec<SocketAddr>,
    gate: Option<JoinHandle<()>>,
}

impl Serve {
    /// Begins to accept on sockets that listen already.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn start(listeners: Vec<TcpListener>, config: ServeConfig) -> SysResult<Self> {
        let mut addresses = Vec::new();
        for listener in &listeners {
            addresses.push(listener.local_addr().map_err(SysError::io("read the server's address"))?);
            listener.set_nonblocking(true).map_err(SysError::io("prepare the server's socket"))?;
        }
        let usual = listeners.iter().filter_map(unpaced).next_back();
        let accounts = Mutex::new(Accounts::new(config.quota));
        let shared = Arc::new(ServerState {
            config,
            usual,
            cancel: Cancel::new(),
            draining: AtomicBool::new(false),
            wake: Waker::new()?,
            state: Mutex::default(),
            reporting: AtomicU64::new(0),
            arrived: Condvar::new(),
            accounts,
            groups: Groups::default(),
            turns: Arc::new(Turns::new()),
            metrics: Metrics::default(),
        });
        let gate = Gate::new(listeners, Arc::clone(&shared));
        let gate = std::thread::spawn(move || gate.run());
        Ok(Self { shared, addresses, gate: Some(gate) })
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it has counted, in Prometheus' text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.shared.metrics.to_text(&self.shared.config)
    }

    /// Begins no test any more, sends those away who wait, lets those finish who are at it, and fetch the server's side of it,
    /// but not for longer than this, and serves nobody then; true if all have finished.
    #[must_use]
    pub fn drain(&self, patience: Duration) -> bool {
        self.shared.draining.store(true, Ordering::Release);
        self.shared.wake.wake();
        let end = monotonic_ns().saturating_add(patience.as_nanos() as u64);
        let goes_on = || self.shared.metrics.running() > 0 || self.shared.owes_reports();
        while goes_on() && monotonic_ns() < end {
            crate::wire::pause(Duration::from_millis(20), &self.shared.cancel);
        }
        let all = self.shared.metrics.running() == 0;
        self.shared.stop();
        all
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(gate) = self.gate.take() {
            let _ = gate.join();
        }
    }
}

/// Lets connections begin with reno, and gives the name of what they had got otherwise: a connection that has been bbr's
/// stays paced when it gets another congestion control.
fn unpaced(listener: &TcpListener) -> Option<String> {
    let usual = wt_sys::tcp::congestion_control(listener).ok().filter(|name| !name.is_empty() && name != "reno")?;
    wt_sys::tcp::set_congestion_control(listener, "reno").ok().map(|()| usual)
}

/// What a client with this key says first; for tests of what a recording of it is worth.
///
/// # Errors
/// When there is no randomness.
pub fn greeting(key: &SharedKey) -> Result<Vec<u8>, KeyError> {
    key::Hello::begin(key).map(|(_, first)| first.to_vec()).map_err(|_| KeyError)
}

/// A lock that a thread which died doesn't take with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Duration {
    Duration::from_nanos(monotonic_ns())
}

impl ServerState {
    fn store(&self, token: u64, report: EndReport) {
        let mut reports = lock(&self.state);
        while reports.order.len() >= MOST_REPORTS {
            if let Some((oldest, _)) = reports.order.pop_front() {
                reports.by_token.remove(&oldest);
            }
        }
        if reports.by_token.insert(token, report).is_none() {
            reports.order.push_back((token, now()));
        }
        drop(reports);
        self.arrived.notify_all();
    }

    fn take_report(&self, token: u64, timeout: Duration) -> Option<EndReport> {
        let reports = lock(&self.state);
        let waited =
            self.arrived.wait_timeout_while(reports, timeout, |reports| !reports.by_token.contains_key(&token));
        let (mut reports, _) = waited.unwrap_or_else(PoisonError::into_inner);
        reports.order.retain(|(known, _)| *known != token);
        reports.by_token.remove(&token)
    }

    /// Whether somebody asks for a report, or may ask for one soon.
    fn owes_reports(&self) -> bool {
        let at = now();
        let is_fresh = |since: Duration| at.saturating_sub(since) < REPORT_WAIT;
        self.reporting.load(Ordering::Acquire) > 0 || lock(&self.state).order.iter().any(|(_, since)| is_fresh(*since))
    }

    /// Ends everything at once.
    fn stop(&self) {
        self.cancel.cancel();
        self.wake.wake();
    }
}

/// Reads bytes as everything that the two ends may say to each other behind the handshake.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    message::read_all(bytes);
}
