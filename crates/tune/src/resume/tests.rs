use super::super::event::TuneEvent;
use super::*;
use wt_journal::Journal;
use wt_report::TuneReport;
use wt_report::tune::AnswerAction;

/// A request to tune the receive window in the model of adsl.
fn request(folder: &std::path::Path, budget: &str) -> TuneRequest {
    TuneRequest {
        lab: Some("adsl".to_owned()),
        model: true,
        knobs: Some(vec![Knob::Rwin]),
        seed: 3,
        journal: Some(folder.join("j.sqlite3")),
        budget: Some(budget.parse().unwrap()),
        ..TuneRequest::default()
    }
}

/// What an experiment begins with.
fn begun(request: &TuneRequest) -> Box<TuneReport> {
    report_of(super::super::run(request, &Cancel::new(), &mut |_| ()))
}

/// What comes of going on with the experiment that ran last, in the model.
fn gone_on(request: &TuneRequest) -> Box<TuneReport> {
    report_of(going_on(request, "last"))
}

/// The same with the experiment of this name.
fn going_on(request: &TuneRequest, experiment: &str) -> Result<TuneAnswer, Problem> {
    let request = TuneRequest { knobs: None, resume: Some(experiment.to_owned()), ..request.clone() };
    let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let stored = journal.load(experiment).unwrap();
    let history = History::read(&journal, &stored).unwrap();
    let path = wt_setup::lab::load("adsl").unwrap();
    let tunnel = wt_forecast::model::tunnel(&path, wt_forecast::host_stack()).unwrap();
    let tunnel = Holding::new(tunnel, held_in(&stored).unwrap());
    let controls = wt_sim::cc::NAMES.map(str::to_owned).to_vec();
    let cancel = Cancel::new();
    let session = Session::new(&request, tunnel, controls, RoundTurns::default(), &cancel);
    session.resume(&stored, &history, &mut |_| ())
}

fn report_of(answer: Result<TuneAnswer, Problem>) -> Box<TuneReport> {
    match answer {
        Ok(TuneAnswer::Report(report)) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_goes_on_keeps_what_was_shown_of_delay() {
    let folder = tempfile::tempdir().unwrap();
    let first = begun(&request(folder.path(), "60 trials"));
    let shown = first.delay.clone().unwrap();
    assert!(shown.shown, "{shown:?} {}", first.to_terminal(100, false));
    let second = gone_on(&request(folder.path(), "10 trials"));
    assert!(second.rounds > first.rounds, "{} rounds", second.rounds);
    assert_eq!(second.delay, Some(shown), "{}", second.to_terminal(100, false));
    assert_eq!((second.verdict.answer.action, second.verdict.alpha), (AnswerAction::Set, first.verdict.alpha));
    assert_eq!(second.verdict.answer.sure.confidence, first.verdict.answer.sure.confidence);
}

#[test]
fn what_was_left_of_the_test_of_less_delay_comes_first_when_somebody_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let small = TuneRequest {
        knobs: None,
        levels: vec!["rwin=40KiB".parse().unwrap()],
        hold: vec!["cc=cubic".parse().unwrap()],
        goal: super::super::request::Goal::Delay,
        ..request(folder.path(), "16 trials")
    };
    let first = begun(&small);
    assert_eq!(first.delay, None, "{}", first.to_terminal(100, false));
    let more =
        TuneRequest { levels: Vec::new(), hold: Vec::new(), budget: Some("26 trials".parse().unwrap()), ..small };
    let second = gone_on(&more);
    let delay = second.delay.as_ref().unwrap_or_else(|| panic!("{}", second.to_terminal(100, false)));
    assert!(delay.shown && delay.rounds <= 13, "{delay:?}");
    assert_eq!(second.verdict.answer.action, AnswerAction::Set);
    let (race, test) = (second.trials - first.trials, second.delay_trials.len());
    assert!(race + test <= 26, "{race} and {test}");
    let journal = wt_setup::journal::open(more.journal.as_deref()).unwrap();
    let rounds = |phase: wt_trial::Phase| {
        let rows = journal.rows(&second.id).unwrap().into_iter();
        rows.filter(|row| row.phase == phase).map(|row| (row.id, row.round)).collect::<Vec<_>>()
    };
    let (race, test) = (rounds(wt_trial::Phase::Round), rounds(wt_trial::Phase::Delay));
    assert!(race.iter().all(|(id, round)| test.iter().all(|(before, other)| before < id && other < round)), "{race:?}");
    let again = report_of(super::super::report::report(&journal, journal.load(&second.id).unwrap()));
    assert_eq!((&again.verdict, &again.next), (&second.verdict, &second.next));
}

#[test]
fn a_race_that_left_its_room_to_the_test_of_less_delay_is_reported_from_the_journal_as_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, trials) in [(3, "18 trials"), (4, "24 trials")] {
        let request = TuneRequest {
            knobs: None,
            levels: vec!["rwin=40KiB".parse().unwrap()],
            hold: vec!["cc=cubic".parse().unwrap()],
            goal: super::super::request::Goal::Delay,
            seed,
            ..request(folder.path(), trials)
        };
        let ended = begun(&request);
        assert!(ended.verdict.stop == Some(StopReason::Budget) && ended.delay.is_some(), "{:?}", ended.verdict);
        let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
        let again = report_of(super::super::report::report(&journal, journal.load(&ended.id).unwrap()));
        assert_eq!((&again.verdict, &again.next), (&ended.verdict, &ended.next));
    }
}

