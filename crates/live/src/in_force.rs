//! What holds for connections with the targets when a trial asks for nothing.

use crate::change::Changer;
use crate::scope::{Scope, scope_of};
use crate::target::Target;
use wt_host::laid_down_toward;
use wt_trial::Direction;
use wt_units::{Knob, Level, Settings};

/// What the routes to all these targets, and rules for connections with them, lay down alike; nothing without the means to read it.
pub(crate) fn laid_down(changer: Option<&mut Changer>, targets: &[Target]) -> Settings {
    let Some(changer) = changer else { return Settings::new() };
    let mut all = targets.iter().map(|target| laid_down_toward(&mut changer.system, target.peer.ip()));
    let Some(Ok(first)) = all.next() else { return Settings::new() };
    all.fold(first, |alike, next| {
        let next = next.unwrap_or_default();
        alike.iter().filter(|(knob, level)| next.get(*knob) == Some(*level)).map(|(k, l)| (k, l.clone())).collect()
    })
}

/// The current settings: the host's own, but for what the way to the target lays down of what this end has a say in.
pub(crate) fn current(
    device_mtu: u64,
    congestion_control: &str,
    laid_down: &Settings,
    direction: Direction,
    target: Option<&Target>,
) -> Settings {
    let mut current = Settings::new().with(Knob::Mtu, Level::Number(device_mtu));
    if direction == Direction::Down {
        current.set(Knob::Rwin, Level::Auto);
    }
    if direction == Direction::Up {
        current.set(Knob::Cc, Level::Name(congestion_control.to_owned()));
    }
    let is_ours = |knob: Knob| match knob {
        // What a route announces bounds what comes in alone.
        Knob::Mss => direction == Direction::Down,
        _ => target.is_some_and(|target| {
            matches!(scope_of(knob, direction, target.url.scheme), Ok(Scope::Socket | Scope::Route | Scope::Host))
        }),
    };
    for (knob, level) in laid_down.iter().filter(|(knob, _)| is_ours(*knob)) {
        match (knob, level) {
            // The device sends nothing longer, whatever a route says.
            (Knob::Mtu, Level::Number(mtu)) => current.set(knob, Level::Number(device_mtu.min(*mtu))),
            _ => current.set(knob, level.clone()),
        }
    }
    current
}

/// Why no socket can have this level: the way to `target` bounds it to less.
pub(crate) fn out_of_reach(
    (knob, level): (Knob, &Level),
    current: &Settings,
    device_mtu: u64,
    target: Option<&Target>,
) -> Option<String> {
    let (Level::Number(asked), most) = (level, current.number(knob)?) else { return None };
    let by_route = match knob {
        Knob::Mtu => most < device_mtu,
        Knob::Mss => true,
        _ => return None,
    };
    let to = target.map_or_else(|| "ADDRESS".to_owned(), |target| target.peer.ip().to_string());
    let change = format!("windtunnel settings apply {knob}={asked} --to {to} changes it");
    let route = || format!("the route there has {knob} {most}: {change}, or compare levels up to that");
    let device = || format!("the device takes at most {most} bytes");
    (*asked > most).then(|| if by_route { route() } else { device() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_trial::Cancel;

    fn settings(pairs: &[(Knob, Level)]) -> Settings {
        pairs.iter().cloned().collect()
    }

    #[test]
    fn what_the_route_lays_down_is_current_as_far_as_this_end_has_a_say_in_it() {
        let target = Target::find("http://192.0.2.1/".parse().unwrap(), None, &Cancel::new()).unwrap();
        let (n, reno) = (Level::Number, Level::Name("reno".into()));
        let laid = settings(&[
            (Knob::Mtu, n(1_000)),
            (Knob::Mss, n(536)),
            (Knob::Cc, reno.clone()),
            (Knob::Initcwnd, n(20)),
            (Knob::Initrwnd, n(30)),
            (Knob::Rwin, n(8_192)),
        ]);
        let of = |laid: &Settings, direction| current(1_500, "bbr", laid, direction, Some(&target));
        let down =
            settings(&[(Knob::Rwin, n(8_192)), (Knob::Mtu, n(1_000)), (Knob::Mss, n(536)), (Knob::Initrwnd, n(30))]);
        assert_eq!(of(&laid, Direction::Down), down);
        let up = settings(&[(Knob::Mtu, n(1_000)), (Knob::Cc, reno), (Knob::Initcwnd, n(20))]);
        assert_eq!(of(&laid, Direction::Up), up);
        let none = Settings::new();
        assert_eq!(of(&none, Direction::Down), settings(&[(Knob::Rwin, Level::Auto), (Knob::Mtu, n(1_500))]));
        assert_eq!(of(&settings(&[(Knob::Mtu, n(9_000))]), Direction::Up).number(Knob::Mtu), Some(1_500));
    }

    #[test]
    fn what_a_route_bounds_is_out_of_reach_of_a_socket_and_the_route_is_named() {
        let current = settings(&[(Knob::Mtu, Level::Number(576)), (Knob::Mss, Level::Number(536))]);
        let target = Target::find("http://192.0.2.1/".parse().unwrap(), None, &Cancel::new()).unwrap();
        let why = |knob, asked| out_of_reach((knob, &Level::Number(asked)), &current, 1_500, Some(&target));
        assert_eq!(
            why(Knob::Mtu, 1_000).unwrap(),
            "the route there has mtu 576: windtunnel settings apply mtu=1000 --to 192.0.2.1 changes it, or compare levels up to that"
        );
        assert!(why(Knob::Mss, 1_000).unwrap().contains("mss 536"));
        assert_eq!((why(Knob::Mtu, 576), why(Knob::Mss, 500), why(Knob::Rwin, 1 << 20)), (None, None, None));
        let plain = settings(&[(Knob::Mtu, Level::Number(1_500))]);
        let why = out_of_reach((Knob::Mtu, &Level::Number(9_000)), &plain, 1_500, None).unwrap();
        assert_eq!(why, "the device takes at most 1500 bytes");
    }
}
