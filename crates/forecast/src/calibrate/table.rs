use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use wt_lab::scenario::{Direction, InvalidScenario, Link, LossBy, QueueBound, Scenario};
use wt_units::{BitsPerSecond, Bytes, Knob, Ratio, Settings};

/// One path with one setting and one transfer.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// How it is called: what it varies.
    pub(super) name: String,
    /// Which part of the world it stands for.
    pub(super) region: &'static str,
    /// The path.
    pub(super) line: Line,
    /// Random loss: several seeds are needed.
    pub(super) lossy: bool,
    /// What is set.
    pub(super) settings: Settings,
    /// How much is moved.
    pub(super) size: Bytes,
}

/// Figures of a path of one link.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Of bits on the wire, bit/s.
    pub rate_bps: u64,
    /// Of the idle path, without serialisation, µs.
    pub rtt_us: u64,
    /// In front of the link.
    pub queue_packets: u64,
    /// Share of the packets to the client.
    pub loss: f64,
    /// Bytes.
    pub mtu: u64,
    /// What a packet occupies on the link.
    pub framing: &'static str,
}

impl Line {
    /// A queue of so many bandwidth-delay products.
    fn new(rate_bps: u64, rtt_us: u64, bdp: f64) -> Self {
        let packets = rate_bps as f64 * rtt_us as f64 / 8e6 / 1500.0 * bdp;
        let queue_packets = (packets.round() as u64).max(2);
        Self { rate_bps, rtt_us, queue_packets, loss: 0.0, mtu: 1500, framing: "raw" }
    }

    fn scenario(&self, name: &str) -> Result<Scenario, InvalidScenario> {
        let way = |loss| {
            Direction::builder(BitsPerSecond(self.rate_bps))
                .delay(Duration::from_micros(self.rtt_us / 2))
                .queue(QueueBound::Packets(u32::try_from(self.queue_packets).unwrap_or(u32::MAX)))
                .loss(Ratio(loss), LossBy::Random)
        };
        let link = Link::builder("line", way(self.loss), way(0.0)).mtu(Bytes(self.mtu)).framing(self.framing);
        Scenario::builder(name).title("calibration").source("a row of the table").link(link).build()
    }
}

impl Cell {
    fn new(region: &'static str, name: String, line: &Line, settings: &[(Knob, &str)], size: u64) -> Self {
        let level = |(knob, text): &(Knob, &str)| knob.parse_level(text).ok().map(|level| (*knob, level));
        let settings = settings.iter().filter_map(level).collect();
        Self { name, region, line: line.clone(), lossy: line.loss > 0.0, settings, size: Bytes(size) }
    }

    /// The path, ready for both.
    pub(super) fn scenario(&self) -> Result<Scenario, String> {
        self.line.scenario(&self.name.replace([' ', '/'], "-")).map_err(|error| error.to_string())
    }
}

/// What a path of the table is, for those that may be like it.
#[derive(Debug, Clone)]
pub(crate) struct TablePath {
    pub(crate) region: &'static str,
    pub(crate) rate_bps: u64,
    /// Of full-sized segments on the idle path.
    pub(crate) rtt_us: u64,
    pub(crate) lossy: bool,
    /// What the queue of the payload holds.
    pub(crate) queue_packets: u64,
}

/// All paths of the table that have a region of the shipped errors.
pub(crate) fn table_paths() -> Vec<TablePath> {
    let path = |cell: &Cell| {
        let rtt_us = cell.scenario().ok()?.facts(wt_trial::Direction::Down).rtt_us;
        let Line { rate_bps, queue_packets, .. } = cell.line;
        Some(TablePath { region: cell.region, rate_bps, rtt_us, lossy: cell.lossy, queue_packets })
    };
    world().iter().chain(&grid()).filter_map(path).collect()
}

/// What some row of the table sets: its knobs, and of the congestion control its names, too.
pub(crate) fn table_settings() -> (BTreeSet<Knob>, BTreeSet<String>) {
    let (mut knobs, mut controls) = (BTreeSet::new(), BTreeSet::new());
    for cell in world().iter().chain(&grid()) {
        knobs.extend(cell.settings.iter().map(|(knob, _)| knob));
        controls.extend(cell.settings.name(Knob::Cc).map(str::to_owned));
    }
    (knobs, controls)
}

fn size_name(size: u64) -> String {
    if size >= 1_000_000 { format!("{}MB", size / 1_000_000) } else { format!("{}kB", size / 1_000) }
}

