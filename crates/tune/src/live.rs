//! `tune TARGET`: the real path to servers that mostly aren't ours.

use super::plan::{Plan, deadline_of};
use super::request::{TrialDirection, TuneRequest};
use std::cell::Cell;
use std::time::Duration;
use wt_forecast::{MeasuredPath, Oracle, host_stack};
use wt_setup::{Budget, workload};
use wt_trial::{Amount, Direction, PathFacts, TrialOutcome, Workload};
use wt_units::{BitsPerSecond, Bytes};

/// What a path is taken to carry before anything is known.
pub(crate) const ASSUMED: BitsPerSecond = BitsPerSecond(100_000_000);
/// A budget of bytes is cut into so many trials, if they don't get too short by that.
const TRIALS_OF_A_BUDGET: u64 = 60;
/// A budget of time is cut into so many, if the usual ones would be longer.
const TRIALS_OF_A_TIME: u32 = 40;
/// But into no fewer than these, so that trials outlast slow start.
const FEWEST_OF_A_BUDGET: u64 = 30;
/// A trial of fewer bytes says little.
pub(crate) const LEAST: u64 = 64 * 1024;

/// What is known of the remote host, and what follows for each trial.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) pause: Option<Duration>,
    pub(crate) near: bool,
    /// Whether an upload can be ended by the clock: the remote host counts what it received.
    pub(crate) by_time: bool,
    /// Payload per second, once it was measured.
    pub(crate) rate: Cell<Option<BitsPerSecond>>,
    /// Bytes of the file, if they are known.
    pub(crate) length: Cell<Option<u64>>,
    /// The largest segment that was seen, bytes of payload.
    pub(crate) mss: Cell<Option<u64>>,
    /// What it is taken for before that.
    pub(crate) assumed: BitsPerSecond,
    /// Bytes that the pilot cost.
    pub(crate) spent: Cell<u64>,
    /// The share of probes that got lost, if there were any.
    pub(crate) loss: Option<f64>,
    /// For the journaled configuration, but for what was measured.
    pub(crate) description: wt_journal::LiveConfig,
    /// The path as it was looked at again, where the pilot was served by another address than the one looked at first.
    pub(crate) elsewhere: Option<PathFacts>,
}

impl Live {
    pub(crate) fn rate(&self) -> BitsPerSecond {
        self.rate.get().unwrap_or(self.assumed)
    }

    /// How many remote hosts there are.
    pub(crate) fn targets(&self) -> usize {
        self.description.targets.as_ref().map_or(1, Vec::len)
    }

    /// The largest segment that was seen, bytes of payload.
    pub(crate) fn mss(&self) -> Option<u64> {
        self.mss.get()
    }

    /// The share of probes that got lost, if there were any.
    pub(crate) fn loss(&self) -> Option<f64> {
        self.loss
    }

    /// The model of the path as the pilot found it; none where nothing was measured.
    pub(crate) fn oracle(&self, path: &PathFacts, direction: Direction) -> Option<Oracle> {
        let goodput = path.physical_goodput_bps.map(BitsPerSecond).or(self.rate.get())?;
        let seen = MeasuredPath { goodput, loss: self.loss.unwrap_or(0.0), direction };
        let mut stack = host_stack();
        if direction == Direction::Down {
            // What the remote host has nobody says; this is what most have.
            (stack.congestion_control, stack.pacing) = ("cubic".to_owned(), false);
        }
        Oracle::of_real_path(&seen, path, &stack)
    }

    /// Goes into the journaled configuration.
    pub(crate) fn config(&self) -> wt_journal::LiveConfig {
        wt_journal::LiveConfig {
            loss: self.loss,
            rate_bps: self.rate.get().map(BitsPerSecond::get),
            length: self.length.get(),
            ..self.description.clone()
        }
        .whole()
    }

