//! `windtunnel self-test`: the method tested on itself.

use crate::edge::{Exit, Failure, Outcome, say};
use clap::builder::RangedU64ValueParser;
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde_json::json;
use wt_experiment::Config;
use wt_experiment::simulate::{ClaimRate, NoiseModel, claim_rate};

/// The method tested on itself
#[derive(Debug, clap::Args)]
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
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel self-test statistics
  windtunnel self-test statistics --runs 20000 --seed 7 --json")]
struct StatisticsArgs {
    /// Experiments on each kind of path
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    runs: u64,
    /// Trials that an experiment may take
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = RangedU64ValueParser::<usize>::new().range(2..=100_000))]
    trials: usize,
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
/// A [`Failure`] if the budget has no room for a round.
pub(crate) fn run(args: &SelfTestArgs) -> Outcome {
    match &args.what {
        What::Statistics(args) => statistics(args),
    }
}

fn statistics(args: &StatisticsArgs) -> Outcome {
    let config = Config { max_trials: Some(args.trials), ..Config::new(args.settings) };
    let rate = |noise: NoiseModel| {
        let mut rng = ChaCha12Rng::seed_from_u64(args.seed);
        claim_rate(noise, &config, args.runs, &mut rng)
    };
    let rates: Vec<ClaimRate> = NoiseModel::ALL
        .into_iter()
        .map(rate)
        .collect::<Result<_, _>>()
        .map_err(|e| Failure::usage(e.to_string()).hint("a larger --trials, or fewer --settings"))?;
    // Chance may carry a rate above α; only when its whole interval lies above is the method at fault.
    let passed = rates.iter().all(|r| r.low <= config.alpha);
    if args.json {
        say!(
            "{}",
            json!({"schema_version": 1, "alpha": config.alpha, "settings": args.settings, "trials": args.trials,
                "seed": args.seed, "passed": passed, "noise": rates})
        );
    } else {
        let percent = |share: f64| format!("{:.2}%", share * 100.0);
        say!("{}", verdict(passed, config.alpha));
        say!("\n{:<10} {:>8} {:>8} {:>8}   95% interval", "noise", "runs", "claims", "rate");
        for r in &rates {
            let interval = format!("{} to {}", percent(r.low), percent(r.high));
            say!("{:<10} {:>8} {:>8} {:>8}   {interval}", r.noise.name(), r.runs, r.claims, percent(r.rate));
        }
        say!(
            "\n{} identical settings, at most {} trials an experiment, seed {}.",
            args.settings,
            args.trials,
            args.seed
        );
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
