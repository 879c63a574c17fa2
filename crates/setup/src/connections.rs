//! What it takes to give a server's own connections other settings without BPF.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use wt_sys::netlink::Netlink;
use wt_sys::route::Route;
use wt_sys::{SysResult, process, sysctl};

/// Whether the connection that comes of a marked request keeps the mark.
pub const ACCEPT_MARK: &str = "net.ipv4.tcp_fwmark_accept";
/// Where an experiment's routing rules stand: before that of the main table and behind the one of local addresses.
pub const RULE_PRIORITY: u32 = 5754;
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

/// The routes of the main table that lead somewhere.
///
/// # Errors
/// [`wt_sys::SysError`] where they can't be read.
pub fn main_routes(netlink: &mut Netlink) -> SysResult<BTreeSet<Route>> {
    let all = netlink.routes()?.into_iter().filter(|route| route.table() == MAIN && !route.leads_nowhere());
    Ok(all.collect())
}

fn rules_in_the_way() -> Option<String> {
    let read = || -> SysResult<_> {
        let mut netlink = Netlink::open()?;
        Ok((main_routes(&mut netlink)?.len(), netlink.rules()?))
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
    usual.contains(&rule) || rule.starts_with(&format!("{RULE_PRIORITY}: from all lookup "))
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
