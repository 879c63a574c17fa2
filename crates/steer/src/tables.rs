use std::collections::BTreeSet;
use std::net::IpAddr;
use wt_setup::connections::{self, RULE_PRIORITY as PRIORITY, is_main};
use wt_sys::SysResult;
use wt_sys::netlink::Netlink;
use wt_sys::route::{Metric, Metrics, Route};
use wt_traffic::{ArmSettings, SocketSetting};

/// The number of the first arm's table, which is its mark, too.
pub(crate) const FIRST: u32 = connections::FIRST_MARK;

/// One table of routes for each arm: the main table's, with the arm's metrics; and the rules that lead marked packets there.
#[derive(Debug)]
pub(crate) struct ArmTables {
    netlink: Netlink,
    arms: Vec<ArmSettings>,
    /// What the kernel had once the main table was copied last.
    copied: RoutesNow,
}

/// The main table and those of the arms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RoutesNow {
    main: BTreeSet<Route>,
    arms: Vec<BTreeSet<Route>>,
}

/// What an arm's table has that it shouldn't, and lacks that it should have.
#[derive(Debug, Default, PartialEq, Eq)]
struct TableDifference {
    extra: Vec<Route>,
    missing: Vec<Route>,
    /// Something that is missing leads by no other route of the table: marked packets found their way without the arm's metrics.
    is_gap: bool,
}

impl ArmTables {
    /// Makes tables and rules; what an earlier run left is removed before.
    ///
    /// # Errors
    /// [`wt_sys::SysError`] with what the kernel refuses.
    pub(crate) fn make(arms: Vec<ArmSettings>) -> SysResult<Self> {
        let netlink = Netlink::open()?;
        connections::clear_routes()?;
        let mut tables = Self { netlink, arms, copied: RoutesNow::default() };
        tables.follow()?;
        for (mark, _) in (FIRST..).zip(&tables.arms) {
            tables.netlink.add_mark_rule(false, mark, PRIORITY)?;
            // A host without IPv6 needs no rule for it.
            let v6 = tables.netlink.add_mark_rule(true, mark, PRIORITY);
            if tables.copied.main.iter().any(Route::is_v6) {
                v6?;
            }
        }
        Ok(tables)
    }

    /// Copies what has changed, in the main table or in the arms': a link that goes down takes the routes of all tables with it, and who
    /// brings it up again makes only the main one's. Whether packets of every arm had its metrics until now.
    ///
    /// # Errors
    /// [`wt_sys::SysError`] with what the kernel refuses.
    pub(crate) fn follow(&mut self) -> SysResult<bool> {
        let now = self.read()?;
        if now == self.copied {
            return Ok(true);
        }
        let differences = now.differences(&self.arms);
        let done = differences.iter().try_for_each(|difference| {
            for route in &difference.extra {
                // Gone with its device already, perhaps.
                let _ = self.netlink.delete_route(route);
            }
            difference.missing.iter().try_for_each(|route| self.netlink.append_route(route))
        });
        self.copied = self.read()?;
        if self.copied.main == now.main {
            done?;
        }
        if self.copied.main != now.main || self.copied.has_gap(&self.arms) {
            // They change right now: the next time again, whatever is there then.
            self.copied.arms.clear();
        }
        Ok(!differences.iter().any(|difference| difference.is_gap))
    }

    fn read(&mut self) -> SysResult<RoutesNow> {
        let mut now = RoutesNow { main: BTreeSet::new(), arms: vec![BTreeSet::new(); self.arms.len()] };
        for route in self.netlink.routes()? {
            if is_main(&route) {
                now.main.insert(route);
            } else if let Some(of_arm) = now.arms.get_mut(route.table().wrapping_sub(FIRST) as usize) {
                of_arm.insert(route);
            }
        }
        Ok(now)
    }
}

impl RoutesNow {
    fn differences(&self, arms: &[ArmSettings]) -> Vec<TableDifference> {
        let tables = (FIRST..).zip(arms).zip(&self.arms);
        tables.map(|((table, arm), has)| difference(&self.main, has, table, arm)).collect()
    }

    fn has_gap(&self, arms: &[ArmSettings]) -> bool {
        self.differences(arms).iter().any(|difference| difference.is_gap)
    }
}

/// What it takes to make an arm's table the main one with its metrics.
fn difference(main: &BTreeSet<Route>, has: &BTreeSet<Route>, table: u32, arm: &ArmSettings) -> TableDifference {
    let copy = |route: &Route| route.in_table(table).with_metrics(&metrics(&route.metrics(), arm));
    let wanted: BTreeSet<Route> = main.iter().map(copy).collect();
    let mut missing: Vec<Route> = wanted.difference(has).cloned().collect();
    // What is on the link before what leads over it.
    missing.sort_by_key(|route| route.hops().iter().any(|hop| hop.gateway.is_some()));
    let is_gap = missing.iter().any(|route| !has.iter().any(|other| covers(other, route)));
    TableDifference { extra: has.difference(&wanted).cloned().collect(), missing, is_gap }
}

