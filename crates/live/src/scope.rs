use wt_load::Scheme;
use wt_trial::Direction;
use wt_units::Knob;

/// Where a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On the connection's own socket.
    Socket,
    /// Asked of the far end, which sets it on its socket.
    FarEnd,
    /// On a route to the target only.
    Route,
    /// On the whole host.
    Host,
}

/// The narrowest place where a knob can be set for payload in this direction; or why there is none.
///
/// # Errors
/// The reason, for people.
pub fn scope_of(knob: Knob, direction: Direction, scheme: Scheme) -> Result<Scope, &'static str> {
    use Direction::{Down, Up};
    const RECEIVER: &str = "the far end receives, and its window isn't ours to set; try --direction down";
    const SENDER: &str =
        "the far end sends, and it isn't ours to set there; try --direction up, or iperf3:// and wt:// for cc";
    match (knob, direction) {
        (Knob::Mss | Knob::Mtu | Knob::Ttl, _) | (Knob::Rwin, Down) | (Knob::Cc | Knob::Sndbuf, Up) => {
            Ok(Scope::Socket)
        }
        (Knob::Cc, Down) if matches!(scheme, Scheme::Iperf3 | Scheme::Wt) => Ok(Scope::FarEnd),
        (Knob::Sndbuf, Down) | (Knob::Rwin, Up) if scheme == Scheme::Wt => Ok(Scope::FarEnd),
        (Knob::Initrwnd, Down) | (Knob::Initcwnd, Up) => Ok(Scope::Route),
        (Knob::Rwin | Knob::Initrwnd, Up) => Err(RECEIVER),
        (Knob::Cc | Knob::Sndbuf | Knob::Initcwnd, Down) => Err(SENDER),
        (
            Knob::Sack | Knob::Timestamps | Knob::WindowScaling | Knob::Ecn | Knob::MtuProbing | Knob::Pmtud,
            Down | Up,
        ) => Ok(Scope::Host),
    }
}

/// What is varied when nobody says what: what one socket takes, the most telling first.
#[must_use]
pub(crate) fn usual_knobs(direction: Direction, scheme: Scheme) -> Vec<Knob> {
    let knobs = [Knob::Rwin, Knob::Mtu, Knob::Cc];
    let narrow = |knob: &Knob| matches!(scope_of(*knob, direction, scheme), Ok(Scope::Socket | Scope::FarEnd));
    knobs.into_iter().filter(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_has_a_place_or_a_reason_in_both_directions() {
        for knob in Knob::all() {
            for direction in [Direction::Down, Direction::Up] {
                if let Err(why) = scope_of(knob, direction, Scheme::Http) {
                    assert!(why.contains("far end"), "{knob}: {why}");
                }
            }
        }
    }

    #[test]
    fn what_is_varied_by_itself_touches_nobody_else() {
        assert_eq!(usual_knobs(Direction::Down, Scheme::Http), [Knob::Rwin, Knob::Mtu]);
        assert_eq!(usual_knobs(Direction::Up, Scheme::Https), [Knob::Mtu, Knob::Cc]);
        assert_eq!(usual_knobs(Direction::Down, Scheme::Iperf3), [Knob::Rwin, Knob::Mtu, Knob::Cc]);
    }
}
