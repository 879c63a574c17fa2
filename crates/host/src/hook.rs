//! Scripts that managers run when they have configured a device. The way of a route is the manager's: it may come with another
//! gateway or address from one lease to the next, so that a script takes the route as it is then and sets metrics only.

use crate::export::{FileDraft, Item, by_route, commands_for};
use crate::knob::{Knob, LinkKnob, RouteKnob};
use crate::read::Survey;
use crate::route_text;
use crate::snapshot::Snapshot;
use crate::system::{Action, Device};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wt_sys::route::{Metric, Metrics, Route, TABLE_MAIN};
use wt_units::shell_word;

/// What scripts do with routes.
///
/// # Source
/// ip-route(8): what `ip -o route show` prints is what `ip route change` takes, but for the state of devices, the break of a line
/// and a lock of `rto_min`.
const FUNCTIONS: &str = r#"windtunnel_say() { logger -t windtunnel -- "$1" 2>/dev/null || echo "windtunnel: $1" >&2; }
# Words of a route without those of these names and their values.
windtunnel_without() (
    set -f
    names=$1 last=
    for word in $2; do
        case "$last $word" in
            *" linkdown"|*" dead"|*" unresolved"|*" offload"|*" trap"|*" rt_offload"|*" rt_trap"|*' \') continue ;;
            "skip lock"|"skip inet6"|"rto_min lock") continue ;;
            "skip "*) last=; continue ;;
            "nhid "*) names="$names via dev" ;;
            *" nexthop") case "$names " in *" via dev "*) break ;; esac ;;
        esac
        case " $names " in *" $word "*) last=skip; continue ;; esac
        printf ' %s' "$word"
        last=$word
    done
)
# Sets metrics of the route that is there and leaves the rest as it is: family, device, target, table, tos, priority, names, metrics.
windtunnel_amend() (
    set -f
    found=$(ip "$1" -o route show exact "$3" table "$4" tos "$5")
    case "$6" in
        0) found=$(printf '%s\n' "$found" | grep -v ' metric ') ;;
        *) found=$(printf '%s\n' "$found" | grep -E " metric $6( |\$)") ;;
    esac
    case "$(printf '%s\n' "$found" | grep -c .) $found " in
        *" encap "*) windtunnel_say "the route to $3 is left as it is: it has an encapsulation" ;;
        "1 "*" dev $2 "*) ip "$1" route change table "$4" tos "$5" $8 $(windtunnel_without "$7" "$found") \
            || windtunnel_say "the route to $3 stays without: $8" ;;
        *) windtunnel_say "the route to $3 is left as it is: there is none over $2 alone with priority $6" ;;
    esac
)
# Makes a route by the way that packets to its target have then: family, device, target, priority, names, metrics.
windtunnel_make() (
    set -f
    longest=-1 way=
    while read -r to rest; do
        case "$to" in
            "$3"|""|*[!0-9a-f.:/]*) [ "$to" = default ] || continue; bits=0 ;;
            */*) bits=${to#*/} ;;
            *) bits=128 ;;
        esac
        if [ "$bits" -gt "$longest" ]; then longest=$bits way=$rest; fi
    done <<END
$(ip "$1" -o route show match "$3" dev "$2" table main tos 0)
END
    case "$longest $way " in
        -1*|*" encap "*) windtunnel_say "nothing leads to $3 over $2 that a route of its own could follow" ;;
        *) ip "$1" route replace "$3" $(windtunnel_without "nhid proto metric expires $5" "$way") dev "$2" \
            proto static metric "$4" $6 || windtunnel_say "the route to $3 stays without: $6" ;;
    esac
)
"#;

/// What a script does.
#[derive(Debug)]
pub(crate) struct HookScript {
    commands: Vec<String>,
    with_routes: bool,
}

impl HookScript {
    /// For these settings of a device, which come of these actions; what it can't make goes to what is left out.
    pub(crate) fn of(
        device: &str,
        items: &[Item],
        actions: &[Action],
        before: &Snapshot,
        survey: &Survey,
        made: &mut FileDraft,
    ) -> Self {
        let of_functions = |action: &Action| match action {
            Action::ReplaceRoute { .. } => true,
            Action::AddRoute { route } => is_new(route, actions, before),
            _ => false,
        };
        let own: Vec<&Item> = items.iter().filter(|item| item.device() == Some(device)).collect();
        let mut others: Vec<Action> = actions.iter().filter(|action| !of_functions(action)).cloned().collect();
        // What is so already needs no action now, but does after a boot.
        for action in own.iter().flat_map(|item| on_device(item, device, before)) {
            let is_done = |other: &Action| match (other, &action) {
                (Action::Rings { device, .. }, Action::Rings { device: own, .. })
                | (Action::DefaultQdisc { device }, Action::Qdisc { device: own, .. }) => device == own,
                (other, action) => other == action,
            };
            if !others.iter().any(is_done) {
                others.push(action);
            }
        }
        let mut hook = Self { commands: commands_for(&others, before, survey, device), with_routes: false };
        for (place, settings) in by_route(&own) {
            match way_of(&place.route, actions, before) {
                Way::Own if place.route.hops().len() != 1 => {
                    settings.iter().for_each(|item| {
                        made.skip(item, "a route of its own over several ways isn't made by a script")
                    });
                }
                Way::Own => hook.add_route(device, &place.route, &settings, true),
                Way::Others => hook.add_route(device, &place.route, &settings, false),
                Way::Stored => {}
            }
        }
        hook
    }

