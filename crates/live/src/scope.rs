use wt_load::Scheme;
use wt_trial::Direction;
use wt_units::{Knob, Level, Scopes, Settings, Side};

/// Where a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On the connection's own socket.
    Socket,
    /// Asked of the remote host, which sets it on its socket.
    RemoteHost,
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
    let scopes = knob.scopes();
    let ours = match knob.side() {
        Side::Sender => direction == Direction::Up,
        Side::Receiver => direction == Direction::Down,
        Side::Own => true,
    };
    if ours {
        return Ok(match scopes {
            Scopes { socket: true, .. } => Scope::Socket,
            // Who sets it on a route spares the host's other connections; a switch that both ends agree on is set for all.
            Scopes { route: true, host: false, .. } => Scope::Route,
            Scopes { .. } => Scope::Host,
        });
    }
    if far_end_sets(knob, scheme) {
        return Ok(Scope::RemoteHost);
    }
    Err(match knob.side() {
        Side::Receiver => "the remote host receives, and its window isn't ours to set; try --direction down",
        Side::Sender | Side::Own => {
            "the remote host sends, and it isn't ours to set there; try --direction up, or iperf3:// and wt:// for cc"
        }
    })
}

/// Whether a remote host of this kind sets a knob on its socket when it is asked to.
fn far_end_sets(knob: Knob, scheme: Scheme) -> bool {
    match knob {
        Knob::Cc => matches!(scheme, Scheme::Iperf3 | Scheme::Wt),
        Knob::Sndbuf | Knob::Rwin => scheme == Scheme::Wt,
        Knob::Initcwnd | Knob::Initrwnd | Knob::Mtu | Knob::Mss | Knob::Ttl => false,
        Knob::Sack | Knob::Timestamps | Knob::WindowScaling | Knob::Ecn | Knob::MtuProbing | Knob::Pmtud => false,
    }
}

/// What is varied when nobody says what: what one socket takes, the most telling first.
#[must_use]
pub(crate) fn usual_knobs(direction: Direction, scheme: Scheme) -> Vec<Knob> {
    let knobs = [Knob::Rwin, Knob::Mtu, Knob::Cc];
    let narrow = |knob: &Knob| matches!(scope_of(*knob, direction, scheme), Ok(Scope::Socket | Scope::RemoteHost));
    knobs.into_iter().filter(narrow).collect()
}

/// What is set on the connection's own socket: an MTU as the MSS that it leaves room for.
pub(crate) fn own_settings(settings: &Settings, headers: u64) -> Settings {
    let mut own = settings.clone();
    if let Some(mtu) = settings.number(Knob::Mtu) {
        let mss = settings.number(Knob::Mss).unwrap_or(u64::MAX).min(mtu.saturating_sub(headers));
        own.set(Knob::Mss, Level::Number(mss));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_has_a_place_or_a_reason_in_both_directions() {
        for knob in Knob::all() {
            for direction in [Direction::Down, Direction::Up] {
                if let Err(why) = scope_of(knob, direction, Scheme::Http) {
                    assert!(why.contains("remote host"), "{knob}: {why}");
                }
            }
        }
    }

    #[test]
    fn each_knob_has_the_narrowest_place_of_its_end() {
        use Direction::{Down, Up};
        for (knobs, direction, scheme, scope) in [
            (&[Knob::Mss, Knob::Mtu, Knob::Ttl, Knob::Rwin][..], Down, Scheme::Http, Some(Scope::Socket)),
            (&[Knob::Mss, Knob::Mtu, Knob::Ttl, Knob::Cc, Knob::Sndbuf], Up, Scheme::Wt, Some(Scope::Socket)),
            (&[Knob::Initrwnd], Down, Scheme::Wt, Some(Scope::Route)),
            (&[Knob::Initcwnd], Up, Scheme::Http, Some(Scope::Route)),
            (&[Knob::Cc], Down, Scheme::Iperf3, Some(Scope::RemoteHost)),
            (&[Knob::Cc, Knob::Sndbuf], Down, Scheme::Wt, Some(Scope::RemoteHost)),
            (&[Knob::Rwin], Up, Scheme::Wt, Some(Scope::RemoteHost)),
            (&[Knob::Cc, Knob::Sndbuf, Knob::Initcwnd], Down, Scheme::Https, None),
            (&[Knob::Rwin, Knob::Initrwnd], Up, Scheme::Ftp, None),
            (&[Knob::Initrwnd], Up, Scheme::Wt, None),
            (&[Knob::Sack, Knob::Timestamps, Knob::WindowScaling], Up, Scheme::Http, Some(Scope::Host)),
            (&[Knob::Ecn, Knob::MtuProbing, Knob::Pmtud], Down, Scheme::Wt, Some(Scope::Host)),
        ] {
            for knob in knobs {
                assert_eq!(scope_of(*knob, direction, scheme).ok(), scope, "{knob} {direction:?} {scheme:?}");
            }
        }
    }

    #[test]
    fn what_is_varied_by_itself_touches_nobody_else() {
        assert_eq!(usual_knobs(Direction::Down, Scheme::Http), [Knob::Rwin, Knob::Mtu]);
        assert_eq!(usual_knobs(Direction::Up, Scheme::Https), [Knob::Mtu, Knob::Cc]);
        assert_eq!(usual_knobs(Direction::Down, Scheme::Iperf3), [Knob::Rwin, Knob::Mtu, Knob::Cc]);
    }

    #[test]
    fn an_mtu_is_set_as_the_mss_that_it_leaves_room_for() {
        let asked = Settings::new().with(Knob::Mtu, Level::Number(1400));
        assert_eq!(own_settings(&asked, 40).number(Knob::Mss), Some(1360));
        assert_eq!(own_settings(&asked, 60).number(Knob::Mss), Some(1340));
        let both = asked.with(Knob::Mss, Level::Number(1000));
        assert_eq!(own_settings(&both, 40).number(Knob::Mss), Some(1000));
    }
}
