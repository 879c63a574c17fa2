use super::story::{LIMIT_MBIT, Plan, Story, Truth, adsl, rwin};
use super::*;
use std::time::Duration;
use wt_trial::Status;

fn run() -> Run {
    Run {
        started_unix_us: 1_795_248_900_000_000,
        spent: Duration::from_secs(420),
        cool_down: Duration::from_millis(500),
        seed: u64::MAX,
        command: "windtunnel tune --lab adsl --seed 7".into(),
        version: "0.1.0".into(),
        comment: "after the <new> modem".into(),
        host: Some("rack4".into()),
        kernel: Some("6.18.0".into()),
    }
}

fn report_of(story: &Story) -> TuneReport {
    let settings: Vec<Setting> =
        story.truths.iter().map(|t| Setting { label: t.label.clone(), settings: t.settings.clone() }).collect();
    TuneReport::assemble(&TuneInputs {
        id: "20261121-081500-adsl-3f9a",
        target: "adsl",
        tunnel: "lab",
        path: &story.path,
        current: &story.current,
        settings: &settings,
        plateau: story.plateau,
        assessment: &story.assessment,
        records: &story.records,
        run: &run(),
        facts: &RunFacts::default(),
    })
}

fn faster() -> TuneReport {
    report_of(&adsl(1.06, 200).run())
}

fn none() -> TuneReport {
    report_of(&adsl(1.0, 120).run())
}

/// What a reader of the page sees: text outside of tags, entities resolved.
fn visible(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        text.push(' ');
        rest = rest[start..].find('>').map_or("", |end| &rest[start + end + 1..]);
    }
    text.push_str(rest);
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

#[test]
fn the_json_is_what_was_promised() {
    let report = faster();
    let json = serde_json::to_value(&report).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    for (at, promised) in [
        (
            "",
            "schema_version id target tunnel path current rounds trials verdict plateau physical_goodput_bps trial_table",
        ),
        ("/path", "rtt_us pmtu bdp_bytes"),
        ("/verdict", "kind settings ratio at_least evidence needed text"),
        ("/plateau", "knob level epsilon"),
        ("/trial_table/0", "round order settings goodput_bps status"),
    ] {
        let found = keys(json.pointer(at).unwrap());
        for key in promised.split(' ') {
            assert!(found.contains(&key.to_owned()), "{at}/{key}");
        }
    }
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["verdict"]["kind"], "faster");
    assert_eq!(json["verdict"]["settings"], serde_json::json!({"rwin": "auto", "mtu": 1444, "cc": "cubic"}));
    assert_eq!(json["current"], serde_json::json!({"rwin": "auto", "mtu": 1492, "cc": "cubic"}));
    assert_eq!(json["plateau"]["knob"], "rwin");
    assert_eq!(json["plateau"]["level"], 28_800);
    assert_eq!(json["trial_table"][0]["status"], "completed");
    assert_eq!(json["run"]["seed"], u64::MAX);
}

