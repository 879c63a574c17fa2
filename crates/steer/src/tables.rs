use std::collections::BTreeSet;
use wt_setup::connections::{self, RULE_PRIORITY as PRIORITY, main_routes};
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
    /// The main table as it was when it was copied.
    copied: BTreeSet<Route>,
}

impl ArmTables {
    /// Makes tables and rules; what an earlier run left is removed before.
    ///
    /// # Errors
    /// [`wt_sys::SysError`] with what the kernel refuses.
    pub(crate) fn make(arms: Vec<ArmSettings>) -> SysResult<Self> {
        let netlink = Netlink::open()?;
        connections::clear_routes()?;
        let mut tables = Self { netlink, arms, copied: BTreeSet::new() };
        tables.follow()?;
        for (mark, _) in (FIRST..).zip(&tables.arms) {
            tables.netlink.add_mark_rule(false, mark, PRIORITY)?;
            // A host without IPv6 needs no rule for it.
            let v6 = tables.netlink.add_mark_rule(true, mark, PRIORITY);
            if tables.copied.iter().any(Route::is_v6) {
                v6?;
            }
        }
        Ok(tables)
    }

    /// Copies the main table anew if it isn't what it was.
    ///
    /// # Errors
    /// [`wt_sys::SysError`] with what the kernel refuses.
    pub(crate) fn follow(&mut self) -> SysResult<()> {
        let now = main_routes(&mut self.netlink)?;
        if now == self.copied {
            return Ok(());
        }
        for old in self.copied.difference(&now) {
            for table in (FIRST..).take(self.arms.len()) {
                // Gone with its device already, perhaps.
                let _ = self.netlink.delete_route(&old.in_table(table));
            }
        }
        let mut new: Vec<&Route> = now.difference(&self.copied).collect();
        // What is on the link before what leads over it.
        new.sort_by_key(|route| route.hops().iter().any(|hop| hop.gateway.is_some()));
        for (table, arm) in (FIRST..).zip(&self.arms) {
            for route in &new {
                let copy = route.in_table(table).with_metrics(&metrics(&route.metrics(), arm));
                self.netlink.append_route(&copy)?;
            }
        }
        self.copied = now;
        Ok(())
    }
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