/// Completion times of three sizes over twelve paths with two congestion controls: 72 cells.
pub(super) fn grid() -> Vec<Cell> {
    let mut cells = Vec::new();
    for cc in ["cubic", "bbr"] {
        for mbit in [10_u64, 100, 1000] {
            for ms in [20_u64, 100] {
                for bdp in [0.5, 2.0] {
                    for size in [100_000_u64, 1_000_000, 10_000_000] {
                        let line = Line::new(mbit * 1_000_000, ms * 1_000, bdp);
                        let name = format!("{cc} {mbit}Mbit {ms}ms {bdp}BDP {}", size_name(size));
                        cells.push(Cell::new("grid", name, &line, &[(Knob::Cc, cc)], size));
                    }
                }
            }
        }
    }
    cells
}

/// Paths from a telephone line to a data centre, and what is set on them.
pub(super) fn world() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |region, name: &str, line: &Line, settings: &[(Knob, &str)], size| {
        cells.push(Cell::new(region, name.to_owned(), line, settings, size));
    };
    let modem = || Line { framing: "ppp", queue_packets: 20, ..Line::new(26_400, 150_000, 1.0) };
    for rwin in ["1460", "2920", "5840", "11680", "23360"] {
        add("dial-up", &format!("26.4kbit rwin {rwin}"), &modem(), &[(Knob::Rwin, rwin), (Knob::Cc, "reno")], 40_000);
    }
    add("dial-up", "26.4kbit", &modem(), &[(Knob::Cc, "cubic")], 40_000);
    add("dial-up", "26.4kbit mtu 576", &modem(), &[(Knob::Mtu, "576"), (Knob::Cc, "cubic")], 40_000);
    add("dial-up", "26.4kbit sack off", &modem(), &[(Knob::Sack, "off"), (Knob::Cc, "reno")], 40_000);
    let dsl = || Line {
        framing: "pppoe-llc-bridged-fcs-atm",
        queue_packets: 44,
        mtu: 1492,
        ..Line::new(8_000_000, 30_000, 1.0)
    };
    for rwin in ["8640", "16000", "23040", "43200", "86400"] {
        add("dsl", &format!("8Mbit atm rwin {rwin}"), &dsl(), &[(Knob::Rwin, rwin), (Knob::Cc, "cubic")], 3_000_000);
    }
    for cc in ["cubic", "reno", "bbr"] {
        add("dsl", &format!("8Mbit atm {cc}"), &dsl(), &[(Knob::Cc, cc)], 3_000_000);
    }
    for mtu in ["1400", "1454"] {
        add("dsl", &format!("8Mbit atm mtu {mtu}"), &dsl(), &[(Knob::Mtu, mtu), (Knob::Cc, "cubic")], 3_000_000);
    }
    for (mbit, us) in [(100, 1_000), (100, 5_000), (1000, 200), (1000, 1_000), (1000, 5_000)] {
        for cc in ["cubic", "bbr"] {
            let line = Line { queue_packets: 340, ..Line::new(mbit * 1_000_000, us, 1.0) };
            add("lan", &format!("{mbit}Mbit {us}us {cc}"), &line, &[(Knob::Cc, cc)], 10_000_000);
        }
    }
    for initcwnd in ["2", "4", "10", "32"] {
        let line = Line::new(50_000_000, 80_000, 1.0);
        let settings = [(Knob::Initcwnd, initcwnd), (Knob::Cc, "cubic")];
        add("web", &format!("50Mbit 80ms initcwnd {initcwnd}"), &line, &settings, 100_000);
    }
    for (knob, level) in [(Knob::Timestamps, "off"), (Knob::Sack, "off"), (Knob::WindowScaling, "off")] {
        let line = Line::new(20_000_000, 40_000, 1.0);
        add("web", &format!("20Mbit 40ms {knob} off"), &line, &[(knob, level), (Knob::Cc, "cubic")], 2_000_000);
    }
    for (ms, cc) in [(128, "cubic"), (128, "bbr"), (128, "reno"), (250, "cubic"), (600, "cubic"), (600, "bbr")] {
        let line = Line::new(20_000_000, ms * 1_000, 0.5);
        add("long", &format!("20Mbit {ms}ms {cc}"), &line, &[(Knob::Cc, cc)], 5_000_000);
    }
    for (percent, cc) in
        [(0.1, "cubic"), (1.0, "cubic"), (3.0, "cubic"), (5.0, "cubic"), (1.0, "reno"), (1.0, "bbr"), (3.0, "bbr")]
    {
        let line = Line { loss: percent / 100.0, ..Line::new(20_000_000, 40_000, 1.0) };
        add("lossy", &format!("20Mbit 40ms {percent}% {cc}"), &line, &[(Knob::Cc, cc)], 1_000_000);
    }
    for (percent, size) in [(1.0, 30_000), (3.0, 30_000), (1.0, 1_000_000), (3.0, 1_000_000)] {
        let line = Line { loss: percent / 100.0, ..Line::new(100_000_000, 50_000, 1.0) };
        let name = format!("100Mbit 50ms {percent}% {}", size_name(size));
        add("lossy", &name, &line, &[(Knob::Cc, "cubic")], size);
    }
    cells
}