    /// How each trial is run.
    pub(crate) fn plan(&self, request: &TuneRequest, path: &PathFacts) -> Plan {
        let rtt = Duration::from_micros(path.rtt_us);
        let usual = (rtt * 75).clamp(Duration::from_secs(3), Duration::from_secs(60));
        let length = request.trial.unwrap_or_else(|| match request.budget {
            // In little time rather many short trials than a few long ones.
            Some(Budget::Time(time)) => {
                usual.min((time / TRIALS_OF_A_TIME).max(rtt * 15).max(Duration::from_millis(300)))
            }
            _ => usual,
        });
        let rate = self.rate();
        if !request.workload.is_plain() || request.direction == TrialDirection::Both {
            return self.plan_of(request, path, length);
        }
        let whole = (rate * length).get().max(LEAST);
        let direction = request.payload_direction();
        let size = match request.budget {
            Some(Budget::Size(total)) => {
                let left = total.get().saturating_sub(self.spent.get());
                let telling = (path.bdp_bytes * 10).min(left / FEWEST_OF_A_BUDGET);
                let size = (left / TRIALS_OF_A_BUDGET).max(telling).max(LEAST);
                Some(whole.min(size).min(self.length.get().unwrap_or(u64::MAX)))
            }
            _ if direction == Direction::Up && !self.by_time => Some(whole),
            // A file that is over before its time is the same amount each time.
            _ => self.length.get().filter(|length| *length < whole + whole / 4),
        };
        let (amount, expected) = match size {
            Some(size) => (Amount::Size(Bytes(size)), Bytes(size) / rate),
            None => (Amount::Time(length), length),
        };
        let workload = Workload::Bulk { direction, amount };
        let least = if self.near { Duration::from_millis(50) } else { Duration::from_secs(1) };
        Plan {
            id: String::new(),
            seed: request.seed,
            order_seed: 0,
            deadline: deadline_of(&workload, expected, rtt),
            workload,
            expected,
            cool_down: self.pause.unwrap_or_else(|| (rtt * 4).clamp(least, Duration::from_secs(5))),
        }
    }

    /// How each trial of a workload is run whose amount doesn't follow from the budget.
    fn plan_of(&self, request: &TuneRequest, path: &PathFacts, length: Duration) -> Plan {
        let rtt = Duration::from_micros(path.rtt_us);
        let length = request.trial.or_else(|| request.workload.usual_time()).unwrap_or(length);
        let workload = request.each_trial(length);
        let expected = workload.time().unwrap_or_else(|| workload::expected(&workload, rtt, self.rate()));
        let least = if self.near { Duration::from_millis(50) } else { Duration::from_secs(1) };
        Plan {
            id: String::new(),
            seed: request.seed,
            order_seed: 0,
            deadline: deadline_of(&workload, expected, rtt),
            workload,
            expected,
            cool_down: self.pause.unwrap_or_else(|| (rtt * 4).clamp(least, Duration::from_secs(5))),
        }
    }

    /// The most trials that a budget of bytes allows: one more is run to warm up.
    pub(crate) fn trials_of(&self, total: Bytes, bytes_per_trial: u64) -> usize {
        let left = total.get().saturating_sub(self.spent.get());
        usize::try_from((left / bytes_per_trial.max(1)).saturating_sub(1)).unwrap_or(usize::MAX)
    }
}

/// The path as the pilot found it.
pub(crate) fn measured(live: &Live, facts: &PathFacts, pilot: &TrialOutcome) -> PathFacts {
    let facts = live.elsewhere.as_ref().unwrap_or(facts);
    let seen = pilot.observed.min_rtt_us.filter(|rtt| *rtt > 0);
    let rtt_us = seen.map_or(facts.rtt_us, |rtt| rtt.min(facts.rtt_us));
    let bdp = live.rate() * Duration::from_micros(rtt_us);
    PathFacts { rtt_us, bdp_bytes: bdp.get(), ..facts.clone() }
}

/// TCP payload of a full-sized packet, bytes: as it was seen, or what the headers leave of the path MTU.
pub(crate) fn payload(live: Option<&Live>, path: &PathFacts, headers: u64) -> u64 {
    /// The option of timestamps, which a remote host may refuse (RFC 7323 section 3).
    const OPTIONS: u64 = 12;
    let usual = path.pmtu.saturating_sub(headers).max(1);
    live.and_then(Live::mss).filter(|seen| *seen <= usual + OPTIONS).unwrap_or(usual)
}
