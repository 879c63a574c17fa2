use super::{Arm, Run, beside, charts};
use crate::edge::{Exit, say};
use serde_json::{Value, json};
use std::time::Duration;
use wt_experiment::classic::{Table, against_the_first, blocked_anova};
use wt_lab::scenario::Disturbance;
use wt_report::Page;
use wt_trial::bulk::{Arrivals, BulkMetrics, Disturbed, PathNow, Recovery, quantile};

/// One measure of all runs of one congestion control: its median.
fn median(arm: &Arm, of: impl Fn(&BulkMetrics) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = arm.runs.iter().filter_map(|run| of(&run.metrics)).collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Against the yardstick.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Against {
    /// Rate over the yardstick's.
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What came of one.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) label: String,
    name: String,
    variant: String,
    /// kB/s, in the order of the rounds.
    pub(super) goodput: Vec<f64>,
    pub(super) mean: f64,
    t90_s: Option<f64>,
    recovery_s: Option<f64>,
    pub(super) p95_queue_ms: Option<f64>,
    retransmit_share: Option<f64>,
    guard_hits: u64,
    invalid: u32,
    metrics: Value,
    /// After the scripted disturbance.
    after: Option<Recovery>,
    /// Beside another flow.
    beside: Option<Value>,
    pub(super) against: Option<Against>,
}

impl Row {
    /// What had to be run again, if anything had.
    fn thrown_away(&self) -> Option<String> {
        (self.invalid > 0 || self.guard_hits > 0).then(|| {
            format!(
                "{}: {} trials thrown away and run again; the kernel skipped a program {} times.",
                self.label, self.invalid, self.guard_hits
            )
        })
    }
}

/// What came of all.
#[derive(Debug)]
pub(super) struct Comparison {
    lab: String,
    path: PathNow,
    length: Duration,
    disturbance: Option<(Disturbance, Duration)>,
    pub(super) rows: Vec<Row>,
}

impl Comparison {
    pub(super) fn new(
        lab: &str,
        path: PathNow,
        length: Duration,
        disturbance: Option<(Disturbance, Duration)>,
        arms: &[Arm],
    ) -> Self {
        let against = against(arms);
        let row = |(index, arm): (usize, &Arm)| {
            let goodput: Vec<f64> = arm.runs.iter().map(|run| run.outcome.goodput_bps() / 8e3).collect();
            let all: Vec<&BulkMetrics> = arm.runs.iter().map(|run| &run.metrics).collect();
            Row {
                label: arm.label(),
                name: arm.name.clone(),
                variant: arm.variant.clone(),
                mean: goodput.iter().sum::<f64>() / goodput.len().max(1) as f64,
                goodput,
                t90_s: median(arm, |m| m.t90_s),
                recovery_s: median(arm, |m| m.recovery.median_s),
                p95_queue_ms: median(arm, |m| m.p95_queue_ms),
                retransmit_share: median(arm, |m| m.retransmit_share),
                guard_hits: arm.guard_hits,
                invalid: arm.invalid,
                metrics: json!(all),
                after: disturbance.map(|what| after(arm, what, path.base_rtt_us)),
                beside: beside::summary(arm, window_us(path.base_rtt_us)),
                against: index.checked_sub(1).and_then(|other| against.get(other).cloned()),
            }
        };
        Self { lab: lab.to_owned(), path, length, disturbance, rows: arms.iter().enumerate().map(row).collect() }
    }

    /// Prints it; the exit code says whether a difference from the yardstick is shown.
    pub(super) fn tell(&self, id: &str, as_json: bool) -> Exit {
        if as_json {
            say!("{}", self.json(id));
        } else {
            self.print();
            say!("In the journal: {id}");
        }
        if self.rows.len() > 1 && !self.differs() { Exit::No } else { Exit::Done }
    }

    fn differs(&self) -> bool {
        self.rows.iter().filter_map(|row| row.against.as_ref()).any(|a| a.low > 1.0 || a.high < 1.0)
    }

    /// What was scripted into a run, and when.
    pub(super) fn disturbed(&self, run: &Run) -> Option<(&'static str, Disturbed)> {
        self.disturbance.map(|what| (what.0.name(), when(run, what)))
    }

    /// What is kept as the verdict.
    pub(super) fn verdict_json(&self) -> Value {
        json!({"difference_shown": self.differs(), "text": self.verdict()})
    }

