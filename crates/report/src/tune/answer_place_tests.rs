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
