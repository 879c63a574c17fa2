use crate::boot::goes_with_its_loader;
use crate::change::{Change, Plan, Risk, ScopeName};
use crate::knob::{HostKnob, Knob, Value, three};
use crate::read::{Survey, window_of_buffer};
use crate::snapshot::target_of;

/// Segments that the kernel offers first by itself, of 1460 bytes each.
///
/// # Source
/// `tcp_select_initial_window()` of Linux since 4.20: what the initial buffer gives, at most 65535 bytes.
fn own_first_window(survey: &Survey) -> u64 {
    const UNSCALED: u64 = 65_535;
    let initial =
        survey.snapshot.sysctls.get("net.ipv4.tcp_rmem").and_then(|text| three(text)).map_or(131_072, |s| s[1]);
    window_of_buffer(initial, &survey.snapshot, survey.kernel()).min(UNSCALED) / 1_460
}

/// Says what could go wrong with each change; `with_systemd` if that starts this system.
pub(super) fn add(plan: &mut Plan, survey: &Survey, with_systemd: bool) {
    let mut found = Vec::new();
    let mut note = |key: &str, text: String| {
        let risk = Risk { key: key.to_owned(), text };
        if !found.contains(&risk) {
            found.push(risk);
        }
    };
    for change in plan.changes.iter().filter(|change| !change.unchanged) {
        let Ok(knob) = Knob::find(&change.key) else { continue };
        if !knob.risk.is_empty() {
            note(knob.name, knob.risk.to_owned());
        }
        match change.scope {
            ScopeName::Host => {
                if let Some(manager) = knob.host.and_then(|host| survey.sysctl_manager(host.sysctl())) {
                    note(knob.name, format!("{manager} sets it too"));
                }
            }
            ScopeName::Connection => {
                let until = if with_systemd {
                    "until the next boot, and once it is confirmed, a unit of systemd from each boot on"
                } else {
                    "which the next boot ends, confirmed or not"
                };
                let option = knob.socket.unwrap_or("option");
                note(knob.name, format!("a BPF program holds it, {until}; a program that sets its own {option} wins"));
                let others = survey.snapshot.connections.iter().map(target_of).filter(|other| *other != change.target);
                let others: Vec<String> = others.collect();
                if !others.is_empty() {
                    note(
                        knob.name,
                        format!(
                            "connections with {} have such settings, too; where two meet, the one made last wins",
                            others.join(", ")
                        ),
                    );
                }
            }
            ScopeName::Route | ScopeName::Link => {
                let manager =
                    survey.managers.devices.iter().find(|(name, _)| change.target.split(' ').any(|word| word == *name));
                if let Some((name, manager)) = manager {
                    note(
                        knob.name,
                        format!(
                            "{manager} configures {name} and may set it back, at the latest when the lease is renewed, \
                             unless it is told so, which a confirmation does where it can"
                        ),
                    );
                }
            }
        }
        for text in special(knob, change, survey) {
            note(knob.name, text);
        }
    }
    plan.risks.extend(found);
}

/// What is wrong with certain values only.
fn special(knob: &Knob, change: &Change, survey: &Survey) -> Vec<String> {
    let mut texts = Vec::new();
    let new = &change.new;
    let text = |name: &str| survey.snapshot.sysctls.get(name).map(|text| text.trim());
    match (knob.name, new) {
        ("cc", Value::Word(name)) => {
            texts.extend(goes_with_its_loader(name));
            if !survey.available_cc.contains(name) {
                texts.push(format!("{name} isn't loaded; the kernel will load the module tcp_{name}"));
            }
            let allowed = text(crate::snapshot::ALLOWED_CC).unwrap_or_default();
            if survey.identity.network_of_init != Some(true) && !allowed.split(' ').any(|word| word == name) {
                texts.push(format!("{name} isn't among the allowed ones ({allowed}); outside of the first network namespace the kernel may refuse it"));
            }
        }
        ("initrwnd", Value::Number(segments)) => {
            let own = own_first_window(survey);
            if *segments < own {
                texts.push(format!(
                    "this kernel begins with {own} segments by itself (of 1460 bytes): {segments} shrink the first window"
                ));
            }
        }
        ("sndbuf", Value::Number(bytes)) if change.scope == ScopeName::Connection => {
            texts.push(format!(
                "the kernel doubles {bytes} bytes for its own use, as it does for every program that asks"
            ));
        }
        ("rwin", Value::Number(window)) => {
            if *window > 65_535 && text("net.ipv4.tcp_window_scaling") == Some("0") {
                texts.push("window scaling is off: more than 65535 bytes have no effect".to_owned());
            }
            if change.scope == ScopeName::Host {
                let cost =
                    "it bounds the receive buffers of every connection of the host, also of those that it slows down";
                texts.push(cost.to_owned());
                if text("net.ipv4.tcp_moderate_rcvbuf") == Some("0") {
                    texts.push("receive buffers don't grow (moderate-rcvbuf=off): the middle size of tcp-rmem counts, not the greatest".to_owned());
                }
            }
        }
        ("ttl", _) if knob.host == Some(HostKnob::Sysctl("net.ipv4.ip_default_ttl")) => {
            texts.push("IPv6 keeps its own hop limit unless it is set on a route".to_owned());
        }
        ("mtu", Value::Number(mtu)) if *mtu > 1_500 => {
            texts.push(
                "above 1500 every device of the link must take such packets, and none will say so if it doesn't"
                    .to_owned(),
            );
        }
        _ => {}
    }
    texts
}
