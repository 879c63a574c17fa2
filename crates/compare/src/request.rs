//! What all comparisons over an emulated path are asked.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::{Backend, Lab, LabOptions, Scenario};
use wt_problem::Problem;

/// The emulated path of a comparison, and how its trials are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabRequest {
    /// The path: a preset's name or a TOML file.
    pub path: String,
    /// Seeds everything random on the path.
    pub seed: u64,
    /// Draws the order of the trials: only to repeat an order. Nothing means that the operating system draws one.
    pub order_seed: Option<u64>,
    /// How the emulator reaches the hosts' kernels.
    pub backend: Backend,
    /// Keep this machine's processors awake while the lab is up: packets wait less; it costs all of their idle time and needs root.
    pub sharp: bool,
    /// Note stored with the comparison.
    pub comment: String,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
    /// What was typed to ask for this, so that it can be typed again; without passwords and keys.
    pub command: String,
}

impl Default for LabRequest {
    fn default() -> Self {
        Self {
            path: String::new(),
            seed: 1,
            order_seed: None,
            backend: Backend::default(),
            sharp: false,
            comment: String::new(),
            journal: None,
            command: String::new(),
        }
    }
}

impl LabRequest {
    /// On this path, with everything else as usual.
    pub fn on(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// The same with an order, which the operating system draws if none was given.
    ///
    /// # Errors
    /// An environment problem where the system gives no random numbers.
    pub(super) fn ordered(&self) -> Result<Self, Problem> {
        let order_seed = Some(self.order_seed.map_or_else(wt_setup::draw_order_seed, Ok)?);
        Ok(Self { order_seed, ..self.clone() })
    }

    /// What the order is drawn from.
    pub(super) fn order_seed(&self) -> u64 {
        self.order_seed.unwrap_or(self.seed)
    }

    /// Starts the lab. Must be called before any other thread runs.
    ///
    /// # Errors
    /// An environment [`Problem`] that says what is missing.
    pub(super) fn start(&self, scenario: Scenario) -> Result<Lab, Problem> {
        let options = LabOptions { sharp: self.sharp, ..LabOptions::seeded(self.backend, self.seed) };
        wt_setup::lab::start_in_reach(scenario, options, [self.journal.as_deref(), None])
    }
}

/// Whether a trial may take so long.
///
/// # Errors
/// A usage [`Problem`] with what is allowed.
pub(super) fn check_trial(what: &str, time: Option<Duration>) -> Result<(), Problem> {
    let allowed = Duration::from_millis(200)..=Duration::from_secs(3600);
    match time.filter(|time| !allowed.contains(time)) {
        Some(time) => {
            Err(Problem::usage(format!("{what} of {} s is out of range: allowed is 200ms to 1h", time.as_secs_f64())))
        }
        None => Ok(()),
    }
}

/// Whether so many rounds can be run.
///
/// # Errors
/// A usage [`Problem`] with what is allowed.
pub(super) fn check_rounds(rounds: u32, least: u32) -> Result<(), Problem> {
    if (least..=1000).contains(&rounds) {
        return Ok(());
    }
    Err(Problem::usage(format!("{rounds} rounds are out of range: allowed is {least} to 1000")))
}

/// Whether each is named once.
///
/// # Errors
/// A usage [`Problem`] with the first that is named twice.
pub(super) fn check_different(names: &[String]) -> Result<(), Problem> {
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => Err(Problem::usage(format!("{name} is named twice"))),
        None => Ok(()),
    }
}
