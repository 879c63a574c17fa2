//! How long an experiment has to run until a gain is claimed.

use crate::{ReceiverSettings, TrafficConfig, TrafficUnit};
use serde::{Deserialize, Serialize};

/// What an experiment may expect if the gain is so large.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrafficExpectation {
    /// The gain: 0.1 is 10 % more goodput.
    pub gain: f64,
    /// Connections, of all arms together, after which half of the experiments claim it.
    pub connections: f64,
    /// Those after which four of five do.
    pub connections_80: f64,
    /// Hours until the first, at the rate that was given.
    pub hours: f64,
    /// Hours until the second.
    pub hours_80: f64,
}

/// Gain, and connections until half and four of five simulated experiments claim it (docs/results/traffic.md).
type Row = (f64, f64, f64);
/// Coins by prefix and epoch.
const BY_PREFIX: [Row; 3] = [(0.20, 3_500.0, 5_000.0), (0.10, 12_000.0, 19_000.0), (0.05, 58_500.0, 93_000.0)];
/// Coins by connection.
const BY_CONNECTION: [Row; 3] = [(0.20, 2_000.0, 3_000.0), (0.10, 6_000.0, 11_000.0), (0.05, 28_500.0, 46_500.0)];
/// Pairs of slots, at a noise of 7 % a slot.
const PAIRS: [Row; 3] = [(0.20, 9.0, 10.0), (0.10, 14.0, 20.0), (0.05, 36.0, 57.0)];

impl TrafficConfig {
    /// What to expect at so many connections an hour, for each gain. Real traffic can need twice as many or half as many.
    /// Nothing is expected where arms differ in what the server receives alone: no number of connections shows that.
    #[must_use]
    pub fn expectations(&self, connections_per_hour: f64, gains: &[f64]) -> Vec<TrafficExpectation> {
        let rate = connections_per_hour.max(1e-9);
        if ReceiverSettings::of(&self.arms).is_some_and(|receiver| receiver.alone) {
            return Vec::new();
        }
        let tried = (self.arms.len().max(2) - 1) as f64;
        let of = |gain: &f64| {
            let (half, most) = match self.unit {
                TrafficUnit::Prefix => interpolated(&BY_PREFIX, *gain),
                TrafficUnit::Connection => interpolated(&BY_CONNECTION, *gain),
                TrafficUnit::Slot => {
                    let per_pair = rate * self.epoch.as_secs_f64() * (tried + 1.0) / 3600.0;
                    let (half, most) = interpolated(&PAIRS, *gain);
                    (half * per_pair, most * per_pair)
                }
            };
            let (connections, connections_80) = match self.unit {
                TrafficUnit::Slot => (half, most),
                // Each comparison has 2 of the arms; the ramp's small shares say less.
                _ => (self.ramped(half * (tried + 1.0) / 2.0), self.ramped(most * (tried + 1.0) / 2.0)),
            };
            let hours = |connections: f64| (connections / rate) + (self.epoch + self.age).as_secs_f64() / 3600.0;
            TrafficExpectation {
                gain: *gain,
                connections,
                connections_80,
                hours: hours(connections),
                hours_80: hours(connections_80),
            }
        };
        gains.iter().map(of).collect()
    }

    /// How many connections say with the ramp's shares what so many say with a half.
    fn ramped(&self, at_a_half: f64) -> f64 {
        let (mut said, mut connections) = (0.0, 0.0);
        for (i, (from, share)) in self.ramp.steps.iter().enumerate() {
            let worth = 4.0 * share * (1.0 - share);
            let lasts = self.ramp.steps.get(i + 1).map_or(f64::INFINITY, |next| (next.0 - from) as f64 / share);
            if said + worth * lasts >= at_a_half {
                return connections + (at_a_half - said) / worth;
            }
            said += worth * lasts;
            connections += lasts;
        }
        connections
    }
}

/// Between the rows, and beyond them by the square of the gain.
fn interpolated(rows: &[Row], gain: f64) -> (f64, f64) {
    let log_gain = gain.abs().max(1e-3).ln();
    let beyond = |row: &Row| {
        let factor = (2.0 * (row.0.ln() - log_gain)).exp();
        (row.1 * factor, row.2 * factor)
    };
    let (first, last) = (&rows[0], &rows[rows.len() - 1]);
    if log_gain >= first.0.ln() {
        return (first.1, first.2);
    }
    let Some(pair) = rows.windows(2).find(|pair| log_gain >= pair[1].0.ln()) else { return beyond(last) };
    let share = (pair[0].0.ln() - log_gain) / (pair[0].0.ln() - pair[1].0.ln());
    let between = |a: f64, b: f64| (a.ln() + share * (b.ln() - a.ln())).exp();
    (between(pair[0].1, pair[1].1), between(pair[0].2, pair[1].2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TrafficArm, TrafficRamp};

    fn config(unit: TrafficUnit, ramp: TrafficRamp) -> TrafficConfig {
        let arm = |name: &str| TrafficArm { name: name.to_owned(), settings: crate::ArmSettings::current() };
        TrafficConfig { unit, ramp, arms: vec![arm("A"), arm("B")], ..TrafficConfig::default() }
    }

    #[test]
    fn half_the_gain_takes_some_four_times_as_many_connections_and_the_ramp_adds_to_it() {
        let half = config(TrafficUnit::Prefix, TrafficRamp::none());
        let [five, ten] = [0.05, 0.1].map(|gain| half.expectations(1000.0, &[gain])[0]);
        assert!((2.5..6.0).contains(&(five.connections / ten.connections)), "{five:?} {ten:?}");
        assert!(ten.connections < ten.connections_80 && ten.hours < ten.hours_80);
        assert!((ten.hours - ten.connections / 1000.0 - 660.0 / 3600.0).abs() < 1e-9);
        let ramped = config(TrafficUnit::Prefix, TrafficRamp::default()).expectations(1000.0, &[0.1])[0];
        assert!(ramped.connections > ten.connections && ramped.connections < ten.connections + 7200.0);
        let small = half.expectations(1000.0, &[0.025])[0];
        assert!((small.connections / five.connections - 4.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_forecast_where_arms_differ_in_what_the_server_receives_alone() {
        let arms = |levels: [&str; 2]| TrafficConfig {
            arms: levels.map(|l| TrafficArm { name: l.to_owned(), settings: l.parse().unwrap() }).to_vec(),
            ..config(TrafficUnit::Prefix, TrafficRamp::none())
        };
        for levels in [["initrwnd=44", "initrwnd=3"], ["current settings", "window-clamp=1MiB delack-max=20ms"]] {
            assert_eq!(arms(levels).expectations(1000.0, &[0.1]), []);
        }
        assert_eq!(arms(["initrwnd=10 initcwnd=10", "initrwnd=40 initcwnd=32"]).expectations(1000.0, &[0.1]).len(), 1);
    }

    #[test]
    fn slots_take_pairs_however_many_connections_there_are() {
        let slots = config(TrafficUnit::Slot, TrafficRamp::none());
        let [few, many] = [100.0, 1e6].map(|rate| slots.expectations(rate, &[0.1])[0].hours);
        assert!((few - many).abs() < 1e-6 && (few - (14.0 / 3.0 + 660.0 / 3600.0)).abs() < 1e-6, "{few} {many}");
    }
}