#[test]
fn a_true_gain_is_told_with_its_bounds() {
    let report = faster();
    let v = &report.verdict;
    assert_eq!((v.kind, v.label.as_str(), v.arm), (VerdictKind::Faster, "mtu=1444", 4));
    // Law: the truth, ×1.06, lies within the bounds, and the claim is backed by the evidence it needs.
    let arm = &report.arms[4];
    assert!(arm.low.unwrap() <= 1.06 && 1.06 <= arm.high.unwrap(), "{arm:?}");
    assert!((v.ratio.unwrap() - 1.06).abs() < 0.02 && v.at_least.unwrap() > 1.0);
    assert!(v.evidence >= v.needed.unwrap());
    assert_eq!((arm.state, report.arms[0].state), (ArmState::Faster, ArmState::Current));
    assert!(matches!(report.arms[1].state, ArmState::Slower | ArmState::Behind));
    for text in [report.to_terminal(100, false), visible(&report.to_html())] {
        for part in ["mtu=1444 is faster than your current setting.", "×1.06", "6.79 Mbit/s", "28800"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}

#[test]
fn a_page_is_told_by_its_time_and_what_a_setting_loses_is_told_beside_it() {
    let mut story = adsl(1.06, 200).run();
    for record in &mut story.records {
        record.spec.workload = wt_trial::Workload::Page { page: wt_trial::Page::built_in() };
        let again = if record.spec.arm == 4 { 44 } else { 0 };
        record.outcome.observed.retransmits = Some(again);
    }
    let report = report_of(&story);
    assert_eq!((report.measured.name, report.measured.unit, report.measured.better), ("load time", "s", "smaller"));
    assert_eq!((report.arms[0].retransmits, report.arms[4].retransmits), (Some(0.0), Some(44.0)));
    let priced: Vec<&String> = report.warnings.iter().filter(|warning| warning.contains("loses more")).collect();
    assert!(
        matches!(priced.as_slice(), [one] if one.starts_with("mtu=1444") && one.contains("44 segments")),
        "{priced:?}"
    );
    for text in [report.to_terminal(100, false), visible(&report.to_html())] {
        let text = text.to_lowercase();
        assert!(text.contains("load time") && !text.contains("goodput"), "{text}");
    }
    assert!(report.to_csv().lines().nth(1).unwrap().ends_with(",s,load time,"));
}

#[test]
fn transfers_that_were_not_finished_are_not_laid_to_the_path_alone() {
    let mut story = adsl(1.06, 200).run();
    // So slow that neither link nor window is what limits.
    for record in story.records.iter_mut().filter(|record| record.spec.arm == 0) {
        record.outcome.bytes /= 4;
    }
    let held = |story: &Story| report_of(story).limits.text;
    assert!(!held(&story).contains("finished"), "{}", held(&story));
    for record in &mut story.records {
        record.outcome.status = Status::Incomplete;
    }
    assert!(held(&story).contains("weren't finished"), "{}", held(&story));
}

#[test]
fn no_difference_is_told_as_such_and_nowhere_is_anything_called_faster() {
    let report = none();
    assert_eq!(report.verdict.kind, VerdictKind::NoDifference);
    assert_eq!((report.verdict.arm, &report.verdict.settings), (0, &report.current));
    assert!(report.arms.iter().all(|arm| arm.state != ArmState::Faster));
    let terminal = report.to_terminal(100, false);
    assert!(terminal.contains("Keep what you have."), "{terminal}");
    for text in [terminal, visible(&report.to_html())] {
        assert!(!text.contains("is faster than your current"), "{text}");
    }
    assert!(!report.to_html().contains("<h1 class=\"faster\">"));
}

#[test]
fn a_figure_stays_with_its_unit_in_the_headline_of_a_page() {
    let report = report_of(&adsl(1.06, 600).run());
    let html = report.to_html();
    let headline = html.split_once("<h1").unwrap().1.split_once("</h1>").unwrap().0;
    let what = &report.verdict.answer.what;
    assert!(visible(&html).contains(what.as_str()), "{what}");
    let figure = what.split_once(" %").unwrap().0.rsplit(' ').next().unwrap();
    assert!(headline.contains(&format!("<span class=\"whole\">{figure} %</span>")), "{headline}");
}

#[test]
fn an_interrupted_experiment_says_so() {
    let story = Plan { stop_after: Some(2), ..adsl(1.06, 600) }.run();
    let report = report_of(&story);
    assert_eq!((report.verdict.kind, report.rounds), (VerdictKind::Stopped, 2));
    assert!(report.to_terminal(80, false).contains("No difference shown so far."));
}

#[test]
fn figures_are_those_of_the_trials() {
    let story = adsl(1.06, 200).run();
    let report = report_of(&story);
    assert_eq!(report.trial_table.len(), story.records.len());
    for (trial, record) in report.trial_table.iter().zip(&story.records) {
        assert_eq!(trial.goodput_bps, record.outcome.bytes as f64 * 8e6 / record.outcome.elapsed_us as f64);
        assert_eq!((trial.round, trial.order, trial.arm), (record.spec.round, record.spec.order, record.spec.arm));
    }
    // The median is between the extremes, and half of the trials lie on either side.
    for (number, arm) in report.arms.iter().enumerate() {
        let own: Vec<f64> = report.trial_table.iter().filter(|t| t.arm == number).map(|t| t.goodput_bps).collect();
        let below = own.iter().filter(|bps| **bps < arm.goodput_bps.unwrap()).count();
        assert_eq!((own.len(), below), (arm.trials, own.len() / 2), "{}", arm.label);
    }
    // Every settings in full names what the current settings name.
    assert!(
        report.trial_table.iter().all(|t| t.settings.get(Knob::Mtu).is_some() && t.settings.get(Knob::Cc).is_some())
    );
}

#[test]
fn the_plateau_curve_rises_to_the_limit() {
    let report = faster();
    let plateau = report.plateau.as_ref().unwrap();
    let levels: Vec<String> = plateau.curve.iter().map(|p| p.level.to_string()).collect();
    assert_eq!(levels, ["14400", "28800", "57600", "auto"], "by size; what the system chooses by what was seen");
    assert_eq!(plateau.curve[3].x, 393_216.0);
    assert!(plateau.shown && plateau.arm == 2);
    let means: Vec<f64> = plateau.curve.iter().map(|p| p.goodput_bps.unwrap()).collect();
    assert!(means[0] < 0.6 * means[1] && means[1] > 0.9 * means[3], "{means:?}");
    let chart = report.plateau_chart().unwrap();
    assert!(chart.rules.iter().any(|rule| rule.label == "28800 suffices (within 10 %)" && rule.at == 28_800.0));
    // Law: a window of W bytes carries W per RTT up to the limit, and the drawn line says exactly that.
    let line = chart.series.iter().find(|s| s.name == "window ÷ RTT").unwrap();
    for (window, mbit) in &line.points {
        let want = (window * 8.0 / 0.0349 / 1e6).min(LIMIT_MBIT);
        assert!((mbit - want).abs() < 1e-3, "{window} {mbit} {want}");
    }
}

#[test]
fn of_first_windows_the_smallest_on_the_plateau_is_recommended_and_of_receive_windows_the_fastest() {
    let levels = [("current", Settings::new(), 3.0), ("20", rwin(28_800), 4.6), ("40", rwin(57_600), 6.0)];
    let mut truths: Vec<Truth> =
        levels.into_iter().map(|(label, level, rate)| Truth::new(label, level, rate)).collect();
    truths.push(Truth::new("80", rwin(115_200), 6.15));
    let plan = Plan { truths, levels: vec![0, 1, 2, 3], noise: 0.03, budget: 400, stop_after: None, seed: 5 };
    let mut story = plan.run();
    assert_eq!((story.assessment.pick, story.assessment.plateau.as_ref().unwrap().smallest), (3, 2));
    assert_eq!(report_of(&story).verdict.arm, 3);
    story.plateau = Some(Knob::Initcwnd);
    let report = report_of(&story);
    assert_eq!((report.verdict.arm, report.verdict.label.as_str()), (2, "40"));
    assert!(report.verdict.headline.starts_with("40 is faster"), "{}", report.verdict.text);
    assert!(report.next[0].contains(", not 80, which gains less than 10 % more"), "{:?}", report.next);
    // Who sees the first line only learns what the larger one is shown to gain.
    let what = &report.verdict.answer.what;
    let gain = (story.assessment.arms[3].cautious.unwrap().exp() - 1.0) * 100.0;
    let larger = format!(" 80 downloads {gain:.0} % faster by a larger burst: a smaller --epsilon prefers it.");
    assert!(what.starts_with("rwin=57600 ") && what.ends_with(&larger), "{what}");
    assert_eq!(report.verdict.settings.number(Knob::Rwin), Some(57_600), "that is what would be applied");
}

#[test]
fn the_chart_of_evidence_begins_at_one_and_ends_at_what_is_claimed() {
    let report = faster();
    let chart = report.evidence_chart().unwrap();
    assert!(chart.series.iter().all(|s| s.points[0] == (0.0, 0.01)), "5 candidates need 100 : 1 each");
    assert_eq!((chart.rules.len(), chart.rules[0].at), (1, 1.0));
    let claimed = chart.series.iter().find(|s| s.name == "mtu=1444").unwrap();
    let peak = claimed.points.iter().map(|p| p.1).fold(0.0, f64::max);
    assert!(peak >= 1.0, "{peak}");
    for other in chart.series.iter().filter(|s| s.name != "mtu=1444") {
        assert!(other.points.iter().all(|p| p.1 < 1.0), "only what is claimed reaches the line: {other:?}");
    }
}

#[test]
fn traces_are_of_the_median_trial() {
    let report = faster();
    let arms: Vec<usize> = report.traces.iter().map(|t| t.arm).collect();
    assert_eq!(arms, [0, 4, 2], "current, recommended, smallest sufficient");
    for trace in &report.traces {
        let mut own: Vec<f64> =
            report.trial_table.iter().filter(|t| t.arm == trace.arm).map(|t| t.goodput_bps).collect();
        own.sort_by(f64::total_cmp);
        let drawn = report.trial_table.iter().find(|t| t.trial == trace.trial).unwrap();
        assert_eq!(drawn.goodput_bps, own[(own.len() - 1) / 2]);
        let mean = trace.rate.iter().map(|p| p.1).sum::<f64>() / trace.rate.len() as f64;
        assert!((mean / drawn.goodput_bps - 1.0).abs() < 0.1, "{mean} {}", drawn.goodput_bps);
    }
}

#[test]
fn nothing_a_user_writes_becomes_markup() {
    let evil = "<script>alert(1)</script>\"'&\u{1b}[31m";
    let mut story = Plan {
        truths: vec![Truth::new(evil, story::current(), 6.0), Truth::new(evil, rwin(14_400), 3.0)],
        levels: vec![1, 0],
        noise: 0.05,
        budget: 60,
        stop_after: None,
        seed: 1,
    }
    .run();
    for record in &mut story.records {
        record.outcome.notes = vec![evil.into()];
        record.outcome.scopes.insert("rwin".into(), evil.into());
        record.outcome.observed.cc = Some(evil.into());
    }
    let settings: Vec<Setting> =
        story.truths.iter().map(|t| Setting { label: t.label.clone(), settings: t.settings.clone() }).collect();
    let run = Run { command: evil.into(), version: evil.into(), comment: evil.into(), ..run() };
    let report = TuneReport::assemble(&TuneInputs {
        id: evil,
        target: evil,
        tunnel: "lab",
        path: &story.path,
        current: &story.current,
        settings: &settings,
        plateau: story.plateau,
        assessment: &story.assessment,
        records: &story.records,
        run: &run,
        facts: &RunFacts::default(),
    });
    let html = report.to_html();
    assert!(!html.contains("<script") && !html.contains('\u{1b}') && !html.contains("alert(1)</script>"));
    assert!(visible(&html).contains("<script>alert(1)</script>\"'&"), "it is shown as it was written");
    assert!(!report.to_terminal(100, false).contains('\u{1b}'));
}

#[test]
fn the_page_needs_nothing_else() {
    let html = faster().to_html();
    assert!(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\""));
    let without_names = html.replace("http://www.w3.org/2000/svg", "").replace("https://HOST/FILE", "");
    for part in ["http:", "https:", "<script", "<link", "<img", "<iframe", "@import", "url(", " onload", "src="] {
        assert!(!without_names.contains(part), "{part}");
    }
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("name=\"viewport\""));
    assert!(html.len() < 600_000, "{}", html.len());
}

