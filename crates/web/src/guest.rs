use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// One of those who ask, and who share what the server has: an address, of IPv6 a whole /64, since one host has all of it; on
/// loopback an address and an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GuestId {
    network: IpAddr,
    account: Option<u32>,
}

impl GuestId {
    pub(crate) fn of(address: IpAddr, account: Option<u32>) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V6(v6) if !v6.is_loopback() => Ipv6Addr::from(u128::from(v6) & (u128::MAX << 64)).into(),
            other => other,
        };
        Self { network, account }
    }
}

/// Whose accounts on this host are the owner's: who runs this program, who made it run as root by sudo, and root.
#[derive(Debug)]
pub(crate) struct Owner {
    accounts: Vec<u32>,
}

/// What users that a user namespace has no number for are told as; `/proc/sys/kernel/overflowuid`.
const NOBODY: u32 = 65_534;

impl Owner {
    /// The owner of this process.
    pub(crate) fn here() -> Self {
        let own = wt_sys::process::effective_uid();
        let by_sudo = || std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        Self::of(own, if own == 0 { by_sudo() } else { None }, &map)
    }

    fn of(own: u32, by_sudo: Option<u32>, map: &str) -> Self {
        // In a user namespace that hasn't all users, those that it lacks look like nobody.
        let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
        let accounts = [Some(own), by_sudo, Some(0)].into_iter().flatten().filter(|uid| whole || *uid != NOBODY);
        Self { accounts: accounts.collect() }
    }

    pub(crate) fn is(&self, account: Option<u32>) -> bool {
        account.is_some_and(|account| self.accounts.contains(&account))
    }
}

/// The account behind a connection; only loopback's are known.
pub(crate) fn account(theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    let within = theirs.ip().is_loopback() && ours.ip().is_loopback();
    if within { wt_sys::owner::of_connection(theirs, ours).ok().flatten() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_of_ipv6_is_one_and_accounts_of_this_host_are_several() {
        let who = |address: &str, account| GuestId::of(address.parse().unwrap(), account);
        assert_eq!(who("2001:db8::1", None), who("2001:db8::2", None));
        assert_ne!(who("2001:db8::1", None), who("2001:db8:0:1::1", None));
        assert_eq!(who("::ffff:192.0.2.1", None), who("192.0.2.1", None));
        assert_ne!(who("127.0.0.1", Some(1000)), who("127.0.0.1", Some(1001)));
        assert_ne!(who("::1", None), who("::2", None));
    }

    #[test]
    fn the_owner_is_who_runs_it_and_root() {
        let all = "         0          0 4294967295\n";
        let owner = Owner::of(1000, None, all);
        assert!(owner.is(Some(1000)) && owner.is(Some(0)) && !owner.is(Some(1001)) && !owner.is(None));
        let by_sudo = Owner::of(0, Some(1000), all);
        assert!(by_sudo.is(Some(1000)) && by_sudo.is(Some(0)) && !by_sudo.is(Some(1001)));
        assert!(Owner::of(NOBODY, None, all).is(Some(NOBODY)));
        assert!(!Owner::of(NOBODY, None, "0 100000 65536\n").is(Some(NOBODY)), "it may be anybody");
    }
}
