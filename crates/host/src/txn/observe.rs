//! What a connection shows of a change, beside what the kernel says it has set.

use super::outcome::AppliedRow;
use crate::change::{Change, Place};
use crate::knob::{Knob, Value};
use crate::snapshot::{RouteIndex, Snapshot};
use crate::system::{ObservedConnection, System};
use std::net::IpAddr;

/// Makes a connection for each place of the changes, and writes into their rows what it had; what differs from what was asked,
/// in words. A place to which no connection can be made is passed over: there is nothing to compare.
pub(super) fn observe(
    system: &mut dyn System,
    changes: &[Change],
    wanted: &Snapshot,
    rows: &mut [AppliedRow],
) -> Result<(), String> {
    let mut seen: Vec<(Option<IpAddr>, Option<ObservedConnection>)> = Vec::new();
    let mut wrong = Vec::new();
    let routes = RouteIndex::of(&wanted.routes);
    for (change, row) in changes.iter().zip(rows).filter(|(change, _)| !change.unchanged) {
        let Some(place) = place_of(change, wanted, &routes) else { continue };
        let known = seen.iter().position(|(at, _)| *at == place);
        let at = known.unwrap_or_else(|| {
            seen.push((place, system.observe(place).ok()));
            seen.len() - 1
        });
        let Some(observed) = &seen[at].1 else { continue };
        let Some((value, fits)) = compare(change, observed) else { continue };
        if !fits {
            wrong.push(format!("{} on {}: asked {}, but a connection has {value}", row.key, row.target, row.asked));
        }
        row.observed = Some(value);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// To whom a connection shows a change: `None` if none would, `Some(None)` for this host itself.
#[expect(clippy::option_option, reason = "a target, this host, or nobody")]
fn place_of(change: &Change, wanted: &Snapshot, routes: &RouteIndex<'_>) -> Option<Option<IpAddr>> {
    let knob = Knob::find(&change.key).ok()?;
    let whole = |address: IpAddr, bits: u8| (bits == if address.is_ipv4() { 32 } else { 128 }).then_some(Some(address));
    match &change.place {
        Place::Host => ON_LOOPBACK.contains(&knob.name).then_some(None),
        Place::Link(_) => None,
        Place::Route(key) => {
            let (address, bits) = routes.get_hex(key)?.destination();
            whole(address, bits).filter(|_| ON_ROUTE.contains(&knob.name))
        }
        Place::Connections(target) => {
            let rule = wanted.connections_with(target)?;
            whole(rule.address, rule.bits)
        }
    }
}

/// Settings of the host that a connection to itself shows.
const ON_LOOPBACK: [&str; 6] = ["rwin", "cc", "sack", "timestamps", "window-scaling", "ecn"];
/// Settings of a route that a connection shows.
const ON_ROUTE: [&str; 5] = ["mtu", "mss", "cc", "initcwnd", "initrwnd"];

/// What a connection had of a setting, and whether that is what was asked; `None` where it can't tell.
fn compare(change: &Change, observed: &ObservedConnection) -> Option<(Value, bool)> {
    let asked = &change.new;
    let number = asked.number();
    let exact = |found: u64| Some((Value::Number(found), Some(found) == number));
    let held = matches!(change.place, Place::Connections(_));
    let switch = |on: bool| {
        let word = Value::word(if on { "on" } else { "off" });
        let fits = if on { *asked != Value::word("off") } else { *asked != Value::word("on") };
        Some((word, fits))
    };
    let established = observed.established;
    match change.key.as_str() {
        _ if *asked == Value::Auto => None,
        "rwin" if held => {
            let found = observed.window_clamp.unwrap_or(u64::MAX);
            Some((Value::Number(found), Some(found) <= number))
        }
        // The window is a share of the buffer that grows with how well segments fill their memory: at most all of it.
        "rwin" => established
            .map(|has| (Value::Number(has.greatest_window), Some(has.greatest_window) <= number.map(|n| n * 2))),
        "sndbuf" if held => exact(observed.send_buffer / 2),
        "cc" => Some((Value::word(&observed.congestion_control), *asked == Value::word(&observed.congestion_control))),
        "mtu" => Some((Value::Number(observed.path_mtu), Some(observed.path_mtu) <= number)),
        "mss" => Some((Value::Number(observed.advertised_mss), Some(observed.advertised_mss) <= number)),
        "initcwnd" => established.and_then(|has| exact(has.first_cwnd)),
        "initrwnd" => {
            // In whole segments, as far as the buffer goes.
            let segments = observed.first_window / observed.advertised_mss.max(1);
            Some((Value::Number(segments), Some(segments) <= number))
        }
        "sack" => switch(established?.sack),
        "timestamps" => switch(established?.timestamps),
        "window-scaling" => switch(established?.window_scaling),
        "ecn" => switch(established?.ecn),
        _ => None,
    }
}
