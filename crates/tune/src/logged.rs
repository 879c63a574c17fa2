//! What the log of `test` says: tests by comment, server or setting, with what else was known of the moment.

use super::history::is_of_a_round;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use utoipa::ToSchema;
use wt_experiment::classic::{CovariateEffect, CovariedOutcome, GroupMean, groups_against_first};
use wt_journal::{ExperimentConfig, Filter, LoggedTestsConfig, StoredExperiment, TrialRow};
use wt_problem::Problem;
use wt_trial::Status;

/// The longest name of a covariate.
const LONGEST_NAME: usize = 40;

/// A figure of the moment: `connect-rate=31200`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Covariate {
    /// What it is called.
    pub name: String,
    /// Its value, in a unit of the user's.
    pub value: f64,
}

impl FromStr for Covariate {
    type Err = String;
    /// Reads `NAME=NUMBER`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\": write NAME=NUMBER, such as connect-rate=31200");
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let is_name = |name: &str| {
            (1..=LONGEST_NAME).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let value: f64 = value.trim().replace('_', "").parse().map_err(|_| wrong())?;
        if !is_name(name.trim()) || !value.is_finite() {
            return Err(wrong());
        }
        Ok(Self { name: name.trim().to_owned(), value })
    }
}

impl Covariate {
    /// Them by name.
    ///
    /// # Errors
    /// A usage [`Problem`] where one is named twice.
    pub(super) fn by_name(all: &[Self]) -> Result<Map<String, Value>, Problem> {
        let mut named = Map::new();
        for Self { name, value } in all {
            if named.insert(name.clone(), (*value).into()).is_some() {
                return Err(Problem::usage(format!("the covariate {name} is given twice")));
            }
        }
        Ok(named)
    }
}

/// By what tests are put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TestGrouping {
    /// By what was written about them.
    #[default]
    Comment,
    /// By the server.
    Server,
    /// By the value of a setting that was in force, as the kernel names it.
    Setting(String),
}

impl FromStr for TestGrouping {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "comment" => Ok(Self::Comment),
            "server" => Ok(Self::Server),
            setting if setting.starts_with("net.") => Ok(Self::Setting(setting.to_owned())),
            other => Err(format!("\"{other}\": write comment, server or a setting such as net.ipv4.ip_default_ttl")),
        }
    }
}

impl std::fmt::Display for TestGrouping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Comment => "comment",
            Self::Server => "server",
            Self::Setting(name) => name,
        })
    }
}

