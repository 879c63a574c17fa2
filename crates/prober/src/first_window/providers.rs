//! Who sends how much: hosts by their providers.

use super::finding::HostFinding;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use wt_probe::first_window::Verdict;

/// What the hosts of one provider have shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderTally {
    /// How many they are.
    pub hosts: usize,
    /// How many hosts have exactly so many segments.
    pub exact: BTreeMap<u32, usize>,
    /// The largest lower bound, segments.
    pub at_least: Option<u32>,
    /// The smallest one.
    pub at_least_each: Option<u32>,
    /// How many hosts showed one.
    pub bounded: usize,
}

impl ProviderTally {
    /// What most of them have, segments; of several the larger.
    #[must_use]
    pub fn usual(&self) -> Option<u32> {
        self.exact.iter().max_by_key(|(segments, hosts)| (**hosts, **segments)).map(|(segments, _)| *segments)
    }

    /// The larger of what most have and the largest bound, segments.
    #[must_use]
    pub fn largest(&self) -> Option<u32> {
        self.usual().max(self.at_least)
    }
}

/// What is known of a host: how sure (1 at least, 2 exact; 0 nothing), and the segments.
type HostRank = (u8, u32);

/// Hosts counted by their providers. A host is an address, however many of its URLs were asked: what is surest of it counts.
#[derive(Debug, Clone, Default)]
pub struct Providers(BTreeMap<String, Hosts>);

#[derive(Debug, Clone, Default)]
struct Hosts {
    known: HashMap<IpAddr, HostRank>,
    /// Names without an address.
    unresolved: usize,
}

impl Providers {
    /// Counts what one URL showed of its host.
    pub fn count(&mut self, finding: &HostFinding) {
        let hosts = self.0.entry(finding.provider.clone()).or_default();
        let known = match (finding.verdict, finding.segments) {
            (Verdict::Exact, Some(segments)) => (2, segments),
            (Verdict::AtLeast, segments) => (1, segments.unwrap_or(0)),
            _ => (0, 0),
        };
        match finding.address {
            Some(address) => {
                let before = hosts.known.entry(address).or_default();
                *before = known.max(*before);
            }
            None => hosts.unresolved += 1,
        }
    }

    /// The largest window first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(&str, ProviderTally)> {
        let mut all: Vec<(&str, ProviderTally)> =
            self.0.iter().map(|(name, hosts)| (name.as_str(), hosts.tally())).collect();
        all.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.largest()));
        all
    }
}

impl Hosts {
    fn tally(&self) -> ProviderTally {
        let hosts = self.known.len() + self.unresolved;
        self.known.values().fold(ProviderTally { hosts, ..ProviderTally::default() }, |mut tally, known| {
            match *known {
                (2, segments) => *tally.exact.entry(segments).or_default() += 1,
                (1, segments) => {
                    let bound = Some(segments).filter(|segments| *segments > 0);
                    tally.at_least = tally.at_least.max(bound);
                    tally.at_least_each = tally.at_least_each.into_iter().chain(bound).min();
                    tally.bounded += 1;
                }
                _ => {}
            }
            tally
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(provider: &str, host: u8, verdict: Verdict, segments: Option<u32>) -> HostFinding {
        let address = Some([192, 0, 2, host].into());
        HostFinding { provider: provider.into(), address, verdict, segments, ..HostFinding::default() }
    }

    #[test]
    fn providers_are_counted_and_the_largest_window_comes_first() {
        let mut all = Providers::default();
        for one in [
            finding("a", 1, Verdict::Exact, Some(10)),
            finding("a", 2, Verdict::AtLeast, Some(7)),
            finding("a", 2, Verdict::Exact, Some(10)),
            finding("a", 2, Verdict::Unknown, None),
            finding("a", 3, Verdict::Exact, Some(32)),
            finding("b", 4, Verdict::AtLeast, Some(40)),
            finding("c", 5, Verdict::Unknown, None),
        ] {
            all.count(&one);
        }
        let rows: Vec<_> = all.sorted().into_iter().map(|(name, t)| (name, t.hosts, t.usual(), t.at_least)).collect();
        assert_eq!(rows, [("b", 1, None, Some(40)), ("a", 3, Some(10), None), ("c", 1, None, None)]);
    }
}
