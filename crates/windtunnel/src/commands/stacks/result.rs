use super::charts;
use super::compare::{Config, key, kind};
use super::overhead::Overhead;
use super::verdict::{SAME, Verdict, threshold};
use super::windows::Raised;
use crate::edge::{Exit, say};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use wt_report::Page;
use wt_stacks::conformance::Conformance;
use wt_stacks::finding::{Finding, Trend};
use wt_stacks::{Choice, Seen};
use wt_trial::bulk::{BulkMetrics, PathNow, quantile};
use wt_trial::{Scale, Status, TrialOutcome};
use wt_units::counted;

/// One stack with one window, and what came of it.
#[derive(Debug)]
pub(super) struct Row {
    choice: Choice,
    trials: BTreeMap<String, Vec<TrialOutcome>>,
    /// What packet scripts said, if any were played.
    conformance: Option<Conformance>,
}

/// What a workload is ranked by; more is better.
fn score(workload: &str, outcome: &TrialOutcome) -> Option<f64> {
    if outcome.status != Status::Completed {
        return None;
    }
    let measures = &outcome.measures;
    let seconds = outcome.elapsed_us as f64 / 1e6;
    let score = match kind(workload) {
        "transactions" => measures.exchanges.map(|exchanges| exchanges.per_second)?,
        "stream" => 1e6 / measures.lateness?.spread.p99_us.max(1) as f64,
        "bursts" | "page" => 1.0 / seconds,
        // The geometric mean of both ways.
        "duplex" => outcome.figure(Scale::Goodput)?,
        _ => outcome.goodput_bps(),
    };
    (score.is_finite() && score > 0.0).then_some(score)
}

/// The name and the unit of what a workload is ranked by.
pub(super) fn axis(workload: &str) -> (&'static str, &'static str) {
    match kind(workload) {
        "transactions" => ("transactions", "1/s"),
        "stream" => ("1 / lateness", "1/s"),
        "bursts" | "page" => ("1 / time", "1/s"),
        _ => ("goodput", "bit/s"),
    }
}

