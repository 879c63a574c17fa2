//! What the name of a column says of what it holds, and of which outcomes are good.

use crate::classic::Better;

/// Words that make a column a time, where they are no unit that something is counted by: less is better.
pub(super) const TIMES: [&str; 12] =
    ["ms", "us", "sec", "secs", "seconds", "time", "latency", "duration", "rtt", "delay", "load", "elapsed"];
/// Those of them that are no unit: they make it a time whatever else its name says of it.
const DURATIONS: [&str; 6] = ["time", "latency", "duration", "rtt", "delay", "elapsed"];
/// Words that make it something that nobody wants: less is better, of a rate, too.
const BAD: [&str; 27] = [
    "loss",
    "losses",
    "lost",
    "error",
    "errors",
    "drop",
    "drops",
    "dropped",
    "retransmit",
    "retransmits",
    "retransmitted",
    "retransmission",
    "retransmissions",
    "retrans",
    "late",
    "lateness",
    "jitter",
    "stall",
    "stalls",
    "stalled",
    "ttfb",
    "fct",
    "timeout",
    "timeouts",
    "failure",
    "failures",
    "failed",
];
/// Words that make it something that everybody wants, whatever else its name says of it.
pub(super) const GOOD: [&str; 10] =
    ["goodput", "throughput", "bandwidth", "speed", "kbit", "mbit", "gbit", "kbps", "mbps", "bps"];

/// Which outcomes are good, by the names of their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BetterDirection {
    pub(super) better: Better,
    /// Whether the names leave nothing open; otherwise what was taken for good is to be said.
    pub(super) is_plain: bool,
}

impl BetterDirection {
    /// Of columns that are read together: small outcomes are good if every name says so.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let each: Vec<Self> = names.map(Self::of_name).collect();
        let is_lower = !each.is_empty() && each.iter().all(|one| one.better == Better::Lower);
        let better = if is_lower { Better::Lower } else { Better::Higher };
        Self { better, is_plain: each.iter().all(|one| one.is_plain && one.better == better) }
    }

    fn of_name(name: &str) -> Self {
        let words = placed_words(name);
        let has = |known: &[&str], per: bool| words.iter().any(|word| word.per == per && is_of(&word.text, known));
        let any = |known: &[&str]| has(known, false) || has(known, true);
        let (is_good, is_bad) = (any(&GOOD), any(&BAD));
        // Of `Mbits/sec` and `requests_per_second` the unit of time makes a rate.
        let (is_time, is_rate, is_duration) = (has(&TIMES, false), has(&TIMES, true), has(&DURATIONS, false));
        // `error_free_seconds` are what everybody wants.
        let is_free = words.windows(2).any(|pair| is_of(&pair[0].text, &BAD) && pair[1].text == "free");
        let is_lower = !is_free && (is_duration || (is_time || is_bad) && !is_good);
        let is_plain = !is_free
            && match (is_good, is_time) {
                (true, time) => !time,
                (_, true) => !is_rate,
                _ => name == "rate",
            };
        Self { better: if is_lower { Better::Lower } else { Better::Higher }, is_plain }
    }
}

/// A word of a name, and whether something is counted by it: it stands behind a slash or `per`, numbers between aside.
struct PlacedWord {
    text: String,
    per: bool,
}

fn placed_words(name: &str) -> Vec<PlacedWord> {
    let mut placed = Vec::new();
    let mut per = false;
    let mut rest = name;
    while !rest.is_empty() {
        let gap = rest.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        per |= rest[..gap].contains('/');
        rest = &rest[gap..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let text = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let is_number = text.chars().all(|c| c.is_ascii_digit());
        let counts = text == "per";
        if !is_number {
            placed.push(PlacedWord { text, per });
            per = counts;
        }
    }
    placed
}

/// The words of a name in small letters.
pub(super) fn words(name: &str) -> Vec<String> {
    let split = name.split(|c: char| !c.is_ascii_alphanumeric());
    split.filter(|w| !w.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// Whether a name has one of these words, with a number behind it or without.
pub(super) fn has_word(name: &str, known: &[&str]) -> bool {
    words(name).iter().any(|word| is_of(word, known))
}

fn is_of(word: &str, known: &[&str]) -> bool {
    known.contains(&word.trim_end_matches(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> (Better, bool) {
        let found = BetterDirection::of(std::iter::once(name));
        (found.better, found.is_plain)
    }

    #[test]
    fn what_is_counted_by_a_unit_of_time_is_a_rate_of_which_more_is_better() {
        for name in ["Bandwidth (Mbits/sec)", "goodput (bytes/sec)", "throughput_bytes_per_sec", "speed_kb_per_ms"] {
            assert_eq!(of(name), (Better::Higher, true), "{name}");
        }
        for name in [
            "Mbits/sec",
            "Requests/sec",
            "requests_per_seconds",
            "bytes_per_sec",
            "bytes / ms",
            "packets/us",
            "per sec",
            "packets per 10 sec",
            "req/100 ms",
            "MB/s",
        ] {
            assert_eq!(of(name), (Better::Higher, false), "{name}");
        }
        for name in ["errors/sec", "lost packets per sec"] {
            assert_eq!(of(name), (Better::Lower, false), "{name}");
        }
    }

    #[test]
    fn times_are_better_when_small_also_for_each_of_something_and_with_their_unit_behind_a_slash() {
        let times = ["ms", "load_ms", "jitter_ms", "sec/page", "ms per request", "time per request (ms)", "elapsed"];
        for name in times {
            assert_eq!(of(name), (Better::Lower, true), "{name}");
        }
        for name in ["latency/ms", "time to first byte / ms"] {
            assert_eq!(of(name), (Better::Lower, false), "{name}");
        }
    }

    #[test]
    fn a_name_with_words_of_both_kinds_leaves_open_what_is_better() {
        for (name, better) in [
            ("throughput_sec", Better::Higher),
            ("goodput_under_load", Better::Higher),
            ("error_free_seconds", Better::Higher),
            ("bandwidth_delay_ms", Better::Lower),
            ("load (req/sec)", Better::Lower),
        ] {
            assert_eq!(of(name), (better, false), "{name}");
        }
        let of_both = BetterDirection::of(["load_ms", "goodput"].into_iter());
        assert_eq!(of_both, BetterDirection { better: Better::Higher, is_plain: false });
    }
}