/// What a report, and somebody who would go on with it, are told of the experiment that ran last.
fn seen_by_others(request: &TuneRequest) -> (Box<TuneReport>, Problem) {
    let journal = wt_setup::journal::open_to_read(request.journal.as_deref()).unwrap();
    let stored = journal.load("last").unwrap();
    let report = report_of(super::super::report::report(&*journal, stored));
    let again = TuneRequest { knobs: None, lab: None, resume: Some("last".to_owned()), ..request.clone() };
    let Err(refused) = super::super::run(&again, &Cancel::new(), &mut |_| ()) else { panic!("it went on") };
    (report, refused)
}

#[test]
fn what_still_runs_is_reported_as_such_and_nobody_else_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "60 trials");
    let (mut early, mut late) = (None, None);
    let ended = report_of(super::super::run(&request, &Cancel::new(), &mut |event| match event {
        TuneEvent::Round(round) if round.rounds == 2 => early = Some(seen_by_others(&request)),
        // The race is over, and rounds for less delay have begun.
        TuneEvent::Trial(trial) if trial.phase == wt_trial::Phase::Delay => {
            late.get_or_insert_with(|| seen_by_others(&request));
        }
        _ => {}
    }));
    for (report, refused) in [early.unwrap(), late.unwrap()] {
        let id = &report.id;
        assert_eq!((id, report.state, &report.plan), (&ended.id, Some("running"), &Vec::new()));
        let answer = &report.verdict.answer;
        assert!(answer.what.starts_with("Under way since ") && answer.steps.is_empty(), "{answer:?}");
        assert!(answer.lines[2].contains("nothing yet; it still runs"), "{answer:?}");
        assert_ne!(report.verdict.stop, Some(StopReason::User));
        for text in [report.to_terminal(200, false), report.to_html(), serde_json::to_string(&report).unwrap()] {
            assert!(!text.contains("Stopped after") && !text.contains("--resume"), "{text}");
            assert!(!text.contains("cut short") && !text.contains("Do nothing: "), "{text}");
        }
        assert_eq!(refused.what, format!("{id} still runs"));
    }
    assert_eq!(ended.state, None);
    let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let again = report_of(super::super::report::report(&journal, journal.load("last").unwrap()));
    assert_eq!(again.verdict, ended.verdict, "the trials of nobody else are among its own");
    assert!(!serde_json::to_string(&again).unwrap().contains("\"running\""));
}

#[test]
fn uploads_of_a_size_that_their_receivers_timed_are_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let request = TuneRequest {
        direction: super::super::request::TrialDirection::Up,
        workload: "bulk:size=200kB".parse().unwrap(),
        ..request(folder.path(), "24 trials")
    };
    let now = begun(&request);
    let mut journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let mut stored = journal.load(&now.id).unwrap();
    assert_eq!(has_clock_of_now(&stored).err(), None);
    // As a version before wrote it.
    let ExperimentConfig::Tune(tune) = &mut stored.config else { panic!("{:?}", stored.config) };
    assert_eq!(tune.by_sender.take(), Some(true));
    stored.id = "before".to_owned();
    journal.import(&stored, &[]).unwrap();
    drop(journal);
    let again =
        TuneRequest { resume: Some("before".to_owned()), journal: request.journal.clone(), ..TuneRequest::default() };
    let Err(refused) = super::super::run(&again, &Cancel::new(), &mut |_| ()) else { panic!("it went on") };
    assert_eq!(refused.what, "the uploads of before were timed by their receivers");
    // Other servers never had the clock.
    (stored.tunnel, stored.target) = ("live".to_owned(), "iperf3://192.0.2.1".to_owned());
    assert_eq!(has_clock_of_now(&stored).err(), None);
}