    fn add_route(&mut self, device: &str, route: &Route, settings: &[&Item], is_own: bool) {
        let (names, metrics) = named(settings, &route.metrics());
        let names = names.into_iter().collect::<Vec<_>>().join(" ");
        let what = if is_own { "make" } else { "amend" };
        let family = if route.is_v6() { "-6" } else { "-4" };
        let (device, to, priority) = (shell_word(device), route_text::destination(route), route.priority());
        let place = if is_own { String::new() } else { format!("{} {} ", route.table(), route.tos()) };
        let (names, metrics) = (shell_word(&names), shell_word(metrics.trim()));
        self.commands.push(format!("windtunnel_{what} {family} {device} {to} {place}{priority} {names} {metrics}"));
        self.with_routes = true;
    }

    /// The script, which runs its commands if the test succeeds; empty if there are none.
    pub(crate) fn text(&self, header: &str, test: &str) -> String {
        if self.commands.is_empty() {
            return String::new();
        }
        let functions = if self.with_routes { FUNCTIONS } else { "" };
        let lines = self.commands.iter().fold(String::new(), |mut text, command| {
            let _ = writeln!(text, "    {command} || true");
            text
        });
        format!("#!/bin/sh\n{header}{functions}if {test}; then\n{lines}fi\n")
    }
}

/// What gives a device a setting.
fn on_device(item: &Item, device: &str, before: &Snapshot) -> Vec<Action> {
    let (Some(state), Some(kind)) = (
        before.devices.get(device),
        Knob::find(item.key).ok().and_then(|knob| knob.link).filter(|_| item.is_on_device()),
    ) else {
        return Vec::new();
    };
    let device = Device { name: device.to_owned(), index: state.index };
    let number = item.number().and_then(|number| u32::try_from(number).ok());
    match (kind, number) {
        (LinkKnob::Mtu, Some(mtu)) => vec![Action::Mtu { device, mtu }],
        (LinkKnob::QueueLen, Some(packets)) => vec![Action::QueueLen { device, packets }],
        (LinkKnob::Qdisc, _) => {
            vec![Action::Qdisc { device, kind: item.value.to_string(), handle: 0, options: String::new() }]
        }
        (LinkKnob::RxRing | LinkKnob::TxRing, _) => {
            state.rings.map(|(rx, tx)| Action::Rings { device, rx, tx }).into_iter().collect()
        }
        (LinkKnob::Features(names), _) => {
            let (there, on) = (names.iter().filter(|name| state.features.contains_key(**name)), item.is("on"));
            there.map(|name| Action::Feature { device: device.clone(), feature: (*name).to_owned(), on }).collect()
        }
        _ => Vec::new(),
    }
}

/// Whose way a route has.
enum Way {
    /// A route of ours has that of the route that would lead there otherwise.
    Own,
    /// The route is there without us.
    Others,
    /// A route that was stored has its own.
    Stored,
}

/// Whether a route is ours alone: these actions made it beside the one that leads there otherwise.
pub(crate) fn is_new(route: &Route, actions: &[Action], before: &Snapshot) -> bool {
    matches!(way_of(route, actions, before), Way::Own)
}

fn way_of(route: &Route, actions: &[Action], before: &Snapshot) -> Way {
    let is_new = actions.iter().any(|action| matches!(action, Action::AddRoute { route: new } if new == route));
    let wider = || before.routes.iter().filter(|other| other.is_wider_than(route) && other.table() == TABLE_MAIN);
    let nearest = wider().map(|other| other.destination().1).max();
    let follows = |other: &Route| Some(other.destination().1) == nearest && other.hops() == route.hops();
    match is_new {
        false => Way::Others,
        true if wider().any(follows) => Way::Own,
        true => Way::Stored,
    }
}

/// The words of ip-route(8) for the metrics that settings mean, and those words with their values.
pub(crate) fn named(settings: &[&Item], metrics: &Metrics) -> (BTreeSet<&'static str>, String) {
    let (mut names, mut meant) = (BTreeSet::new(), Metrics::default());
    for kind in settings.iter().filter_map(|item| Knob::find(item.key).ok()?.route) {
        let metric = match kind {
            RouteKnob::Number(metric) | RouteKnob::Locked(metric) => metric,
            RouteKnob::Ecn => Metric::Features,
            RouteKnob::Congctl => {
                names.insert("congctl");
                meant.set_congctl(metrics.congctl().map(str::to_owned));
                continue;
            }
        };
        names.insert(metric.name());
        meant.set(metric, metrics.get(metric), metrics.is_locked(metric));
    }
    (names, route_text::metrics(&meant))
}
