//! What the way to one target lays down for connections with it.

use super::values::{connection_value, route_value};
use crate::knob::{Knob, Value};
use crate::system::System;
use std::net::IpAddr;
use wt_bpf::ConnectionRule;
use wt_sys::SysResult;
use wt_sys::route::Route;
use wt_units::{Knob as Varied, Settings};

/// What of the settings that experiments vary the route to a target has a value of its own for, or a rule for connections with it:
/// whoever made them, these win there over what the host and the device have. What neither says isn't among them.
///
/// # Errors
/// When there is no way there, or the kernel doesn't tell it.
pub fn laid_down_toward(system: &mut dyn System, target: IpAddr) -> SysResult<Settings> {
    let route = system.route_to(target)?;
    Ok(laid_down(&route, &system.connections(), target))
}

fn laid_down(route: &Route, rules: &[ConnectionRule], target: IpAddr) -> Settings {
    let covers = |rule: &&ConnectionRule| crate::route_text::holds((rule.address, rule.bits), target);
    // As in the kernel's own tables, the narrowest one counts.
    let rule = rules.iter().filter(covers).max_by_key(|rule| rule.bits);
    let metrics = route.metrics();
    let own = |varied: Varied| {
        let knob = Knob::of(varied);
        let of_rule = connection_value(knob, rule).filter(|value| *value != Value::Auto);
        let value = of_rule.or_else(|| route_value(knob, &metrics)).filter(|value| *value != Value::Auto)?;
        Some((varied, varied.parse_level(&value.to_string()).ok()?))
    };
    Varied::all().into_iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use wt_sys::route::Metric;
    use wt_units::Level;

    #[test]
    fn a_connection_has_what_its_route_lays_down_and_what_the_narrowest_rule_does() {
        let target: IpAddr = "192.0.2.9".parse().unwrap();
        // A default route.
        let route: Route = "02000000fe040001100000000800 05000a000002080004000300000008000f00fe000000"
            .replace(' ', "")
            .parse()
            .unwrap();
        assert!(laid_down(&route, &[], target).is_empty());
        let numbers = [(Metric::Mtu, 1_000), (Metric::Advmss, 536), (Metric::Initcwnd, 20), (Metric::Window, 9_000)];
        let mut metrics = route.metrics();
        numbers.iter().for_each(|(metric, number)| metrics.set(*metric, Some(*number), false));
        metrics.set_congctl(Some("reno".to_owned()));
        let route = route.with_metrics(&metrics);
        let rule = |address: &str, bits: u8, window: u32| ConnectionRule {
            window: Some(window),
            ..ConnectionRule::new(1, address.parse().unwrap(), bits)
        };
        let rules = [rule("192.0.2.0", 24, 30_000), rule("192.0.2.9", 32, 20_000), rule("192.0.2.8", 32, 10_000)];
        let found: BTreeMap<&str, Level> =
            laid_down(&route, &rules, target).iter().map(|(knob, level)| (knob.name(), level.clone())).collect();
        // The route's window is only what a SYN offers: it grows past it.
        let wanted = [
            ("mtu", Level::Number(1_000)),
            ("mss", Level::Number(536)),
            ("initcwnd", Level::Number(20)),
            ("rwin", Level::Number(20_000)),
            ("cc", Level::Name("reno".into())),
        ];
        assert_eq!(found, BTreeMap::from(wanted));
    }
}
