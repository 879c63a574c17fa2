//! Settings that are asked for together, instead of knob by knob.

use crate::commands::tune::design::{Arm, Design, Known};
use crate::edge::Failure;
use wt_units::{Bytes, Knob, Level, Settings};

/// One knob and its level: `rwin=64KiB`.
#[derive(Debug, Clone)]
pub(crate) struct One {
    knob: Knob,
    level: Level,
}

impl std::str::FromStr for One {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = text.split_once('=').ok_or("write KNOB=LEVEL, such as rwin=64KiB")?;
        let knob: Knob = name.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
        let level = knob.parse_level(level).map_err(|error| error.to_string())?;
        Ok(Self { knob, level })
    }
}

impl One {
    /// The knob.
    pub(crate) fn knob(&self) -> Knob {
        self.knob
    }

    /// What it is to be.
    pub(crate) fn level(&self) -> &Level {
        &self.level
    }
}

/// All of them as settings; multiples of the MSS (bytes) become bytes.
///
/// # Errors
/// A usage failure where a knob is named twice.
pub(crate) fn settings(asked: &[One], mss: u64) -> Result<Settings, Failure> {
    let mut settings = Settings::new();
    for One { knob, level } in asked {
        if settings.get(*knob).is_some() {
            return Err(Failure::usage(format!("{knob} is set twice")).hint("name each knob once"));
        }
        settings.set(*knob, level.clone().resolve(Bytes(mss)));
    }
    Ok(settings)
}

/// The current settings, and what is asked for.
///
/// # Errors
/// As [`settings`].
pub(super) fn design(asked: &[One], known: &Known<'_>) -> Result<Design, Failure> {
    let settings = settings(asked, known.mss)?;
    let current = Arm {
        settings: Settings::new(),
        label: format!("current ({})", known.current),
        why: "what holds when nothing is asked for".to_owned(),
    };
    let asked = Arm { label: settings.to_string(), settings, why: "asked for".to_owned() };
    Ok(Design { arms: vec![current, asked], plateau: None })
}
