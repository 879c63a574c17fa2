//! The method tested on itself: how often it claims a difference where there is none.

use crate::event::Sink;
use crate::identical::{self, Identical};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use wt_experiment::simulate::{ClaimRate, NoiseModel, Power, PowerCell, claim_rate};
use wt_experiment::{Config, ExperimentError, Method};
use wt_problem::{Fault, Problem};
use wt_trial::Cancel;
use wt_units::serde_duration;

/// Experiments in which nothing differs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelfTestRequest {
    /// Real transfers over this emulated path, a preset's name or a TOML file; nothing means that paths are simulated.
    pub lab: Option<String>,
    /// Experiments on each kind of path, 1 to 1,000,000; nothing means 2000, with a lab 20.
    pub runs: Option<u64>,
    /// Trials that an experiment may take; nothing means 120, with a lab 40.
    pub trials: Option<usize>,
    /// How long each trial of a lab transfers.
    #[serde(with = "serde_duration")]
    pub trial: Duration,
    /// Settings in an experiment, the current one included: 2 to 64.
    pub settings: usize,
    /// Seeds everything random.
    pub seed: u64,
    /// The journal's file, of a lab's; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// What was typed to ask for this.
    pub command: String,
}

impl Default for SelfTestRequest {
    fn default() -> Self {
        Self {
            lab: None,
            runs: None,
            trials: None,
            trial: Duration::from_millis(250),
            settings: 4,
            seed: 1,
            journal: None,
            command: String::new(),
        }
    }
}

/// How often the method claimed something.
#[derive(Debug, Clone, Serialize)]
pub struct SelfTestAnswer {
    /// The version of this form.
    pub schema_version: u32,
    /// The share of experiments that may claim something.
    pub alpha: f64,
    /// Settings in each, all the same.
    pub settings: usize,
    /// Trials that each could take.
    pub trials: usize,
    /// What everything random was drawn from.
    pub seed: u64,
    /// Whether it isn't shown that more claimed something than may.
    pub passed: bool,
    /// By kind of noise, where paths were simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Vec<ClaimRate>>,
    /// How often a gain is found that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Vec<PowerRow>>,
    /// On a path of the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabClaims>,
}

/// What experiments on a path of the lab claimed.
#[derive(Debug, Clone, Serialize)]
pub struct LabClaims {
    /// The path.
    pub path: String,
    /// Experiments that ended by themselves.
    pub runs: u64,
    /// Of those, with a claim.
    pub claims: u64,
    /// Their share.
    pub rate: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Trials in all.
    pub trials: usize,
    /// Their names in the journal.
    pub experiments: Vec<String>,
}

/// One cell of the table of power, by both methods.
#[derive(Debug, Clone, Serialize)]
pub struct PowerRow {
    /// Settings, trials, noise and gain.
    pub cell: PowerCell,
    /// Experiments by each method.
    pub runs: u64,
    /// By the method in use.
    pub directed: Power,
    /// By running every setting in every round.
    pub uniform: Power,
}

/// Counts the claims of experiments in which all settings are the same.
///
/// # Errors
/// A usage [`Problem`] if the trials have no room for a round; with a lab, what experiments end with.
pub fn self_test(request: &SelfTestRequest, cancel: &Cancel, events: Sink<'_>) -> Result<SelfTestAnswer, Problem> {
    if !(2..=64).contains(&request.settings) || request.runs.is_some_and(|runs| !(1..=1_000_000).contains(&runs)) {
        return Err(Problem::usage("2 to 64 settings and 1 to 1,000,000 runs can be tested"));
    }
    match &request.lab {
        Some(lab) => on_a_lab_path(request, lab, cancel, events),
        None => simulated(request),
    }
}

