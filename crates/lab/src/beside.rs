//! A second connection beside a trial's own, for some of its time.

use crate::host::{PORT, SERVER_V4};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wt_load::{Connection, EndReport, Finish, LoadError, Request, SenderOptions, download, upload};
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::Settings;

/// Another transfer in the direction of the trial's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Competitor {
    /// When it begins, counted from the beginning of the trial's transfer.
    pub at: Duration,
    /// For how long it transfers.
    pub lasts: Duration,
    /// Its congestion control: a level of the knob `cc`.
    pub control: String,
}

/// What both connections know of the trial.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// When the trial's own transfer began, ns of the monotonic clock; 0 before.
    begun_ns: AtomicU64,
    /// When it ended; 0 before.
    ended_ns: AtomicU64,
}

impl Clock {
    pub(crate) fn begin(&self) {
        self.begun_ns.store(monotonic_ns(), Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.ended_ns.store(monotonic_ns(), Ordering::Release);
    }

    /// Waits until so long after the beginning; the beginning, or `None` when it is too late or the user wants to stop.
    fn wait(&self, at: Duration, cancel: &Cancel) -> Option<u64> {
        const GLANCE_NS: u64 = 20_000_000;
        loop {
            if cancel.is_cancelled() || self.ended_ns.load(Ordering::Acquire) != 0 {
                return None;
            }
            let begun = self.begun_ns.load(Ordering::Acquire);
            let due = begun.saturating_add(at.as_nanos() as u64);
            let now = monotonic_ns();
            if begun != 0 && now >= due {
                return Some(begun);
            }
            let left = if begun == 0 { GLANCE_NS } else { (due - now).min(GLANCE_NS) };
            // Waits for nothing but time.
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left)));
        }
    }
}

/// The second connection's own part, on a thread in the client's namespace.
#[derive(Debug)]
pub(crate) struct Beside {
    competitor: Competitor,
    pub(crate) request: Request,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Besides {
    /// When it began, on the clock of the trial's own transfer.
    at: Duration,
    client: EndReport,
}

impl Beside {
    /// With the kernel's name of its congestion control.
    pub(crate) fn new(competitor: &Competitor, kernel_name: &str, direction: Direction) -> Self {
        let sender = SenderOptions { congestion_control: Some(kernel_name.to_owned()), ..SenderOptions::default() };
        let amount = Amount::Time(competitor.lasts);
        let request = Request { direction, amount, token: monotonic_ns().rotate_left(32), sender, window: None };
        Self { competitor: competitor.clone(), request }
    }

    /// Runs it; `None` when the trial ended before its time had come.
    pub(crate) fn run(&self, clock: &Clock, cancel: &Cancel) -> Result<Option<Besides>, LoadError> {
        let Some(begun) = clock.wait(self.competitor.at, cancel) else { return Ok(None) };
        let deadline = self.competitor.lasts + Duration::from_secs(10);
        let peer = SocketAddr::new(SERVER_V4.into(), PORT);
        let connection = Connection::open(&peer, &Settings::new(), deadline)?;
        let at = Duration::from_nanos(monotonic_ns().saturating_sub(begun));
        let client = match self.request.direction {
            Direction::Down => download(connection, &self.request, deadline, cancel)?,
            Direction::Up => upload(connection, &self.request, deadline, cancel)?,
        };
        Ok(Some(Besides { at, client }))
    }
}

impl Besides {
    /// What goes into the outcome of the trial: when it was there, and how many bytes had arrived when.
    pub(crate) fn to_json(&self, competitor: &Competitor, direction: Direction, server: Option<&EndReport>) -> Value {
        let (receiver, sender) = match direction {
            Direction::Down => (Some(&self.client), server),
            Direction::Up => (server, Some(&self.client)),
        };
        let arrivals: Vec<(u64, u64)> = receiver
            .map(|receiver| receiver.samples.iter().map(|sample| (sample.t_us, sample.bytes)).collect())
            .unwrap_or_default();
        json!({
            "cc": competitor.control,
            "kernel_cc": sender.map(|sender| sender.congestion_control.clone()),
            "at_us": self.at.as_micros() as u64,
            "elapsed_us": receiver.map(|receiver| receiver.elapsed.as_micros() as u64),
            "bytes": receiver.map(|receiver| receiver.bytes),
            "complete": receiver.is_some_and(|receiver| receiver.finish == Finish::Done),
            "arrivals": arrivals,
        })
    }
}
