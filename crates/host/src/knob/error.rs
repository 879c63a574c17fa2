/// What is wrong with a setting that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// There is no such setting.
    #[error("there is no setting \"{text}\"{}", did_you_mean(nearest))]
    Unknown {
        /// What was written.
        text: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// The setting exists, but not this value of it.
    #[error("\"{text}\" is not a value of {key}: allowed is {allowed}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// What was written.
        text: String,
        /// What may be written.
        allowed: String,
    },
    /// It isn't `KEY=VALUE`.
    #[error("\"{0}\" is not KEY=VALUE")]
    NoValue(String),
    /// The same setting twice, with different values.
    #[error("{key} is given twice: {first} and {second}")]
    Twice {
        /// The setting.
        key: &'static str,
        /// The first value.
        first: String,
        /// The other one.
        second: String,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "; windtunnel settings show lists them".to_owned()
    } else {
        format!(": did you mean {}?", nearest.join(" or "))
    }
}
