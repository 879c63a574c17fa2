//! A page with one first window and with another: loads in rounds, a verdict, both waterfalls in one picture.

use super::load::{LoadedResource, PageLoad};
use super::waterfall::{name, row, thin};
use crate::rounds::fewest_rounds;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::str::FromStr;
use wt_experiment::{EProcess, lower_bound, upper_bound};
use wt_lab::{CLIENT_V4, CLIENT_V6, DEVICE, SERVER_V4, SERVER_V6};
use wt_problem::Problem;
use wt_report::{Axis, Chart, Series};
use wt_sys::netlink::{Netlink, RouteMetrics};
use wt_sys::ns::NetNs;
use wt_units::{Knob, Level, Settings};

/// What is claimed is wrong with this probability at most.
pub(super) const ALPHA: f64 = 0.05;
/// Segments that a route takes.
const SEGMENTS: std::ops::RangeInclusive<u32> = 1..=1_000;

/// Which of the two first windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWindow {
    /// What the server may send before anything is acknowledged.
    Initcwnd,
    /// What the client allows it to.
    Initrwnd,
}

/// One first window at two levels: `initcwnd=3,10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowPair {
    /// Which.
    pub window: FirstWindow,
    /// Segments before and after.
    pub segments: [u32; 2],
}

impl std::fmt::Display for WindowPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={},{}", self.word(), self.segments[0], self.segments[1])
    }
}

impl FromStr for WindowPair {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\": write initcwnd=3,10 or initrwnd=10,44, two different numbers of segments");
        let (word, levels) = text.split_once('=').ok_or_else(wrong)?;
        let window = match word.trim() {
            "initcwnd" => FirstWindow::Initcwnd,
            "initrwnd" => FirstWindow::Initrwnd,
            _ => return Err(wrong()),
        };
        let levels: Vec<u32> =
            levels.split(',').map(|level| level.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        let [before, after] = levels[..] else { return Err(wrong()) };
        if before == after {
            return Err(wrong());
        }
        if let Some(level) = [before, after].iter().find(|level| !SEGMENTS.contains(level)) {
            return Err(format!(
                "{level} segments are out of range: allowed is {} to {}",
                SEGMENTS.start(),
                SEGMENTS.end()
            ));
        }
        Ok(Self { window, segments: [before, after] })
    }
}

impl Serialize for WindowPair {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WindowPair {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl WindowPair {
    fn word(self) -> &'static str {
        match self.window {
            FirstWindow::Initcwnd => "initcwnd",
            FirstWindow::Initrwnd => "initrwnd",
        }
    }

    /// `initcwnd=10`.
    pub(super) fn label(self, arm: usize) -> String {
        format!("{}={}", self.word(), self.segments[arm])
    }

    /// One level as settings.
    pub(super) fn settings(self, arm: usize) -> Settings {
        let knob = match self.window {
            FirstWindow::Initcwnd => Knob::Initcwnd,
            FirstWindow::Initrwnd => Knob::Initrwnd,
        };
        Settings::new().with(knob, Level::Number(self.segments[arm].into()))
    }

    /// Sets one level on the lab's routes: of the server to the client, or of the client to the server.
    ///
    /// # Errors
    /// A [`Problem`] outside of a lab, whose server's route isn't ours.
    pub(super) fn set(self, arm: usize) -> Result<(), Problem> {
        let segments = Some(self.segments[arm]);
        match self.window {
            FirstWindow::Initcwnd => routes(true, &RouteMetrics { initcwnd: segments, ..RouteMetrics::default() }),
            FirstWindow::Initrwnd => routes(false, &RouteMetrics { initrwnd: segments, ..RouteMetrics::default() }),
        }
    }

