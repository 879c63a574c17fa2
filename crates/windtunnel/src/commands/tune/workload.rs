//! What each trial does, as it is written: a name, and parameters where they aren't the usual ones.

use std::collections::BTreeMap;
use std::time::Duration;
use wt_trial::{Amount, Direction, Page, Repeat, USUAL_CONNECTIONS, Workload};
use wt_units::{BitsPerSecond, Bytes, parse_duration};

/// A soak takes at least so long unless somebody says otherwise.
const SOAK: Duration = Duration::from_secs(300);
/// What "12 MB" means.
const TWELVE_MB: Bytes = Bytes(12_000_000);

/// The parameters of each workload.
const KNOWN: [(&str, &[&str], &str); 4] = [
    ("bulk", &["size"], "one transfer as fast as it goes, by time or of a size"),
    ("download-12mb", &[], "a file of 12 MB"),
    ("page", &["size", "connections"], "44 objects (265 kB) over 6 cold connections; with size= one object"),
    ("help", &[], "this list"),
];

/// A workload as it is written: `page`, `page:size=10kB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    kind: &'static str,
    /// What was written beside it; checked.
    sizes: BTreeMap<&'static str, Bytes>,
    numbers: BTreeMap<&'static str, u32>,
    times: BTreeMap<&'static str, Duration>,
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let known = KNOWN.iter().find(|(known, ..)| *known == name.trim());
        let Some((kind, keys, _)) = known.filter(|(kind, ..)| *kind != "help") else { return Err(list(name)) };
        let mut wanted = Self { kind, sizes: BTreeMap::new(), numbers: BTreeMap::new(), times: BTreeMap::new() };
        for pair in rest.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| format!("\"{pair}\": write KEY=VALUE"))?;
            let Some(key) = keys.iter().find(|known| **known == key.trim()) else {
                let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
                return Err(format!("{kind} has no parameter \"{}\"; it has {keys}", key.trim()));
            };
            wanted.set(key, value.trim()).map_err(|why| format!("{key}={value}: {why}"))?;
        }
        Ok(wanted)
    }
}

/// What there is.
fn list(asked: &str) -> String {
    let lines: Vec<String> = KNOWN
        .iter()
        .filter(|(kind, ..)| *kind != "help")
        .map(|(kind, keys, what)| {
            let keys = if keys.is_empty() { String::new() } else { format!(" [{}]", keys.join(", ")) };
            format!("  {kind}{keys}: {what}")
        })
        .collect();
    let begin = if asked == "help" { String::new() } else { format!("there is no workload \"{asked}\". ") };
    format!("{begin}There are, with their parameters:\n{}", lines.join("\n"))
}

impl Wanted {
    /// Takes a value, within what makes sense.
    fn set(&mut self, key: &'static str, value: &str) -> Result<(), String> {
        match key {
            "connections" => {
                let number: u32 = value.parse().map_err(|_| "write a whole number".to_owned())?;
                if !(1..=64).contains(&number) {
                    return Err("out of range: allowed is 1 to 64".to_owned());
                }
                self.numbers.insert(key, number);
            }
            "pause" => {
                let time = parse_duration(value).map_err(|error| error.to_string())?;
                self.times.insert(key, time);
            }
            _ => {
                let size: Bytes = value.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
                if !(1..=1 << 40).contains(&size.get()) {
                    return Err("out of range: allowed is 1B to 1TiB".to_owned());
                }
                self.sizes.insert(key, size);
            }
        }
        Ok(())
    }

    /// Whether it is the usual one.
    pub(crate) fn is_page(&self) -> bool {
        self.kind == "page"
    }

    /// How long a trial takes if nobody says it, where that isn't a matter of the path.
    pub(crate) fn usual_time(&self) -> Option<Duration> {
        (self.kind == "soak").then_some(SOAK)
    }

    /// The workload; `time` is how long a trial takes where that can be chosen.
    pub(crate) fn workload(&self, direction: Direction, time: Duration) -> Workload {
        let size = self.sizes.get("size").copied();
        match self.kind {
            "download-12mb" => Workload::Bulk { direction: Direction::Down, amount: Amount::Size(TWELVE_MB) },
            "soak" => Workload::Soak { direction, time },
            "page" => {
                let mut page = size.map_or_else(Page::built_in, Page::single);
                if let Some(connections) = self.numbers.get("connections") {
                    page.connections = *connections;
                } else if size.is_none() {
                    page.connections = USUAL_CONNECTIONS;
                }
                Workload::Page { page }
            }
            _ => Workload::Bulk { direction, amount: size.map_or(Amount::Time(time), Amount::Size) },
        }
    }
}

/// How long something without a fixed time takes, roughly: what the path carries, and what is waited for.
pub(crate) fn expected(workload: &Workload, rtt: Duration, rate: BitsPerSecond) -> Duration {
    let size = workload.size().unwrap_or(Bytes(0));
    let round_trips = match workload {
        Workload::Page { page } => 4 + page.objects.len() / page.connections.max(1) as usize,
        Workload::Transactions { amount: Repeat::Count(count), .. } => *count as usize,
        Workload::Bursts { blocks, amount: Repeat::Count(count), .. } => blocks.len() * *count as usize,
        // Slow start.
        _ => 10,
    };
    let waits = rtt.saturating_mul(u32::try_from(round_trips).unwrap_or(u32::MAX));
    let pauses = match workload {
        Workload::Bursts { pause, amount: Repeat::Count(count), .. } => pause.saturating_mul(*count),
        Workload::Transactions { think, amount: Repeat::Count(count), .. } => think.saturating_mul(*count),
        _ => Duration::ZERO,
    };
    (size / rate) + waits + pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Result<Wanted, String> {
        text.parse()
    }

    #[test]
    fn workloads_are_names_with_parameters() {
        let time = Duration::from_secs(3);
        let of = |text: &str| wanted(text).unwrap().workload(Direction::Up, time);
        assert_eq!(of("bulk"), Workload::Bulk { direction: Direction::Up, amount: Amount::Time(time) });
        assert_eq!(of("bulk:size=1MB").size(), Some(Bytes(1_000_000)));
        assert_eq!(of("download-12mb").size(), Some(TWELVE_MB));
        assert_eq!(of("page"), Workload::Page { page: Page::built_in() });
        let Workload::Page { page } = of("page:size=10kB,connections=2") else { panic!("no page") };
        assert_eq!((page.objects.len(), page.size(), page.connections), (1, Bytes(10_000), 2));
    }

    #[test]
    fn mistakes_name_what_there_is() {
        for (text, part) in [
            ("pages", "page"),
            ("help", "download-12mb"),
            ("page:colour=red", "connections"),
            ("page:connections=0", "1 to 64"),
            ("page:size", "KEY=VALUE"),
            ("bulk:size=0", "1B"),
        ] {
            let error = wanted(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
