//! What it takes to give a server's own connections other settings without BPF.

use std::process::{Command, Stdio};
use wt_sys::netlink::Netlink;
use wt_sys::route::Route;
use wt_sys::{SysResult, process, sysctl};

/// Whether the connection that comes of a marked request keeps the mark.
pub const ACCEPT_MARK: &str = "net.ipv4.tcp_fwmark_accept";
/// Where an experiment's routing rules stand: before that of the main table and behind the one of local addresses.
pub const RULE_PRIORITY: u32 = 5754;
/// The mark of the first arm's connections, and the number of its table: "WU", and what no distribution uses.
pub const FIRST_MARK: u32 = 0x5755_0001;
/// As many marks as there can be arms. The one behind them leads nowhere: its rule says that [`ACCEPT_MARK`] was 0 before.
pub const MOST_ARMS: u32 = 8;
/// With more routes than that, copying them for each arm isn't what a server should be asked to do.
const MOST_ROUTES: usize = 2000;
const MAIN: u32 = 254;

/// Why the host's settings can't be changed here; `None` where they can.
#[must_use]
pub fn slots_unavailable() -> Option<String> {
    (!process::has_capability(process::CAP_NET_ADMIN)).then(|| "it needs CAP_NET_ADMIN, as root has".to_owned())
}

/// Why connections can't be marked and routed by their marks here; `None` where they can.
#[must_use]
pub fn routes_unavailable() -> Option<String> {
    if let Some(why) = slots_unavailable() {
        return Some(why);
    }
    if sysctl::read(ACCEPT_MARK).ok().flatten().is_none() {
        return Some(format!("this kernel has no {ACCEPT_MARK}"));
    }
    rules_in_the_way().or_else(nft_refuses)
}

/// Whether a route is one of the main table that leads somewhere.
#[must_use]
pub fn is_main(route: &Route) -> bool {
    route.table() == MAIN && !route.leads_nowhere()
}

/// Gives marked packets the routes of their arms.
///
/// # Errors
/// [`wt_sys::SysError`] where the kernel refuses.
pub fn keep_marks() -> SysResult<()> {
    if sysctl::read(ACCEPT_MARK)?.is_some_and(|accept| accept.trim() == "0") {
        // Whoever finds the rule later knows what was before.
        Netlink::open()?.add_mark_rule(false, FIRST_MARK + MOST_ARMS, RULE_PRIORITY)?;
        sysctl::write(ACCEPT_MARK, "1")?;
    }
    Ok(())
}

/// Removes every rule and route of an experiment, and sets [`ACCEPT_MARK`] to what it was.
///
/// # Errors
/// [`wt_sys::SysError`] where the kernel refuses.
pub fn clear_routes() -> SysResult<()> {
    let mut netlink = Netlink::open()?;
    for route in netlink.routes().unwrap_or_default() {
        if (FIRST_MARK..FIRST_MARK + MOST_ARMS).contains(&route.table()) {
            // Gone with its device already, perhaps.
            let _ = netlink.delete_route(&route);
        }
    }
    let mut remove = |is_v6, mark| {
        let mut any = false;
        while netlink.delete_mark_rule(is_v6, mark, RULE_PRIORITY).is_ok() {
            any = true;
        }
        any
    };
    for mark in FIRST_MARK..FIRST_MARK + MOST_ARMS {
        // There is none, as a rule.
        remove(false, mark);
        remove(true, mark);
    }
    if remove(false, FIRST_MARK + MOST_ARMS) { sysctl::write(ACCEPT_MARK, "0") } else { Ok(()) }
}

/// Whether rules and routes of an experiment stand here although its process and its guard were killed. They steer nobody: what
/// marked connections went with the process. Only who may remove them is told.
#[must_use]
pub fn routes_left() -> bool {
    // An experiment that ends takes its marks away before its rules.
    const A_MOMENT: std::time::Duration = std::time::Duration::from_millis(300);
    let left = || slots_unavailable().is_none() && rules_stand() && !marks_stand();
    left() && wt_sys::poll::wait_readable(&[], Some(A_MOMENT)).is_ok() && left()
}

fn rules_stand() -> bool {
    let rules = Netlink::open().and_then(|mut netlink| netlink.rules());
    rules.is_ok_and(|rules| rules.iter().any(|rule| is_of_an_experiment(rule)))
}

/// Whether the table of nftables that marks connections is there.
fn marks_stand() -> bool {
    let mut list = Command::new("nft");
    let list = list.args(["list", "table", "inet", "windtunnel"]).stdin(Stdio::null()).output();
    list.is_ok_and(|list| list.status.success())
}

fn is_of_an_experiment(rule: &str) -> bool {
    let rule = rule.strip_prefix("IPv6 ").unwrap_or(rule);
    rule.starts_with(&format!("{RULE_PRIORITY}: from all lookup "))
}

fn rules_in_the_way() -> Option<String> {
    let read = || -> SysResult<_> {
        let mut netlink = Netlink::open()?;
        Ok((netlink.routes()?.iter().filter(|route| is_main(route)).count(), netlink.rules()?))
    };
    match read() {
        Err(error) => Some(error.to_string()),
        Ok((routes, _)) if routes > MOST_ROUTES => {
            Some(format!("the main table has {routes} routes, which is too many to copy"))
        }
        Ok((_, rules)) => rules
            .iter()
            .find(|rule| !is_usual(rule))
            .map(|rule| format!("this host has routing rules of its own, such as \"{rule}\"")),
    }
}

/// Rules that every host has, and those of an experiment.
fn is_usual(rule: &str) -> bool {
    let rule = rule.strip_prefix("IPv6 ").unwrap_or(rule);
    let usual = ["0: from all lookup 255", "32766: from all lookup 254", "32767: from all lookup 253"];
    usual.contains(&rule) || is_of_an_experiment(rule)
}

/// Tries a rule as those of experiments, without making it.
fn nft_refuses() -> Option<String> {
    let rule = "add table inet windtunnel_try; add chain inet windtunnel_try in { type filter hook prerouting priority \
                mangle; }; add rule inet windtunnel_try in fib daddr type local meta mark set jhash ip saddr & \
                255.255.255.0 mod 65536 seed 0x1";
    match Command::new("nft").args(["-c", rule]).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some("nft isn't installed (Debian: apt-get install nftables)".to_owned())
        }
        Err(error) => Some(format!("nft can't be run: {error}")),
        Ok(done) if !done.status.success() => {
            let said = String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or_default().to_owned();
            Some(format!("nftables refuses a rule: {said}"))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_usual;

    #[test]
    fn the_rules_that_every_host_has_and_those_of_an_experiment_are_usual() {
        assert!(is_usual("0: from all lookup 255") && is_usual("IPv6 32766: from all lookup 254"));
        assert!(is_usual("IPv6 5754: from all lookup 1465188353 [10=01005557]"));
        assert!(!is_usual("100: from all lookup 254") && !is_usual("IPv6 5754: from 192.0.2.0/24 lookup 7"));
    }
}
