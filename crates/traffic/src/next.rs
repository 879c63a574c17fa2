//! What to do after a look at a report.

use crate::report::{TrafficClaim, TrafficNoData, TrafficReport, TrafficStep, TrafficVerdictKind};
use crate::{ArmSettings, HoldbackState, TrafficAllocation, TrafficConfig, TrafficRamp, TrafficUnit};
use wt_units::{format_duration, shell_word};

/// The steps, the first first. Each command is whole, for the server on which the experiment ran.
pub(crate) fn steps(config: &TrafficConfig, report: &TrafficReport) -> Vec<TrafficStep> {
    let id = shell_word(&report.id);
    let step = |text: &str, command: Option<String>| TrafficStep { text: text.to_owned(), command };
    let has_ended = report.has_ended();
    if let Some(holdback) = &report.holdback {
        return match holdback.state {
            HoldbackState::Gone if holdback.is_reversed() => vec![step(
                "The old settings are faster by now: put them back, or begin anew with other levels.",
                Some("sudo windtunnel settings undo".to_owned()),
            )],
            HoldbackState::Gone => vec![step("The gain is gone: begin anew with other levels.", None)],
            // Whoever ended it knows how to begin it again: the experiment that it holds against isn't known here.
            HoldbackState::Smaller if has_ended => {
                vec![step("Nothing: the settings are still faster, if by less than was claimed.", None)]
            }
            HoldbackState::Holds if has_ended => {
                vec![step("Nothing: the gain held. Begin it again where it is to go on being measured.", None)]
            }
            HoldbackState::Open if has_ended => vec![step("Begin it again, for longer: it ended undecided.", None)],
            HoldbackState::Smaller => {
                vec![step("Let it run on: the settings are still faster, if by less than was claimed.", None)]
            }
            HoldbackState::Holds => vec![step("Let it run on: the gain goes on being measured.", None)],
            HoldbackState::Open => vec![step("Let it run on: nothing is lost by looking.", None)],
        };
    }
    if report.self_checks.iter().any(|check| !check.ok) {
        return vec![step("Look at the self-checks that failed before you act.", None)];
    }
    if let Some(advice) = report.instead_of_running() {
        return vec![step(&capitalised(&format!("{advice}.")), None)];
    }
    match report.verdict.kind {
        TrafficVerdictKind::Faster => {
            let beside = report.verdict.claim == TrafficClaim::Beside;
            let whole_epochs = config.unit != TrafficUnit::Slot && config.allocation == TrafficAllocation::Mixed;
            let mut steps = Vec::new();
            if beside && whole_epochs {
                steps.push(match has_ended {
                    true => step(
                        "Begin it again, for longer: beside the others it is faster, but whether everybody gains, whole epochs haven't shown.",
                        again(config),
                    ),
                    false => step(
                        "Let it run on: beside the others it is faster, but whether everybody gains, whole epochs haven't shown.",
                        None,
                    ),
                });
                if report.leans_to_slower_for_everybody() {
                    return steps;
                }
            }
            steps.push(step(
                "Make it the server's setting; it reverts unless you confirm it.",
                Some(format!("sudo windtunnel settings apply --verdict {id}")),
            ));
            if beside
                && !whole_epochs
                && let Some(command) = for_everybody(config, report.verdict.arm.as_deref())
            {
                steps.push(step(
                    "See what it does if everybody has it: only that tells a gain from a share taken.",
                    Some(command),
                ));
            }
            steps.push(step(
                "Then keep the old setting for 5 % of the clients, so that the gain goes on being measured.",
                Some(format!("sudo windtunnel traffic start --holdback {id} --for 7d")),
            ));
            steps
        }
        TrafficVerdictKind::Slower | TrafficVerdictKind::Stopped => vec![step("Keep your current settings.", None)],
        TrafficVerdictKind::Undecided if has_ended && report.compares_alike() => {
            vec![step("Nothing: the settings are alike, and no difference is shown.", None)]
        }
        TrafficVerdictKind::Undecided if has_ended => {
            vec![step("Begin it again, for longer: it ended before a difference was shown.", again(config))]
        }
        TrafficVerdictKind::Undecided => vec![step("Let it run on: nothing is lost by looking.", None)],
        TrafficVerdictKind::NoData => match report.no_data.and_then(TrafficNoData::advice) {
            Some(advice) => vec![step(&capitalised(&format!("{advice}.")), None)],
            None => vec![step("Wait until the first epoch has reached the cohort's age.", None)],
        },
    }
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at_checked(1).unwrap_or((text, ""));
    format!("{}{rest}", first.to_uppercase())
}

