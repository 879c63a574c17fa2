//! What the commands that compare over a path of the lab share: flags, and what a person sees meanwhile.

use crate::cli::typed;
use crate::cli::values::RateUnit;
use crate::commands::lab::LabOptions;
use crate::edge::Exit;
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use wt_compare::{CompareEvent, ComparedTrial, LabRequest, Subject};
use wt_units::{counted, format_minutes};

/// What every command that compares over a path of the lab takes.
#[derive(Debug, Args)]
pub(crate) struct ComparisonArgs {
    #[command(flatten)]
    options: LabOptions,
    /// Draws the order of the trials from this number, to repeat an order, or from EXPERIMENT@SITE, so that each site of a
    /// fleet has its own [default: the operating system draws one]
    #[arg(long, value_name = "N", value_parser = crate::cli::values::order_seed)]
    order_seed: Option<u64>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// In which unit rates are written; congestion controls are told in kB/s where none is chosen
    #[arg(long, value_enum, default_value_t)]
    pub(crate) units: RateUnit,
    /// Also write a self-contained page with the pictures
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Note stored with the comparison
    #[arg(long)]
    comment: Option<String>,
    /// Where every trial is kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl ComparisonArgs {
    /// What is asked for, on that path.
    pub(crate) fn lab(&self, path: &str) -> LabRequest {
        LabRequest {
            path: path.to_owned(),
            seed: self.options.seed,
            order_seed: self.order_seed,
            backend: self.options.backend.into(),
            sharp: self.options.sharp,
            comment: self.comment.clone().unwrap_or_default(),
            journal: self.journal.clone(),
            command: typed::command(),
        }
    }
}

/// With which code a comparison ends.
pub(crate) const fn ends(is_no: bool) -> Exit {
    if is_no { Exit::No } else { Exit::Done }
}

/// Tells a person what happens, line by line on stderr.
pub(crate) fn progress(quiet: bool) -> impl FnMut(CompareEvent) {
    move |event| {
        if !quiet {
            let _ = writeln!(std::io::stderr().lock(), "{}", line(&event));
        }
    }
}

fn line(event: &CompareEvent) -> String {
    match event {
        CompareEvent::Begin { subject, arms, rounds, trial_s, expected_s, .. } => {
            begin(*subject, *arms, *rounds, *trial_s, Duration::from_secs_f64(*expected_s))
        }
        CompareEvent::Trial(trial) => format!("  round {}: {}", trial.round, told(trial)),
        CompareEvent::Round { done, rounds } => format!("round {done} of {rounds}"),
        CompareEvent::Pairs { pairs } => {
            format!("the kernel with and without its adapter in turn: {pairs} pairs of transactions")
        }
        CompareEvent::EndsEarly { problem, rounds } => {
            format!("{problem}\n  so it ends here, after {rounds} complete rounds")
        }
    }
}

fn begin(subject: Subject, arms: usize, rounds: u32, trial_s: Option<f64>, expected: Duration) -> String {
    let trials = trial_s.map_or_else(String::new, |seconds| format!(", trials of {seconds:.0} s"));
    let (rounds, take) = (counted(rounds as usize, "round"), if rounds == 1 { "takes" } else { "take" });
    match subject {
        // Whoever forgot the others learns it before the rounds, and not from their verdict.
        Subject::Controls if arms == 1 => {
            let time = format_minutes(expected);
            format!("1 congestion control, {rounds}{trials}: about {time}; to compare it, name a second one")
        }
        Subject::Controls => {
            format!("{arms} congestion controls, {rounds}{trials}: about {}", format_minutes(expected))
        }
        Subject::Stacks => {
            format!(
                "{}, {rounds}: about {}, longer with small windows",
                counted(arms, "stack"),
                format_minutes(expected)
            )
        }
        Subject::Windows => format!("{rounds} {take} about {} s", expected.as_secs().max(1)),
    }
}

/// A trial in a few words.
fn told(trial: &ComparedTrial) -> String {
    let ComparedTrial { label, workload, .. } = trial;
    let why = || trial.notes.join("; ");
    match (&trial.figure, trial.subject) {
        (Some(figure), Subject::Stacks) => format!("{label:<28} {workload:<13} {figure}"),
        (None, Subject::Stacks) => format!("{label:<28} {workload:<13} {}: {}", trial.status.name(), why()),
        (Some(figure), _) => format!("{label:<24} {figure}"),
        (None, _) if trial.counts => format!("{label:<24} {}: {}", trial.status.name(), why()),
        (None, _) => format!("{label:<24} discarded: {}", why()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_names_one_congestion_control_alone_hears_it_before_the_rounds() {
        let said = |arms| begin(Subject::Controls, arms, 5, Some(10.0), Duration::from_secs(60));
        assert!(
            said(1).starts_with("1 congestion control, 5 rounds") && said(1).ends_with("name a second one"),
            "{}",
            said(1)
        );
        assert!(said(2).starts_with("2 congestion controls, 5 rounds") && !said(2).contains("second"), "{}", said(2));
    }
}
