use std::net::IpAddr;
use wt_problem::Problem;

/// Who doesn't want to be asked: names (with all below them), addresses and networks.
#[derive(Debug, Default)]
pub(super) struct OptOut {
    names: Vec<String>,
    networks: Vec<(IpAddr, u8)>,
}

impl OptOut {
    /// Reads names, addresses and networks.
    ///
    /// # Errors
    /// A usage problem for what is no network.
    pub(super) fn read(entries: &[String]) -> Result<Self, Problem> {
        let mut list = Self::default();
        for line in entries {
            let (address, bits) = line.split_once('/').map_or((line.as_str(), None), |(a, b)| (a, Some(b)));
            let Ok(address) = address.parse::<IpAddr>() else {
                list.names.push(line.trim_start_matches("*.").trim_end_matches('.').to_ascii_lowercase());
                continue;
            };
            let most = if address.is_ipv6() { 128 } else { 32 };
            let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most);
            let bits = bits.ok_or_else(|| {
                Problem::usage(format!("\"{line}\" in the opt-out list is not a valid network"))
                    .hint("write 192.0.2.0/24")
            })?;
            list.networks.push((address, bits));
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
        self.networks.iter().any(|(network, len)| {
            let mask = if *len == 0 { 0 } else { u128::MAX << (128 - u32::from(*len)) };
            network.is_ipv6() == address.is_ipv6() && (bits(*network) ^ bits(address)) & mask == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_opted_out_is_known_by_name_address_and_network() {
        let list = ["Example.org", "*.example.com", "192.0.2.0/24", "2001:db8::/32"].map(str::to_owned);
        let list = OptOut::read(&list).unwrap();
        for (host, out) in
            [("example.org", true), ("www.EXAMPLE.org.", true), ("badexample.org", false), ("a.example.com", true)]
        {
            assert_eq!(list.has_name(host), out, "{host}");
        }
        for (address, out) in
            [("192.0.2.7", true), ("192.0.3.7", false), ("2001:db8:1::", true), ("::192.0.2.7", false)]
        {
            assert_eq!(list.has_address(address.parse().unwrap()), out, "{address}");
        }
        assert!(OptOut::read(&["192.0.2.0/33".to_owned()]).is_err());
    }
}