#[test]
fn a_report_says_how_long_its_trials_took_and_of_journals_that_only_planned_it_how_long_that_was() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "24 trials");
    let mut journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let now = begun(&request);
    let mut stored = journal.load(&now.id).unwrap();
    let records = History::read(&journal, &stored).unwrap().records(&journal).unwrap();
    let cool_down = Duration::from_micros(stored.config.tune().cool_down_us.unwrap());
    // One setting may have taken far longer than the pilot of the current ones.
    let elapsed: Duration = records.iter().map(|record| Duration::from_micros(record.outcome.elapsed_us)).sum();
    let took = (elapsed + cool_down * (records.len() as u32 - 1)).as_secs_f64();
    assert!((now.run.spent_s - took).abs() < 1e-3, "{} and {took}", now.run.spent_s);
    assert_eq!(now.verdict.answer.sure.seconds, now.run.spent_s);
    // As a version before wrote it.
    let ExperimentConfig::Tune(tune) = &mut stored.config else { panic!("{:?}", stored.config) };
    assert_eq!(tune.measured_time.take(), Some(true));
    let planned = tune.per_trial_us.unwrap() as f64 / 1e6 * records.len() as f64;
    stored.id = "before".to_owned();
    journal.import(&stored, &records).unwrap();
    let before = report_of(super::super::report::report(&journal, stored));
    assert!((before.run.spent_s - planned).abs() < 1e-3, "{} and {planned}", before.run.spent_s);
    assert!((planned - took).abs() > 1e-3, "{planned}");
}

#[test]
fn every_trial_that_a_claim_of_less_delay_rests_on_is_in_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "60 trials");
    let report = begun(&request);
    let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let rows = journal.rows(&report.id).unwrap();
    let own: Vec<i64> = rows.iter().filter(|row| row.phase == wt_trial::Phase::Delay).map(|row| row.id).collect();
    assert!(own.len() >= 12, "{own:?}");
    assert_eq!(report.delay_trials.iter().map(|trial| trial.trial).collect::<Vec<_>>(), own);
    // What is said of the race is of its trials alone.
    assert!(report.trial_table.iter().all(|trial| trial.phase != wt_trial::Phase::Delay));
    let csv = report.to_csv();
    assert_eq!(csv.lines().filter(|line| line.contains(",delay,completed,")).count(), own.len(), "{csv}");
    assert_eq!(csv.lines().count(), 1 + report.trial_table.len() + own.len());
    let all = format!("All {} trials", report.trial_table.len() + own.len());
    assert!(report.to_html().contains(&all), "{all}");
    let told = serde_json::to_value(&report).unwrap();
    assert_eq!(told["delay_trials"][0]["phase"], "delay");
}

/// Writes an experiment of the request's journal beside it; the file, and what it lacks.
fn exported(request: &TuneRequest, id: &str) -> (std::path::PathBuf, wt_setup::journal::ExportAnswer) {
    let journal = request.journal.clone();
    let file = journal.as_ref().unwrap().with_file_name(format!("{id}.json"));
    let wanted = wt_setup::journal::ExportRequest {
        experiment: id.to_owned(),
        format: wt_setup::journal::ExportFormat::Json,
        samples: false,
        journal,
    };
    let written = wt_setup::journal::export_to_file(&wanted, &file).unwrap();
    (file, written)
}

#[test]
fn what_is_reported_of_two_sessions_is_the_same_in_whichever_order_they_were_imported() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "12 trials");
    let first = begun(&request);
    let second = gone_on(&request);
    let [before, after] = [&first.id, &second.id].map(|id| exported(&request, id).0);
    let told = |name: &str, files: &[std::path::PathBuf]| {
        let other = folder.path().join(name);
        files
            .iter()
            .for_each(|file| drop(wt_setup::journal::import(Some(&other), std::slice::from_ref(file)).unwrap()));
        let journal = wt_setup::journal::open(Some(&other)).unwrap();
        let mut report = report_of(super::super::report::report(&journal, journal.load(&second.id).unwrap()));
        // Numbers are those of each journal.
        report.trial_table.iter_mut().chain(&mut report.delay_trials).for_each(|trial| trial.trial = 0);
        report.traces.iter_mut().for_each(|trace| trace.trial = 0);
        report
    };
    let as_it_ran = told("as-it-ran", &[before.clone(), after.clone()]);
    assert_eq!(as_it_ran.trial_table.len(), second.trial_table.len());
    assert!(as_it_ran.trial_table.len() > first.trial_table.len(), "{:?}", as_it_ran.trial_table);
    assert_eq!(told("reversed", &[after, before]), as_it_ran);
}

