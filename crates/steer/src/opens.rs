use crate::assigner::Assigner;
use std::time::Duration;
use wt_bpf::TrafficCounts;
use wt_problem::Problem;
use wt_sys::{clock, poll};

/// So many looks for a moment in which nothing is between the two counters.
const LOOKS: u32 = 50;

/// The kernel's count of accepted connections in this network namespace (`TcpPassiveOpens`).
fn passive_opens() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/snmp").ok()?;
    count(&text)
}

fn count(text: &str) -> Option<u64> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (rows.next()?, rows.next()?);
    let at = names.split(' ').position(|name| name == "PassiveOpens")?;
    values.split(' ').nth(at)?.parse().ok()
}

/// How many connections an hour this network namespace accepts, by a look of three seconds, or until there were enough.
///
/// # Errors
/// Our own fault, if waiting fails.
pub(crate) fn hourly() -> Result<f64, Problem> {
    /// So many say it to a fifth.
    const ENOUGH: u64 = 50;
    let before = passive_opens();
    let began = clock::monotonic_ns();
    loop {
        nap(Duration::from_millis(250))?;
        let seen = before.zip(passive_opens()).map_or(0, |(before, after)| after.saturating_sub(before));
        let seconds = clock::monotonic_ns().saturating_sub(began) as f64 / 1e9;
        if seen >= ENOUGH || seconds >= 3.0 {
            return Ok(seen as f64 * 3600.0 / seconds);
        }
    }
}

fn nap(long: Duration) -> Result<(), Problem> {
    poll::wait_readable(&[], Some(long)).map(drop).map_err(|error| Problem::internal(error.to_string()))
}

/// The kernel's count beside the program's: what it was before the backend saw anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opens {
    before: Option<u64>,
}

impl Opens {
    /// From now on.
    ///
    /// # Errors
    /// Our own fault, if waiting fails.
    pub(crate) fn since_now(backend: &mut dyn Assigner) -> Result<Self, Problem> {
        let (opens, counts) = together(backend)?;
        Ok(Self { before: opens.map(|opens| opens.saturating_sub(counts.passive)) })
    }

    /// Both counts of one moment.
    ///
    /// # Errors
    /// Our own fault, if waiting fails.
    pub(crate) fn now(self, backend: &mut dyn Assigner) -> Result<(Option<u64>, TrafficCounts), Problem> {
        let (opens, counts) = together(backend)?;
        Ok((opens.zip(self.before).map(|(opens, before)| opens.saturating_sub(before)), counts))
    }
}

/// The kernel counts a connection a moment before the program does: both are read between two equal readings, or, where there
/// is no such moment, one after the other.
fn together(backend: &mut dyn Assigner) -> Result<(Option<u64>, TrafficCounts), Problem> {
    let mut before = (passive_opens(), backend.counts()?);
    for _ in 0..LOOKS {
        let after = (passive_opens(), backend.counts()?);
        if after == before && after.1.is_whole() {
            return Ok(after);
        }
        before = after;
        nap(Duration::from_millis(1))?;
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn the_count_is_found_by_its_name() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 5 77\nUdp: In\nUdp: 3\n";
        assert_eq!(count(text), Some(77));
        assert_eq!(count("Tcp: RtoMin\nTcp: 200\n"), None);
        assert_eq!(count(""), None);
    }
}
