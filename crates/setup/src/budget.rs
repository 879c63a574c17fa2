//! How much an experiment may cost, and what that comes to in trials.

use crate::text;
use std::time::Duration;
use wt_units::{Bytes, parse_duration};

/// What an experiment may cost at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// So long, at least 1 s.
    Time(Duration),
    /// So much payload.
    Size(Bytes),
    /// So many trials.
    Trials(usize),
}

impl std::str::FromStr for Budget {
    type Err = String;
    /// Reads `10min`, `200MB` or `60 trials`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(number) = text.trim().strip_suffix("trials").or_else(|| text.trim().strip_suffix("trial")) {
            let trials = number.trim().parse().map_err(|_| format!("\"{text}\": write a whole number of trials"))?;
            return if (2..=1_000_000).contains(&trials) {
                Ok(Self::Trials(trials))
            } else {
                Err(format!("{trials} trials: allowed is 2 to 1000000"))
            };
        }
        if let Ok(time) = parse_duration(text) {
            return if time >= Duration::from_secs(1) { Ok(Self::Time(time)) } else { Err("at least 1s".to_owned()) };
        }
        let size: Result<Bytes, _> = text.parse();
        match size {
            Ok(size) if text.trim().ends_with(|c: char| c.is_ascii_alphabetic()) && size.get() > 0 => {
                Ok(Self::Size(size))
            }
            _ if text.trim().bytes().all(|b| b.is_ascii_digit()) && !text.trim().is_empty() => {
                let number = text.trim();
                Err(format!("\"{number}\" has no unit: did you mean {number}min, {number}MB or \"{number} trials\"?"))
            }
            _ => Err(format!(
                "\"{text}\" is no budget: write a time (10min), a size (200MB) or a number of trials (60 trials)"
            )),
        }
    }
}

impl std::fmt::Display for Budget {
    /// In the grammar that is read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(time) => f.write_str(&wt_units::format_duration(*time)),
            // In bytes: a rounded size would be another budget.
            Self::Size(size) => write!(f, "{}B", size.get()),
            Self::Trials(trials) => write!(f, "{trials} trials"),
        }
    }
}

text::serde_as_text!(Budget);

impl Budget {
    /// The most trials that it allows, each taking `per_trial` and at most so many bytes.
    pub fn trials(self, per_trial: Duration, bytes_per_trial: u64) -> usize {
        let most = match self {
            Self::Time(time) => time.as_nanos() / per_trial.as_nanos().max(1),
            Self::Size(size) => u128::from(size.get() / bytes_per_trial.max(1)),
            Self::Trials(trials) => trials as u128,
        };
        usize::try_from(most).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_times_sizes_or_numbers() {
        assert_eq!("10min".parse(), Ok(Budget::Time(Duration::from_secs(600))));
        assert_eq!("200MB".parse(), Ok(Budget::Size(Bytes(200_000_000))));
        assert_eq!("60 trials".parse(), Ok(Budget::Trials(60)));
        for text in ["60", "", "trials", "1 trial", "10 parsecs", "0s", "-3min"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_budget_comes_to_trials() {
        assert_eq!(Budget::Time(Duration::from_secs(60)).trials(Duration::from_secs(3), 1), 20);
        assert_eq!(Budget::Size(Bytes(10_000)).trials(Duration::from_secs(3), 1000), 10);
    }
}