#[test]
fn what_others_go_on_with_names_the_last_of_them_and_nothing_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "12 trials");
    let first = begun(&request);
    let (second, third) = (gone_on(&request), gone_on(&request));
    let mut journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let told = |journal: &wt_journal::SqliteJournal, id: &str| {
        report_of(super::super::report::report(journal, journal.load(id).unwrap()))
    };
    assert_eq!(told(&journal, &third.id), third, "nothing goes on with the last one");
    let mut now = told(&journal, &first.id);
    assert_eq!((now.continued_by.as_ref(), now.rounds), (Some(&third.id), first.rounds));
    let reported = format!("windtunnel report {}", third.id);
    let answer = &now.verdict.answer;
    assert_eq!((answer.action, answer.steps[0].command.as_str()), (AnswerAction::Undecided, reported.as_str()));
    assert!(now.warnings[0].starts_with(&format!("{} goes on with it", third.id)), "{:?}", now.warnings);
    assert!(now.next[0].ends_with(&reported), "{:?}", now.next);
    for text in [now.to_terminal(200, false), now.to_html(), serde_json::to_string(&now).unwrap()] {
        assert!(!text.contains("--resume") && text.contains(&reported), "{text}");
    }
    now.retype(&wt_report::RetypedOptions { journal: Some("mine".to_owned()), key_file: None });
    for line in [&now.verdict.answer.lines[2], &now.warnings[0], &now.next[0]] {
        assert!(line.contains(&format!("{reported} --journal mine")), "{line}");
    }
    let Err(refused) = going_on(&request, &first.id) else { panic!("it went on") };
    assert_eq!(refused.what, format!("{} is continued by {} already", first.id, second.id));
    assert_eq!(refused.hint.unwrap(), format!("windtunnel tune --resume {}", third.id));
    // Reports of journals that versions before wrote stay what they were.
    let mut before = journal.load(&second.id).unwrap();
    let ExperimentConfig::Tune(tune) = &mut before.config else { panic!("{:?}", before.config) };
    assert_eq!(tune.cut_as_drawn.take(), Some(true));
    let gone = Some(vec![second.id.clone(), third.id.clone()]);
    journal.prune(wt_journal::Prune { ids: gone, ..Default::default() }).unwrap();
    journal.import(&before, &[]).unwrap();
    assert_eq!(told(&journal, &first.id), first);
}

#[test]
fn without_the_experiment_that_it_continues_a_report_names_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(folder.path(), "60 trials");
    let first = begun(&request);
    let second = gone_on(&TuneRequest { budget: Some("10 trials".parse().unwrap()), ..request.clone() });
    let [before, after] = [&first.id, &second.id].map(|id| exported(&request, id));
    assert_eq!((before.1.continues, after.1.continues), (None, Some(first.id.clone())));
    let other = folder.path().join("other.sqlite3");
    let taken = wt_setup::journal::import(Some(&other), &[after.0]).unwrap();
    let missing = taken.incomplete.iter().map(|one| (one.id.clone(), one.continues.clone())).collect::<Vec<_>>();
    assert_eq!(missing, [(second.id.clone(), first.id.clone())]);
    let report = || {
        let journal = wt_setup::journal::open(Some(&other)).unwrap();
        super::super::report::report(&journal, journal.load("last").unwrap())
    };
    let Err(problem) = report() else { panic!("it isn't whole") };
    let told = problem.to_string();
    assert!(told.contains(&format!("{} continues {}, which isn't in this journal", second.id, first.id)), "{told}");
    assert!(!told.contains("did you mean"), "{told}");
    let taken = wt_setup::journal::import(Some(&other), &[before.0]).unwrap();
    assert!(taken.imported == [first.id.clone()] && taken.incomplete.is_empty(), "{taken:?}");
    assert_eq!(report_of(report()).verdict, second.verdict);
}

