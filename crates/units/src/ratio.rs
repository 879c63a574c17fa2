use crate::{ParseError, split_number};

/// A share of one: loss, efficiency, ε. `0.1%` is 0.001.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(pub f64);

impl Ratio {
    /// The bare share of one.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Twelve significant digits hide the binary remainder of × 100 and still read back as the same share.
        let percent = (self.0 * 100.0 * 1e10).round() / 1e10;
        write!(f, "{percent}%")
    }
}

impl std::str::FromStr for Ratio {
    type Err = ParseError;
    /// Reads `0.1%`, `0.001` or `1e-3`; more than 1 needs its sign, since hardly anybody means 500% by 5.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Ok(bare) = text.trim().parse::<f64>() {
            return if bare < 0.0 {
                Err(ParseError::Negative { what: "share", text: text.to_owned() })
            } else if bare <= 1.0 {
                Ok(Self(bare))
            } else if bare.is_finite() {
                Err(ParseError::ShareAboveAll { text: text.trim().to_owned() })
            } else {
                Err(ParseError::NotANumber { what: "share", text: text.to_owned(), example: "0.1%" })
            };
        }
        let (value, unit) = split_number(text, "share", "0.1%")?;
        if unit == "%" {
            Ok(Self(value / 100.0))
        } else {
            Err(ParseError::UnknownUnit { what: "share", unit, known: "% or a bare number", nearest: None })
        }
    }
}
