//! What monitoring wants to know, as Prometheus reads it: the newest experiment on each target, and the changes of this host.
//!
//! Everything is read as it stands: no trial is begun, no journal is brought up to date, no change is ended. Labels are few and
//! fixed: target, tunnel and workload, what a verdict says to do, and whether a holdback's gain holds; never settings, names of experiments or addresses of clients.

use crate::settings::{CheckRequest, HostAccess};
use serde::Deserialize as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use wt_fleet::PgJournal;
use wt_journal::{ExperimentSummary, Filter, Journal, SqliteJournal, State};
use wt_traffic::HoldbackState;

/// The newest experiments that are looked at.
const EXPERIMENTS: usize = 1_000;
/// Targets with a tunnel and a workload that are told: the newest of all, and of each target.
const SERIES: usize = 200;
const OF_A_TARGET: usize = 4;
/// What a verdict may say to do.
const ACTIONS: [&str; 4] = ["set", "keep", "undecided", "failed"];

/// Experiments on a server's connections among which the newest holdback is looked for.
const HOLDBACKS: usize = 20;

/// What is told.
#[derive(Debug, Clone, Default, PartialEq)]
struct Readings {
    /// Nothing where the journal can't be read, and where one was named that isn't there; empty where the usual one isn't there yet.
    journal: Option<JournalReadings>,
    /// Nothing where this host's changes can't be read.
    host: Option<HostReadings>,
    /// Whether that is so since they are root's, which isn't a fault.
    is_hidden: bool,
}

/// What the journal tells.
#[derive(Debug, Clone, Default, PartialEq)]
struct JournalReadings {
    experiments: Vec<LastExperiment>,
    /// The newest holdback: its target, and whether the gain is still there.
    holdback: Option<(String, HoldbackState)>,
}

/// The newest experiment of its target, tunnel and workload.
#[derive(Debug, Clone, PartialEq)]
struct LastExperiment {
    summary: ExperimentSummary,
    last_trial_unix_us: Option<i64>,
}

/// What was changed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostReadings {
    pending_s: Option<u64>,
    drift: usize,
    lost_at_boot: usize,
    /// Verdicts behind changes in force that were measured under another kernel, or over another device.
    outdated: usize,
    /// Whether all that `settings check --offline` looks at holds.
    holds: bool,
}

/// The text that Prometheus reads, of this journal (nothing means the usual one) and this host. What can't be read is said by
/// `windtunnel_journal_up` and `windtunnel_settings_up`, so that an alert can tell it from silence.
#[must_use]
pub fn metrics(journal: Option<&Path>, host: Option<&mut HostAccess>) -> String {
    let mut readings = Readings { journal: journal_readings(journal), ..Readings::default() };
    // Who hasn't answered isn't asked again.
    let is_away = readings.journal.is_none() && crate::journal::is_common(journal);
    let journal = if is_away { Some(Path::new("")) } else { journal };
    match host.map(|host| host_readings(host, journal)) {
        Some(HostLook::Read(host)) => readings.host = Some(host),
        Some(HostLook::Hidden) => readings.is_hidden = true,
        Some(HostLook::Unreadable) | None => {}
    }
    text(&readings)
}

fn journal_readings(journal: Option<&Path>) -> Option<JournalReadings> {
    if crate::journal::is_common(journal) {
        let address = crate::journal::store_address(journal?.to_str()?).ok()?;
        let journal = PgJournal::open_to_read(&address.with_patience(crate::journal::SCRAPE)).ok()?;
        return readings_of(&journal, &|id| journal.last_trial_unix_us(id).ok().flatten());
    }
    let path = journal.map(Path::to_owned).or_else(|| wt_journal::default_path(|name| std::env::var_os(name)))?;
    // Nothing was measured yet where the usual one isn't there; one that was named is on a disk that is away, or its name is wrong.
    if journal.is_none() && !path.exists() {
        return Some(JournalReadings::default());
    }
    let journal = SqliteJournal::open_to_read(&path).ok()?;
    readings_of(&journal, &|id| journal.last_trial_unix_us(id).ok().flatten())
}