    /// Takes the routes away that [`set`](Self::set) made.
    pub(super) fn unset(self) {
        let _ = routes(self.window == FirstWindow::Initcwnd, &RouteMetrics::default());
    }
}

/// Routes to single addresses beside the lab's own default ones; none where nothing is set.
fn routes(at_server: bool, metrics: &RouteMetrics) -> Result<(), Problem> {
    let outside = |why: &dyn std::fmt::Display| {
        Problem::usage(format!("no first window can be compared here: {why}"))
            .hint("do it in the lab, where the server's route is yours: windtunnel lab run blog-2012 --server 'nginx …' -- windtunnel page http://server/ --compare initcwnd=3,10")
    };
    let peers: [IpAddr; 2] =
        if at_server { [CLIENT_V4.into(), CLIENT_V6.into()] } else { [SERVER_V4.into(), SERVER_V6.into()] };
    let work = || {
        let mut netlink = Netlink::open()?;
        let mut change = |peer: IpAddr| {
            let prefix = if peer.is_ipv4() { 32 } else { 128 };
            if *metrics == RouteMetrics::default() {
                netlink.remove_route(peer, prefix)
            } else {
                netlink.set_route(DEVICE, peer, prefix, metrics)
            }
        };
        // A path whose MTU is too small has no IPv6.
        let v6 = change(peers[1]);
        change(peers[0]).map(|()| drop(v6))
    };
    let place = NetNs::named(if at_server { "server" } else { "client" }).map_err(|error| outside(&error))?;
    place.run(work).and_then(|done| done).map_err(|error| outside(&error))
}

/// A page with two first windows.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedLoads {
    /// What was compared: `initcwnd=3,10`.
    pub compared: WindowPair,
    /// Before and after.
    pub arms: [LoadsOfArm; 2],
    /// Rounds, a load of each in each.
    pub rounds: usize,
    /// How many times faster the second is, the geometric mean over the rounds.
    pub ratio: f64,
    /// At least so, with 95 % confidence however often you look; `null` while there are too few rounds.
    pub low: Option<f64>,
    /// At most so.
    pub high: Option<f64>,
    /// Evidence for a difference, to one.
    pub evidence: f64,
    /// What a claim needs.
    pub needed: f64,
    /// Whether a difference is shown.
    pub difference_shown: bool,
    /// In words.
    pub text: String,
}

/// Loads with one of the two.
#[derive(Debug, Clone, Serialize)]
pub struct LoadsOfArm {
    /// `initcwnd=3`.
    pub label: String,
    /// The time of each round's load, ms.
    pub load_ms: Vec<f64>,
    /// Their median, ms.
    pub median_ms: f64,
}

