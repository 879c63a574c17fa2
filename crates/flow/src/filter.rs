//! Which packets are looked at, in the words of tcpdump.
//!
//! # Source
//! pcap-filter(7), of which this is a part: `host`, `net`, `port`, `portrange` with `src` and `dst`; `tcp`, `udp`, `icmp`,
//! `icmp6`, `ip`, `ip6`, also before `host` and `port`; `less` and `greater`; `and`, `or`, `not` and parentheses.
//!
//! "and" and "or" bind alike there, and from left to right: `a or b and c` is `(a or b) and c`.
//!
//! # What this leaves out
//! `less` and `greater` are of the IP packet, not of the frame around it. Link layers, expressions on bytes, names of hosts (they would be looked up), and the list of services but for a few.

use std::net::IpAddr;
use wt_wire::Protocol;

/// Longer expressions aren't read.
const LONGEST: usize = 4096;
/// Nor those with more parentheses within each other.
const DEEPEST: usize = 64;

/// A condition on packets.
///
/// # Example
/// ```
/// let filter: wt_flow::Filter = "tcp and (net 10.0.0.0/8 or host 2001:db8::1) and not port ssh".parse()?;
/// # Ok::<(), wt_flow::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Node);

/// Why a text is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the filter isn't understood{}: {why}", .at.as_ref().map_or_else(String::new, |word| format!(" at \"{word}\"")))]
pub struct FilterError {
    /// The word at which it isn't.
    pub at: Option<String>,
    /// Why.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Net(Side, IpAddr, u8),
    Ports(Side, u16, u16),
    Protocol(Protocol),
    Version(bool),
    Less(u32),
    Greater(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Either,
    Source,
    Destination,
    Both,
}

/// What a filter looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) protocol: Protocol,
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) len: u32,
}

impl Filter {
    pub(crate) fn matches(&self, subject: &Subject) -> bool {
        self.0.matches(subject)
    }
}

impl Node {
    fn matches(&self, s: &Subject) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|part| part.matches(s)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(s)),
            Self::Not(part) => !part.matches(s),
            Self::Net(side, net, prefix) => {
                side.holds((s.src, s.dst), |address: IpAddr| is_within(address, *net, *prefix))
            }
            Self::Ports(side, from, to) => {
                s.ports.is_some_and(|ports| side.holds(ports, |port: u16| (*from..=*to).contains(&port)))
            }
            Self::Protocol(protocol) => s.protocol == *protocol,
            Self::Version(v6) => s.src.is_ipv6() == *v6,
            Self::Less(most) => s.len <= *most,
            Self::Greater(least) => s.len >= *least,
        }
    }
}

impl Side {
    fn holds<T>(self, (src, dst): (T, T), is: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Either => is(src) || is(dst),
            Self::Source => is(src),
            Self::Destination => is(dst),
            Self::Both => is(src) && is(dst),
        }
    }
}

fn is_within(address: IpAddr, net: IpAddr, prefix: u8) -> bool {
    let shifted = |bits: u128, width: u32| bits.checked_shr(width.saturating_sub(u32::from(prefix))).unwrap_or(0);
    match (address, net) {
        (IpAddr::V4(a), IpAddr::V4(b)) => shifted(u32::from(a).into(), 32) == shifted(u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => shifted(a.into(), 128) == shifted(b.into(), 128),
        _ => false,
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError { at: None, why: format!("it is longer than {LONGEST} bytes") });
        }
        let mut parser = Parser { words: words(text), at: 0, depth: 0, side: Side::Either, last: Last::None };
        if parser.words.is_empty() {
            return Err(FilterError {
                at: None,
                why: "it is empty; write for example tcp and host 192.0.2.1".to_owned(),
            });
        }
        let node = parser.joined()?;
        match parser.peek() {
            None => Ok(Self(node)),
            Some(")") => Err(parser.error("there is no parenthesis to close")),
            Some(_) => Err(parser.error("\"and\" or \"or\" is missing before it")),
        }
    }
}

