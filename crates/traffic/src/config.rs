use crate::{ArmSettings, DrawKey};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_units::serde_duration;

/// So many ports at most: each new connection's port is compared with all of them.
pub const MOST_PORTS: usize = 8;

/// How many epochs a block of mixed allocations or of slots of two arms has: 0, ½ and 1 in random order.
pub const ALLOCATION_BLOCK: u64 = 3;

/// To what one coin gives an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrafficUnit {
    /// A client's prefix for one epoch (IPv4 /24, IPv6 /48): the parallel connections of a page share an arm.
    #[default]
    Prefix,
    /// Each connection by itself.
    Connection,
    /// Everybody for one epoch: the only one that says something about everybody.
    Slot,
}

/// How the shares of the arms change from epoch to epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrafficAllocation {
    /// The ramp's share.
    #[default]
    Fixed,
    /// Epochs in which nobody, half and everybody have the new settings, in random order within blocks of three.
    Mixed,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficArm {
    /// What reports call it.
    pub name: String,
    /// What it sets.
    pub settings: ArmSettings,
}

/// How the share of an arm that is tried grows, by the connections that are recorded of those arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct TrafficRamp {
    /// From how many recorded connections of the arms that are tried on, with which share in the place of a half.
    pub steps: Vec<(u64, f64)>,
}

impl Default for TrafficRamp {
    /// 5 %, from 200 connections on 25 %, from 1000 on 50 %.
    fn default() -> Self {
        Self { steps: vec![(0, 0.05), (200, 0.25), (1000, 0.5)] }
    }
}

impl TrafficRamp {
    /// A half from the first connection on.
    #[must_use]
    pub fn none() -> Self {
        Self { steps: vec![(0, 0.5)] }
    }

    /// The share after so many connections.
    #[must_use]
    pub fn share(&self, treated: u64) -> f64 {
        self.steps.iter().take_while(|(from, _)| *from <= treated).last().map_or(0.5, |(_, share)| *share)
    }
}

/// What an experiment on a server's connections is. It holds no key: keys are in memory only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TrafficConfig {
    /// The local ports whose connections take part: 1 to [`MOST_PORTS`], each once.
    pub ports: Vec<u16>,
    /// The arms, two or more; the first is what the others are compared with.
    pub arms: Vec<TrafficArm>,
    /// To what a coin gives an arm.
    pub unit: TrafficUnit,
    /// How long coins hold.
    #[serde(with = "serde_duration")]
    #[schema(value_type = String)]
    pub epoch: Duration,
    /// How old a connection is when its outcome is taken, if it hasn't ended before.
    #[serde(with = "serde_duration")]
    #[schema(value_type = String)]
    pub age: Duration,
    /// How long from the beginning of an epoch new connections don't count, where everybody changes (slots, mixed allocations).
    #[serde(with = "serde_duration")]
    #[schema(value_type = String)]
    pub burn_in: Duration,
    /// How the shares grow.
    pub ramp: TrafficRamp,
    /// How the shares change from epoch to epoch.
    pub allocation: TrafficAllocation,
    /// Whether clients in private ranges take part. Those on this host never do.
    pub private: bool,
    /// Whether clients take part from where somebody is logged in who runs the experiment.
    pub administrator: bool,
    /// Whether sockets take part that have a congestion control of their own, if arms differ in theirs.
    pub own_cc: bool,
    /// Whether the arms have the same settings on purpose (A/A).
    pub identical: bool,
    /// For a holdback ([`TrafficConfig::holdback`]): the ratio of goodputs that was claimed. No guard stops an arm then.
    pub holdback: Option<f64>,
}

impl Default for TrafficConfig {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            arms: Vec::new(),
            unit: TrafficUnit::Prefix,
            epoch: Duration::from_secs(600),
            age: Duration::from_secs(60),
            burn_in: Duration::ZERO,
            ramp: TrafficRamp::default(),
            allocation: TrafficAllocation::Fixed,
            private: false,
            administrator: false,
            own_cc: false,
            identical: false,
            holdback: None,
        }
    }
}