impl TrafficReport {
    /// Of an experiment that has ended: its text doesn't say any more to wait or to let it run on, and where nothing was shown since
    /// no unit has bet, says why if that is known.
    pub fn end(&mut self, config: &TrafficConfig) {
        if self.has_ended() {
            return;
        }
        match &mut self.no_data {
            Some(facts) => facts.ended = true,
            None if self.verdict.kind == TrafficVerdictKind::NoData => return,
            None => self.ended = true,
        }
        self.next = steps(config, self);
    }

    /// Whether nothing will come any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended || self.no_data.is_some_and(|facts| facts.ended)
    }

    /// What to do where nothing is shown, and nothing will be however long it runs: the arms differ in what the server receives alone.
    pub(crate) fn instead_of_running(&self) -> Option<String> {
        let nothing_is_wrong = self.self_checks.iter().all(|check| check.ok);
        let may_wait = self.verdict.kind == TrafficVerdictKind::Undecided && nothing_is_wrong;
        let receiver = self.receiver_settings.as_ref().filter(|receiver| receiver.alone && may_wait)?;
        Some(receiver.instead())
    }

    /// Whether all arms have the same settings, on purpose.
    pub(crate) fn compares_alike(&self) -> bool {
        self.arms.windows(2).all(|two| two[0].settings == two[1].settings)
    }
}

impl TrafficNoData {
    /// Why an experiment that has ended shows nothing; none while it runs.
    pub(crate) fn why(self, unit: TrafficUnit) -> Option<String> {
        self.ended.then(|| match self {
            Self { assigned: 0, left_alone: 0, .. } => "No connection came.".to_owned(),
            Self { assigned: 0, left_alone, .. } => format!("No connection took part; left alone: {left_alone}."),
            Self { epochs: 0, .. } => "It ended before an epoch was as old as a connection may become.".to_owned(),
            _ if unit == TrafficUnit::Slot => "It ended before each arm had its turn in a block of slots.".to_owned(),
            _ => "It ended before connections of one arm could be compared with those of another.".to_owned(),
        })
    }

    /// What to do then; none while it runs.
    pub(crate) fn advice(self) -> Option<&'static str> {
        self.ended.then_some(match self {
            Self { assigned: 0, left_alone: 0, .. } => {
                "see whether the server listens on that port in this network namespace"
            }
            Self { assigned: 0, .. } => {
                "see whom it leaves alone with --dry-run; --private takes in clients in private ranges"
            }
            _ => "run it again for longer: no epoch counts before its connections are as old as --age",
        })
    }
}

/// The first arm and this one with epochs in which nobody, half and everybody have it.
fn for_everybody(config: &TrafficConfig, arm: Option<&str>) -> Option<String> {
    let found = config.arms.iter().find(|one| Some(one.name.as_str()) == arm)?;
    let levels = levels(&[&config.arms.first()?.settings, &found.settings])?;
    let mut command = "sudo windtunnel traffic start".to_owned();
    config.ports.iter().for_each(|port| command += &format!(" --port {port}"));
    levels.iter().for_each(|list| command += &format!(" --levels {}", shell_word(list)));
    if config.private {
        command += " --private";
    }
    Some(command + " --mixed")
}

/// The same experiment once more, until somebody stops it; none where its arms aren't combinations of levels.
fn again(config: &TrafficConfig) -> Option<String> {
    let usual = TrafficConfig::default();
    let arms: Vec<&ArmSettings> = config.arms.iter().map(|arm| &arm.settings).collect();
    let mut command = "sudo windtunnel traffic start".to_owned();
    config.ports.iter().for_each(|port| command += &format!(" --port {port}"));
    levels(&arms)?.iter().for_each(|list| command += &format!(" --levels {}", shell_word(list)));
    match config.unit {
        TrafficUnit::Prefix => {}
        TrafficUnit::Connection => command += " --unit connection",
        TrafficUnit::Slot => command += " --unit slot",
    }
    for (flag, is, usually) in [
        ("epoch", config.epoch, usual.epoch),
        ("age", config.age, usual.age),
        ("burn-in", config.burn_in, usual.burn_in),
    ] {
        if is != usually {
            command += &format!(" --{flag} {}", format_duration(is));
        }
    }
    for (flag, is_set) in [
        ("--mixed", config.allocation == TrafficAllocation::Mixed),
        ("--no-ramp", config.ramp == TrafficRamp::none()),
        ("--private", config.private),
        ("--include administrator", config.administrator),
        ("--include own-cc", config.own_cc),
    ] {
        if is_set {
            command += &format!(" {flag}");
        }
    }
    Some(command)
}

