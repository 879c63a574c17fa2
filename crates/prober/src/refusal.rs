//! Who says that a host can't be reached, and why, in words.

use serde::Serialize;
use std::net::IpAddr;
use wt_probe::RouterRefusal;

/// An ICMP message that says that packets to a host go no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RefusalAnswer {
    /// Whose address it bears.
    pub from: Option<IpAddr>,
    /// How many hops away that is, where a trace knows it.
    pub hop: Option<u8>,
    /// The type of the message.
    #[serde(rename = "type")]
    pub icmp_type: u8,
    /// Its code.
    pub code: u8,
    /// What both mean.
    pub meaning: &'static str,
    /// Whether somebody forbids it, and doesn't lack a way.
    #[serde(skip)]
    pub forbids: bool,
}

impl RefusalAnswer {
    pub(crate) fn of(refusal: RouterRefusal, v6: bool, hop: Option<u8>) -> Self {
        let icmp_type = match (v6, refusal.expired) {
            (false, false) => 3,
            (false, true) => 11,
            (true, false) => 1,
            (true, true) => 3,
        };
        let RouterRefusal { from, expired, code } = refusal;
        let forbids = !expired && if v6 { matches!(code, 1 | 5 | 6) } else { matches!(code, 9 | 10 | 13) };
        Self { from, hop, icmp_type, code, meaning: if expired { EXPIRED } else { meaning(v6, code) }, forbids }
    }

    /// Who says what.
    #[must_use]
    pub fn text(&self) -> String {
        let who = self.from.map_or("somebody on the way".to_owned(), |from| from.to_string());
        let hop = self.hop.map_or(String::new(), |hop| format!(" (hop {hop})"));
        let Self { icmp_type, code, meaning, .. } = self;
        format!("{who}{hop} says: {meaning} (ICMP {icmp_type}/{code})")
    }

    /// What to try.
    pub(crate) fn hint(&self, host: &str) -> String {
        let who = self.from.map_or("on the way".to_owned(), |from| format!("at {from}"));
        match (self.meaning == EXPIRED, self.forbids) {
            (true, _) => format!("windtunnel trace {host} shows between which routers"),
            (_, true) => {
                format!("ask whoever runs the firewall {who}, or name a TCP port that it lets through, as HOST:PORT")
            }
            _ => format!("check that the host is up, and the routes {who}"),
        }
    }
}

/// What "time exceeded" means of a packet with all its hops.
const EXPIRED: &str = "hops ran out, so packets go round in a loop";

/// What the code of "destination unreachable" means.
///
/// # Source
/// IPv4: RFC 792, RFC 1122 section 3.2.2.1 and RFC 1812 section 5.2.7.1; IPv6: RFC 4443 section 3.1.
const fn meaning(v6: bool, code: u8) -> &'static str {
    match (v6, code) {
        (false, 0) => "network unreachable",
        (false, 1) => "host unreachable",
        (false, 2) => "protocol unreachable",
        (_, 4) | (false, 3) => "port unreachable",
        (false, 5) => "source route failed",
        (false, 6) => "network unknown",
        (false, 7) => "host unknown",
        (false, 8) => "source host isolated",
        (false, 9) => "network administratively prohibited",
        (false, 10) => "host administratively prohibited",
        (false, 11) => "network unreachable for this type of service",
        (false, 12) => "host unreachable for this type of service",
        (false, 13) => "communication administratively prohibited",
        (false, 14) => "host precedence violation",
        (false, 15) => "precedence cutoff in effect",
        (true, 0) => "no route to destination",
        (true, 1) => "communication administratively prohibited",
        (true, 2) => "beyond the scope of the source address",
        (true, 3) => "address unreachable",
        (true, 5) => "source address failed the ingress or egress policy",
        (true, 6) => "reject route to destination",
        _ => "unreachable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_what_is_said_with_the_name_that_the_number_has_in_its_version_of_ip() {
        let from = "10.1.1.2".parse().ok();
        let said = |v6, code| RefusalAnswer::of(RouterRefusal { from, expired: false, code }, v6, Some(2));
        assert_eq!(said(false, 1).text(), "10.1.1.2 (hop 2) says: host unreachable (ICMP 3/1)");
        assert_eq!(said(true, 1).text(), "10.1.1.2 (hop 2) says: communication administratively prohibited (ICMP 1/1)");
        assert!(!said(false, 1).forbids && said(true, 1).forbids && said(false, 13).hint("x").contains("firewall"));
        let looped = RefusalAnswer::of(RouterRefusal { from: None, expired: true, code: 0 }, false, None);
        assert_eq!(looped.text(), "somebody on the way says: hops ran out, so packets go round in a loop (ICMP 11/0)");
        assert!(looped.hint("x").starts_with("windtunnel trace x"));
    }

    #[test]
    fn who_says_why_counts_before_whose_hops_ran_out() {
        let refusal = |expired, code| RouterRefusal { from: None, expired, code };
        let of = |all: &[RouterRefusal]| all.iter().fold(None, |before, next| RouterRefusal::or(before, *next));
        assert_eq!(of(&[refusal(true, 0), refusal(false, 13), refusal(false, 1)]), Some(refusal(false, 13)));
        assert_eq!(of(&[refusal(false, 1), refusal(true, 0)]), Some(refusal(false, 1)));
    }
}