#[test]
fn every_tag_that_opens_closes() {
    for html in [faster().to_html(), none().to_html()] {
        let mut open: Vec<&str> = Vec::new();
        for tag in html.split('<').skip(1).filter(|tag| !tag.starts_with('!')) {
            let name = tag.split([' ', '>', '\n']).next().unwrap();
            if let Some(name) = name.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !matches!(name, "meta") && !tag.split('>').next().unwrap().ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn the_page_has_every_part() {
    let text = visible(&faster().to_html());
    for part in [
        "at least +",
        "Do on the client:",
        "rack4",
        "6.18.0",
        "What the data say",
        "Settings",
        "The smallest level that suffices",
        "Evidence",
        "Over time",
        "Congestion window over time",
        "Rate over time",
        "physical limit 6.79 Mbit/s",
        "Asked, granted, observed",
        "The path",
        "34.9 ms",
        "How it was measured",
        "one bulk download for 3s",
        "18446744073709551615",
        "windtunnel tune --lab adsl --seed 7",
        "after the <new> modem",
        "2026-11-21 08:15 UTC",
    ] {
        assert!(text.contains(part), "{part} is missing");
    }
}

#[test]
fn a_terminal_report_fits() {
    for report in [faster(), none()] {
        for width in [40, 64, 80, 90, 100, 120, 300] {
            let text = report.to_terminal(width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width.min(200)), "{text}");
            let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flowing.contains(&format!("current settings: {}", report.current)), "{text}");
            let answer = report.answer_to_terminal(width, false);
            assert!(answer.lines().all(|line| line.chars().count() <= width.min(200)), "{answer}");
            assert!(width < 80 || answer.lines().count() <= 10, "{answer}");
            assert!(text.starts_with(answer.lines().next().unwrap()), "the answer is first\n{text}");
            assert!(text.lines().last().unwrap().trim().ends_with("--full"), "and last\n{text}");
        }
    }
    assert!(!faster().to_terminal(100, false).contains('\u{1b}'));
    assert!(faster().to_terminal(100, true).contains("\u{1b}[1;32m"));
}

#[test]
fn the_chart_of_settings_tells_what_is_proven_from_what_isnt_and_whose_intervals_it_has() {
    let mut report = faster();
    let pick = report.verdict.arm;
    for (number, arm) in report.arms.iter_mut().enumerate().skip(1) {
        // As after the few rounds in which a clear gain is claimed: no interval of two sides yet.
        (arm.low, arm.high, arm.model_low, arm.model_high) = (None, None, Some(0.9), Some(1.1));
        arm.state = if number == pick { ArmState::Faster } else { ArmState::Open };
    }
    let of = |report: &TuneReport| {
        let chart = report.settings_chart().unwrap();
        let rows: Vec<(String, usize)> = chart.series.iter().map(|s| (s.name.clone(), s.points.len())).collect();
        (chart.subtitle, rows)
    };
    let others = report.arms.len() - 2;
    let (caption, rows) = of(&report);
    assert_eq!(caption, "Estimates; the intervals are the model's, and claim nothing");
    let shown = "shown to be faster or slower; the model's interval".to_owned();
    assert_eq!(rows, [(shown, 1), ("estimate, not yet proven".to_owned(), others)]);
    (report.arms[pick].low, report.arms[pick].high) = (Some(1.02), Some(1.1));
    let (caption, rows) = of(&report);
    assert!(caption.contains("intervals from the random order hold"), "{caption}");
    assert_eq!(rows[0], ("interval that always holds".to_owned(), 1));
}

#[test]
fn the_csv_holds_every_trial() {
    let report = faster();
    let text = report.to_csv();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<::csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), report.trial_table.len());
    for (row, trial) in rows.iter().zip(&report.trial_table) {
        assert_eq!(row[7].parse::<f64>().unwrap(), trial.goodput_bps.round());
        assert_eq!(&row[4], trial.settings.to_string());
    }
}