    /// All of it as a page with its pictures.
    pub(super) fn page(&self, arms: &[Arm], id: &str) -> String {
        let rounds = self.rows.iter().map(|row| row.goodput.len()).max().unwrap_or(0);
        let head =
            ["congestion control", "goodput, kB/s", "single runs", "T90, s", "back in, s", "p95 queue, ms", "resent"];
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
        let mut table = vec![head.map(str::to_owned).to_vec()];
        table.extend(self.rows.iter().map(|row| {
            vec![
                row.label.clone(),
                format!("{:.1}", row.mean),
                row.goodput.iter().map(|goodput| format!("{goodput:.0}")).collect::<Vec<_>>().join(" "),
                number(row.t90_s),
                number(row.recovery_s),
                number(row.p95_queue_ms),
                row.retransmit_share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0)),
            ]
        }));
        let mut text = vec![self.verdict()];
        text.extend(self.disturbance_lines());
        text.extend(self.rows.iter().filter_map(Row::thrown_away));
        let heading = |name: &str| match name {
            "goodput" => "Goodput".to_owned(),
            "plane" => "Goodput against delay".to_owned(),
            run => format!("One run: {}", run.trim_start_matches("run-")),
        };
        let charts = charts::all(self, arms).into_iter().map(|(name, chart)| (heading(&name), chart)).collect();
        let page = Page {
            title: "Congestion controls compared".to_owned(),
            about: format!("{} · {rounds} rounds of {:.0} s each", self.lab, self.length.as_secs_f64()),
            text,
            table,
            more: Vec::new(),
            charts,
            footer: format!("Windtunnel {} · {id}", env!("CARGO_PKG_VERSION")),
        };
        page.to_html()
    }

    fn json(&self, id: &str) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "name": row.name, "variant": row.variant,
                    "goodput_kBps": {"mean": row.mean, "runs": row.goodput},
                    "t90_s": row.t90_s, "recovery_s": row.recovery_s, "p95_queue_ms": row.p95_queue_ms,
                    "retransmit_share": row.retransmit_share, "guard_hits": row.guard_hits,
                    "invalid_trials": row.invalid,
                    "against_first": row.against.as_ref().map(|a| json!({"ratio": a.ratio, "low": a.low, "high": a.high})),
                    "runs": row.metrics, "after_disturbance": row.after,
                    "beside": row.beside,
                })
            })
            .collect();
        json!({
            "schema_version": 1, "id": id, "lab": self.lab, "trial_s": self.length.as_secs_f64(),
            "path": {"base_rtt_us": self.path.base_rtt_us, "capacity_bps": self.path.capacity_bps},
            "disturbance": self.disturbance.map(|(what, at)| {
                json!({"kind": what.name(), "at_s": at.as_secs_f64(), "lasts_s": what.lasts().as_secs_f64()})
            }),
            "algorithms": rows,
            "verdict": self.verdict_json(),
        })
    }

    fn print(&self) {
        let rounds = self.rows.iter().map(|row| row.goodput.len()).max().unwrap_or(0);
        say!("{}: {rounds} rounds of {:.0} s each; medians but for the goodput\n", self.lab, self.length.as_secs_f64());
        say!(
            "{:<24} {:>17} {:>8} {:>9} {:>10} {:>8}  {}",
            "congestion control",
            "goodput, kB/s",
            "T90, s",
            "back in s",
            "p95 queue",
            "resent",
            "against the first"
        );
        for row in &self.rows {
            let spread = row.goodput.iter().copied().fold((f64::INFINITY, 0.0_f64), |(l, h), g| (l.min(g), h.max(g)));
            let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
            let against = row.against.as_ref().map_or_else(String::new, |a| {
                format!("{:+.0} % ({:+.0} to {:+.0})", percent(a.ratio), percent(a.low), percent(a.high))
            });
            say!(
                "{:<24} {:>17} {:>8} {:>9} {:>7} ms {:>7}%  {against}",
                row.label,
                format!("{:.1} ({:.0}–{:.0})", row.mean, spread.0, spread.1),
                number(row.t90_s),
                number(row.recovery_s),
                number(row.p95_queue_ms),
                number(row.retransmit_share.map(|share| share * 100.0)),
            );
        }
        for line in self.rows.iter().filter_map(Row::thrown_away) {
            say!("\n{line}");
        }
        let lines = self.disturbance_lines();
        if let Some((first, others)) = lines.split_first() {
            say!("\n{first}");
            others.iter().for_each(|line| say!("  {line}"));
        }
        say!("\n{}", self.verdict());
    }

    /// What became of the scripted disturbance; nothing without one.
    fn disturbance_lines(&self) -> Vec<String> {
        let Some((what, at)) = self.disturbance else { return Vec::new() };
        let lasted = if what.lasts().is_zero() {
            String::new()
        } else {
            format!(" that lasted {:.1} s, from its end", what.lasts().as_secs_f64())
        };
        let (name, at) = (what.name(), at.as_secs_f64());
        let mut lines =
            vec![format!("After the {name} at {at:.1} s{lasted}, until 95 % of the rate before it held for two RTTs:")];
        for row in &self.rows {
            let Some(after) = &row.after else { continue };
            let time = after.median_s.map_or_else(|| "not in most trials".to_owned(), |s| format!("{s:.2} s"));
            let cost = after.mean_cost_bytes.unwrap_or(0.0) / 1e3;
            let (label, back, all) = (&row.label, after.recovered, after.events);
            lines.push(format!(
                "{:<24} {time}, {cost:.1} kB less than without; back in {back} of {all}",
                format!("{label}:")
            ));
            if let Some(shared) = &row.beside {
                let name = shared["name"].as_str().unwrap_or("?");
                lines.push(format!("{:<24} beside {name}: {}", "", beside::sentence(shared)));
            }
        }
        lines
    }

    /// One sentence or two that a person can act on.
    fn verdict(&self) -> String {
        let Some((first, others)) = self.rows.split_first() else { return "nothing was compared".to_owned() };
        if others.is_empty() {
            return format!("only {} was run: there is nothing to compare it with", first.label);
        }
        if others.iter().all(|row| row.against.is_none()) {
            return "too few rounds to say whether the differences are real; two or more say".to_owned();
        }
        let sorted = |keep: fn(&Against) -> bool| {
            let kept = |row: &&Row| row.against.as_ref().is_some_and(keep);
            let mut rows: Vec<&Row> = others.iter().filter(kept).collect();
            rows.sort_by(|a, b| b.mean.total_cmp(&a.mean));
            let name = |row: &&Row| {
                let gain = row.against.as_ref().map_or(0.0, |a| percent(a.ratio));
                format!("{} ({gain:+.0} %)", row.label)
            };
            rows.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        let (faster, slower) = (sorted(|a| a.low > 1.0), sorted(|a| a.high < 1.0));
        let mut parts = Vec::new();
        if !faster.is_empty() {
            parts.push(format!("faster than {}: {faster}", first.label));
        }
        if !slower.is_empty() {
            parts.push(format!("slower: {slower}"));
        }
        if parts.is_empty() {
            parts.push(format!("no difference from {} is shown", first.label));
        }
        format!("{} (95 % for all comparisons together, by Dunnett's method within rounds).", parts.join("; "))
    }
}

