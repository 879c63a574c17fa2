use std::net::IpAddr;
use wt_problem::Problem;
use wt_units::HostPort;

/// Who doesn't want to be asked: names (with all below them), addresses and networks.
#[derive(Debug, Default)]
pub(super) struct OptOut {
    names: Vec<String>,
    networks: Vec<Network>,
}

/// An address, and how many of its bits count.
type Network = (IpAddr, u8);

impl OptOut {
    /// Reads names, addresses and networks.
    ///
    /// # Errors
    /// A usage problem for what is none of them: whoever wrote it would be asked against his will.
    pub(super) fn read(entries: &[String]) -> Result<Self, Problem> {
        let mut list = Self::default();
        for entry in entries {
            match (network(entry), name(entry)) {
                (Some(network), _) => list.networks.push(network),
                (None, Some(name)) => list.names.push(name),
                (None, None) => {
                    let what = format!("\"{entry}\" in the opt-out list is no name, address or network");
                    return Err(Problem::usage(what).hint("write example.org, 192.0.2.7 or 192.0.2.0/24"));
                }
            }
        }
        Ok(list)
    }

    /// Whether it names this host.
    pub(super) fn has_name(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names
            .iter()
            .any(|name| host == *name || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.')))
    }

    /// Whether it names this address.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
            IpAddr::V6(v6) => u128::from(v6),
        };
        // What IPv6 calls ::ffff:192.0.2.7 is that host of IPv4.
        let spellings = [address, address.to_canonical()];
        self.networks.iter().any(|(network, len)| {
            let mask = if *len == 0 { 0 } else { u128::MAX << (128 - u32::from(*len)) };
            let same = |one: &IpAddr| network.is_ipv6() == one.is_ipv6() && (bits(*network) ^ bits(*one)) & mask == 0;
            spellings.iter().any(same)
        })
    }
}

/// `ADDRESS` or `ADDRESS/BITS`.
fn network(entry: &str) -> Option<Network> {
    let (address, bits) = entry.split_once('/').map_or((entry, None), |(address, bits)| (address, Some(bits)));
    let place: HostPort = address.parse().ok()?;
    let address = place.ip().filter(|_| place.port.is_none())?;
    let most = if address.is_ipv6() { 128 } else { 32 };
    let bits: u8 = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
    // The network of IPv4 that it means; a shorter one holds more than that.
    let mapped = address.is_ipv6() && address.to_canonical().is_ipv4() && bits >= 96;
    Some(if mapped { (address.to_canonical(), bits - 96) } else { (address, bits) })
}

/// `NAME`, `.NAME` or `*.NAME`, in small letters. Its last part has a letter, as that of no address has.
fn name(entry: &str) -> Option<String> {
    let name = entry.strip_prefix('*').unwrap_or(entry);
    let name = name.strip_prefix('.').unwrap_or(name).trim_end_matches('.');
    let place: HostPort = name.parse().ok()?;
    let last = place.host.rsplit('.').next().unwrap_or_default();
    let is_name = place.port.is_none() && !place.host.contains(':') && last.contains(|c: char| c.is_ascii_alphabetic());
    is_name.then(|| place.host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opted_out_is_known_by_name_address_and_network() {
        let list = ["Example.org", "*.example.com", ".example.net", "192.0.2.0/24", "2001:db8::/32", "[::1]"];
        let list = OptOut::read(&list.map(str::to_owned)).unwrap();
        for (host, out) in [
            ("example.org", true),
            ("www.EXAMPLE.org.", true),
            ("badexample.org", false),
            ("a.example.com", true),
            ("a.example.net", true),
        ] {
            assert_eq!(list.has_name(host), out, "{host}");
        }
        for (address, out) in
            [("192.0.2.7", true), ("192.0.3.7", false), ("2001:db8:1::", true), ("::192.0.2.7", false), ("::1", true)]
        {
            assert_eq!(list.has_address(address.parse().unwrap()), out, "{address}");
        }
        assert!(list.has_address("::ffff:192.0.2.7".parse().unwrap()), "the same host");
        let mapped = OptOut::read(&["::ffff:192.0.2.0/120".to_owned()]).unwrap();
        assert!(mapped.has_address("192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn what_would_never_match_is_refused() {
        for entry in [
            "192.0.2.0/33",
            "http://192.0.2.7/",
            "192.0.2.7:80",
            "example.org:80",
            "192.0.2.7#x",
            "192.0.2.300/24",
            "192.0.2.300",
            "192.0.2.*",
            "192.0.2.1-192.0.2.9",
            "192.0.2.1-9",
            "192.0.2.0/24;",
            ".0.2.7",
            "fe80::1%eth0",
            "*",
        ] {
            assert!(OptOut::read(&[entry.to_owned()]).is_err(), "{entry}");
        }
    }
}
