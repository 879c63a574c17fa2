use super::WorkOutcome;
use crate::transfer::{EndReport, Finish};
use std::time::Duration;
use wt_trial::bulk::Arrivals;
use wt_trial::{Direction, Lateness, Sample, Workload, thirds};

/// Puts into the judged connection's measures what only both ends together know. `servers` are the peer's views in the
/// order of the tokens; where one is missing, what it alone knows stays unmeasured.
pub fn join(workload: &Workload, worked: &mut WorkOutcome, servers: &[Option<EndReport>]) {
    let own = servers.first().and_then(Option::as_ref);
    match workload {
        Workload::Stream { direction: Direction::Up, .. } if worked.report.finish == Finish::Done => {
            let lateness = own.and_then(|server| server.measures.lateness);
            let measures = &mut worked.report.measures;
            (measures.lateness, measures.score) = (lateness, lateness.as_ref().map(Lateness::score));
        }
        Workload::Soak { direction, .. } => {
            let client = &worked.report;
            let (sender, receiver) = match direction {
                Direction::Down => (own, Some(client)),
                Direction::Up => (Some(client), own),
            };
            let samples =
                |end: Option<&EndReport>| -> Vec<Sample> { end.map(|end| end.samples.clone()).unwrap_or_default() };
            let gaps = sender.map(|sender| sender.measures.thirds.clone()).unwrap_or_default();
            let elapsed = receiver.map_or(client.elapsed, |receiver| receiver.elapsed);
            worked.report.measures.thirds = thirds(&samples(sender), &samples(receiver), elapsed, &gaps);
        }
        Workload::Competing { direction, time, .. } => {
            let receivers: Vec<&EndReport> = match direction {
                Direction::Down => [&worked.report].into_iter().chain(&worked.others).collect(),
                // Without the judged one's report there is nothing that the others could be held against.
                Direction::Up if own.is_none() => Vec::new(),
                Direction::Up => servers.iter().filter_map(Option::as_ref).collect(),
            };
            let lead = worked.lead;
            let flows = receivers.iter().enumerate().map(|(number, end)| match number {
                0 => rate(end),
                _ => rate_between(end, lead, lead + *time),
            });
            worked.report.measures.flows_bps = flows.collect();
        }
        Workload::Duplex { .. } => {
            let up = servers.get(1).and_then(Option::as_ref).map_or(0.0, rate);
            let down = rate(&worked.report);
            worked.report.measures.flows_bps = vec![down, up];
            // Nothing at all counts as one byte a second: a logarithm is taken of it.
            worked.report.measures.score = Some((down / 8.0).max(1.0).sqrt() * (up / 8.0).max(1.0).sqrt());
        }
        _ => {}
    }
}

/// Payload over time, bit/s.
fn rate(end: &EndReport) -> f64 {
    if end.elapsed.is_zero() { 0.0 } else { end.bytes as f64 * 8.0 / end.elapsed.as_secs_f64() }
}

/// The same between two times of its clock.
fn rate_between(end: &EndReport, from: Duration, until: Duration) -> f64 {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let arrivals = Arrivals::new(&end.samples, micros(end.elapsed), end.bytes);
    arrivals.mean(micros(from), micros(until).min(arrivals.end_us())).map_or(0.0, |bytes| bytes * 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_units::Settings;

    #[test]
    fn a_rivals_upload_is_never_taken_for_the_judged_one() {
        let time = Duration::from_secs(1);
        let of = |bytes| EndReport::of_several(Finish::Done, bytes, time);
        let flows = |servers: &[Option<EndReport>]| {
            let mut worked = WorkOutcome {
                report: of(0),
                connect_time: Duration::ZERO,
                granted: Settings::new(),
                tokens: Vec::new(),
                others: Vec::new(),
                lead: Duration::ZERO,
            };
            join(&Workload::Competing { direction: Direction::Up, rivals: 1, time }, &mut worked, servers);
            worked.report.measures.flows_bps
        };
        assert!(flows(&[None, Some(of(500))]).is_empty());
        assert_eq!(flows(&[Some(of(100)), Some(of(500))]).first(), Some(&800.0));
    }
}
