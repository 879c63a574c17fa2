/// What is wrong with a configuration or a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExperimentError {
    /// Too few or too many settings.
    #[error("an experiment compares 2 to {most} settings, the current one included, not {arms}")]
    Arms {
        /// What was asked for.
        arms: usize,
        /// The most.
        most: usize,
    },
    /// A share that is none.
    #[error("{name} lies between 0 and 1, both excluded, not {value}")]
    Share {
        /// Which.
        name: &'static str,
        /// What was asked for.
        value: f64,
    },
    /// Weights that don't fit the candidates.
    #[error("there must be {candidates} weights, one for each candidate, all positive")]
    Weights {
        /// The number of candidates.
        candidates: usize,
    },
    /// A budget without room for a round.
    #[error("a budget of {most} trials has no room for one round of {arms}")]
    Budget {
        /// The budget.
        most: usize,
        /// The number of settings.
        arms: usize,
    },
    /// Levels that aren't settings of the experiment, or repeated.
    #[error("the levels of the plateau must be different settings below {arms}")]
    Levels {
        /// The number of settings.
        arms: usize,
    },
    /// Weights that don't fit the levels.
    #[error("there must be {levels} weights, one for each level (the current setting included), all positive")]
    LevelWeights {
        /// The number of levels.
        levels: usize,
    },
    /// A setting that the experiment doesn't have, or one twice in a round.
    #[error("setting {arm} of {arms} is unknown or occurs twice in the round")]
    Arm {
        /// The setting.
        arm: usize,
        /// The number of settings.
        arms: usize,
    },
    /// An outcome that is no finite number: no byte or no time. Hand such a trial in as failed or void.
    #[error("the outcome of setting {arm} is {y}; a trial without bytes is failed, one that says nothing is void")]
    Outcome {
        /// The setting.
        arm: usize,
        /// The outcome.
        y: f64,
    },
}
