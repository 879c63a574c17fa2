use crate::{Knob, Level, ParseError};

/// One knob and its level: `rwin=64KiB`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The knob.
    pub knob: Knob,
    /// The level it is set to; multiples of the MSS and the MTU stay multiples until the path is known.
    pub level: Level,
}

/// Why a text isn't an [`Assignment`].
#[derive(Debug, Clone, PartialEq)]
pub enum AssignmentError {
    /// There is no `=` in it.
    NoLevel,
    /// The knob or its level is invalid.
    Invalid(ParseError),
}

impl std::fmt::Display for AssignmentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoLevel => f.write_str("write KNOB=LEVEL, such as rwin=64KiB"),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AssignmentError {}

impl From<ParseError> for AssignmentError {
    fn from(error: ParseError) -> Self {
        Self::Invalid(error)
    }
}

impl std::str::FromStr for Assignment {
    type Err = AssignmentError;
    fn from_str(text: &str) -> Result<Self, AssignmentError> {
        let (name, level) = text.split_once('=').ok_or(AssignmentError::NoLevel)?;
        let knob: Knob = name.parse()?;
        Ok(Self { knob, level: knob.parse_level(level)? })
    }
}

impl std::fmt::Display for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.knob, self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["rwin=64KiB", "rwin=4x", "rwin=33xmtu", "cc=bbr", "sack=off", "initcwnd=20"] {
            let read: Assignment = text.parse().unwrap();
            assert_eq!(read.to_string().parse::<Assignment>().unwrap(), read, "{text}");
        }
    }

    #[test]
    fn what_is_no_assignment_says_what_one_is() {
        assert_eq!("rwin".parse::<Assignment>(), Err(AssignmentError::NoLevel));
        let error = "rwim=4x".parse::<Assignment>().unwrap_err();
        assert!(error.to_string().contains("rwin"), "the nearest knob is named: {error}");
    }
}
