use super::Trace;
use wt_trial::{Sample, Status, TrialRecord};

/// Rates are computed over at least so long, µs: shorter ones show the kernel's batches, not the path.
const SHORTEST: u64 = 100_000;
/// Points of a rate at most.
const MOST_RATES: u64 = 150;
/// Points of a congestion window at most.
const MOST_WINDOWS: usize = 2_000;
/// Settings drawn at most.
const MOST_TRACES: usize = 4;

/// The median trial of each of these arms, over time.
pub(super) fn traces(arms: &[usize], records: &[&TrialRecord], label: impl Fn(usize) -> String) -> Vec<Trace> {
    let mut seen = Vec::new();
    for arm in arms {
        if !seen.contains(arm) {
            seen.push(*arm);
        }
    }
    let drawn = seen.into_iter().filter_map(|arm| median(records, arm).map(|record| trace(arm, label(arm), record)));
    drawn.filter(|trace| !trace.cwnd.is_empty() || !trace.rate.is_empty()).take(MOST_TRACES).collect()
}

/// The completed trial in the middle by goodput, the lower one of two.
fn median<'a>(records: &[&'a TrialRecord], arm: usize) -> Option<&'a TrialRecord> {
    let done = |r: &&TrialRecord| r.spec.arm == arm && r.outcome.status == Status::Completed;
    let mut own: Vec<&TrialRecord> = records.iter().copied().filter(done).collect();
    own.sort_by(|a, b| a.outcome.goodput_bps().total_cmp(&b.outcome.goodput_bps()));
    own.get(own.len().saturating_sub(1) / 2).copied()
}

fn trace(arm: usize, label: String, record: &TrialRecord) -> Trace {
    let outcome = &record.outcome;
    let stride = outcome.sender.len().div_ceil(MOST_WINDOWS).max(1);
    let cwnd = outcome.sender.iter().step_by(stride).map(|s| (seconds(s.t_us), s.snd_cwnd as f64)).collect();
    let counted = if outcome.receiver.len() >= 2 { &outcome.receiver } else { &outcome.sender };
    Trace { arm, label, trial: record.id, cwnd, rate: rates(counted) }
}

/// Payload between samples at least [`SHORTEST`] apart, each in the middle of its stretch.
fn rates(samples: &[Sample]) -> Vec<(f64, f64)> {
    let length = samples.last().map_or(0, |s| s.t_us).saturating_sub(samples.first().map_or(0, |s| s.t_us));
    let least = (length / MOST_RATES).max(SHORTEST);
    let mut rates = Vec::new();
    let Some(mut from) = samples.first() else { return rates };
    for sample in samples {
        let took = sample.t_us.saturating_sub(from.t_us);
        if took >= least {
            let bits = sample.bytes.saturating_sub(from.bytes) as f64 * 8.0;
            rates.push((seconds(from.t_us) + seconds(took) / 2.0, bits / seconds(took)));
            from = sample;
        }
    }
    rates
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_transfer_has_a_steady_rate() {
        let samples: Vec<Sample> =
            (0..500u64).map(|i| Sample { t_us: i * 10_000, bytes: i * 10_000, ..Sample::default() }).collect();
        let rates = rates(&samples);
        assert!(rates.len() >= 40 && rates.iter().all(|(_, bps)| (bps - 8e6).abs() < 1.0), "{rates:?}");
    }

    #[test]
    fn the_rates_add_up_to_what_was_transferred() {
        let samples: Vec<Sample> =
            (0..=1_000u64).map(|i| Sample { t_us: i * 10_000, bytes: i * i, ..Sample::default() }).collect();
        let rates = rates(&samples);
        let mean = rates.iter().map(|(_, bps)| bps).sum::<f64>() / rates.len() as f64;
        assert!((mean - 1e6 * 8.0 / 10.0).abs() < 1.0, "{mean}");
    }

    #[test]
    fn nothing_and_clocks_that_stand_still_are_no_trouble() {
        assert!(rates(&[]).is_empty());
        assert!(rates(&[Sample { bytes: 5, ..Sample::default() }; 9]).is_empty());
        let back = [Sample { t_us: 9_000_000, bytes: 9, ..Sample::default() }, Sample::default()];
        assert!(rates(&back).is_empty());
    }
}
