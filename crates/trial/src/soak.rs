use crate::bulk::{Arrivals, quantile};
use crate::{Sample, Third};
use std::time::Duration;

/// The gaps between ACKs of transfers that take at least so long are looked at by thirds.
pub const SHORTEST_SOAK: Duration = Duration::from_secs(3);

/// The thirds of a long transfer, from both ends' samples. `gaps` holds how long no ACK came, as the sender saw it; what isn't
/// known is zero.
#[must_use]
pub fn thirds(sender: &[Sample], receiver: &[Sample], elapsed: Duration, gaps: &[Third]) -> Vec<Third> {
    let end_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    let Some(last) = receiver.last().or(sender.last()) else { return Vec::new() };
    let counted = if receiver.is_empty() { sender } else { receiver };
    let arrivals = Arrivals::new(counted, end_us.max(last.t_us + 1), last.bytes);
    (0..3u64)
        .map(|number| {
            let (from, until) = (end_us / 3 * number, end_us / 3 * (number + 1));
            let within = sender.iter().filter(|sample| (from..until).contains(&sample.t_us) && sample.rtt > 0);
            let mut rtts: Vec<f64> = within.map(|sample| sample.rtt as f64).collect();
            rtts.sort_by(f64::total_cmp);
            Third {
                goodput_bps: arrivals.mean(from, until).unwrap_or(0.0) * 8.0,
                srtt_us: quantile(&rtts, 0.5).unwrap_or(0.0) as u64,
                ack_gap_us: gaps.get(number as usize).map_or(0, |third| third.ack_gap_us),
            }
        })
        .collect()
}

/// How long no ACK came in each third: the 95th percentile of (time, silence) in µs.
#[must_use]
pub fn ack_gaps(silences: &[(u64, u64)], elapsed: Duration) -> Vec<Third> {
    let end_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    (0..3u64)
        .map(|number| {
            let range = end_us / 3 * number..end_us / 3 * (number + 1);
            let mut own: Vec<f64> = silences.iter().filter(|s| range.contains(&s.0)).map(|s| s.1 as f64).collect();
            own.sort_by(f64::total_cmp);
            Third { ack_gap_us: quantile(&own, 0.95).unwrap_or(0.0) as u64, ..Third::default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transfer of 90 s at 1 MB/s whose last third has half the rate and twice the RTT, and ACKs that come later and later.
    #[test]
    fn a_last_third_that_decays_is_seen_in_all_three_figures() {
        let at = |t: u64, bytes: u64, rtt: u64| Sample { t_us: t * 1_000_000, bytes, rtt, ..Sample::default() };
        let bytes = |t: u64| if t <= 60 { t * 1_000_000 } else { 60_000_000 + (t - 60) * 500_000 };
        let samples: Vec<Sample> = (1..=90).map(|t| at(t, bytes(t), if t <= 60 { 40_000 } else { 80_000 })).collect();
        let silences: Vec<(u64, u64)> = (0..90).map(|t| (t * 1_000_000, t * 4_000)).collect();
        let whole = Duration::from_secs(90);
        let found = thirds(&samples, &samples, whole, &ack_gaps(&silences, whole));
        assert_eq!(found.len(), 3);
        assert!((found[1].goodput_bps / 8e6 - 1.0).abs() < 0.02 && (found[2].goodput_bps / 4e6 - 1.0).abs() < 0.02);
        assert_eq!((found[0].srtt_us, found[2].srtt_us), (40_000, 80_000));
        assert!(found[0].ack_gap_us < 120_000 && found[2].ack_gap_us > 340_000, "{found:?}");
        assert!(thirds(&[], &[], whole, &[]).is_empty());
    }
}
