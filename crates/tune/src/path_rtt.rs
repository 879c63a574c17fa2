//! The RTT that a path is taken to have, where its description says one and a pilot saw one.

use std::time::Duration;
use wt_trial::{PathFacts, Status, TrialOutcome};
use wt_units::{BitsPerSecond, Bytes};

/// How many segments of `mss` bytes are under way in a pilot: half of what the path holds, so that no queue builds up.
pub(crate) fn pilot_segments(facts: &PathFacts, mss: u64) -> u64 {
    (facts.bdp_bytes / 2 / mss.max(1)).max(2)
}

/// With fewer segments under way than this an acknowledgement may wait for the receiver's timer of 40 ms, and not for a second segment.
const ENOUGH: u64 = 5;

/// The longest RTT that a pilot of so few segments can speak of, µs: that of the idle path, with the time in which the second segment
/// comes that is acknowledged with the first, and with what the tunnel itself is slower than the path. `None` where enough are under way.
fn longest_rtt_us(facts: &PathFacts, pilot: &TrialOutcome, mss: u64) -> Option<u64> {
    let segments = pilot_segments(facts, mss);
    let rate = BitsPerSecond(facts.physical_goodput_bps.filter(|_| segments < ENOUGH)?);
    // Where the two that are run at least are more than the path holds, the second one queues.
    let has_room = segments * mss <= facts.bdp_bytes;
    let second_us = if has_room { u64::try_from((Bytes(mss) / rate).as_micros()).unwrap_or(0) } else { 0 };
    Some(pilot.observed.min_rtt_us.unwrap_or(0).max(facts.rtt_us) + second_us)
}

/// The path with the RTT as it was measured in full packets of `mss` bytes of payload, and what follows from it.
pub(crate) fn measured(facts: &PathFacts, pilot: &TrialOutcome, mss: u64) -> PathFacts {
    let rtt = pilot.observed.rtt_us.filter(|rtt| *rtt > 0);
    let Some(rtt_us) = rtt.filter(|_| pilot.status == Status::Completed) else { return facts.clone() };
    let rtt_us = longest_rtt_us(facts, pilot, mss).map_or(rtt_us, |longest| rtt_us.min(longest));
    let rate = facts.physical_goodput_bps.unwrap_or(0);
    let bdp = BitsPerSecond(rate) * Duration::from_micros(rtt_us);
    PathFacts { rtt_us, bdp_bytes: bdp.get(), ..facts.clone() }
}

/// What levels and times of an experiment are chosen by: the path as it is described, by which `--dry-run` chooses them, too. Only where
/// the tunnel itself is slower than a path of so short an RTT, it is the path as it was measured.
pub(crate) fn chosen_by<'a>(facts: &'a PathFacts, measured: &'a PathFacts, pilot: &TrialOutcome) -> &'a PathFacts {
    // In tenths of the RTT.
    const MORE: u64 = 11;
    let is_slower = pilot.observed.min_rtt_us.is_some_and(|least| least * 10 > facts.rtt_us * MORE);
    if is_slower { measured } else { facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pilot that is over, with its smallest and its mean RTT, µs.
    fn pilot(min_rtt_us: u64, rtt_us: u64) -> TrialOutcome {
        serde_json::from_value(serde_json::json!({
            "status": "completed", "bytes": 1, "elapsed_us": 1, "granted": {}, "scopes": {}, "sender": [], "receiver": [], "notes": [],
            "observed": {"min_rtt_us": min_rtt_us, "rtt_us": rtt_us},
            "limits": {"busy_us": 0, "rwnd_limited_us": 0, "sndbuf_limited_us": 0}
        }))
        .unwrap()
    }

    #[test]
    fn on_a_slow_line_acknowledgements_that_wait_for_a_timer_are_no_rtt() {
        let line = |rtt_us: u64, bps: u64| PathFacts {
            rtt_us,
            pmtu: 1456,
            bdp_bytes: bps * rtt_us / 8_000_000,
            physical_goodput_bps: Some(bps),
        };
        let rtt = |facts: &PathFacts, mss, min, mean| measured(facts, &pilot(min, mean), mss).rtt_us;
        // 6.3 segments: the RTT and one segment, of 5.97 ms; 1.2 segments: nothing beyond the RTT is the path's.
        let (dsl, isdn) = (line(37_630, 1_879_975), line(225_800, 62_000));
        assert_eq!(rtt(&dsl, 1404, 33_000, 66_000), 43_604);
        assert_eq!(rtt(&dsl, 1404, 33_000, 39_000), 39_000);
        assert_eq!(rtt(&isdn, 1448, 60_000, 354_300), 225_800);
        // What a machine is slower than such a line is in all of its RTTs; with enough segments under way the mean is taken as it is.
        assert_eq!(rtt(&dsl, 1404, 40_000, 66_000), 45_974);
        let adsl = line(32_544, 6_792_452);
        assert_eq!(rtt(&adsl, 1440, 31_000, 35_006), 35_006);
        // A window over the RTT bounds what is carried: six segments of 1404 bytes carry 1.52 Mbit/s of the first.
        assert!(8_424.0 * 8e6 / rtt(&dsl, 1404, 33_000, 66_000) as f64 > 1.52e6);
    }

    #[test]
    fn levels_follow_the_path_as_it_is_described_unless_the_machine_is_slower_than_it() {
        let facts = |rtt_us| PathFacts { rtt_us, bdp_bytes: rtt_us, ..PathFacts::default() };
        let by = |described: u64, least, mean| {
            let (described, seen) = (facts(described), facts(mean));
            chosen_by(&described, &seen, &pilot(least, mean)).rtt_us
        };
        assert_eq!([by(37_630, 33_000, 66_000), by(6_013, 6_200, 8_434)], [37_630, 6_013]);
        assert_eq!(by(107, 180, 435), 435);
    }
}