/// The newest experiments of a journal, and when the last trial of one began, µs since the Unix epoch.
fn readings_of(journal: &dyn Journal, last_trial: &dyn Fn(&str) -> Option<i64>) -> Option<JournalReadings> {
    let listed = journal.list(&Filter { limit: Some(EXPERIMENTS), ..Filter::default() }).ok()?;
    let holdback = holdback(journal, &listed);
    let mut seen: BTreeMap<String, BTreeSet<(String, Option<String>)>> = BTreeMap::new();
    // The newest come first.
    let newest = listed.into_iter().filter(|one| {
        let is_decided = matches!(one.kind.as_str(), "tune" | "screen" | "traffic") && one.state != State::Running;
        let of_target = seen.entry(one.target.clone()).or_default();
        is_decided && of_target.len() < OF_A_TARGET && of_target.insert((one.tunnel.clone(), one.workload.clone()))
    });
    let told = newest.take(SERIES).map(|summary| {
        let last_trial_unix_us = last_trial(&summary.id);
        LastExperiment { summary, last_trial_unix_us }
    });
    Some(JournalReadings { experiments: told.collect(), holdback })
}

/// What the newest holdback shows: of one under way as it wrote it down last.
fn holdback(journal: &dyn Journal, listed: &[ExperimentSummary]) -> Option<(String, HoldbackState)> {
    let of = |one: &ExperimentSummary| {
        let now = || Some(journal.sightings("traffic", Some(&one.id.to_lowercase()), 1).ok()?.pop()?.found);
        let found = journal.load(&one.id).ok()?.verdict.or_else(now)?;
        let state = HoldbackState::deserialize(found.get("report")?.get("holdback")?.get("state")?).ok()?;
        Some((one.target.clone(), state))
    };
    listed.iter().filter(|one| one.kind == "traffic").take(HOLDBACKS).find_map(of)
}

/// What came of looking at this host's changes.
enum HostLook {
    Read(HostReadings),
    /// They may be root's, which only root reads.
    Hidden,
    Unreadable,
}

/// Not by way of what commands do first: they end changes that nobody watches any more. That nothing was changed is only told by who
/// can know it.
fn host_readings(host: &mut HostAccess, journal: Option<&Path>) -> HostLook {
    let Ok(pending) = wt_host::pending(&mut host.system, &host.store) else { return HostLook::Unreadable };
    let request = CheckRequest { offline: true, journal: journal.map(Path::to_owned) };
    let Ok(report) = host.look(&request) else { return HostLook::Unreadable };
    if pending.is_none() && report.checked.is_empty() && host.hidden().is_some() {
        return HostLook::Hidden;
    }
    HostLook::Read(HostReadings {
        pending_s: pending.map(|pending| pending.seconds_left),
        drift: report.drift.len(),
        lost_at_boot: report.at_boot.len(),
        outdated: report.verdicts.iter().filter(|one| one.applies == Some(false)).count(),
        holds: report.holds,
    })
}

/// Writes one metric that goes up and down: its name without our prefix, what it is, and its series with their labels; nothing where
/// it has none.
pub fn metric(text: &mut String, name: &str, help: &str, series: impl IntoIterator<Item = (String, f64)>) {
    metric_of_type("gauge", text, name, help, series);
}

/// Writes one metric that only grows until its program begins anew; its name ends with `_total`.
pub fn counter(text: &mut String, name: &str, help: &str, series: impl IntoIterator<Item = (String, f64)>) {
    metric_of_type("counter", text, name, help, series);
}

/// Writes one metric of which nothing is said but its values: an older name of another one.
pub fn untyped_metric(text: &mut String, name: &str, help: &str, series: impl IntoIterator<Item = (String, f64)>) {
    metric_of_type("untyped", text, name, help, series);
}

fn metric_of_type(
    kind: &str,
    text: &mut String,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (String, f64)>,
) {
    let mut series = series.into_iter().peekable();
    if series.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "# HELP windtunnel_{name} {help}\n# TYPE windtunnel_{name} {kind}");
    for (labels, value) in series {
        let _ = writeln!(text, "windtunnel_{name}{labels} {value}");
    }
}

