//! What is typed where: commands of the two ends, and of senders and receivers.

use super::tests::{Case, one, with};
use super::*;
use std::time::Duration;
use wt_trial::{Amount, Workload};
use wt_units::Level;

/// The commands, each behind the host on which it is typed.
fn commands(case: &Case) -> Vec<(AnswerHost, String)> {
    case.report().verdict.answer.steps.into_iter().map(|step| (step.host, step.command)).collect()
}

#[test]
fn an_mss_that_makes_an_upload_faster_is_set_as_the_mtu_and_that_of_a_download_as_it_is() {
    let case = || Case::lab("", one(with(Knob::Mss, Level::Number(1_000)), 3.0, 6.0, 0.01, 40).run());
    let (mut up, mut down) = (case(), case());
    // Timestamps take 12 bytes.
    let cut =
        |case: &mut Case| case.story.records.iter_mut().for_each(|record| record.outcome.observed.mss = Some(988));
    cut(&mut up);
    cut(&mut down);
    (up.tunnel, down.tunnel) = ("live", "live");
    for record in &mut up.story.records {
        let amount = Amount::Time(Duration::from_secs(3));
        record.spec.workload = Workload::Bulk { direction: Direction::Up, amount };
    }
    for (case, pair) in [(&up, "mtu=1040"), (&down, "mss=1000")] {
        let command = format!("sudo windtunnel settings apply {pair} --to 192.0.2.80");
        assert_eq!(commands(case), [(AnswerHost::Here, command.clone())]);
        assert_eq!(case.report().plan.iter().map(|step| step.command.clone()).collect::<Vec<_>>(), [command]);
    }
    // In the lab the client sends.
    up.tunnel = "lab";
    let command = "sudo windtunnel settings apply mtu=1040 --to default".to_owned();
    assert_eq!(commands(&up), [(AnswerHost::Client, command)]);
}

#[test]
fn commands_of_one_machine_have_the_confirmation_for_which_the_next_one_waits_between_them() {
    let off = |knob| with(knob, Level::Name("off".to_owned()));
    let two = with(Knob::Initcwnd, Level::Number(32)).overlaid(&off(Knob::Timestamps));
    let case = Case::lab("", one(two, 3.0, 6.0, 0.01, 40).run());
    let apply = |rest: &str| format!("sudo windtunnel settings apply {rest}");
    assert_eq!(
        commands(&case),
        [
            (AnswerHost::Server, apply("initcwnd=32 --to default")),
            (AnswerHost::Server, CONFIRM.to_owned()),
            (AnswerHost::Both, apply("timestamps=off --to host")),
        ]
    );
    let line = &case.report().verdict.answer.lines[2];
    assert!(line.contains(&format!("--to default; if it works, {CONFIRM}; on both ends: sudo")), "{line}");
    // What both ends have is one change each.
    let case = Case::lab("", one(off(Knob::Sack), 3.0, 6.0, 0.01, 40).run());
    assert_eq!(commands(&case), [(AnswerHost::Both, apply("sack=off --to host"))]);
}
