use std::time::Duration;
use wt_units::{Ratio, format_duration, parse_duration};

/// What a parameter counts. The C source holds every one as 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds; written as a time.
    Time,
    /// Millionths; written as a share.
    Share,
    /// A number.
    Count,
    /// 0 or 1; written off or on.
    Switch,
}

/// One parameter of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// How people write it.
    pub name: &'static str,
    /// How the C source calls it.
    pub field: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What holds if nothing is asked for, in the source's unit.
    pub default: u32,
    /// The least and the most that is allowed, in the source's unit.
    pub range: (u32, u32),
    /// What it does.
    pub help: &'static str,
}

impl Parameter {
    /// Reads a value in the source's unit.
    ///
    /// # Errors
    /// A sentence with what is allowed.
    pub fn parse(&self, text: &str) -> Result<u32, String> {
        let wrong = || format!("{}={text}: allowed is {}", self.name, self.allowed());
        let value = match self.unit {
            Unit::Time => {
                let time = parse_duration(text).map_err(|_| wrong())?;
                u32::try_from(time.as_micros()).map_err(|_| wrong())?
            }
            Unit::Share => {
                let share: Ratio = text.parse().map_err(|_| wrong())?;
                (share.get() * 1e6).round() as u32
            }
            Unit::Count => text.parse().map_err(|_| wrong())?,
            Unit::Switch => match text {
                "on" | "1" => 1,
                "off" | "0" => 0,
                _ => return Err(wrong()),
            },
        };
        if (self.range.0..=self.range.1).contains(&value) { Ok(value) } else { Err(wrong()) }
    }

    /// Writes a value as [`Parameter::parse`] reads it.
    #[must_use]
    pub fn format(&self, value: u32) -> String {
        match self.unit {
            Unit::Time => format_duration(Duration::from_micros(value.into())),
            Unit::Share => format!("{}%", f64::from(value) / 1e4),
            Unit::Count => value.to_string(),
            Unit::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
        }
    }

    /// What may be written.
    #[must_use]
    pub fn allowed(&self) -> String {
        match self.unit {
            Unit::Switch => "on or off".to_owned(),
            _ => format!("{} to {}", self.format(self.range.0), self.format(self.range.1)),
        }
    }
}
