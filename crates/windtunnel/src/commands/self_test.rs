//! `windtunnel self-test`: the method tested on itself.

use crate::cli::signals::cancel_on_signals;
use crate::commands::tune::Progress;
use crate::edge::{Exit, Fault, Outcome, Problem, say};
use clap::builder::RangedU64ValueParser;
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use wt_experiment::simulate::{ClaimRate, NoiseModel, Power, PowerCell, claim_rate};
use wt_experiment::{Config, ExperimentError, Method};
use wt_tune::identical::{self, Identical};

/// Tests the statistics on experiments where nothing differs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel self-test statistics
  windtunnel self-test statistics --lab lan")]
pub(crate) struct SelfTestArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
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
        What::Statistics(args) => statistics(args),
    }
}

fn statistics(args: &StatisticsArgs) -> Outcome {
    if let Some(lab) = &args.lab {
        return on_a_lab_path(args, lab);
    }
    let (runs, trials) = (args.runs.unwrap_or(2000), args.trials.unwrap_or(120));
    let config = Config { max_trials: Some(trials), ..Config::new(args.settings) };
    let rate = |noise: NoiseModel| {
        let mut rng = ChaCha12Rng::seed_from_u64(args.seed);
        claim_rate(noise, &config, runs, &mut rng)
    };
    let rates: Vec<ClaimRate> = NoiseModel::ALL
        .into_iter()
        .map(rate)
        .collect::<Result<_, _>>()
        .map_err(|e| Problem::usage(e.to_string()).hint("a larger --trials, or fewer --settings"))?;
    let power = power_table(runs, args.seed).map_err(|e| Problem::internal(e.to_string()))?;
    // Chance may carry a rate above α; only when its whole interval lies above is the method at fault.
    let passed = rates.iter().all(|r| r.low <= config.alpha);
    if args.json {
        say!(
            "{}",
            json!({"schema_version": 1, "alpha": config.alpha, "settings": args.settings, "trials": trials,
                "seed": args.seed, "passed": passed, "noise": rates, "power": power})
        );
    } else {
        let percent = |share: f64| format!("{:.2}%", share * 100.0);
        say!("{}", verdict(passed, config.alpha));
        say!("\n{:<10} {:>8} {:>8} {:>8}   95% interval", "noise", "runs", "claims", "rate");
        for r in &rates {
            let interval = format!("{} to {}", percent(r.low), percent(r.high));
            say!("{:<10} {:>8} {:>8} {:>8}   {interval}", r.noise.name(), r.runs, r.claims, percent(r.rate));
        }
        say!("\n{} identical settings, at most {} trials an experiment, seed {}.", args.settings, trials, args.seed);
        say!(
            "\nOne setting is better, with independent noise: how often it is found, and the median of the trials until then."
        );
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
        for PowerRow { cell, directed, uniform } in &power {
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
    Ok(if passed { Exit::Done } else { Exit::No })
}

/// One cell of the table, by both methods.
#[derive(serde::Serialize)]
struct PowerRow {
    cell: PowerCell,
    directed: Power,
    uniform: Power,
}

/// How often a gain is found that is there; a tenth of the runs is enough for that.
fn power_table(runs: u64, seed: u64) -> Result<Vec<PowerRow>, ExperimentError> {
    let runs = (runs / 10).max(1);
    let power = |cell: PowerCell, method| cell.power(method, runs, &mut ChaCha12Rng::seed_from_u64(seed));
    let row =
        |cell| Ok(PowerRow { cell, directed: power(cell, Method::Directed)?, uniform: power(cell, Method::Uniform)? });
    PowerCell::table().into_iter().map(row).collect()
}

/// The same on a real kernel: every experiment is journaled.
fn on_a_lab_path(args: &StatisticsArgs, lab: &str) -> Outcome {
    let settings = args.settings;
    let trials = args.trials.unwrap_or(40);
    let alpha = Config::new(settings).alpha;
    let asked = Identical {
        lab,
        runs: args.runs.unwrap_or(20),
        trials,
        settings,
        seed: args.seed,
        trial: args.trial,
        journal: args.journal.as_deref(),
        command: crate::cli::typed::command(),
    };
    let mut progress = Progress::new(false, args.json, false);
    let cancel = cancel_on_signals()?;
    let claims = identical::run(&asked, &cancel, &mut |event| progress.event(&event))?;
    if claims.runs == 0 {
        return Err(Problem::new(Fault::Stopped, "stopped before an experiment was done; its trials are journaled"));
    }
    let (low, high) = wt_experiment::proportion_interval(claims.claims, claims.runs);
    let rate = claims.claims as f64 / claims.runs as f64;
    let passed = low <= alpha;
    if args.json {
        let path = json!({"path": lab, "runs": claims.runs, "claims": claims.claims, "rate": rate, "low": low,
            "high": high, "trials": claims.trials, "experiments": claims.experiments});
        say!(
            "{}",
            json!({"schema_version": 1, "alpha": alpha, "settings": settings, "trials": trials, "seed": args.seed,
                "passed": passed, "lab": path})
        );
    } else {
        say!("{}", verdict(passed, alpha));
        say!(
            "\n{} of {} experiments on {lab} claimed something: {:.1}%, 95% interval {:.1}% to {:.1}%.",
            claims.claims,
            claims.runs,
            rate * 100.0,
            low * 100.0,
            high * 100.0
        );
        say!(
            "{settings} identical settings, {} trials in all, seed {}; all are in the journal.",
            claims.trials,
            args.seed
        );
        if passed && high > alpha {
            say!(
                "So few experiments can't show that the rate is below {:.0}%; more --runs narrow the interval.",
                alpha * 100.0
            );
        }
    }
    Ok(if passed { Exit::Done } else { Exit::No })
}

fn verdict(passed: bool, alpha: f64) -> String {
    let allowed = format!("{:.0}%", alpha * 100.0);
    if passed {
        format!(
            "Where nothing differs, the method claims a difference in no more than the {allowed} of experiments allowed."
        )
    } else {
        format!(
            "The method claims differences where there are none in more than {allowed} of experiments: don't trust it."
        )
    }
}
