use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The prefix of a client's address as one word: an IPv4 /24 or an IPv6 /48.
///
/// IPv4: `address >> 8 | 4 << 60`. IPv6: the first 48 bits `| 6 << 60`. An IPv4-mapped address counts as the IPv4 one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientPrefix(pub u64);

impl ClientPrefix {
    /// The prefix of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match unmapped(address) {
            IpAddr::V4(v4) => Self(u64::from(u32::from(v4) >> 8) | 4 << 60),
            IpAddr::V6(v6) => Self(high(v6) >> 16 | 6 << 60),
        }
    }

    /// What of an address isn't in its prefix, with the client's port: the third word of a draw by connection.
    ///
    /// IPv4: `(address & 255) << 32`; IPv6: the low 64 bits of the address, exclusive-or the high 64 bits `<< 40`. Exclusive-or
    /// `port << 16 | 1`, so that it is never the 0 of a draw by prefix with an IPv4 client.
    #[must_use]
    pub fn rest(address: IpAddr, port: u16) -> u64 {
        let host = match unmapped(address) {
            IpAddr::V4(v4) => u64::from(u32::from(v4) & 255) << 32,
            IpAddr::V6(v6) => u128::from(v6) as u64 ^ high(v6) << 40,
        };
        host ^ (u64::from(port) << 16 | 1)
    }
}

fn high(address: Ipv6Addr) -> u64 {
    (u128::from(address) >> 64) as u64
}

/// An IPv4-mapped address as the IPv4 one; every other as it is.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether a client is left alone, with the name of the range: loopback always, private ranges unless they are asked for.
///
/// Private are 10/8, 172.16/12, 192.168/16, 100.64/10, 169.254/16, fc00::/7 and fe80::/10.
#[must_use]
pub fn left_alone(address: IpAddr, private_too: bool) -> Option<&'static str> {
    let range = match unmapped(address) {
        IpAddr::V4(v4) if v4.is_loopback() => return Some("loopback"),
        IpAddr::V6(v6) if v6.is_loopback() => return Some("loopback"),
        IpAddr::V4(v4) if v4.is_private() || v4.is_link_local() || is_shared(v4) => "private range",
        IpAddr::V6(v6) if v6.is_unique_local() || v6.is_unicast_link_local() => "private range",
        _ => return None,
    };
    (!private_too).then_some(range)
}

/// 100.64/10, the space of carrier-grade NAT (RFC 6598).
fn is_shared(address: Ipv4Addr) -> bool {
    u32::from(address) >> 22 == 0x6440_0000 >> 22
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> u64 {
        ClientPrefix::of(text.parse().unwrap()).0
    }

    #[test]
    fn a_client_is_its_24_or_48_bits_and_a_mapped_address_the_ipv4_one() {
        assert_eq!(prefix("192.0.2.1"), 0x4000_0000_00c0_0002);
        assert_eq!(prefix("192.0.2.255"), prefix("192.0.2.1"));
        assert_ne!(prefix("192.0.3.1"), prefix("192.0.2.1"));
        assert_eq!(prefix("::ffff:192.0.2.9"), prefix("192.0.2.1"));
        assert_eq!(prefix("2001:db8:1:2::3"), 0x6000_2001_0db8_0001);
        assert_eq!(prefix("2001:db8:1:ffff::"), prefix("2001:db8:1::"));
        assert_ne!(prefix("2001:db8:2::"), prefix("2001:db8:1::"));
    }

    #[test]
    fn connections_of_one_client_differ_by_their_ports_and_are_never_0() {
        let rest = |text: &str, port| ClientPrefix::rest(text.parse().unwrap(), port);
        assert_eq!(rest("192.0.2.7", 0x1234), 7 << 32 ^ 0x1234_0001);
        assert_eq!(rest("::ffff:192.0.2.7", 0x1234), rest("192.0.2.7", 0x1234));
        assert_eq!(rest("2001:db8:0:5::9", 1), 9 ^ (5 << 40) ^ 0x1_0001);
        assert_ne!(rest("192.0.2.0", 0), 0);
    }

    #[test]
    fn loopback_is_left_alone_always_and_private_ranges_unless_asked_for() {
        for (text, range) in [
            ("127.3.2.1", Some("loopback")),
            ("::1", Some("loopback")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("10.1.2.3", Some("private range")),
            ("172.31.0.1", Some("private range")),
            ("172.32.0.1", None),
            ("192.168.9.9", Some("private range")),
            ("100.64.0.1", Some("private range")),
            ("100.127.255.255", Some("private range")),
            ("100.128.0.1", None),
            ("169.254.1.1", Some("private range")),
            ("fe80::1", Some("private range")),
            ("fd00::1", Some("private range")),
            ("::ffff:10.0.0.1", Some("private range")),
            ("2001:db8::1", None),
            ("192.0.2.1", None),
        ] {
            let address = text.parse().unwrap();
            assert_eq!(left_alone(address, false), range, "{text}");
            assert_eq!(left_alone(address, true), range.filter(|r| *r == "loopback"), "{text}");
        }
    }
}