/// The window of rates, µs.
fn window_us(rtt_us: u64) -> u64 {
    (2 * rtt_us).max(200_000)
}

/// The recovery from what was scripted, over all runs.
fn after(arm: &Arm, what: (Disturbance, Duration), rtt_us: u64) -> Recovery {
    let flows: Vec<(Arrivals, Disturbed)> = arm
        .runs
        .iter()
        .map(|run| {
            let arrivals = Arrivals::new(&run.outcome.receiver, run.outcome.elapsed_us, run.outcome.bytes);
            (arrivals, when(run, what))
        })
        .collect();
    Recovery::of_disturbances(&flows, rtt_us, window_us(rtt_us))
}

/// When it happened, on the clock of the trial's transfer: the path's began before the connection was made.
fn when(run: &Run, (what, at): (Disturbance, Duration)) -> Disturbed {
    if let Some(seen) = beside::when(run) {
        return seen;
    }
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let connect_us = run.outcome.observed.get("connect_us").and_then(Value::as_u64).unwrap_or(0);
    let at_us = micros(at).saturating_sub(connect_us);
    Disturbed { at_us, over_us: at_us.saturating_add(micros(what.lasts())) }
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// Each against the first, within rounds.
fn against(arms: &[Arm]) -> Vec<Against> {
    let rounds = arms.iter().map(|arm| arm.runs.len()).min().unwrap_or(0);
    let goodput = |arm: &Arm| arm.runs[..rounds].iter().map(|run| run.outcome.goodput_bps()).collect::<Vec<_>>();
    let logs: Vec<f64> = arms.iter().flat_map(goodput).map(f64::ln).collect();
    let names = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let Ok(table) = Table::new(names("a", arms.len()), names("r", rounds), logs) else { return Vec::new() };
    let Some(anova) = blocked_anova(&table) else { return Vec::new() };
    let all = against_the_first(&table, &anova);
    all.iter().map(|one| Against { ratio: one.ratio, low: one.low, high: one.high }).collect()
}
