//! `windtunnel self-test`: the method tested on itself.

use crate::cli::forms::give;
use crate::cli::signals::cancel_on_signals;
use crate::commands::tune::Progress;
use crate::edge::{Exit, Outcome, say};
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;
use std::time::Duration;
use wt_experiment::simulate::Power;
use wt_trial::Cancel;
use wt_tune::{LabClaims, PowerRow, SelfTestAnswer, SelfTestRequest};
use wt_units::counted;

/// Tests the statistics on experiments where nothing differs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel self-test statistics
  windtunnel self-test statistics --lab lan")]
pub(crate) struct SelfTestArgs {
    #[command(subcommand)]
    what: SelfTestCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SelfTestCommand {
    Statistics(StatisticsArgs),
}

/// How often does the method claim a difference where there is none?
///
/// Runs thousands of simulated experiments in which all settings are the same, on four kinds of noisy and drifting paths,
/// and counts the claims. At most one in twenty may claim anything. A second for 2000 runs of each kind.
///
/// Also prints how often a gain is found that is there, by the method in use and by running every setting in every round.
///
/// With --lab the experiments run on real kernels over an emulated path instead, and are journaled.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel self-test statistics
  windtunnel self-test statistics --runs 20000 --seed 7 --json
  windtunnel self-test statistics --lab lan --runs 40")]
struct StatisticsArgs {
    /// Run real transfers over this emulated path instead: a preset's name or a TOML file
    #[arg(long, value_name = "PATH")]
    lab: Option<String>,
    /// Experiments on each kind of path [default: 2000; with --lab 20]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    runs: Option<u64>,
    /// Trials that an experiment may take [default: 120; with --lab 40]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(2..=100_000))]
    trials: Option<usize>,
    /// How long each trial transfers
    #[arg(long, value_name = "TIME", default_value = "250ms", requires = "lab", value_parser = crate::cli::values::trial_time)]
    trial: Duration,
    /// Where every trial is kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE", requires = "lab")]
    journal: Option<PathBuf>,
    /// Settings in an experiment, the current one included
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = RangedU64ValueParser::<usize>::new().range(2..=64))]
    settings: usize,
    /// Seeds everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] if the budget has no room for a round.
pub(crate) fn run(args: &SelfTestArgs) -> Outcome {
    match &args.what {
        SelfTestCommand::Statistics(args) => statistics(args),
    }
}

fn statistics(args: &StatisticsArgs) -> Outcome {
    let request = SelfTestRequest {
        lab: args.lab.clone(),
        runs: args.runs,
        trials: args.trials,
        trial: args.trial,
        settings: args.settings,
        seed: args.seed,
        journal: args.journal.clone(),
        command: crate::cli::typed::command(),
    };
    let mut progress = Progress::new(false, args.json, false);
    // The simulation is over in seconds: what ends it is the signal itself.
    let cancel = if args.lab.is_some() { cancel_on_signals()? } else { Cancel::new() };
    let answer = wt_tune::self_test(&request, &cancel, &mut |event| progress.event(&event))?;
    give(&answer, args.json, print)?;
    Ok(if answer.passed { Exit::Done } else { Exit::No })
}

