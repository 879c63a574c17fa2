//! Arms as settings of the whole host, one epoch after the other: for what only a host has, and where nothing else works.
//!
//! The settings are held through `wt-host`: its guards put everything back when this process ends, however it ends.

use crate::assigner::Assigner;
use crate::backend::Secrets;
use crate::census::Census;
use std::time::Duration;
use wt_bpf::{TrafficCounts, TrafficRecords};
use wt_host::HeldChange;
use wt_problem::Problem;
use wt_setup::settings::HostAccess;
use wt_sys::guard::boottime_ns;
use wt_traffic::{ArmSettings, TrafficConfig, TrafficUnit};

/// The name of this way.
pub(crate) const SLOTS: &str = "slots";
/// How long one change is held at most, sleep of the machine included; then it is made anew.
const HOLD: Duration = Duration::from_secs(26 * 3600);
const RENEW_NS: u64 = 12 * 3600 * 1_000_000_000;

/// Why an experiment isn't for slots.
pub(crate) fn refusal(config: &TrafficConfig) -> Option<String> {
    if config.unit != TrafficUnit::Slot {
        return Some("it gives everybody the same for a while: take --unit slot".to_owned());
    }
    config.arms.iter().find_map(|arm| HostAccess::can_hold(&arm.settings).err()).map(|problem| problem.to_string())
}

/// What the host has while an arm has its turn.
#[derive(Debug)]
struct ArmInForce {
    arm: usize,
    change: HeldChange,
    on: bool,
    since_ns: u64,
}

/// The host's settings, until dropped.
#[derive(Debug)]
pub(crate) struct SlotsBackend {
    census: Census,
    host: HostAccess,
    arms: Vec<ArmSettings>,
    held: Option<ArmInForce>,
}

impl SlotsBackend {
    /// Nothing is changed yet.
    ///
    /// # Errors
    /// A [`Problem`] that says what is in the way.
    pub(crate) fn begin(config: &TrafficConfig, secrets: &Secrets) -> Result<Self, Problem> {
        let arms = config.arms.iter().map(|arm| arm.settings.clone()).collect();
        Ok(Self { census: Census::begin(config, secrets)?, host: HostAccess::open(None, None)?, arms, held: None })
    }

    /// Gives the host the settings of an arm, which may be those that it has.
    fn give(&mut self, arm: usize) -> Result<(), Problem> {
        let old = |held: &ArmInForce| boottime_ns().saturating_sub(held.since_ns) > RENEW_NS;
        if let Some(held) = self.held.as_mut().filter(|held| held.arm == arm && !old(held)) {
            if !held.on {
                self.host.switch_held(&held.change, true)?;
                held.on = true;
            }
            return Ok(());
        }
        self.take_off()?;
        if self.host.has(&self.arms[arm])? {
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            self.host.release(held.change)?;
        }
        let since_ns = boottime_ns();
        if let Some(change) = self.host.hold(&self.arms[arm], HOLD)? {
            self.held = Some(ArmInForce { arm, change, on: true, since_ns });
        }
        Ok(())
    }

    fn take_off(&mut self) -> Result<(), Problem> {
        if let Some(held) = self.held.as_mut().filter(|held| held.on) {
            self.host.switch_held(&held.change, false)?;
            held.on = false;
        }
        Ok(())
    }
}

impl Assigner for SlotsBackend {
    fn name(&self) -> &'static str {
        SLOTS
    }

    fn shortest_us(&self) -> u64 {
        crate::backend::shortest_by_jiffies_us()
    }

    fn pause_between_looks(&self) -> Duration {
        crate::census::BETWEEN_LOOKS
    }

    fn beat(&mut self) -> Result<(), Problem> {
        self.census.beat()
    }

    fn begin(&mut self, epoch: u64, shares: &[f64]) -> Result<(), Problem> {
        let arm = shares.iter().position(|share| *share >= 1.0).unwrap_or(0);
        // Who is there belongs to the epoch before; who comes until the second look belongs to none.
        self.census.look()?;
        self.census.set_epoch(None);
        self.give(arm)?;
        self.census.look()?;
        self.census.set_epoch(Some((epoch, Box::new(move |_| Some(arm)))));
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Problem> {
        self.census.look()?;
        self.census.set_epoch(None);
        self.take_off()?;
        match self.held.take() {
            Some(held) => self.host.release(held.change),
            None => Ok(()),
        }
    }

    fn records(&mut self) -> Result<TrafficRecords, Problem> {
        self.census.settle(true)?;
        Ok(self.census.records())
    }

    fn still_open(&mut self) -> Result<TrafficRecords, Problem> {
        self.census.still_open()
    }

    fn counts(&mut self) -> Result<TrafficCounts, Problem> {
        self.census.counts()
    }
}

impl Drop for SlotsBackend {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // What this can't put back, its guards go on with.
            let _ = self.host.release(held.change);
        }
    }
}