/// The lists of levels whose combinations these arms are; none where they aren't combinations.
fn levels(arms: &[&ArmSettings]) -> Option<Vec<String>> {
    let tried: Vec<&ArmSettings> = arms.iter().copied().filter(|settings| !settings.is_current()).collect();
    let mut lists: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, level) in tried.iter().flat_map(|settings| settings.iter()) {
        match lists.iter_mut().find(|(known, _)| *known == name) {
            Some((_, levels)) if levels.contains(&level) => {}
            Some((_, levels)) => levels.push(level),
            None => lists.push((name, vec![level])),
        }
    }
    let combinations: usize = lists.iter().map(|(_, levels)| levels.len()).product();
    let same_names = tried.windows(2).all(|two| two[0].iter().map(|one| one.0).eq(two[1].iter().map(|one| one.0)));
    let whole = !lists.is_empty() && combinations == tried.len() && same_names;
    whole.then(|| lists.into_iter().map(|(name, levels)| format!("{name}={}", levels.join(","))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrafficArm;

    fn config(arms: &[&str]) -> TrafficConfig {
        let arm = |text: &&str| TrafficArm { name: (*text).to_owned(), settings: text.parse().unwrap() };
        TrafficConfig { ports: vec![80, 443], arms: arms.iter().map(arm).collect(), ..TrafficConfig::default() }
    }

    #[test]
    fn the_same_arms_are_asked_for_again_with_whole_epochs() {
        let command = |arms: &[&str]| for_everybody(&config(arms), arms.last().copied());
        let begin = "sudo windtunnel traffic start --port 80 --port 443 --levels";
        assert_eq!(command(&["initcwnd=10", "initcwnd=32"]), Some(format!("{begin} initcwnd=10,32 --mixed")));
        assert_eq!(command(&["current settings", "initcwnd=32"]), Some(format!("{begin} initcwnd=32 --mixed")));
        // Of several that were tried, the one that won.
        assert_eq!(
            command(&["cc=cubic initcwnd=10", "cc=bbr initcwnd=10", "cc=cubic initcwnd=32"]),
            Some(format!("{begin} cc=cubic --levels initcwnd=10,32 --mixed"))
        );
        // No lists of levels come to these two alone.
        assert_eq!(command(&["cc=cubic initcwnd=10", "cc=bbr initcwnd=32"]), None);
        assert_eq!(command(&["cc=cubic", "initcwnd=32"]), None);
    }

    #[test]
    fn a_report_of_what_has_ended_without_data_says_why_and_waits_for_nothing() {
        let config = config(&["initcwnd=10", "initcwnd=32"]);
        let analysis = crate::TrafficAnalysis::new(config.clone()).unwrap();
        let report = |left_alone, assigned| {
            let arms = vec![crate::ArmTally { assigned, open: assigned, ..crate::ArmTally::default() }; 2];
            let seen = left_alone + 2 * assigned;
            let tally = crate::TrafficTally { seen, left_alone, arms, ..crate::TrafficTally::default() };
            analysis.report(crate::TrafficRun { id: "E", backend: "sockops" }, &tally)
        };
        assert!(report(0, 0).text().contains("Do: wait until the first epoch"), "it may run on");
        for (left_alone, assigned, why, advice) in [
            (0, 0, "No connection came.", "Do: see whether the server listens"),
            (7, 0, "No connection took part; left alone: 7.", "--private takes in clients"),
            (7, 3, "It ended before an epoch was as old as a connection may become.", "Do: run it again for longer"),
        ] {
            let mut ended = report(left_alone, assigned);
            ended.end(&config);
            let text = ended.text();
            assert!(text.starts_with(why) && text.contains(advice) && !text.contains("wait"), "{text}");
            assert!(!ended.next[0].text.contains("Wait") && ended.next.len() == 1, "{:?}", ended.next);
            let before = ended.clone();
            ended.end(&config);
            assert_eq!(ended, before);
        }
        let mut old = TrafficReport { no_data: None, ..report(0, 0) };
        let before = old.clone();
        old.end(&config);
        assert_eq!(old, before, "a report of before stays as it is");
    }

    #[test]
    fn a_report_of_what_has_ended_undecided_says_to_begin_it_again_with_the_whole_command_and_not_to_let_it_run_on() {
        let mut config = config(&["initcwnd=10", "initcwnd=32"]);
        (config.unit, config.age, config.private) = (TrafficUnit::Connection, std::time::Duration::from_secs(2), true);
        let analysis = crate::TrafficAnalysis::new(config.clone()).unwrap();
        let run = crate::TrafficRun { id: "E", backend: "sockops" };
        let report = analysis.report(run, &crate::TrafficTally::default());
        let runs = |kind| {
            let mut runs = TrafficReport { no_data: None, ..report.clone() };
            runs.verdict.kind = kind;
            runs.next = steps(&config, &runs);
            runs
        };
        let undecided = runs(TrafficVerdictKind::Undecided);
        let mut ended = undecided.clone();
        ended.end(&config);
        assert!(undecided.text().contains("Do: let it run on;") && undecided.next[0].text.contains("Let it run on"));
        assert!(ended.text().contains("Do: begin it again, for longer;") && !ended.text().contains("run on"));
        let command = "sudo windtunnel traffic start --port 80 --port 443 --levels initcwnd=10,32 --unit connection --age 2s --private";
        assert!(ended.next[0].text.starts_with("Begin it again, for longer"), "{:?}", ended.next);
        assert_eq!(ended.next[0].command.as_deref(), Some(command));
        // What is claimed goes on being so.
        let (mut faster, before) = (runs(TrafficVerdictKind::Faster), runs(TrafficVerdictKind::Faster));
        faster.end(&config);
        assert_eq!((faster.text(), &faster.next), (before.text(), &before.next));
        // Of the same settings nothing else was to be shown.
        let mut alike = undecided.clone();
        alike.arms[1].settings = alike.arms[0].settings.clone();
        alike.end(&config);
        assert!(alike.text().contains("Do: nothing; the settings are alike"), "{}", alike.text());
        for (state, said) in [
            (HoldbackState::Open, "Do: begin it again, for longer;"),
            (HoldbackState::Holds, "Do: nothing; the gain held."),
            (HoldbackState::Smaller, "Do: nothing; it is still faster, if by less than was claimed."),
        ] {
            let (ratio, low, high) = (None, None, None);
            let holdback = crate::TrafficHoldback {
                state,
                ratio,
                low,
                high,
                evidence_reversed: 1.0,
                text: "It is so.".to_owned(),
            };
            let mut ended = TrafficReport { holdback: Some(holdback), ..undecided.clone() };
            ended.end(&config);
            let text = ended.text();
            assert!(text.contains(said) && !text.contains("run on") && !text.contains("as long as it runs"), "{text}");
            assert!(!ended.next[0].text.contains("run on"), "{:?}", ended.next);
        }
    }

    #[test]
    fn of_what_a_server_receives_no_report_says_to_run_longer_and_all_say_what_is_compared() {
        let run = crate::TrafficRun { id: "E", backend: "sockops" };
        let undecided = |arms: &[&str], ended: bool| {
            let config = config(arms);
            let analysis = crate::TrafficAnalysis::new(config.clone()).unwrap();
            let mut report = analysis.report(run, &crate::TrafficTally::default());
            (report.no_data, report.effects[0].units) = (None, 9);
            report.verdict = analysis.verdict(&report.effects);
            report.next = steps(&config, &report);
            if ended {
                report.end(&config);
            }
            report
        };
        for ended in [false, true] {
            let report = undecided(&["initrwnd=3", "initrwnd=44"], ended);
            assert_eq!(report.verdict.kind, TrafficVerdictKind::Undecided);
            let text = report.text().replace("\n  ", " ");
            for said in [
                "is shown yet in what the server sends; initrwnd acts on what it receives.",
                "Do: time uploads at their clients;",
                "What is compared is what the server sends; initrwnd acts on what it receives.",
            ] {
                assert!(text.contains(said), "{said} in {text}");
            }
            assert!(!text.contains("longer;") && !text.contains("run on"), "{text}");
            let [next] = report.next.as_slice() else { panic!("{:?}", report.next) };
            assert!(next.text.starts_with("Time uploads") && next.command.is_none(), "{next:?}");
            // Beside a setting of what it sends the run goes on, and says the same of what it receives.
            let both = undecided(&["initrwnd=3 cc=cubic", "initrwnd=44 cc=bbr"], ended);
            let text = both.text().replace("\n  ", " ");
            assert!(text.contains("is shown yet.") && text.contains("sends; initrwnd acts on what it"), "{text}");
            assert!(
                text.contains(if ended { "Do: begin it again, for longer" } else { "Do: let it run on" }),
                "{text}"
            );
        }
        let json = serde_json::to_value(undecided(&["initrwnd=3", "initrwnd=44"], true)).unwrap();
        assert_eq!(json["receiver_settings"]["settings"], serde_json::json!(["initrwnd"]));
        assert_eq!(
            serde_json::to_value(undecided(&["cc=reno", "cc=bbr"], true)).unwrap().get("receiver_settings"),
            None
        );
    }

    #[test]
    fn what_is_asked_for_again_is_what_it_says() {
        let command = for_everybody(&config(&["current settings", "cc=bbr initcwnd=32"]), Some("cc=bbr initcwnd=32"));
        assert!(command.unwrap().contains("--levels cc=bbr --levels initcwnd=32"));
        assert_eq!(for_everybody(&config(&["initcwnd=10", "initcwnd=32"]), None), None);
    }
}