fn text(readings: &Readings) -> String {
    let mut text = String::new();
    let none = String::new;
    let up = |up: bool| [(String::new(), f64::from(u8::from(up)))];
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    metric(&mut text, "build_info", "The program that wrote this.", [(version, 1.0)]);
    metric(&mut text, "journal_up", "Whether the journal can be read.", up(readings.journal.is_some()));
    let journal = readings.journal.as_ref();
    let all = journal.map_or(&[][..], |journal| &journal.experiments);
    let of = |value: fn(&LastExperiment) -> Option<f64>| {
        all.iter().filter_map(move |one| value(one).map(|value| (labels(one, None), value)))
    };
    metric(
        &mut text,
        "last_trial_timestamp_seconds",
        "When the newest trial began.",
        of(|one| one.last_trial_unix_us.map(|us| us as f64 / 1e6)),
    );
    metric(
        &mut text,
        "experiment_trials",
        "Trials of the newest experiment.",
        // One on a server's connections has none.
        of(|one| (one.summary.kind != "traffic").then_some(one.summary.trials as f64)),
    );
    metric(
        &mut text,
        "experiment_change_ratio",
        "What the newest verdict's setting changes, as a share of what is compared; less than 0 where it gets smaller.",
        of(|one| {
            // One on a server's connections that says to keep has a figure of what was slower.
            let is_kept = one.summary.kind == "traffic" && action_of(&one.summary) != "set";
            one.summary.change_bp.filter(|_| !is_kept).map(|hundredths| hundredths as f64 / 1e4)
        }),
    );
    let verdicts = all.iter().flat_map(|one| {
        let action = action_of(&one.summary);
        ACTIONS.into_iter().map(move |name| (labels(one, Some(name)), f64::from(u8::from(action == name))))
    });
    metric(&mut text, "verdict", "Whether this is what the newest verdict says to do.", verdicts);
    let holdback = journal.and_then(|journal| journal.holdback.as_ref()).into_iter().flat_map(|(target, state)| {
        let states = [
            ("holds", HoldbackState::Holds),
            ("gone", HoldbackState::Gone),
            ("smaller", HoldbackState::Smaller),
            ("open", HoldbackState::Open),
        ];
        states.map(|(name, one)| {
            (format!("{{target=\"{}\",state=\"{name}\"}}", escaped(target)), f64::from(u8::from(one == *state)))
        })
    });
    metric(&mut text, "holdback", "Whether this is what the newest holdback shows of its gain.", holdback);
    metric(&mut text, "settings_up", "Whether this host's changes can be read.", up(readings.host.is_some()));
    metric(&mut text, "settings_hidden", "Whether they can't since only root may.", up(readings.is_hidden));
    if let Some(host) = readings.host {
        let pending = f64::from(u8::from(host.pending_s.is_some()));
        metric(&mut text, "settings_pending", "Whether a change waits for its confirmation.", [(none(), pending)]);
        let left = host.pending_s.unwrap_or(0) as f64;
        metric(&mut text, "settings_pending_seconds", "Time until it is reverted.", [(none(), left)]);
        let drift = host.drift as f64;
        metric(&mut text, "settings_drift", "Settings that aren't as a change made them.", [(none(), drift)]);
        let lost = host.lost_at_boot as f64;
        let outdated = host.outdated as f64;
        let help = "Verdicts behind changes that were measured under another kernel or over another device.";
        metric(&mut text, "settings_verdicts_outdated", help, [(none(), outdated)]);
        let holds = f64::from(u8::from(host.holds));
        let help = "Whether changes, their verdicts and their latest proofs hold: settings check --offline.";
        metric(&mut text, "settings_hold", help, [(none(), holds)]);
        metric(&mut text, "settings_lost_at_boot", "Settings that the next boot makes others.", [(none(), lost)]);
    }
    text
}

/// What its verdict says to do, one of [`ACTIONS`]. Comparisons of page loads and older programs kept only what it is called, and an
/// experiment that was aborted has none: there is no answer yet, as its report says.
fn action_of(summary: &ExperimentSummary) -> &'static str {
    let said = ACTIONS.into_iter().find(|name| summary.action.as_deref() == Some(name));
    said.unwrap_or(if summary.verdict.as_deref() == Some("faster") { "set" } else { "undecided" })
}

fn labels(one: &LastExperiment, verdict: Option<&str>) -> String {
    let summary = &one.summary;
    let usual = if summary.kind == "traffic" { "connections" } else { "bulk" };
    let workload = summary.workload.as_deref().unwrap_or(usual);
    let mut all = vec![("target", summary.target.as_str()), ("tunnel", &summary.tunnel), ("workload", workload)];
    all.extend(verdict.map(|verdict| ("verdict", verdict)));
    let written: Vec<String> = all.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", written.join(","))
}

