use std::collections::HashSet;
use std::net::IpAddr;
use wt_sys::netlink::Netlink;
use wt_traffic::left_alone;

/// The addresses that devices of this network namespace have: who comes from one of them is a program on this host, such as a proxy or a
/// health check, whichever of them it connects to.
///
/// # What this leaves out
/// Clients at addresses that only a route of type local makes this host's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostAddresses(HashSet<IpAddr>);

impl HostAddresses {
    /// As they are now; none where the kernel doesn't tell.
    pub(crate) fn read() -> Self {
        let found = Netlink::open().and_then(|mut netlink| netlink.addresses()).unwrap_or_default();
        Self(found.into_iter().map(|one| one.address.to_canonical()).collect())
    }

    /// Whether a client is on this host.
    pub(crate) fn contain(&self, client: IpAddr) -> bool {
        self.0.contains(&client.to_canonical())
    }

    /// Those that aren't left alone anyhow, in order.
    pub(crate) fn that_matter(&self, private: bool) -> Vec<IpAddr> {
        let mut all: Vec<IpAddr> = self.0.iter().copied().filter(|one| left_alone(*one, private).is_none()).collect();
        all.sort_unstable();
        all
    }
}

impl FromIterator<IpAddr> for HostAddresses {
    fn from_iter<I: IntoIterator<Item = IpAddr>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_are_known_mapped_or_not_and_private_ones_matter_where_they_take_part() {
        let own: HostAddresses =
            ["127.0.0.1", "192.0.2.7", "10.1.1.1"].iter().map(|text| text.parse::<IpAddr>().unwrap()).collect();
        assert!(own.contain("::ffff:192.0.2.7".parse().unwrap()) && !own.contain("192.0.2.8".parse().unwrap()));
        let matter = |private| own.that_matter(private).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            (matter(false), matter(true)),
            (vec!["192.0.2.7".to_owned()], vec!["10.1.1.1".to_owned(), "192.0.2.7".to_owned()])
        );
        assert!(
            HostAddresses::read().contain([127, 0, 0, 1].into()) || HostAddresses::read() == HostAddresses::default()
        );
    }
}
