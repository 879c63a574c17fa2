//! A front end of its own: runs an experiment in the model of an ADSL line, prints what happens, and stops it after a few
//! rounds. No namespace, no root, no command line.
//!
//! cargo run -p wt-api --example tune_in_the_model

use std::io::Write as _;
use wt_api::{Answer, Event, Request, Services, run};
use wt_trial::Cancel;
use wt_tune::{RoundEvent, TuneAnswer, TuneEvent};

/// The experiment is stopped after so many rounds.
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let services = Services { journal: Some(folder.path().join("journal.sqlite3")), ..Services::default() };
    let request: Request = serde_json::from_str(
        r#"{"operation": "tune", "request": {"lab": "adsl", "model": true, "trial": "3s", "budget": "60 trials",
            "levels": ["rwin=4x,16x"]}}"#,
    )?;
    let mut out = std::io::stdout();
    let cancel = Cancel::new();
    let answer = run(
        request,
        &services,
        &mut |event| {
            let Event::Tune(event) = event else { return };
            let _ = match event {
                TuneEvent::Begin { arms, max_trials, .. } => {
                    writeln!(out, "{} settings, {max_trials} trials", arms.len())
                }
                TuneEvent::Trial(trial) => writeln!(out, "  {} {:.2} Mbit/s", trial.settings, trial.goodput_bps / 1e6),
                TuneEvent::Round(RoundEvent { rounds, evidence, .. }) => {
                    if rounds >= ROUNDS {
                        cancel.cancel();
                    }
                    writeln!(out, "round {rounds}: evidence {evidence:.1?}")
                }
                TuneEvent::Note { text } | TuneEvent::Warning { text } => writeln!(out, "{text}"),
                _ => Ok(()),
            };
        },
        &cancel,
    )?;
    let Answer::Tune(TuneAnswer::Report(report)) = answer else { return Err("no report".into()) };
    writeln!(std::io::stdout(), "{}", report.verdict.text)?;
    Ok(())
}