/// As the text format has it: backslash, quote and end of line; nothing else that isn't to be shown.
fn escaped(value: &str) -> String {
    wt_units::harmless(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(target: &str, action: Option<&str>) -> LastExperiment {
        let summary = ExperimentSummary {
            id: "x".to_owned(),
            target: target.to_owned(),
            tunnel: "live".to_owned(),
            state: State::Finished,
            started_unix_us: 0,
            ended_unix_us: None,
            comment: String::new(),
            trials: 24,
            kind: "tune".to_owned(),
            workload: Some("page".to_owned()),
            verdict: None,
            action: action.map(str::to_owned),
            answer: None,
            setting: None,
            change_bp: Some(-1_450),
        };
        LastExperiment { summary, last_trial_unix_us: Some(1_700_000_000_500_000) }
    }

    #[test]
    fn an_experiment_on_a_servers_connections_has_a_verdict_and_no_trials() {
        let mut one = last("port-443", Some("set"));
        one.summary = ExperimentSummary {
            kind: "traffic".to_owned(),
            tunnel: "traffic".to_owned(),
            workload: None,
            ..one.summary
        };
        one.last_trial_unix_us = None;
        let of = |one: &LastExperiment| {
            let journal = Some(JournalReadings { experiments: vec![one.clone()], holdback: None });
            text(&Readings { journal, ..Readings::default() })
        };
        let set = of(&one);
        let labels = "target=\"port-443\",tunnel=\"traffic\",workload=\"connections\"";
        assert!(set.contains(&format!("windtunnel_verdict{{{labels},verdict=\"set\"}} 1\n")), "{set}");
        assert!(set.contains(&format!("windtunnel_experiment_change_ratio{{{labels}}} -0.145\n")), "{set}");
        assert!(!set.contains("experiment_trials") && !set.contains("last_trial"), "{set}");
        one.summary.action = Some("keep".to_owned());
        assert!(!of(&one).contains("change_ratio"));
    }

    #[test]
    fn each_series_has_its_labels_and_a_verdict_is_one_of_four() {
        let host = Some(HostReadings { pending_s: Some(90), drift: 2, lost_at_boot: 0, outdated: 1, holds: false });
        let text = text(&Readings {
            journal: Some(JournalReadings {
                experiments: vec![last("a\"b\\c\n\u{1b}[2J", Some("set"))],
                holdback: Some(("port-443".to_owned(), HoldbackState::Gone)),
            }),
            host,
            is_hidden: false,
        });
        let labels = "{target=\"a\\\"b\\\\c";
        for line in text.lines().filter(|line| line.starts_with("windtunnel_verdict")) {
            assert!(line.contains(labels), "{line}");
            assert_eq!(line.ends_with(" 1"), line.contains("verdict=\"set\""), "{line}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(text.contains("windtunnel_holdback{target=\"port-443\",state=\"gone\"} 1\n"), "{text}");
        for state in ["holds", "smaller", "open"] {
            assert!(
                text.contains(&format!("windtunnel_holdback{{target=\"port-443\",state=\"{state}\"}} 0\n")),
                "{text}"
            );
        }
        assert!(text.contains("tunnel=\"live\",workload=\"page\"} 1700000000.5\n"), "{text}");
        assert!(text.contains("} -0.145\n") && text.contains("windtunnel_settings_drift 2\n"), "{text}");
        assert!(text.contains("_verdicts_outdated 1\n") && text.contains("windtunnel_settings_hold 0\n"), "{text}");
        let series = text.lines().filter(|line| line.contains("target=")).count();
        assert!(series <= 30, "{series}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("windtunnel_")), "{text}");
    }

    #[test]
    fn exactly_one_of_four_is_what_an_experiment_says_to_do() {
        for (action, verdict, wanted) in [
            (Some("keep"), Some("no-difference"), "keep"),
            (Some("failed"), Some("stopped"), "failed"),
            (None, Some("faster"), "set"),
            (None, Some("no-difference"), "undecided"),
            (None, None, "undecided"),
            (Some("dance"), None, "undecided"),
        ] {
            let mut one = last("a", action);
            one.summary.verdict = verdict.map(str::to_owned);
            let journal = Some(JournalReadings { experiments: vec![one], holdback: None });
            let text = text(&Readings { journal, ..Readings::default() });
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("windtunnel_verdict{")).collect();
            let ones: Vec<&&str> = lines.iter().filter(|line| line.ends_with(" 1")).collect();
            assert_eq!((lines.len(), ones.len()), (4, 1), "{action:?} {verdict:?}: {text}");
            assert!(ones[0].contains(&format!("verdict=\"{wanted}\"")), "{action:?} {verdict:?}: {text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said_and_nothing_is_made_up() {
        let text = text(&Readings::default());
        assert!(text.contains("windtunnel_journal_up 0\n") && text.contains("windtunnel_settings_up 0\n"), "{text}");
        assert!(!text.contains("drift") && !text.contains("target="), "{text}");
        assert!(text.contains("windtunnel_settings_hidden 0\n"), "{text}");
    }
}