/// Which tests are put together.
#[derive(Debug, Clone, Default)]
pub struct SummaryRequest {
    /// Only those of this target: a server or a profile's file, as it was typed; nothing means all.
    pub target: Option<String>,
    /// By what.
    pub by: TestGrouping,
    /// The covariate that is taken out; nothing means the one that all have, if that is one.
    pub covariate: Option<String>,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// Logged tests in groups.
#[derive(Debug, Clone, Serialize)]
pub struct TestSummary {
    /// 1.
    pub schema_version: u32,
    /// By what: `comment`, `server` or a setting.
    pub by: String,
    /// The covariate's name, where one is used or could have been.
    pub covariate: Option<String>,
    /// How many tests lack it.
    pub without_covariate: usize,
    /// What it does within the groups, bit/s for each unit; `null` where some lack it, or it is the same within each group.
    pub effect: Option<CovariateEffect>,
    /// Whether all groups are of the same servers.
    pub same_servers: bool,
    /// The groups, in the order in which they were begun; figures in bit/s.
    pub groups: Vec<TestGroup>,
}

/// A group of logged tests.
#[derive(Debug, Clone, Serialize)]
pub struct TestGroup {
    /// The comment, the server or the value; empty where there is none.
    pub label: String,
    /// Tests that count.
    pub completed: usize,
    /// Tests that were begun.
    pub tests: usize,
    /// Their figures, bit/s.
    #[serde(flatten)]
    pub mean: GroupMean,
}

/// One test of the log.
struct LogLine {
    label: String,
    server: String,
    done: bool,
    outcome: CovariedOutcome,
}

/// Puts the journal's tests together.
///
/// # Errors
/// A [`Problem`]: the journal can't be read, or has no such test.
pub fn summary(request: &SummaryRequest) -> Result<TestSummary, Problem> {
    let journal = wt_setup::journal::open_to_read(request.journal.as_deref())?;
    let problem = |error| wt_setup::journal::problem(&error);
    let mut found = Vec::new();
    for one in journal.list(&Filter::default()).map_err(problem)?.iter().rev().filter(|one| one.kind == "test") {
        let stored = journal.load(&one.id).map_err(problem)?;
        if request.target.as_ref().is_some_and(|target| !is_of(&stored, target)) {
            continue;
        }
        let rows = journal.rows(&stored.id).map_err(problem)?;
        found.push((stored, rows));
    }
    if found.is_empty() {
        let of = request.target.as_ref().map_or_else(String::new, |target| format!(" of {target}"));
        return Err(Problem::usage(format!("the journal has no test{of}"))
            .hint("windtunnel test http://example.org/file.iso logs one"));
    }
    let covariate = match &request.covariate {
        Some(name) => Some(name.clone()),
        None => only_covariate(&found),
    };
    Ok(summed(&found, &request.by, covariate))
}

/// Whether a test's target is meant: the server, or the profile that was typed.
fn is_of(stored: &StoredExperiment, target: &str) -> bool {
    let typed = tests_of(stored).and_then(|tests| tests.command.as_deref()).unwrap_or_default();
    stored.target == target || typed.split_whitespace().any(|word| word == target)
}

fn tests_of(stored: &StoredExperiment) -> Option<&LoggedTestsConfig> {
    if let ExperimentConfig::Tests(tests) = &stored.config { Some(tests) } else { None }
}

/// The one covariate that there is.
fn only_covariate(found: &[(StoredExperiment, Vec<TrialRow>)]) -> Option<String> {
    let all = found.iter().filter_map(|(stored, _)| tests_of(stored)?.covariates.as_ref());
    let mut names: Vec<&String> = all.flat_map(Map::keys).collect();
    names.sort();
    names.dedup();
    if let [only] = names[..] { Some(only.clone()) } else { None }
}

fn summed(found: &[(StoredExperiment, Vec<TrialRow>)], by: &TestGrouping, covariate: Option<String>) -> TestSummary {
    let lines: Vec<LogLine> =
        found.iter().flat_map(|(stored, rows)| lines_of(stored, rows, by, covariate.as_deref())).collect();
    let mut labels: Vec<&str> = Vec::new();
    for line in &lines {
        if !labels.contains(&line.label.as_str()) {
            labels.push(&line.label);
        }
    }
    let of = |label: &str| lines.iter().filter(move |line| line.label == label).collect::<Vec<_>>();
    let outcomes = |label: &&str| of(label).iter().filter(|line| line.done).map(|line| line.outcome).collect();
    let compared = groups_against_first(&labels.iter().map(outcomes).collect::<Vec<Vec<_>>>());
    let servers = |label: &&str| of(label).iter().map(|line| line.server.clone()).collect::<BTreeSet<String>>();
    let mut groups_servers = labels.iter().map(servers);
    let first = groups_servers.next();
    let same_servers = groups_servers.all(|own| Some(&own) == first.as_ref());
    let without_covariate = match covariate {
        Some(_) => lines.iter().filter(|line| line.done && line.outcome.x.is_none()).count(),
        None => 0,
    };
    let group = |(label, mean): (&&str, GroupMean)| {
        let own = of(label);
        let completed = own.iter().filter(|line| line.done).count();
        TestGroup { label: (*label).to_owned(), completed, tests: own.len(), mean }
    };
    let groups = labels.iter().zip(compared.groups).map(group).collect();
    TestSummary {
        schema_version: 1,
        by: by.to_string(),
        covariate,
        without_covariate,
        effect: compared.covariate,
        same_servers,
        groups,
    }
}

fn lines_of(stored: &StoredExperiment, rows: &[TrialRow], by: &TestGrouping, covariate: Option<&str>) -> Vec<LogLine> {
    let Some(tests) = tests_of(stored) else { return Vec::new() };
    let x = covariate.and_then(|name| tests.covariates.as_ref()?.get(name)?.as_f64());
    let hosts = stored.verdict.as_ref().map(|verdict| &verdict["hosts"]);
    let server = |row: &TrialRow| {
        let place = usize::try_from(row.order).unwrap_or(usize::MAX).saturating_sub(1);
        hosts.and_then(|hosts| hosts[place]["server"].as_str()).unwrap_or(&stored.target).to_owned()
    };
    let label = |row: &TrialRow| match by {
        TestGrouping::Comment => stored.comment.clone(),
        TestGrouping::Server => server(row),
        TestGrouping::Setting(name) => {
            let value = tests.test.as_ref().and_then(|test| test.get(name)).and_then(Value::as_str);
            value.map_or_else(String::new, str::to_owned)
        }
    };
    let rows = rows.iter().filter(|row| is_of_a_round(row.phase));
    let line = |row: &TrialRow| LogLine {
        label: label(row),
        server: server(row),
        done: row.status == Status::Completed && row.bytes > 0,
        outcome: CovariedOutcome { y: row.goodput_bps(), x },
    };
    rows.map(line).collect()
}

impl TestSummary {
    /// What a reader has to know of the groups' figures.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.same_servers && self.by != TestGrouping::Server.to_string() {
            notes.push(
                "The groups are of different servers, so their means can't be compared: name a server or a profile before --summary, or \
                 use --by server."
                    .to_owned(),
            );
        }
        match (&self.covariate, &self.effect) {
            (Some(name), None) if self.without_covariate > 0 => {
                let lack = wt_units::counted(self.without_covariate, "test");
                notes.push(format!("{name} isn't taken out: it isn't known of {lack}."));
            }
            (Some(name), None) => {
                notes.push(format!(
                    "{name} isn't taken out: it hardly varies within the groups, or there are too few tests."
                ));
            }
            _ => {}
        }
        if self.groups.len() > 1 {
            notes.push(
                "Intervals are of 95 %. Nothing was assigned at random: what else changed meanwhile counts, too; \
                 windtunnel tune compares in random order."
                    .to_owned(),
            );
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wt_journal::Journal as _;
    use wt_journal::{Arm, NewExperiment, SqliteJournal, State};
    use wt_trial::{Amount, Direction, Phase, TrialOutcome, TrialSpec, Workload};
    use wt_units::{Bytes, Settings};

    #[test]
    fn a_covariate_is_a_name_and_a_number() {
        let read: Covariate = "connect-rate=31_200".parse().unwrap();
        assert_eq!(read, Covariate { name: "connect-rate".to_owned(), value: 31_200.0 });
        for text in ["", "a", "=1", "a=", "a=b", "a b=1", "a=inf", "a=NaN"] {
            assert!(text.parse::<Covariate>().unwrap_err().contains("connect-rate=31200"), "{text}");
        }
        let twice = ["a=1", "a=2"].map(|text| text.parse().unwrap());
        assert!(Covariate::by_name(&twice).is_err());
    }

    /// Logs transfers of 100 kB that took so many seconds from two servers in turn.
    fn log(journal: &mut SqliteJournal, number: u16, comment: &str, x: Option<f64>, seconds: &[f64]) {
        let covariates = x.map(|x| [("connect-rate".to_owned(), json!(x))].into_iter().collect());
        let test = [("net.ipv4.ip_default_ttl".to_owned(), json!("64"))].into_iter().collect();
        let config = LoggedTestsConfig {
            test: Some(test),
            covariates,
            command: Some("windtunnel test two.toml".to_owned()),
            ..LoggedTestsConfig::default()
        };
        let id = wt_journal::experiment_id(i64::from(number), "t", number);
        let new = NewExperiment {
            started_unix_us: i64::from(number),
            comment: comment.to_owned(),
            arms: vec![Arm { label: "current".to_owned(), settings: Settings::new() }],
            config: ExperimentConfig::Tests(Box::new(config)),
            ..NewExperiment::new(id.clone(), "one", "live")
        };
        journal.create_experiment(&new).unwrap();
        for (place, seconds) in seconds.iter().enumerate() {
            let spec = TrialSpec {
                experiment: id.clone(),
                phase: Phase::Round,
                round: place as u32 / 2 + 1,
                order: place as u32 % 2 + 1,
                arm: 0,
                settings: Settings::new(),
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(100_000)) },
                deadline: std::time::Duration::from_secs(60),
                seed: 0,
            };
            let status = if *seconds > 0.0 { Status::Completed } else { Status::Failed };
            let mut outcome = TrialOutcome::empty(status, std::time::Duration::from_secs_f64(*seconds), "");
            outcome.bytes = if *seconds > 0.0 { 100_000 } else { 0 };
            let trial = journal.begin_trial(&spec, 1).unwrap();
            journal.finish_trial(trial, &outcome).unwrap();
        }
        let hosts = json!({"hosts": [{"server": "one"}, {"server": "two"}]});
        journal.finish_experiment(&id, State::Finished, 2, Some(&hosts)).unwrap();
    }

    #[test]
    fn tests_are_put_together_by_comment_server_or_setting_and_the_line_is_taken_out() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal.sqlite3");
        let mut journal = wt_setup::journal::open(Some(&file)).unwrap();
        // 8e5 bit over the seconds; the rate goes with the line alone: 20 bit/s for each of its units.
        for (number, (comment, x)) in
            [("mtu 576", 30_000.0), ("mtu 1500", 33_000.0), ("mtu 576", 31_000.0), ("mtu 1500", 34_000.0)]
                .into_iter()
                .enumerate()
        {
            let seconds = 8e5 / (20.0 * x);
            let failed = if number == 0 { 0.0 } else { seconds };
            log(&mut journal, number as u16, comment, Some(x), &[seconds, failed]);
        }
        drop(journal);
        let request = SummaryRequest { journal: Some(file), ..SummaryRequest::default() };
        let found = summary(&request).unwrap();
        assert_eq!(found.covariate.as_deref(), Some("connect-rate"));
        assert!((found.effect.unwrap().slope - 20.0).abs() < 1e-3, "{found:?}");
        let [old, new] = &found.groups[..] else { panic!("{found:?}") };
        assert_eq!((old.label.as_str(), old.completed, old.tests), ("mtu 576", 3, 4));
        assert!(new.mean.own.unwrap().mean > old.mean.own.unwrap().mean + 40_000.0, "{found:?}");
        assert!(new.mean.above_first.unwrap().abs() < 1.0, "the faster lines are all of it: {found:?}");
        let by = |by: TestGrouping| summary(&SummaryRequest { by, ..request.clone() }).unwrap();
        let labels = |found: &TestSummary| found.groups.iter().map(|group| group.label.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&by(TestGrouping::Server)), ["one", "two"]);
        assert_eq!(labels(&by("net.ipv4.ip_default_ttl".parse().unwrap())), ["64"]);
        let target = |target: &str| summary(&SummaryRequest { target: Some(target.to_owned()), ..request.clone() });
        assert_eq!(target("two.toml").unwrap().groups.len(), 2);
        assert!(target("three.toml").is_err());
        assert!(found.same_servers && found.notes().iter().all(|note| !note.contains("different servers")));
    }

    #[test]
    fn a_covariate_that_some_lack_is_left_out_and_that_is_said() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal.sqlite3");
        let mut journal = wt_setup::journal::open(Some(&file)).unwrap();
        log(&mut journal, 1, "a", Some(1.0), &[1.0, 2.0]);
        log(&mut journal, 2, "b", None, &[1.0, 2.0]);
        drop(journal);
        let found = summary(&SummaryRequest { journal: Some(file), ..SummaryRequest::default() }).unwrap();
        assert_eq!((found.without_covariate, found.effect, found.groups[1].mean.above_first), (2, None, Some(0.0)));
        assert!(found.notes()[0].contains("isn't known of 2 tests"), "{:?}", found.notes());
    }

    #[test]
    fn groups_of_different_servers_are_not_compared_without_a_word() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("journal.sqlite3");
        let mut journal = wt_setup::journal::open(Some(&file)).unwrap();
        log(&mut journal, 1, "a", None, &[1.0, 2.0]);
        log(&mut journal, 2, "b", None, &[1.0]);
        drop(journal);
        let found = summary(&SummaryRequest { journal: Some(file), ..SummaryRequest::default() }).unwrap();
        assert!(!found.same_servers && found.notes()[0].contains("different servers"), "{:?}", found.notes());
    }
}
