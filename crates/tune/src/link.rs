//! The link under an experiment: whether it changed between trials, and whether the outcomes go with it.

use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde_json::Value;
use wt_experiment::classic::relation;
use wt_trial::{Direction, Status, TrialRecord};

/// Fewer trials than this don't show whether outcomes go with a rate.
const FEWEST: usize = 8;
/// What of a link stands still unless something happens to it.
const STEADY: [&str; 6] = ["device", "driver", "speed_mbps", "duplex", "mtu", "via"];

/// What a person should know of the link; `direction` says which of its rates the payload goes by.
pub(crate) fn warnings(records: &[TrialRecord], direction: Direction, arms: usize) -> Vec<String> {
    let mut told = changes(records);
    told.extend(goes_with_rate(records, direction, arms));
    told
}

fn link(record: &TrialRecord) -> Option<&Value> {
    record.outcome.observed.link.as_ref().filter(|link| link.is_object())
}

/// Each change of what should stand still, at the first trial that saw it.
fn changes(records: &[TrialRecord]) -> Vec<String> {
    let mut told = Vec::new();
    for name in STEADY {
        let mut seen: Vec<(&Value, &TrialRecord)> = Vec::new();
        for record in records {
            // What an older version didn't write down is no change.
            let Some(value) = link(record).map(|link| &link[name]).filter(|value| !value.is_null()) else { continue };
            if seen.last().is_none_or(|(last, _)| *last != value) {
                seen.push((value, record));
            }
        }
        if let [(first, _), rest @ ..] = seen.as_slice()
            && let Some((then, at)) = rest.first()
        {
            let more = if rest.len() > 1 { format!(", {} times in all", rest.len()) } else { String::new() };
            told.push(format!(
                "The link changed between trials: {name} was {first} and is {then} from round {} on{more}. Comparisons within a \
                 round that it didn't change in don't suffer.",
                at.spec.round
            ));
        }
    }
    told
}

/// Whether the outcomes, each against the typical one of its settings, go with the rate of the Wi-Fi.
fn goes_with_rate(records: &[TrialRecord], direction: Direction, arms: usize) -> Option<String> {
    let name = if direction == Direction::Down { "rx_rate_mbps" } else { "tx_rate_mbps" };
    let mut logs: Vec<Vec<f64>> = vec![Vec::new(); arms];
    let mut points = Vec::new();
    for record in records.iter().filter(|record| record.outcome.status == Status::Completed) {
        let rate = link(record).and_then(|link| link[name].as_f64()).filter(|rate| *rate > 0.0);
        let goodput = Some(record.outcome.goodput_bps()).filter(|bps| *bps > 0.0);
        if let (Some(rate), Some(goodput), Some(of_arm)) = (rate, goodput, logs.get_mut(record.spec.arm)) {
            of_arm.push(goodput.ln());
            points.push((record.spec.arm, rate, goodput.ln()));
        }
    }
    if points.len() < FEWEST {
        return None;
    }
    let means: Vec<f64> = logs.iter().map(|logs| logs.iter().sum::<f64>() / logs.len().max(1) as f64).collect();
    let x: Vec<f64> = points.iter().map(|(_, rate, _)| *rate).collect();
    let y: Vec<f64> =
        points.iter().map(|(arm, _, log)| (log - means.get(*arm).copied().unwrap_or(0.0)).exp()).collect();
    let found = relation(&x, &y, &mut ChaCha12Rng::seed_from_u64(1)).filter(|found| found.p < 0.05)?;
    let (least, most) =
        x.iter().fold((f64::INFINITY, 0.0f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    Some(format!(
        "The Wi-Fi's rate went from {least:.0} to {most:.0} Mbit/s between trials, and goodput goes with it (rank correlation {:.2}, \
         p = {:.3}): a part of the noise is the link's.",
        found.spearman, found.p
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;
    use wt_trial::{Amount, Phase, TrialOutcome, TrialSpec, Workload};
    use wt_units::{Bytes, Settings};

    fn trial(round: u32, arm: usize, bytes: u64, link: Value) -> TrialRecord {
        let mut outcome = TrialOutcome::empty(Status::Completed, Duration::from_secs(1), "");
        outcome.bytes = bytes;
        outcome.observed.link = Some(link);
        let spec = TrialSpec {
            experiment: String::new(),
            phase: Phase::Round,
            round,
            order: 1,
            arm,
            settings: Settings::new(),
            workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
            deadline: Duration::from_secs(1),
            seed: 0,
        };
        TrialRecord { id: 0, spec, started_unix_us: 0, outcome }
    }

    #[test]
    fn a_speed_that_was_negotiated_anew_is_told_once_with_its_round() {
        let speed = |round| if round < 4 { 1000 } else { 100 };
        let records: Vec<TrialRecord> =
            (1..8).map(|round| trial(round, 0, 1000, json!({"device": "eth0", "speed_mbps": speed(round)}))).collect();
        let told = warnings(&records, Direction::Down, 1);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("speed_mbps was 1000 and is 100 from round 4 on"), "{told:?}");
        assert_eq!(warnings(&records[..3], Direction::Down, 1), Vec::<String>::new());
    }

    #[test]
    fn goodput_that_goes_with_the_rate_of_wi_fi_is_told_and_one_that_does_not_is_not() {
        let records = |depends: bool| -> Vec<TrialRecord> {
            (0..24u64)
                .map(|n| {
                    let rate = 100 + n * 7919 % 24 * 10;
                    let level = if n % 2 == 0 { 1 } else { 3 };
                    let bytes = level * if depends { rate * 1000 } else { 100_000 + n * 131 % 24 * 1000 };
                    trial(n as u32 / 2 + 1, n as usize % 2, bytes, json!({"device": "wlan0", "rx_rate_mbps": rate}))
                })
                .collect()
        };
        let told = warnings(&records(true), Direction::Down, 2);
        assert!(told.len() == 1 && told[0].contains("goodput goes with it"), "{told:?}");
        assert_eq!(warnings(&records(false), Direction::Down, 2), Vec::<String>::new());
        assert_eq!(warnings(&records(true), Direction::Up, 2), Vec::<String>::new(), "the other rate counts");
    }
}
