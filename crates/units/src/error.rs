/// What is wrong with a quantity that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// It doesn't begin with a number.
    NotANumber {
        /// Which quantity was expected.
        what: &'static str,
        /// What was written.
        text: String,
        /// What would have been right.
        example: &'static str,
    },
    /// It is below zero, and there are no such quantities.
    Negative {
        /// Which quantity was expected.
        what: &'static str,
        /// What was written.
        text: String,
    },
    /// The unit is unknown.
    UnknownUnit {
        /// Which quantity was expected.
        what: &'static str,
        /// The unit that was written, empty if it is missing.
        unit: String,
        /// The units there are.
        known: &'static str,
        /// The nearest of them, if one is near.
        nearest: Option<String>,
    },
    /// The value can't be held.
    TooLarge {
        /// Which quantity was expected.
        what: &'static str,
        /// What was written.
        text: String,
    },
    /// It is a share without its sign that is more than all.
    ShareAboveAll {
        /// What was written.
        text: String,
    },
    /// There is no such knob.
    UnknownKnob {
        /// What was written.
        text: String,
        /// The nearest names there are.
        nearest: Vec<String>,
    },
    /// The knob exists, but not this level of it.
    BadLevel {
        /// The knob.
        knob: &'static str,
        /// What was written.
        text: String,
        /// What is allowed.
        allowed: String,
    },
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotANumber { what, text, example } => {
                write!(f, "\"{text}\" is not a {what}: write a number with its unit, such as {example}")
            }
            Self::Negative { what, text } => write!(f, "\"{text}\": a {what} can't be negative"),
            Self::UnknownUnit { what, unit, known, nearest } => {
                if unit.is_empty() {
                    write!(f, "a {what} needs its unit: {known}")?;
                } else {
                    write!(f, "\"{unit}\" is not a unit of a {what}: use {known}")?;
                }
                nearest.as_ref().map_or(Ok(()), |near| write!(f, " (did you mean \"{near}\"?)"))
            }
            Self::TooLarge { what, text } => write!(f, "\"{text}\" is too large for a {what}"),
            Self::ShareAboveAll { text } => {
                write!(f, "\"{text}\" is more than all: a share without its sign is 0 to 1 (did you mean \"{text}%\"?)")
            }
            Self::UnknownKnob { text, nearest } if nearest.is_empty() => {
                write!(f, "there is no knob \"{text}\"; the knobs are {}", crate::Knob::names().join(", "))
            }
            Self::UnknownKnob { text, nearest } => {
                write!(f, "there is no knob \"{text}\": did you mean {}?", nearest.join(" or "))
            }
            Self::BadLevel { knob, text, allowed } => {
                write!(f, "\"{text}\" is not a level of {knob}: allowed is {allowed}")
            }
        }
    }
}

impl std::error::Error for ParseError {}