#[test]
fn an_experiment_of_the_lab_isnt_gone_on_with_for_a_server_nor_one_of_a_server_for_the_lab() {
    let stored = |target: &str, tunnel: &str| wt_journal::NewExperiment::new("x-1", target, tunnel).begun();
    let (lab, live) = (stored("lan", "lab"), stored("https://192.0.2.1/f", "live"));
    let of = |target: Option<&str>, lab: Option<&str>| TuneRequest {
        target: target.map(str::to_owned),
        lab: lab.map(str::to_owned),
        ..TuneRequest::default()
    };
    let refused = |request: &TuneRequest, stored: &StoredExperiment| {
        is_of_what_is_named(request, stored).err().map(|problem| problem.what)
    };
    let (url, preset) = (of(Some("https://192.0.2.9/f"), None), of(None, Some("adsl")));
    assert_eq!(refused(&url, &lab).as_deref(), Some("x-1 was run on the lab's lan, not on https://192.0.2.9/f"));
    assert_eq!(refused(&preset, &live).as_deref(), Some("x-1 was run on https://192.0.2.1/f, not on the lab's adsl"));
    // Another server, and another path of the lab, are looked at where more is known of them.
    for (request, stored) in [(&url, &live), (&preset, &lab), (&of(None, None), &lab), (&of(None, None), &live)] {
        assert_eq!(refused(request, stored), None);
    }
}

/// What each trial of an experiment had, of rounds or not: its workload, and its deadline.
fn planned(request: &TuneRequest, id: &str) -> (StoredExperiment, Vec<(Workload, Duration)>) {
    let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let trials = journal.trials(id, wt_journal::WithSamples::No).unwrap().into_iter();
    let trials = trials.filter(|trial| trial.spec.phase != wt_trial::Phase::Pilot);
    (journal.load(id).unwrap(), trials.map(|trial| (trial.spec.workload, trial.spec.deadline)).collect())
}

#[test]
fn trials_of_a_size_have_the_deadline_and_the_expected_length_that_they_had_before() {
    let folder = tempfile::tempdir().unwrap();
    // Twice what a trial takes where nobody says how much it moves.
    let request = TuneRequest {
        knobs: None,
        levels: vec!["rwin=256KiB".parse().unwrap()],
        workload: "bulk:size=5MB".parse().unwrap(),
        ..request(folder.path(), "8 trials")
    };
    let first = begun(&request);
    let more = |budget: &str| TuneRequest {
        levels: Vec::new(),
        workload: wt_setup::WorkloadRequest::default(),
        budget: Some(budget.parse().unwrap()),
        ..request.clone()
    };
    let ids = [first.id, gone_on(&more("1min")).id, gone_on(&more("4 trials")).id];
    let (begun, trials) = planned(&request, &ids[0]);
    let had = trials[0].clone();
    assert!(had.1 > Duration::from_secs(30), "{had:?}");
    for id in &ids {
        let (stored, trials) = planned(&request, id);
        assert!(trials.len() > 4 && trials.iter().all(|trial| *trial == had), "{id}: {trials:?}");
        let kept = |stored: &StoredExperiment| (stored.config.tune().per_trial_us, stored.config.tune().cool_down_us);
        assert_eq!(kept(&stored), kept(&begun), "{id}");
    }
    // A budget of time has room for as many trials as it had.
    let most = |id: &str| planned(&request, id).0.config.tune().max_trials.unwrap();
    let per_trial = begun.config.tune().per_trial_us.unwrap();
    assert_eq!(most(&ids[1]) - most(&ids[0]), (60_000_000 / per_trial) as usize, "{per_trial}");
}

#[test]
fn of_two_who_go_on_at_once_the_second_is_told_what_one_who_comes_later_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("j.sqlite3");
    let begins = |id: &str, continues: Option<&str>| {
        let config = TuneConfig { continues: continues.map(str::to_owned), ..TuneConfig::default() };
        let config = ExperimentConfig::Tune(Box::new(config));
        let new = wt_journal::NewExperiment { config, ..wt_journal::NewExperiment::new(id, "adsl", "lab") };
        super::super::notebook::Notebook::open(Some(&file), &new)
    };
    begins("first", None).unwrap().end(State::Stopped, &serde_json::Value::Null).unwrap();
    // Both have asked, and nobody went on with it yet.
    let went_on = begins("second", Some("first")).unwrap();
    let refused = begins("third", Some("first")).unwrap_err();
    assert_eq!(refused.what, "first is continued by second already");
    assert_eq!(refused.hint.as_deref(), Some("windtunnel tune --resume second"));
    assert_eq!(refused.fault, wt_problem::Fault::Usage);
    assert_eq!(wt_journal::Claim::running(&file), [went_on.id()]);
}