fn print(answer: &SelfTestAnswer) {
    say!("{}", verdict(answer));
    if let Some(lab) = &answer.lab {
        print_lab(answer, lab);
    }
    let percent = |share: f64| format!("{:.2}%", share * 100.0);
    if let Some(rates) = &answer.noise {
        say!("\n{:<10} {:>8} {:>8} {:>8}   95% interval", "noise", "runs", "claims", "rate");
        for r in rates {
            let interval = format!("{} to {}", percent(r.low), percent(r.high));
            say!("{:<10} {:>8} {:>8} {:>8}   {interval}", r.noise.name(), r.runs, r.claims, percent(r.rate));
        }
        let SelfTestAnswer { settings, trials, seed, .. } = answer;
        say!("\n{settings} identical settings, at most {trials} trials an experiment, seed {seed}.");
        print_too_few(answer);
    }
    if let Some(power) = &answer.power {
        say!(
            "\nOne setting is better, with independent noise: how often it is found, and the median of the trials until then."
        );
        if let Some(PowerRow { runs, .. }) = power.first() {
            let (low, high) = wt_experiment::proportion_interval(runs / 2, *runs);
            let (half, low, high) = (percent((runs / 2) as f64 / *runs as f64), percent(low), percent(high));
            say!("{} each: {half} has a 95% interval of {low} to {high}.", counted(*runs as usize, "experiment"));
        }
        say!(
            "{:>8} {:>6} {:>4} {:>5} {:>16} {:>24}",
            "settings",
            "trials",
            "CV",
            "gain",
            "found",
            "every setting a round"
        );
        let found = |power: &Power| {
            let trials = power.median_trials.map_or_else(|| "–".to_owned(), |trials| trials.to_string());
            format!("{} in {trials:>3}", percent(power.found))
        };
        for PowerRow { cell, directed, uniform, .. } in power {
            say!(
                "{:>8} {:>6} {:>3.0}% {:>+4.0}% {:>16} {:>24}",
                cell.settings,
                cell.trials,
                cell.cv * 100.0,
                cell.gain * 100.0,
                found(directed),
                found(uniform)
            );
        }
    }
}

fn print_lab(answer: &SelfTestAnswer, lab: &LabClaims) {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let (rate, low, high) = (percent(lab.rate), percent(lab.low), percent(lab.high));
    let LabClaims { path, runs, claims, trials, .. } = lab;
    say!("\n{claims} of {runs} experiments on {path} claimed something: {rate}, 95% interval {low} to {high}.");
    let SelfTestAnswer { settings, seed, .. } = answer;
    say!("{settings} identical settings, {trials} trials in all, seed {seed}; all are in the journal.");
    print_too_few(answer);
}

/// What the intervals say: a rate of no more than α is shown where all of them end below it.
fn verdict(answer: &SelfTestAnswer) -> String {
    let allowed = format!("{:.0}%", answer.alpha * 100.0);
    if !answer.passed {
        return format!(
            "The method claims differences where there are none in more than {allowed} of experiments: don't trust it."
        );
    }
    if highest(answer) > answer.alpha {
        return format!(
            "Where nothing differs, it isn't shown that the method claims a difference in more than the {allowed} of experiments allowed."
        );
    }
    format!(
        "Where nothing differs, the method claims a difference in no more than the {allowed} of experiments allowed."
    )
}

/// The upper end of the highest rate's interval.
fn highest(answer: &SelfTestAnswer) -> f64 {
    let noise = answer.noise.iter().flatten().map(|rate| rate.high);
    noise.chain(answer.lab.iter().map(|lab| lab.high)).fold(0.0, f64::max)
}

/// What is to be done where the experiments are too few to show what is promised.
fn print_too_few(answer: &SelfTestAnswer) {
    if answer.passed && highest(answer) > answer.alpha {
        let allowed = format!("{:.0}%", answer.alpha * 100.0);
        say!("So few experiments can't show that the rate is below {allowed}; more --runs narrow the interval.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_experiment::simulate::{ClaimRate, NoiseModel};

    fn of(claims: u64, runs: u64) -> SelfTestAnswer {
        let (low, high) = wt_experiment::proportion_interval(claims, runs);
        let rate = ClaimRate { noise: NoiseModel::Typical, runs, claims, rate: claims as f64 / runs as f64, low, high };
        SelfTestAnswer {
            schema_version: 1,
            alpha: 0.05,
            settings: 4,
            trials: 120,
            seed: 1,
            passed: low <= 0.05,
            noise: Some(vec![rate]),
            power: None,
            lab: None,
        }
    }

    #[test]
    fn the_headline_claims_no_more_than_the_intervals_show() {
        for (claims, runs, says) in [
            (68, 2000, "in no more than the 5%"),
            (12, 200, "it isn't shown that the method claims a difference in more than the 5%"),
            (0, 10, "it isn't shown that"),
            (40, 200, "don't trust it"),
        ] {
            let headline = verdict(&of(claims, runs));
            assert!(headline.contains(says), "{claims} of {runs}: {headline}");
        }
    }
}
