use clap::{Args, ValueEnum};
use std::time::Duration;
use wt_trial::Direction;
use wt_tune::{Goal, TrialDirection};
use wt_units::parse_duration;

/// How long one trial transfers: 200 ms to 1 h.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn trial_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(200)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err(format!("{text} is out of range: allowed is 200ms to 1h")) }
}

/// Directions by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionName {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
    /// One each way at once
    Both,
}

impl From<DirectionName> for TrialDirection {
    fn from(name: DirectionName) -> Self {
        match name {
            DirectionName::Down => Self::Down,
            DirectionName::Up => Self::Up,
            DirectionName::Both => Self::Both,
        }
    }
}

/// Which way the payload goes, where it goes one way only.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Way {
    /// Which way the payload goes, seen from the client
    #[arg(long, value_enum, default_value_t = OneWay::Down)]
    direction: OneWay,
    /// As --direction up
    #[arg(long, hide = true, conflicts_with = "direction")]
    up: bool,
}

/// One direction by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OneWay {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
}

impl Way {
    pub(crate) const fn direction(self) -> Direction {
        match (self.direction, self.up) {
            (OneWay::Down, false) => Direction::Down,
            _ => Direction::Up,
        }
    }
}

/// Goals by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum GoalName {
    /// The most goodput, whatever the delay
    Goodput,
    /// The most goodput, and the same with less delay
    #[default]
    Balanced,
    /// Less delay at the same goodput first
    Delay,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Goodput => Self::Goodput,
            GoalName::Balanced => Self::Balanced,
            GoalName::Delay => Self::Delay,
        }
    }
}