/// Words, with parentheses and signs apart.
fn words(text: &str) -> Vec<String> {
    let mut spaced = text.replace("&&", " and ").replace("||", " or ");
    for sign in ['(', ')', '!'] {
        spaced = spaced.replace(sign, &format!(" {sign} "));
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// What a bare value after "or" or "and" means: `port 80 or 443`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    None,
    Host,
    Net,
    Port,
    PortRange,
}

struct Parser {
    words: Vec<String>,
    at: usize,
    depth: usize,
    side: Side,
    last: Last,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn take(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    fn error(&self, why: impl Into<String>) -> FilterError {
        FilterError { at: self.peek().map(str::to_owned), why: why.into() }
    }

    /// Conditions joined by "and" and "or", which bind alike, from left to right.
    fn joined(&mut self) -> Result<Node, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("there are too many parentheses"));
        }
        let mut node = self.not()?;
        while let Some(word @ ("and" | "or")) = self.peek() {
            let is_and = word == "and";
            self.at += 1;
            let right = self.not()?;
            match (&mut node, is_and) {
                (Node::And(parts), true) | (Node::Or(parts), false) => parts.push(right),
                _ if is_and => node = Node::And(vec![node, right]),
                _ => node = Node::Or(vec![node, right]),
            }
        }
        self.depth -= 1;
        Ok(node)
    }

    fn not(&mut self) -> Result<Node, FilterError> {
        let mut negated = false;
        while matches!(self.peek(), Some("not" | "!")) {
            negated = !negated;
            self.at += 1;
        }
        let node = if self.peek() == Some("(") {
            self.at += 1;
            let inner = self.joined()?;
            if self.peek() != Some(")") {
                return Err(self.error("a parenthesis isn't closed"));
            }
            self.at += 1;
            inner
        } else {
            self.primitive()?
        };
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    /// One condition: protocol, side, kind and value, as far as each is there.
    fn primitive(&mut self) -> Result<Node, FilterError> {
        let protocol = self.protocol();
        let before = self.at;
        let side = self.direction();
        let said = self.at > before;
        let kind = match self.peek() {
            Some("host") => Last::Host,
            Some("net") => Last::Net,
            Some("port") => Last::Port,
            Some("portrange") => Last::PortRange,
            Some(word @ ("less" | "greater")) if !said => {
                let less = word == "less";
                self.at += 1;
                let len = self.value()?;
                let len = len.parse().map_err(|_| self.before("it isn't a length in bytes"))?;
                let node = if less { Node::Less(len) } else { Node::Greater(len) };
                return Ok(with_protocol(protocol, Some(node)));
            }
            _ => Last::None,
        };
        if kind != Last::None {
            self.at += 1;
            (self.side, self.last) = (side, kind);
            let node = self.condition(side, kind)?;
            return Ok(with_protocol(protocol, Some(node)));
        }
        match (&protocol, said) {
            (Some(_), false) => return Ok(with_protocol(protocol, None)),
            (_, true) if self.peek().is_some_and(|word| word.parse::<IpAddr>().is_ok()) => {
                (self.side, self.last) = (side, Last::Host);
                let node = self.condition(side, Last::Host)?;
                return Ok(with_protocol(protocol, Some(node)));
            }
            (_, true) => return Err(self.error("host, net or port belongs here")),
            _ => {}
        }
        if self.last != Last::None && self.peek().is_some_and(|word| !matches!(word, ")" | "and" | "or")) {
            return self.condition(self.side, self.last);
        }
        Err(self.error("host, net, port, portrange, less, greater, tcp, udp, icmp, ip or ip6 belongs here"))
    }

    fn protocol(&mut self) -> Option<Node> {
        let node = match self.peek()? {
            "tcp" => Node::Protocol(Protocol::TCP),
            "udp" => Node::Protocol(Protocol::UDP),
            "icmp" => Node::Protocol(Protocol::ICMP),
            "icmp6" => Node::Protocol(Protocol::ICMPV6),
            "ip" => Node::Version(false),
            "ip6" => Node::Version(true),
            _ => return None,
        };
        self.at += 1;
        Some(node)
    }

    fn direction(&mut self) -> Side {
        let word = |at: usize| self.words.get(at).map(String::as_str);
        let (side, count) = match (word(self.at), word(self.at + 1), word(self.at + 2)) {
            (Some("src"), Some("or"), Some("dst")) | (Some("dst"), Some("or"), Some("src")) => (Side::Either, 3),
            (Some("src"), Some("and"), Some("dst")) | (Some("dst"), Some("and"), Some("src")) => (Side::Both, 3),
            (Some("src"), ..) => (Side::Source, 1),
            (Some("dst"), ..) => (Side::Destination, 1),
            _ => (Side::Either, 0),
        };
        self.at += count;
        side
    }

    fn value(&mut self) -> Result<String, FilterError> {
        self.take().ok_or_else(|| FilterError { at: None, why: "it ends where a value belongs".to_owned() })
    }

    /// An error about the word that was just taken.
    fn before(&self, why: &str) -> FilterError {
        FilterError { at: self.words.get(self.at.saturating_sub(1)).cloned(), why: why.to_owned() }
    }

    fn condition(&mut self, side: Side, kind: Last) -> Result<Node, FilterError> {
        let value = self.value()?;
        match kind {
            Last::Host => {
                let address: IpAddr =
                    value.parse().map_err(|_| self.before("it isn't an address, and names aren't looked up"))?;
                Ok(Node::Net(side, address, if address.is_ipv6() { 128 } else { 32 }))
            }
            Last::Net => self.net(side, &value),
            Last::PortRange => {
                let ends = value.split_once('-').and_then(|(from, to)| Some((port(from)?, port(to)?)));
                let (from, to) = ends.ok_or_else(|| self.before("write a range of ports: 8000-8080"))?;
                Ok(Node::Ports(side, from.min(to), from.max(to)))
            }
            Last::Port | Last::None => {
                let port = port(&value).ok_or_else(|| self.before("it isn't a port: 0 to 65535"))?;
                Ok(Node::Ports(side, port, port))
            }
        }
    }

    fn net(&mut self, side: Side, value: &str) -> Result<Node, FilterError> {
        let (address, prefix) =
            value.split_once('/').map_or((value, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr =
            address.parse().map_err(|_| self.before("it isn't a network: write 192.0.2.0/24 or 2001:db8::/32"))?;
        let width = if address.is_ipv6() { 128 } else { 32 };
        let prefix = match prefix {
            None => width,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= width)
                .ok_or_else(|| self.before(&format!("the length of its prefix is 0 to {width}")))?,
        };
        Ok(Node::Net(side, address, prefix))
    }
}

fn with_protocol(protocol: Option<Node>, node: Option<Node>) -> Node {
    match (protocol, node) {
        (Some(protocol), Some(node)) => Node::And(vec![protocol, node]),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Node::And(Vec::new()),
    }
}

fn port(text: &str) -> Option<u16> {
    let known = match text {
        "ftp-data" => 20,
        "ftp" => 21,
        "ssh" => 22,
        "telnet" => 23,
        "smtp" => 25,
        "domain" => 53,
        "http" => 80,
        "https" => 443,
        _ => return text.parse().ok(),
    };
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subject(src: &str, dst: &str, ports: (u16, u16), protocol: Protocol) -> Subject {
        Subject { src: src.parse().unwrap(), dst: dst.parse().unwrap(), protocol, ports: Some(ports), len: 100 }
    }

    #[test]
    fn filters_mean_what_tcpdump_means_by_them() {
        let four = subject("10.1.2.3", "192.0.2.1", (50_000, 443), Protocol::TCP);
        let six = subject("2001:db8::1", "2001:db8:1::2", (53, 5353), Protocol::UDP);
        for (text, of_four, of_six) in [
            ("tcp", true, false),
            ("udp", false, true),
            ("ip", true, false),
            ("ip6", false, true),
            ("host 10.1.2.3", true, false),
            ("src host 10.1.2.3", true, false),
            ("dst host 10.1.2.3", false, false),
            ("src 10.1.2.3", true, false),
            ("net 10.0.0.0/8", true, false),
            ("net 10.0.0.0/8 and dst net 192.0.2.0/24", true, false),
            ("net 2001:db8::/32", false, true),
            ("src and dst net 2001:db8::/32", false, true),
            ("src and dst net 10.0.0.0/8", false, false),
            ("net 0.0.0.0/0", true, false),
            ("port 443", true, false),
            ("port https or domain", true, true),
            ("port 80 or 443", true, false),
            ("tcp port 443", true, false),
            ("udp port 443", false, false),
            ("src port 443", false, false),
            ("dst port 443", true, false),
            ("src or dst port 443", true, false),
            ("portrange 50000-50100", true, false),
            ("portrange 5400-5300", false, true),
            ("not port 443", false, true),
            ("!(tcp && port 443) || host 10.1.2.3", true, true),
            ("not not tcp", true, false),
            ("tcp and (port 1 or (port 443 and net 10.0.0.0/8))", true, false),
            ("port 1 and port 443 or tcp", true, false),
            ("udp or tcp and port 53", false, true),
            ("tcp or port 53 and udp", false, true),
            ("udp or (tcp and port 443)", true, true),
            ("less 100 and greater 100", true, true),
            ("greater 101", false, false),
            ("icmp or icmp6", false, false),
        ] {
            let filter: Filter = text.parse().unwrap();
            assert_eq!((filter.matches(&four), filter.matches(&six)), (of_four, of_six), "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_says_where_and_why() {
        for (text, wanted) in [
            ("", "empty"),
            ("host", "ends where a value"),
            ("host example.org", "aren't looked up"),
            ("port 70000", "0 to 65535"),
            ("net 10.0.0.0/33", "0 to 32"),
            ("tcp and", "belongs here"),
            ("(tcp", "isn't closed"),
            ("tcp)", "no parenthesis"),
            ("tcp port 1 host 1.2.3.4", "missing before"),
            ("src tcp", "belongs here"),
            ("frobnicate", "belongs here"),
            ("less many", "length"),
        ] {
            let error = text.parse::<Filter>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!("(".repeat(4000).parse::<Filter>().is_err());
        assert!("not ".repeat(1000).parse::<Filter>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(words in proptest::collection::vec("(host|net|port|portrange|src|dst|and|or|not|tcp|ip6|less|\\(|\\)|!|1\\.2\\.3\\.4/?[0-9]{0,3}|::1|[0-9]{1,6}|\\PC{0,4})", 0..20)) {
            let _ = words.join(" ").parse::<Filter>();
        }
    }
}