/// Why an experiment can't be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrafficConfigError {
    /// No port is named.
    #[error("no port is named: write --port 443")]
    NoPort,
    /// A port on which nobody can listen.
    #[error("port 0: invalid, allowed are 1 to 65535")]
    PortZero,
    /// More ports than are compared.
    #[error("{0} ports: invalid, allowed are 1 to {MOST_PORTS}")]
    Ports(usize),
    /// One port several times.
    #[error("port {0} is named twice")]
    SamePort(u16),
    /// Fewer than two arms, or more than eight.
    #[error("{0} arms: invalid, allowed are 2 to 8")]
    Arms(usize),
    /// Two arms with the same settings that nobody asked for.
    #[error("the arms {0} and {1} have the same settings; write --identical if that is meant")]
    Same(String, String),
    /// Two arms with one name.
    #[error("two arms have the name {0}")]
    Name(String),
    /// An epoch out of range.
    #[error("an epoch of {}: invalid, allowed are 1s to 24h", wt_units::format_duration(*.0))]
    Epoch(Duration),
    /// A cohort's age out of range.
    #[error("an age of {}: invalid, allowed are 1s to 1h", wt_units::format_duration(*.0))]
    Age(Duration),
    /// A burn-in that leaves nothing.
    #[error("a burn-in of {} leaves less than half of an epoch of {}", wt_units::format_duration(*.0), wt_units::format_duration(*.1))]
    BurnIn(Duration, Duration),
    /// A share that isn't above 0 and at most ½, or steps that don't grow.
    #[error("the ramp's shares must grow from above 0 to at most 50%, with more connections each")]
    Ramp,
    /// Mixed allocations of more than two arms, or of slots.
    #[error("mixed allocations need two arms, and coins by prefix or connection")]
    Mixed,
}

impl TrafficConfig {
    /// Whether it can be run.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), TrafficConfigError> {
        use TrafficConfigError as E;
        if self.ports.is_empty() {
            return Err(E::NoPort);
        }
        if self.ports.contains(&0) {
            return Err(E::PortZero);
        }
        if self.ports.len() > MOST_PORTS {
            return Err(E::Ports(self.ports.len()));
        }
        if let Some((_, port)) = self.ports.iter().enumerate().find(|(at, port)| self.ports[..*at].contains(port)) {
            return Err(E::SamePort(*port));
        }
        if !(2..=8).contains(&self.arms.len()) {
            return Err(E::Arms(self.arms.len()));
        }
        for (i, arm) in self.arms.iter().enumerate() {
            for earlier in &self.arms[..i] {
                if earlier.name == arm.name {
                    return Err(E::Name(arm.name.clone()));
                }
                if earlier.settings == arm.settings && !self.identical {
                    return Err(E::Same(earlier.name.clone(), arm.name.clone()));
                }
            }
        }
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        if !(second..=24 * hour).contains(&self.epoch) {
            return Err(E::Epoch(self.epoch));
        }
        if !(second..=hour).contains(&self.age) {
            return Err(E::Age(self.age));
        }
        if self.burn_in * 2 > self.epoch {
            return Err(E::BurnIn(self.burn_in, self.epoch));
        }
        let steps = &self.ramp.steps;
        let grows = steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        if steps.first().is_none_or(|step| step.0 != 0) || !grows || !steps.iter().all(|s| s.1 > 0.0 && s.1 <= 0.5) {
            return Err(E::Ramp);
        }
        let mixed = self.allocation == TrafficAllocation::Mixed;
        if mixed && (self.arms.len() != 2 || self.unit == TrafficUnit::Slot) {
            return Err(E::Mixed);
        }
        Ok(())
    }

    /// The shares of the arms in an epoch. `treated` are the connections of the arms that are tried, recorded so far;
    /// `stopped` are the arms that a guardrail has stopped: the first arm gets their shares.
    ///
    /// A change of shares within an epoch would give a client two arms: begin a new epoch (any larger number) instead.
    #[must_use]
    pub fn shares(&self, key: DrawKey, epoch: u64, treated: u64, stopped: &[usize]) -> Vec<f64> {
        let mut shares = match self.drawn_place(key, epoch) {
            Some(place) => self.shares_of_place(place),
            None => {
                let arms = self.arms.len();
                let each = 2.0 * self.ramp.share(treated) / arms as f64;
                let mut shares = vec![each; arms];
                shares[0] = 1.0 - each * (arms - 1) as f64;
                shares
            }
        };
        let arms = shares.len();
        for arm in stopped.iter().filter(|arm| **arm > 0 && **arm < arms) {
            shares[0] += std::mem::take(&mut shares[*arm]);
        }
        shares
    }

    /// The place in its block that an epoch has drawn: of slots the arm whose turn it is; of mixed allocations 0 where nobody has
    /// the new settings, 1 where everybody has, 2 where half have. `None` where the shares don't change by turns. It is the same
    /// after an arm was stopped: an epoch that then has other shares than its place isn't compared.
    #[must_use]
    pub fn drawn_place(&self, key: DrawKey, epoch: u64) -> Option<usize> {
        let places = self.places()?;
        permutation(key, places, epoch / places).get((epoch % places) as usize).copied()
    }

    /// How many epochs a block of turns has.
    pub(crate) fn places(&self) -> Option<u64> {
        match (self.unit, self.allocation) {
            (TrafficUnit::Slot, _) => Some(self.arms.len() as u64),
            (_, TrafficAllocation::Mixed) => Some(ALLOCATION_BLOCK),
            (_, TrafficAllocation::Fixed) => None,
        }
    }

    /// The shares of a place as long as no arm is stopped.
    pub(crate) fn shares_of_place(&self, place: usize) -> Vec<f64> {
        match self.unit {
            TrafficUnit::Slot => whole(self.arms.len(), place),
            _ if place < 2 => whole(2, place),
            _ => vec![0.5, 0.5],
        }
    }
}

