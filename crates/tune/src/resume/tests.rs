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
    let request = TuneRequest { knobs: None, resume: Some("last".to_owned()), ..request.clone() };
    let journal = wt_setup::journal::open(request.journal.as_deref()).unwrap();
    let stored = journal.load("last").unwrap();
    let history = History::read(&journal, &stored).unwrap();
    let path = wt_setup::lab::load("adsl").unwrap();
    let tunnel = wt_forecast::model::tunnel(&path, wt_forecast::host_stack()).unwrap();
    let tunnel = Holding::new(tunnel, held_in(&stored).unwrap());
    let controls = wt_sim::cc::NAMES.map(str::to_owned).to_vec();
    let cancel = Cancel::new();
    let session = Session::new(&request, tunnel, controls, RoundTurns::default(), &cancel);
    report_of(session.resume(&stored, &history, &mut |_| ()))
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