impl ComparedLoads {
    /// The verdict on as many loads of each, in the order of their rounds; `None` without any.
    pub(super) fn of(compared: WindowPair, loads: [&[PageLoad]; 2]) -> Option<Self> {
        let times = loads.map(|loads| loads.iter().map(|load| load.load_ms).collect::<Vec<f64>>());
        let rounds = times[0].len().min(times[1].len());
        if rounds == 0 {
            return None;
        }
        let differences: Vec<f64> =
            times[0].iter().zip(&times[1]).map(|(before, after)| (before / after).ln()).collect();
        let needed = 2.0 / ALPHA;
        let ends = [lower_bound(&differences, needed).exp(), upper_bound(&differences, needed).exp()];
        let evidence = [EProcess::new(), EProcess::below(0.0)].map(|process| process.after(&differences).evidence());
        let finite = |value: f64| Some(value).filter(|value| value.is_finite() && *value > 0.0);
        let ratio = (differences.iter().sum::<f64>() / rounds as f64).exp();
        let [first, second] = times.map(|times| (median(&times), times));
        let labels = [compared.label(0), compared.label(1)];
        let text = words(&labels, [first.0, second.0], rounds, ends);
        let [before, after] = labels;
        Some(Self {
            compared,
            arms: [
                LoadsOfArm { label: before, median_ms: first.0, load_ms: first.1 },
                LoadsOfArm { label: after, median_ms: second.0, load_ms: second.1 },
            ],
            rounds,
            ratio,
            low: finite(ends[0]),
            high: finite(ends[1]),
            evidence: evidence[0].max(evidence[1]),
            needed,
            difference_shown: ends[0] > 1.0 || ends[1] < 1.0,
            text,
        })
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

fn words([before, after]: &[String; 2], [slow, fast]: [f64; 2], rounds: usize, [low, high]: [f64; 2]) -> String {
    let sizes =
        format!("{slow:.0} ms with {before}, {fast:.0} ms with {after}; {}", wt_units::counted(rounds, "round"));
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    if low > 1.0 {
        return format!("The page loads faster with {after}: by {:.0} % at least. {sizes}.", percent(low));
    }
    if high < 1.0 {
        return format!("The page loads slower with {after}: by {:.0} % at least. {sizes}.", percent(1.0 / high));
    }
    let fewest = fewest_rounds(2.0 / ALPHA);
    if rounds < fewest as usize {
        return format!("Nothing can be shown before {fewest} rounds (--runs {fewest}). {sizes}.");
    }
    format!("No difference is shown. {sizes}.")
}

/// The loads with the median time of both in one picture: a row for each request, a line for each window.
pub(super) fn waterfalls(url: &str, labels: [&str; 2], loads: [&PageLoad; 2]) -> Chart {
    let requests = &loads[0].resources;
    let place = |one: &LoadedResource| requests.iter().position(|other| other.url == one.url);
    let before: Vec<_> = requests.iter().enumerate().map(|(place, one)| row(place, one)).collect();
    let after: Vec<_> = loads[1].resources.iter().filter_map(|one| Some(row(place(one)?, one))).collect();
    Chart {
        title: format!("Requests of {url}"),
        subtitle: format!(
            "from the request to its last byte, {}marks: first byte; load after {:.0} ms and {:.0} ms",
            thin(requests.iter().chain(&loads[1].resources)),
            loads[0].load_ms,
            loads[1].load_ms
        ),
        y: Axis::linear("after the first request", "ms"),
        categories: requests.iter().map(|one| name(&one.url).to_owned()).collect(),
        series: vec![Series::waits(labels[0], &before), Series::waits(labels[1], &after)],
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_report::Kind;

    fn loads(times: &[f64]) -> Vec<PageLoad> {
        let one = |load_ms: &f64| PageLoad {
            load_ms: *load_ms,
            resources: vec![
                LoadedResource { url: "http://x/".into(), end_ms: Some(load_ms / 2.0), ..LoadedResource::default() },
                LoadedResource { url: "http://x/a.js".into(), end_ms: Some(*load_ms), ..LoadedResource::default() },
            ],
            ..PageLoad::default()
        };
        times.iter().map(one).collect()
    }

    #[test]
    fn pairs_are_read_back_and_mistakes_say_what_is_allowed() {
        for text in ["initcwnd=3,10", "initrwnd=10,44"] {
            assert_eq!(text.parse::<WindowPair>().unwrap().to_string(), text);
        }
        for text in ["initcwnd=3", "initcwnd=3,3", "initcwnd=3,10,20", "rwin=3,10", "initcwnd", "initcwnd=a,b"] {
            assert!(text.parse::<WindowPair>().unwrap_err().contains("initcwnd=3,10"), "{text}");
        }
        assert!("initcwnd=0,10".parse::<WindowPair>().unwrap_err().contains("1 to 1000"));
    }

    #[test]
    fn a_page_that_is_always_faster_is_shown_to_be_and_a_few_rounds_show_nothing() {
        let pair: WindowPair = "initcwnd=3,10".parse().unwrap();
        let (slow, fast) = (
            loads(&[1_300.0; 10]),
            loads(&[1_060.0, 1_070.0, 1_050.0, 1_060.0, 1_055.0, 1_065.0, 1_060.0, 1_050.0, 1_070.0, 1_060.0]),
        );
        let found = ComparedLoads::of(pair, [&slow, &fast]).unwrap();
        assert!(found.difference_shown && found.low.unwrap() > 1.0 && found.low.unwrap() < 1.23, "{found:?}");
        assert!((found.ratio - 1.3 / 1.06).abs() < 0.01 && found.evidence >= found.needed, "{found:?}");
        assert!(found.text.starts_with("The page loads faster with initcwnd=10: by "), "{}", found.text);
        let back = ComparedLoads::of(pair, [&fast, &slow]).unwrap();
        assert!(
            back.difference_shown && back.text.starts_with("The page loads slower with initcwnd=10: by "),
            "{}",
            back.text
        );
        let few = ComparedLoads::of(pair, [&slow[..3], &fast[..3]]).unwrap();
        assert!(!few.difference_shown && few.text.starts_with("Nothing can be shown before "), "{}", few.text);
        let same = ComparedLoads::of(pair, [&fast, &fast]).unwrap();
        assert!(!same.difference_shown && same.text.starts_with("No difference is shown."), "{}", same.text);
        assert!(ComparedLoads::of(pair, [&[], &[]]).is_none());
    }

    #[test]
    fn a_row_is_thin_until_its_request_was_sent_and_the_picture_says_so() {
        let mut waits = loads(&[1_300.0, 1_060.0]);
        waits[0].resources[1].sent_ms = Some(1_180.0);
        let chart = waterfalls("http://x/", ["initcwnd=3", "initcwnd=10"], [&waits[0], &waits[1]]);
        let Kind::Waits(rows) = &chart.series[0].kind else { panic!("{chart:?}") };
        assert_eq!(rows[1], (0.0, 1_180.0, 1_300.0));
        assert!(chart.subtitle.contains("thin: waits in the browser; "), "{}", chart.subtitle);
        let alone = super::super::waterfall::waterfall("http://x/", &waits[0]);
        assert!(alone.subtitle.starts_with("thin: waits in the browser; marks: first byte"), "{}", alone.subtitle);
        let unknown = waterfalls("http://x/", ["a", "b"], [&waits[1], &waits[1]]);
        assert!(!unknown.subtitle.contains("thin"), "{}", unknown.subtitle);
    }

    #[test]
    fn both_loads_stand_in_the_same_rows() {
        let (slow, fast) = (loads(&[1_300.0]), loads(&[1_060.0]));
        let chart = waterfalls("http://x/", ["initcwnd=3", "initcwnd=10"], [&slow[0], &fast[0]]);
        assert_eq!(chart.categories.len(), 2);
        assert_eq!([chart.series[0].points.len(), chart.series[1].points.len()], [2, 2]);
        let svg = chart.to_svg(900, 300);
        assert!(svg.contains("initcwnd=3") && svg.contains("initcwnd=10") && svg.contains("a.js"), "{svg}");
    }
}