#[test]
fn what_was_not_granted_is_shown() {
    let mut story = adsl(1.06, 200).run();
    for record in story.records.iter_mut().filter(|r| r.spec.arm == 5) {
        record.outcome.granted.set(Knob::Cc, Level::Name("reno".into()));
        record.outcome.observed.cc = Some("reno".into());
    }
    let report = report_of(&story);
    let differing: Vec<&GrantedKnob> = report.granted.iter().filter(|g| g.differs).collect();
    assert_eq!(differing.len(), 1);
    assert_eq!((differing[0].arm, differing[0].granted[0].to_string()), (5, "reno".into()));
    assert!(report.to_terminal(100, false).contains("cc=bbr: cc asked bbr, granted reno, observed reno."));
    assert!(report.to_html().contains("<tr class=\"differs\">"));
    assert!(!faster().to_html().contains("<tr class=\"differs\">"));
}

#[test]
fn what_makes_the_answer_doubtful_is_said() {
    let mut story = adsl(1.0, 120).run();
    story.records[3].outcome.status = Status::Invalid;
    story.path.physical_goodput_bps = Some(5_000_000);
    let rounds = story.assessment.rounds as f64;
    for record in &mut story.records {
        let fall = 1.0 - 0.5 * f64::from(record.spec.round) / rounds;
        record.outcome.bytes = (record.outcome.bytes as f64 * fall) as u64;
    }
    let warnings = report_of(&story).warnings;
    assert!(warnings[0].starts_with("1 of "), "{warnings:?}");
    assert!(warnings.iter().any(|w| w.contains("went to ×0.5")), "{warnings:?}");
    assert!(faster().warnings.is_empty(), "{:?}", faster().warnings);
    story.path.physical_goodput_bps = Some(1_000_000);
    assert!(report_of(&story).warnings.iter().any(|w| w.contains("above the limit of 1.00 Mbit/s")));
}