/// A trial in a few words.
pub(super) fn figure(workload: &str, outcome: &TrialOutcome) -> String {
    let Some(score) = score(workload, outcome) else { return "no figure".to_owned() };
    match kind(workload) {
        "transactions" => format!("{score:.1}/s"),
        "stream" => format!("{:.2} ms late", 1e3 / score),
        "bursts" | "page" => format!("{:.3} s", 1.0 / score),
        _ => format!("{:.3} Mbit/s", score / 1e6),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

fn number(outcome: &TrialOutcome, name: &str) -> Option<f64> {
    outcome.observed.get(name)?.as_f64()
}

fn seen(outcome: &TrialOutcome) -> Option<Seen> {
    serde_json::from_value(outcome.observed.get("seen")?.clone()).ok()
}

impl Row {
    pub(super) fn new(choice: Choice) -> Self {
        Self { choice, trials: BTreeMap::new(), conformance: None }
    }

    pub(super) fn title(&self) -> String {
        self.choice.title()
    }

    /// One whose packet scripts were played before.
    pub(super) fn known(choice: Choice, conformance: Option<Conformance>) -> Self {
        Self { conformance, ..Self::new(choice) }
    }

    /// What it is.
    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// What the packet scripts said.
    pub(super) fn glanced(&self) -> Option<&Conformance> {
        self.conformance.as_ref()
    }

    /// Plays the packet scripts.
    pub(super) fn glance(&mut self) {
        self.conformance = Some(Conformance::of(&self.choice));
    }

    pub(super) fn take(&mut self, workload: &str, outcome: TrialOutcome) {
        self.trials.entry(workload.to_owned()).or_default().push(outcome);
    }

    fn of(&self, workload: &str) -> &[TrialOutcome] {
        self.trials.get(workload).map_or(&[], Vec::as_slice)
    }

    fn all(&self) -> impl Iterator<Item = (&str, &TrialOutcome)> {
        self.trials.iter().flat_map(|(name, trials)| trials.iter().map(move |trial| (name.as_str(), trial)))
    }

    /// What each completed trial was ranked by.
    pub(super) fn scores(&self, workload: &str) -> Vec<f64> {
        self.of(workload).iter().filter_map(|outcome| score(workload, outcome)).collect()
    }

    /// What was seen in the trial that lasted longest.
    pub(super) fn longest_seen(&self) -> Option<Seen> {
        let with_delay = self.all().filter_map(|(_, outcome)| Some((number(outcome, "took_us")?, seen(outcome)?)));
        let longest = with_delay.filter(|(_, seen)| seen.ack_delay.is_some()).max_by(|a, b| a.0.total_cmp(&b.0));
        longest.map(|(_, seen)| seen)
    }

    /// Which stack it is with which window, if it has one of its own.
    pub(super) fn window(&self) -> Option<(&str, u32)> {
        let label = self.choice.label.split(":rwin=").next()?;
        Some((label, self.choice.window?))
    }

    /// The stack's name.
    pub(super) fn stack(&self) -> &str {
        &self.choice.label
    }

    /// The median goodput of its completed trials, bit/s.
    pub(super) fn goodput(&self, workload: &str) -> Option<f64> {
        let done = self.of(workload).iter().filter(|outcome| outcome.status == Status::Completed);
        median(done.map(TrialOutcome::goodput_bps).collect())
    }

    /// What the windows that it offered allowed, bit/s: the median of its completed trials.
    pub(super) fn limit(&self, workload: &str, rtt_us: u64) -> Option<f64> {
        let done = self.of(workload).iter().filter(|outcome| outcome.status == Status::Completed);
        median(done.filter_map(|outcome| seen(outcome)?.window_limit_bps(rtt_us)).collect())
    }

    /// The median of its transactions' median times, µs.
    pub(super) fn transaction_us(&self) -> Option<f64> {
        let done = self.of("transactions").iter().filter(|outcome| outcome.status == Status::Completed);
        median(done.filter_map(|outcome| Some(outcome.measures.exchanges.as_ref()?.latency.p50_us as f64)).collect())
    }

    /// The mean window that it offered, bytes: the median of its completed trials.
    pub(super) fn offered(&self, workload: &str) -> Option<f64> {
        median(self.of(workload).iter().filter_map(|outcome| seen(outcome)?.window_mean).collect())
    }

    /// `ok`, or the worst that happened to data.
    fn integrity(&self) -> &'static str {
        let is =
            |word: &str| self.all().any(|(_, outcome)| outcome.observed.get("integrity").is_some_and(|is| is == word));
        if is("corrupt") {
            "corrupt"
        } else if is("lost") {
            "lost"
        } else {
            "ok"
        }
    }

    /// What is wrong with it: each kind once, where it was seen first.
    fn findings(&self) -> Vec<(String, Finding)> {
        let mut found: Vec<(String, Finding)> = Vec::new();
        for (workload, outcome) in self.all() {
            let seen = seen(outcome).unwrap_or_default();
            let integrity = outcome.observed.get("integrity").and_then(Value::as_str).unwrap_or("ok");
            let took = number(outcome, "took_us").unwrap_or(0.0) as u64;
            let what = outcome.notes.join("; ");
            let new = [Finding::ack_delay(&seen), Finding::data(integrity, took, &what, &seen)];
            for finding in new.into_iter().flatten() {
                let same = |old: &(String, Finding)| std::mem::discriminant(&old.1) == std::mem::discriminant(&finding);
                if !found.iter().any(same) {
                    found.push((workload.to_owned(), finding));
                }
            }
        }
        found
    }

    /// Trials that weren't done, by workload and reason.
    fn failures(&self) -> Vec<Value> {
        let mut counted: BTreeMap<(String, String, String), u32> = BTreeMap::new();
        for (workload, outcome) in self.all().filter(|(_, outcome)| outcome.status != Status::Completed) {
            let key = (workload.to_owned(), outcome.status.name().to_owned(), outcome.notes.join("; "));
            *counted.entry(key).or_default() += 1;
        }
        let one = |((workload, status, why), times)| json!({"workload": workload, "status": status, "why": why, "trials": times});
        counted.into_iter().map(one).collect()
    }

    fn sum(&self, workload: &str, of: impl Fn(&TrialOutcome) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.of(workload).iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// CPU seconds of the adapter's process per 10⁹ bytes of payload.
    fn cpu_s_per_gb(&self, workload: &str) -> Option<f64> {
        let bytes = self.sum(workload, |outcome| number(outcome, "cpu_ns").map(|_| outcome.bytes as f64))?;
        let cpu_ns = self.sum(workload, |outcome| number(outcome, "cpu_ns"))?;
        (bytes > 0.0).then_some(cpu_ns / bytes)
    }

    /// Bytes of payload of each completed trial, if all have the same.
    fn bytes(&self, workload: &str) -> Vec<u64> {
        let done = self.of(workload).iter().filter(|outcome| outcome.status == Status::Completed);
        let mut all: Vec<u64> = done.map(|outcome| outcome.bytes).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn workload_json(&self, workload: &str, path: &PathNow) -> Value {
        let done: Vec<&TrialOutcome> =
            self.of(workload).iter().filter(|outcome| outcome.status == Status::Completed).collect();
        let exchanges = |of: fn(&wt_trial::Exchanges) -> f64| {
            median(done.iter().filter_map(|outcome| outcome.measures.exchanges.as_ref().map(of)).collect())
        };
        let seen: Vec<Seen> = done.iter().filter_map(|outcome| seen(outcome)).collect();
        let middle = |of: fn(&Seen) -> Option<f64>| median(seen.iter().filter_map(of).collect());
        let mut told = Map::new();
        let mut add = |name: &str, value: Value| drop(told.insert(name.to_owned(), value));
        add("trials", json!(self.of(workload).len()));
        add("completed", json!(done.len()));
        add("bytes", json!(self.bytes(workload)));
        add("seconds", json!(median(done.iter().map(|outcome| outcome.elapsed_us as f64 / 1e6).collect())));
        add("goodput_bps", json!(median(done.iter().map(|outcome| outcome.goodput_bps()).collect())));
        if matches!(workload, "transactions" | "bursts") {
            add("per_second", json!(exchanges(|one| one.per_second)));
            add("p50_us", json!(exchanges(|one| one.latency.p50_us as f64)));
            add("p99_us", json!(exchanges(|one| one.latency.p99_us as f64)));
        }
        if kind(workload) == "stream" {
            let late = |outcome: &&&TrialOutcome| outcome.measures.lateness.map(|late| late.spread.p99_us as f64);
            add("lateness_p99_us", json!(median(done.iter().filter_map(|outcome| late(&outcome)).collect())));
        }
        if matches!(kind(workload), "bulk" | "soak") {
            let up = kind(workload) != workload;
            add("t90_s", json!(median(done.iter().filter_map(|outcome| ramp_up(outcome, path, up)).collect())));
        }
        if workload == "duplex" {
            let flow = |at: usize| {
                median(done.iter().filter_map(|outcome| outcome.measures.flows_bps.get(at).copied()).collect())
            };
            add("down_bps", json!(flow(0)));
            add("up_bps", json!(flow(1)));
        }
        add("cpu_s_per_gb", json!(self.cpu_s_per_gb(workload)));
        add("connect_us", json!(median(done.iter().filter_map(|outcome| number(outcome, "connect_us")).collect())));
        add("retransmissions", json!(middle(|seen| seen.retransmissions.map(|count| count as f64))));
        add("server_retransmissions", json!(middle(|seen| seen.server_retransmissions.map(|count| count as f64))));
        add("window_mean_bytes", json!(middle(|seen| seen.window_mean)));
        add("window_limit_bps", json!(self.limit(workload, path.base_rtt_us)));
        add("window_bytes", json!(middle(|seen| seen.window.map(f64::from))));
        Value::Object(told)
    }

    fn version(&self) -> Option<String> {
        let told = self.all().find_map(|(_, outcome)| outcome.observed.get("version")?.as_str().map(str::to_owned));
        told.or_else(|| {
            let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
            (self.choice.stack.name == wt_stacks::catalogue::DIRECT).then(|| kernel.trim().to_owned())
        })
    }

    /// What was set, by the adapter's own word, and what was asked where there is none.
    fn settings(&self) -> Value {
        let granted = self.all().find_map(|(_, outcome)| outcome.observed.get("granted").cloned());
        let mut settings = granted.unwrap_or_else(|| {
            let pairs = self.choice.settings();
            pairs
                .iter()
                .map(|(knob, level)| (knob.name().to_owned(), json!(level.to_string())))
                .collect::<Map<_, _>>()
                .into()
        });
        if let Some(profile) = self.choice.profile {
            settings["stands_in_for"] = json!(profile.title);
        }
        settings
    }

    /// What its adapter was told and can't, in its own words.
    fn refused(&self) -> Vec<String> {
        let told = self.all().find_map(|(_, outcome)| outcome.observed.get("refused").cloned());
        told.and_then(|told| serde_json::from_value(told).ok()).unwrap_or_default()
    }

    /// The most memory that the adapter's process ever had, bytes.
    fn memory(&self) -> Option<f64> {
        self.all().filter_map(|(_, outcome)| number(outcome, "peak_bytes")).max_by(f64::total_cmp)
    }

    /// What packet scripts said; without them what its SYN offered, the rest untested.
    pub(super) fn conformance(&self) -> Value {
        let offer = self.all().find_map(|(_, outcome)| seen(outcome)?.offer);
        let mut told = match &self.conformance {
            Some(conformance) => json!(conformance),
            None => {
                let of = |yes: Option<bool>| yes.map_or(json!("unknown"), |yes| json!(if yes { "yes" } else { "no" }));
                json!({
                    "window_scaling": of(offer.map(|offer| offer.window_scale.is_some())),
                    "sack": of(offer.map(|offer| offer.sack)),
                    "timestamps": of(offer.map(|offer| offer.timestamps)),
                    "pmtu_discovery": "not tested", "zero_window_probe": "not tested", "rst_handling": "not tested",
                    "out_of_order_reassembly": "not tested", "simultaneous_close": "not tested",
                })
            }
        };
        told["mss"] = json!(offer.and_then(|offer| offer.mss));
        told
    }

    fn json(&self, config: &Config) -> Value {
        let names = config.workloads.iter().map(key);
        let workloads: Map<String, Value> =
            names.map(|name| (name.to_owned(), self.workload_json(name, &config.path))).collect();
        let delay = self.longest_seen().and_then(|seen| seen.ack_delay);
        let trend = delay.as_ref().and_then(Trend::of);
        let findings: Vec<Value> = self
            .findings()
            .into_iter()
            .map(|(workload, finding)| {
                let mut told = json!(finding);
                told["workload"] = json!(workload);
                told["text"] = json!(finding.text());
                told
            })
            .collect();
        json!({
            "name": self.choice.label, "stack": self.choice.stack.name, "version": self.version(),
            "rwin": self.choice.window, "settings": self.settings(), "refused": self.refused(), "workloads": workloads,
            "integrity": self.integrity(),
            "ack_delay_trend": {
                "start_ms": trend.map(|trend| trend.start_ms), "end_ms": trend.map(|trend| trend.end_ms),
                "p": trend.and_then(|trend| trend.p),
            },
            "memory_bytes": self.memory(),
            "conformance": self.conformance(), "findings": findings, "failures": self.failures(),
        })
    }
}

/// When 90 % of the rate was reached, s, from what the server's kernel saw acknowledged, or received.
fn ramp_up(outcome: &TrialOutcome, path: &PathNow, up: bool) -> Option<f64> {
    let of_server = if up { &outcome.receiver } else { &outcome.sender };
    let seen = TrialOutcome { receiver: of_server.clone(), ..outcome.clone() };
    BulkMetrics::of(&seen, path).t90_s
}

/// What came of all.
#[derive(Debug)]
pub(super) struct Comparison {
    config: Config,
    pub(super) rows: Vec<Row>,
    verdicts: Vec<Verdict>,
    /// What pairs of transactions said of the adapter's path, or why nothing; `None` where they weren't asked.
    paired: Option<Result<Overhead, String>>,
}

impl Comparison {
    pub(super) fn new(config: &Config, rows: Vec<Row>) -> Self {
        let ranked: Vec<&str> =
            config.workloads.iter().filter(|workload| !super::compare::is_soak(workload)).map(key).collect();
        let pairs: Vec<(usize, usize)> =
            (0..rows.len()).flat_map(|a| (a + 1..rows.len()).map(move |b| (a, b))).collect();
        let needed = threshold(pairs.len(), ranked.len());
        let verdict = |workload: &str, (a, b): (usize, usize)| {
            let (a, b) = (&rows[a], &rows[b]);
            let both = a.of(workload).iter().zip(b.of(workload));
            let scores = both.filter_map(|(a, b)| Some((score(workload, a)?, score(workload, b)?))).collect::<Vec<_>>();
            Verdict::of(workload, &a.title(), &b.title(), &scores, needed)
        };
        let verdicts =
            ranked.iter().flat_map(|name| pairs.iter().map(|pair| verdict(name, *pair)).collect::<Vec<_>>()).collect();
        Self { config: config.clone(), rows, verdicts, paired: None }
    }

    /// The same with what pairs of transactions said.
    pub(super) fn with(self, paired: Option<Result<Overhead, String>>) -> Self {
        Self { paired, ..self }
    }

    fn paired_json(&self) -> Value {
        match &self.paired {
            Some(Ok(overhead)) => overhead.json(),
            Some(Err(why)) => json!({ "why": why }),
            None => Value::Null,
        }
    }

    pub(super) fn workloads(&self) -> impl Iterator<Item = &'static str> {
        self.config.workloads.iter().map(key)
    }

    /// Whether each workload of fixed size moved the same bytes with every stack.
    fn same_bytes(&self) -> bool {
        self.config.workloads.iter().filter(|workload| workload.size().is_some()).all(|workload| {
            let mut all: Vec<u64> = self.rows.iter().flat_map(|row| row.bytes(key(workload))).collect();
            all.dedup();
            all.len() <= 1
        })
    }

    fn json(&self, id: &str) -> Value {
        let stacks: Vec<Value> = self.rows.iter().map(|row| row.json(&self.config)).collect();
        let verdicts: Vec<Value> = self.verdicts.iter().map(Verdict::json).collect();
        let path = &self.config.path;
        json!({
            "schema_version": 1, "id": id, "lab": self.config.lab,
            "path": {"base_rtt_us": path.base_rtt_us, "capacity_bps": path.capacity_bps},
            "same_bytes": self.same_bytes(), "same_within": SAME,
            "adapter_overhead": self.overhead(), "adapter_overhead_paired": self.paired_json(),
            "windows": self.raised().iter().map(Raised::json).collect::<Vec<_>>(),
            "stacks": stacks, "verdicts": verdicts,
        })
    }

    /// What the adapter's path costs: the kernel behind it against the kernel itself, where both were run alike.
    fn overhead(&self) -> Value {
        let of =
            |name: &str| self.rows.iter().find(|row| row.choice.stack.name == name && row.choice.options.is_empty());
        let (Some(direct), Some(behind)) = (of(wt_stacks::catalogue::DIRECT), of("linux")) else { return Value::Null };
        let ratio = |workload: &str| {
            let [direct, behind] = [direct, behind].map(|row| median(row.scores(workload)));
            Some((workload.to_owned(), json!(behind? / direct?)))
        };
        self.workloads().filter_map(ratio).collect::<Map<_, _>>().into()
    }

    /// What larger windows brought.
    fn raised(&self) -> Vec<Raised> {
        super::windows::all(&self.rows, &self.config.path)
    }

    /// What is kept as the verdict.
    pub(super) fn verdict_json(&self) -> Value {
        json!({
            "difference_shown": self.differs(), "text": self.sentences().join(" "),
            "adapter_overhead_paired": self.paired_json(),
        })
    }

    fn differs(&self) -> bool {
        self.verdicts.iter().any(Verdict::differs)
    }

    /// What is shown, and what is wrong.
    fn sentences(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.verdicts.iter().filter(|one| one.is_shown()).map(|one| one.text() + ".").collect();
        let rest = self.verdicts.iter().filter(|one| !one.is_shown()).count();
        if rest > 0 {
            let other = if all.is_empty() { "" } else { "other " };
            let pairs = if rest == 1 { "pair" } else { "pairs" };
            all.push(format!("Of {rest} {other}{pairs} these rounds show nothing."));
        }
        all.extend(self.raised().iter().map(|one| one.text() + "."));
        for row in &self.rows {
            all.extend(row.refused().iter().map(|why| format!("{}: {why}.", row.title())));
            if let Value::Object(told) = row.conformance() {
                let lacks: Vec<String> =
                    told.iter().filter(|(_, answer)| *answer == "no").map(|(what, _)| what.replace('_', " ")).collect();
                if !lacks.is_empty() {
                    all.push(format!("{} has no {}.", row.title(), lacks.join(", no ")));
                }
            }
            let findings = row.findings();
            all.extend(
                findings.iter().map(|(workload, found)| format!("{} ({workload}): {}.", row.title(), found.text())),
            );
            for failure in row.failures() {
                let text = |name: &str| failure[name].as_str().unwrap_or("").to_owned();
                all.push(format!(
                    "{} ({}): {} of its trials {}: {}.",
                    row.title(),
                    text("workload"),
                    failure["trials"],
                    text("status"),
                    text("why")
                ));
            }
        }
        all.extend(self.paired.as_ref().map(|paired| match paired {
            Ok(overhead) => overhead.text(),
            Err(why) => format!("What the adapter's path costs was not measured: {why}."),
        }));
        if !self.same_bytes() {
            all.push("The stacks didn't move the same bytes: a ranking would compare different things.".to_owned());
        }
        all
    }

    /// Prints it; the exit code says whether a difference is shown.
    pub(super) fn tell(&self, id: &str, as_json: bool) -> Exit {
        if as_json {
            say!("{}", self.json(id));
        } else {
            self.print();
            say!("In the journal: {id}");
        }
        if self.rows.len() > 1 && !self.differs() { Exit::No } else { Exit::Done }
    }

    fn table(&self) -> Vec<Vec<String>> {
        let mut head = vec!["stack".to_owned()];
        head.extend(self.workloads().map(str::to_owned));
        head.extend(["CPU, s/GB", "memory", "resent", "ACK delay", "data"].map(str::to_owned));
        let mut table = vec![head];
        for row in &self.rows {
            let mut cells = vec![row.title()];
            cells.extend(self.workloads().map(|workload| {
                let outcomes: Vec<&TrialOutcome> = row.of(workload).iter().collect();
                let middle = median(row.scores(workload));
                let nearest = middle.and_then(|middle| {
                    let off =
                        |outcome: &TrialOutcome| score(workload, outcome).map_or(f64::INFINITY, |s| (s - middle).abs());
                    outcomes.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map(|outcome| figure(workload, outcome))
                });
                nearest.unwrap_or_else(|| "–".to_owned())
            }));
            let cpu =
                row.cpu_s_per_gb("bulk").or_else(|| self.workloads().find_map(|workload| row.cpu_s_per_gb(workload)));
            let longest = row.longest_seen();
            let counts: Vec<u64> = row.all().filter_map(|(_, outcome)| seen_resent(&seen(outcome)?)).collect();
            let delay = longest.and_then(|seen| seen.ack_delay).map(|delay| delay.median_us / 1e3);
            let dash = || "–".to_owned();
            cells.push(cpu.map_or_else(dash, |cpu| format!("{cpu:.1}")));
            cells.push(row.memory().map_or_else(dash, |bytes| format!("{:.1} MiB", bytes / 1_048_576.0)));
            cells.push(if counts.is_empty() { dash() } else { counts.iter().sum::<u64>().to_string() });
            cells.push(delay.map_or_else(dash, |ms| format!("{ms:.2} ms")));
            let moved = row.all().any(|(_, outcome)| outcome.status == Status::Completed);
            // Of data that never moved nothing is known.
            cells.push(if moved || row.integrity() != "ok" { row.integrity().to_owned() } else { dash() });
            table.push(cells);
        }
        table
    }

    fn print(&self) {
        let rounds = self.rows.iter().flat_map(|row| row.trials.values().map(Vec::len)).max().unwrap_or(0);
        let medians = if rounds > 1 { "; medians" } else { "" };
        say!("{}: {}{medians}\n", self.config.lab, counted(rounds, "round"));
        let table = self.table();
        let columns = table.first().map_or(0, Vec::len);
        let width =
            |at: usize| table.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &table {
            let cells = row.iter().zip(&widths).enumerate();
            let text: Vec<String> = cells
                .map(|(at, (cell, width))| if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
                .collect();
            say!("{}", text.join("  "));
        }
        say!("");
        self.sentences().iter().for_each(|sentence| say!("{sentence}"));
        if let Value::Object(overhead) = self.overhead() {
            for (workload, ratio) in overhead {
                let percent = (ratio.as_f64().unwrap_or(1.0) - 1.0) * 100.0;
                say!("{workload}: behind the adapter's path the kernel makes {percent:+.1} % of itself.");
            }
        }
    }

    /// All of it as a page with its pictures.
    pub(super) fn page(&self, id: &str) -> String {
        let page = Page {
            title: "TCP/IP stacks side by side".to_owned(),
            about: format!("{} · RTT {:.1} ms", self.config.lab, self.config.path.base_rtt_us as f64 / 1e3),
            text: self.sentences(),
            table: self.table(),
            more: vec![("What each can do".to_owned(), super::glance::table(&self.rows))],
            charts: charts::all(self),
            footer: format!("Windtunnel {} · {id}", env!("CARGO_PKG_VERSION")),
        };
        page.to_html()
    }
}

fn seen_resent(seen: &Seen) -> Option<u64> {
    Some(seen.retransmissions? + seen.server_retransmissions?)
}