/// Whether a route leads to all addresses to which the other does.
fn covers(route: &Route, other: &Route) -> bool {
    let network = |route: &Route| match route.destination() {
        (IpAddr::V4(address), bits) => (u128::from(u32::from(address)) << 96, u32::from(bits)),
        (IpAddr::V6(address), bits) => (u128::from(address), u32::from(bits)),
    };
    let ((from, bits), (to, longer)) = (network(route), network(other));
    route.is_v6() == other.is_v6() && bits <= longer && (from ^ to).checked_shr(128 - bits).unwrap_or(0) == 0
}

/// Why a route can't give an arm's connections what it says.
pub(crate) fn refusal(arm: &ArmSettings) -> Option<String> {
    let only_sockets =
        [SocketSetting::DelackMax, SocketSetting::NotsentLowat, SocketSetting::WindowClamp, SocketSetting::Pacing];
    if let Some(setting) = only_sockets.into_iter().find(|setting| arm.socket(*setting).is_some()) {
        return Some(format!("no route can give connections {}", setting.name()));
    }
    (arm.ecn() == Some(false)).then(|| "a route can accept ECN, and can't refuse it".to_owned())
}

/// A route's metrics with those of an arm in their place.
fn metrics(own: &Metrics, arm: &ArmSettings) -> Metrics {
    const ECN: u32 = 1;
    let mut metrics = own.clone();
    let number = |setting| arm.socket(setting).and_then(|number| u32::try_from(number).ok());
    for (metric, value, locked) in [
        (Metric::Initcwnd, arm.initcwnd(), false),
        (Metric::Initrwnd, arm.initrwnd(), false),
        (Metric::Cwnd, number(SocketSetting::CwndClamp), true),
        (Metric::RtoMin, number(SocketSetting::RtoMin).map(|us| us.div_ceil(1_000)), true),
        (Metric::Features, (arm.ecn() == Some(true)).then(|| own.get(Metric::Features).unwrap_or(0) | ECN), false),
    ] {
        if value.is_some() {
            metrics.set(metric, value, locked);
        }
    }
    if let Some(name) = arm.cc() {
        metrics.set_congctl(Some(name.to_owned()));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route as the kernel tells it: 10.0.0.0/24 on the link, or the default over 10.0.0.2.
    fn route(is_default: bool) -> Route {
        let (bits, scope, rest) = if is_default { (0, 0, "08000500 0a000002") } else { (24, 253, "08000100 0a000000") };
        let text = format!("02{bits:02x}0000fe04{scope:02x}0100000000 08000f00 fe000000 {rest} 08000400 03000000");
        text.replace(' ', "").parse().unwrap()
    }

    #[test]
    fn what_an_arms_table_lost_is_made_anew_and_what_no_other_route_of_it_leads_to_is_a_gap() {
        let arm: ArmSettings = "initcwnd=32".parse().unwrap();
        let (link, default) = (route(false), route(true));
        let main: BTreeSet<Route> = [link.clone(), default.clone()].into();
        let between = |has: &BTreeSet<Route>| difference(&main, has, FIRST, &arm);
        // A link went down and up: the main table is as it was, and the arm's is empty.
        let lost = between(&BTreeSet::new());
        let of_arm = |route: &Route| route.in_table(FIRST).with_metrics(&metrics(&route.metrics(), &arm));
        assert_eq!((lost.missing, lost.is_gap), (vec![of_arm(&link), of_arm(&default)], true));
        let whole: BTreeSet<Route> = [of_arm(&link), of_arm(&default)].into();
        assert_eq!(between(&whole), TableDifference::default());
        // What the arm's default leads to has the arm's metrics.
        let covered = between(&[of_arm(&default)].into());
        assert_eq!((covered.missing, covered.is_gap), (vec![of_arm(&link)], false));
        let uncovered = between(&[of_arm(&link), link.in_table(FIRST)].into());
        assert_eq!((uncovered.extra, uncovered.is_gap), (vec![link.in_table(FIRST)], true));
    }

    #[test]
    fn what_routes_can_give_becomes_metrics_and_the_rest_is_refused_with_its_name() {
        let arm: ArmSettings = "cc=reno initcwnd=32 initrwnd=40 ecn=on cwnd-clamp=100 rto-min=50ms".parse().unwrap();
        assert_eq!(refusal(&arm), None);
        let mut own = Metrics::default();
        own.set(Metric::Mtu, Some(1400), false);
        own.set(Metric::Initcwnd, Some(10), false);
        let made = metrics(&own, &arm);
        let numbers = [Metric::Mtu, Metric::Initcwnd, Metric::Initrwnd, Metric::Cwnd, Metric::RtoMin, Metric::Features]
            .map(|metric| made.get(metric).unwrap());
        assert_eq!((numbers, made.congctl()), ([1400, 32, 40, 100, 50, 1], Some("reno")));
        assert!(made.is_locked(Metric::Cwnd) && made.is_locked(Metric::RtoMin));
        for (arm, named) in [("pacing=20mbit", "pacing"), ("delack-max=20ms", "delack-max"), ("ecn=off", "ECN")] {
            assert!(refusal(&arm.parse().unwrap()).unwrap().contains(named));
        }
    }
}