#[test]
fn an_experiment_without_a_trial_and_inputs_that_do_not_fit_are_no_trouble() {
    let empty = wt_experiment::Experiment::new(wt_experiment::Config::new(3)).unwrap().assessment();
    let story = adsl(1.0, 120).run();
    for (assessment, records) in [(&empty, &[][..]), (&empty, &story.records[..]), (&story.assessment, &[][..])] {
        let report = TuneReport::assemble(&TuneInputs {
            id: "",
            target: "",
            tunnel: "live",
            path: &wt_trial::PathFacts::default(),
            current: &Settings::new(),
            settings: &[],
            plateau: Some(Knob::Rwin),
            assessment,
            records,
            run: &Run::default(),
            facts: &RunFacts::default(),
        });
        assert!(report.to_html().ends_with("</html>\n"));
        assert!(!report.to_terminal(80, true).is_empty() && !report.to_csv().is_empty());
        let json = serde_json::to_string(&report).unwrap();
        assert!(!json.contains("NaN"), "{json}");
    }
}

#[test]
fn where_every_trial_failed_nothing_is_the_same() {
    let mut story = adsl(1.0, 24).run();
    for record in &mut story.records {
        record.outcome.status = Status::Failed;
        record.outcome.bytes = 0;
    }
    for arm in &mut story.assessment.arms {
        arm.failed = arm.trials;
        (arm.ratio, arm.lower, arm.upper, arm.equivalent) = (Some(1.0), Some(0.0), Some(0.0), arm.arm != 0);
    }
    let report = report_of(&story);
    for arm in &report.arms[1..] {
        let told = (arm.state, arm.ratio, arm.low, arm.high, arm.model_low);
        assert_eq!(told, (ArmState::Failing, None, None, None, None), "{arm:#?}");
    }
    let table = report.to_terminal(100, false);
    assert!(!table.contains("×1.00") && table.contains("every trial failed"), "{table}");
}

#[test]
fn no_column_of_a_page_is_cut() {
    let html = faster().to_html();
    let style = html.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
    // The last one, what is shown, wraps; paper can't be scrolled.
    assert!(style.contains("td:last-child { white-space: normal;"), "{style}");
    let print = style.split("@media print").nth(1).unwrap();
    assert!(print.contains(".scroll { overflow: visible; } th, td { white-space: normal; }"), "{print}");
}

#[test]
fn the_delay_of_each_setting_is_told_where_the_table_has_no_room_for_it() {
    let mut report = faster();
    for (arm, delay) in report.arms.iter_mut().zip([98_700.0, 22_400.0]) {
        arm.delay_us = Some(delay);
    }
    let wide = report.to_terminal(120, false);
    assert!(wide.contains("  delay  ") && !wide.contains("has no room"), "{wide}");
    let narrow = report.to_terminal(60, false);
    let told = narrow.split_once("Delay, for which the table has no room: ").unwrap().1;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.starts_with(&format!("{} 98.7 ms, {} 22.4 ms", report.arms[0].label, report.arms[1].label)),
        "{narrow}"
    );
}
