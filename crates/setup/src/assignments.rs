use crate::arms::full_with;
use crate::{Arm, Design, DesignFacts};
use wt_problem::Problem;
use wt_units::{Assignment, FullPacket, Settings};

/// All of them as settings; multiples become bytes, of the packet that the same settings leave of the path's.
///
/// # Errors
/// A usage problem where a knob is named twice.
pub fn settings_of(asked: &[Assignment], path: FullPacket) -> Result<Settings, Problem> {
    let full = full_with(asked, path);
    let mut settings = Settings::new();
    for Assignment { knob, level } in asked {
        if settings.get(*knob).is_some() {
            return Err(Problem::usage(format!("{knob} is set twice")).hint("name each knob once"));
        }
        settings.set(*knob, level.clone().resolve(full));
    }
    Ok(settings)
}

/// The current settings, and what is asked for.
///
/// # Errors
/// As [`settings_of`].
pub fn together(asked: &[Assignment], facts: &DesignFacts<'_>) -> Result<Design, Problem> {
    let settings = settings_of(asked, facts.full_packet())?;
    let current = Arm {
        settings: Settings::new(),
        label: format!("current ({})", facts.current),
        why: "what holds when nothing is asked for".to_owned(),
    };
    let asked = Arm { label: settings.to_string(), settings, why: "asked for".to_owned() };
    Ok(Design { arms: vec![current, asked], plateau: None })
}
