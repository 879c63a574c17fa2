//! The current settings, as far as an experiment asks for them.

use super::session::Session;
use wt_setup::Baseline;
use wt_setup::design::level_of_linux;
use wt_trial::Tunnel;
use wt_units::{Knob, Level, Settings};

impl<T: Tunnel> Session<'_, T> {
    /// The current settings, with what Linux does by itself where just that is among `asked`: whoever compares it with them compares it
    /// with itself. On a real path nobody knows that of the other end, nor of this one without a look.
    pub(crate) fn current_beside(&self, asked: &[(Knob, Level)]) -> Settings {
        let current = self.tunnel.current();
        if self.live.is_some() { current } else { with_defaults(current, asked) }
    }

    /// The levels that somebody named, in whatever way.
    pub(crate) fn levels_asked_for(&self) -> Vec<(Knob, Level)> {
        let request = self.request;
        let levels = request.levels.iter().flat_map(|of| of.levels.iter().map(|level| (of.knob, level.clone())));
        let baseline = match &request.baseline {
            Some(Baseline::Settings(list)) => list.as_slice(),
            _ => &[],
        };
        let named = request.arms.iter().flat_map(|arm| &arm.settings).chain(baseline);
        levels.chain(named.map(|own| (own.knob, own.level.clone()))).collect()
    }
}

fn with_defaults(current: Settings, asked: &[(Knob, Level)]) -> Settings {
    let is_default = |(knob, level): &&(Knob, Level)| level_of_linux(*knob).as_ref() == Some(level);
    let added = asked.iter().filter(is_default).filter(|(knob, _)| current.get(*knob).is_none());
    added.fold(current.clone(), |all, (knob, level)| all.with(*knob, level.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_does_by_itself_is_among_the_current_settings_where_it_is_asked_for() {
        let current = Settings::new().with(Knob::Mtu, Level::Number(1500));
        let name = |name: &str| Level::Name(name.to_owned());
        let asked =
            [(Knob::Initcwnd, Level::Number(3)), (Knob::Initcwnd, Level::Number(10)), (Knob::Sack, name("off"))];
        assert_eq!(with_defaults(current.clone(), &asked).to_string(), "mtu=1500 initcwnd=10");
        assert_eq!(with_defaults(current.clone(), &asked[..1]), current);
        // What is held is so already.
        let held = current.with(Knob::Initcwnd, Level::Number(3));
        assert_eq!(with_defaults(held.clone(), &asked), held);
    }
}