fn simulated(request: &SelfTestRequest) -> Result<SelfTestAnswer, Problem> {
    let (runs, trials) = (request.runs.unwrap_or(2000), request.trials.unwrap_or(120));
    let config = Config { max_trials: Some(trials), ..Config::new(request.settings) };
    let rate = |noise: NoiseModel| {
        let mut rng = ChaCha12Rng::seed_from_u64(request.seed);
        claim_rate(noise, &config, runs, &mut rng)
    };
    let rates = NoiseModel::ALL.into_iter().map(rate).collect::<Result<Vec<_>, _>>();
    let rates =
        rates.map_err(|error| Problem::usage(error.to_string()).hint("a larger --trials, or fewer --settings"))?;
    let power = power_table(runs, request.seed).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(SelfTestAnswer {
        // Chance may carry a rate above α; only when its whole interval lies above is the method at fault.
        passed: rates.iter().all(|rate| rate.low <= config.alpha),
        noise: Some(rates),
        power: Some(power),
        ..answer(request, trials, config.alpha)
    })
}

fn answer(request: &SelfTestRequest, trials: usize, alpha: f64) -> SelfTestAnswer {
    let SelfTestRequest { settings, seed, .. } = *request;
    SelfTestAnswer {
        schema_version: 1,
        alpha,
        settings,
        trials,
        seed,
        passed: false,
        noise: None,
        power: None,
        lab: None,
    }
}

/// How often a gain is found that is there; a tenth of the runs is enough for that.
fn power_table(runs: u64, seed: u64) -> Result<Vec<PowerRow>, ExperimentError> {
    let runs = (runs / 10).max(1);
    let power = |cell: PowerCell, method| cell.power(method, runs, &mut ChaCha12Rng::seed_from_u64(seed));
    let row = |cell| {
        Ok(PowerRow { cell, runs, directed: power(cell, Method::Directed)?, uniform: power(cell, Method::Uniform)? })
    };
    PowerCell::table().into_iter().map(row).collect()
}

/// The same on a real kernel: every experiment is journaled.
fn on_a_lab_path(
    request: &SelfTestRequest,
    lab: &str,
    cancel: &Cancel,
    events: Sink<'_>,
) -> Result<SelfTestAnswer, Problem> {
    let trials = request.trials.unwrap_or(40);
    let alpha = Config::new(request.settings).alpha;
    let asked = Identical {
        lab,
        runs: request.runs.unwrap_or(20),
        trials,
        settings: request.settings,
        seed: request.seed,
        trial: request.trial,
        journal: request.journal.as_deref(),
        command: request.command.clone(),
    };
    let found = identical::run(&asked, cancel, events)?;
    if found.runs == 0 {
        return Err(Problem::new(Fault::Stopped, "stopped before an experiment was done; its trials are journaled"));
    }
    let (low, high) = wt_experiment::proportion_interval(found.claims, found.runs);
    let rate = found.claims as f64 / found.runs as f64;
    let identical::Claims { runs, claims, trials: all, experiments } = found;
    let path = lab.to_owned();
    Ok(SelfTestAnswer {
        passed: low <= alpha,
        lab: Some(LabClaims { path, runs, claims, rate, low, high, trials: all, experiments }),
        ..answer(request, trials, alpha)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_figures_that_the_test_prints() {
        let config = Config { max_trials: Some(120), ..Config::new(4) };
        let rows: Vec<[String; 4]> = NoiseModel::ALL
            .into_iter()
            .map(|noise| {
                let seed = SelfTestRequest::default().seed;
                let rate = claim_rate(noise, &config, 2000, &mut ChaCha12Rng::seed_from_u64(seed)).unwrap();
                let percent = format!("{:.2}%", rate.rate * 100.0);
                [noise.name().to_owned(), rate.runs.to_string(), rate.claims.to_string(), percent]
            })
            .collect();
        let pages =
            [include_str!("../../../docs/guide/verdicts.md"), include_str!("../../../docs/results/statistics.md")];
        for page in pages {
            let (_, sample) = page.split_once("$ windtunnel self-test statistics\n").unwrap();
            let lines = sample.lines().skip(3).take(rows.len());
            let shown: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().take(4).collect()).collect();
            assert_eq!(shown, rows);
        }
    }
}