fn whole(arms: usize, arm: usize) -> Vec<f64> {
    (0..arms).map(|i| if i == arm { 1.0 } else { 0.0 }).collect()
}

/// A random order of `0..n` for a block of epochs (Fisher and Yates).
fn permutation(key: DrawKey, n: u64, block: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n as usize).collect();
    for i in (1..order.len()).rev() {
        let j = key.below(i as u64 + 1, i as u64, block) as usize;
        order.swap(i, j);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(arms: &[&str]) -> TrafficConfig {
        let arm = |text: &&str| TrafficArm { name: (*text).to_owned(), settings: text.parse().unwrap() };
        TrafficConfig { ports: vec![443], arms: arms.iter().map(arm).collect(), ..TrafficConfig::default() }
    }

    #[test]
    fn what_cant_be_run_is_refused_with_the_reason() {
        let good = config(&["initcwnd=10", "initcwnd=32"]);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(TrafficConfig { ports: (1..=8).collect(), ..good.clone() }.check(), Ok(()));
        let mut same = config(&["initcwnd=10", "initcwnd=10"]);
        same.arms[1].name = "B".to_owned();
        let cases: [(TrafficConfig, &str); 11] = [
            (TrafficConfig { ports: vec![], ..good.clone() }, "--port"),
            (TrafficConfig { ports: (1..=9).collect(), ..good.clone() }, "9 ports: invalid, allowed are 1 to 8"),
            (TrafficConfig { ports: vec![443, 80, 443], ..good.clone() }, "port 443 is named twice"),
            (TrafficConfig { ports: vec![443, 0], ..good.clone() }, "port 0"),
            (config(&["initcwnd=10"]), "2 to 8"),
            (same, "--identical"),
            (TrafficConfig { epoch: Duration::ZERO, ..good.clone() }, "1s to 24h"),
            (TrafficConfig { age: Duration::ZERO, ..good.clone() }, "1s to 1h"),
            (TrafficConfig { burn_in: Duration::from_secs(301), ..good.clone() }, "burn-in"),
            (TrafficConfig { ramp: TrafficRamp { steps: vec![(0, 0.6)] }, ..good.clone() }, "ramp"),
            (TrafficConfig { allocation: TrafficAllocation::Mixed, unit: TrafficUnit::Slot, ..good }, "mixed"),
        ];
        for (config, said) in cases {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_configuration_is_read_as_it_is_written_and_holds_no_key() {
        let good = config(&["initcwnd=10", "cc=bbr rto-min=50ms"]);
        let json = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<TrafficConfig>(&json).unwrap(), good);
        assert!(!json.contains("key"), "{json}");
    }

    #[test]
    fn shares_follow_the_ramp_and_a_stopped_arm_gives_its_share_back() {
        let two = config(&["initcwnd=10", "initcwnd=32"]);
        let key = DrawKey([1, 2]);
        assert_eq!(two.shares(key, 0, 0, &[]), [0.95, 0.05]);
        assert_eq!(two.shares(key, 0, 200, &[]), [0.75, 0.25]);
        assert_eq!(two.shares(key, 0, 5000, &[]), [0.5, 0.5]);
        assert_eq!(two.shares(key, 0, 5000, &[1]), [1.0, 0.0]);
        let three = config(&["initcwnd=10", "initcwnd=32", "cc=bbr"]).shares(key, 0, 5000, &[]);
        assert!(three.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-12), "{three:?}");
    }

    #[test]
    fn blocks_of_slots_and_of_mixed_allocations_have_each_once_in_every_order() {
        let slots = TrafficConfig { unit: TrafficUnit::Slot, ..config(&["initcwnd=10", "initcwnd=32"]) };
        let mixed = TrafficConfig { allocation: TrafficAllocation::Mixed, ..config(&["initcwnd=10", "initcwnd=32"]) };
        let key = DrawKey([3, 4]);
        let (mut first, mut orders) = (0, std::collections::BTreeMap::new());
        for block in 0..600u64 {
            let pair = [0, 1].map(|i| slots.shares(key, 2 * block + i, 0, &[])[1]);
            assert_eq!(pair[0] + pair[1], 1.0);
            first += u32::from(pair[0] == 1.0);
            let three = [0, 1, 2].map(|i| (2.0 * mixed.shares(key, 3 * block + i, 0, &[])[1]) as u32);
            *orders.entry(three).or_insert(0u32) += 1;
        }
        assert!((260..=340).contains(&first), "{first}");
        assert_eq!(orders.len(), 6, "{orders:?}");
        assert!(orders.iter().all(|(order, count)| order.iter().sum::<u32>() == 3 && (60..=140).contains(count)));
    }
}
