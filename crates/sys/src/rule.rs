use crate::SysResult;
use crate::netlink::Netlink;
use crate::rtattr::{RawMessage, attributes, push, text_of, u32_of};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use std::fmt::Write as _;
use std::net::IpAddr;

const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_GETRULE: u16 = 34;
/// Length of `struct fib_rule_hdr`.
const HEAD: usize = 12;

const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_OIFNAME: u16 = 17;
const FRA_PROTOCOL: u16 = 21;

impl Netlink {
    /// The rules that choose a routing table, of IPv4 and of IPv6, in words: `32765: from 192.0.2.0/24 lookup 100`. What has no
    /// word here is told by its number and its bytes, so that two rules are alike only if all of them is.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EOPNOTSUPP` where the kernel has none.
    pub fn rules(&mut self) -> SysResult<Vec<String>> {
        let mut rules = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = vec![0; HEAD];
            body[0] = u8::try_from(family).unwrap_or(0);
            let answers = self.raw_dump(&RawMessage { kind: RTM_GETRULE, body }, "list the routing rules")?;
            rules.extend(answers.iter().filter_map(|message| rule(&message.body)));
        }
        Ok(rules)
    }

    /// Sends packets that have a mark to the table of the same number, before all tables but that of local addresses.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EEXIST` when there is such a rule.
    pub fn add_mark_rule(&mut self, is_v6: bool, mark: u32, priority: u32) -> SysResult<()> {
        let message = mark_rule(RTM_NEWRULE, is_v6, mark, priority);
        self.raw_change(message, NLM_F_CREATE | NLM_F_EXCL, "add a routing rule")
    }

    /// Removes what [`add_mark_rule`](Self::add_mark_rule) added.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `ENOENT` when there is none.
    pub fn delete_mark_rule(&mut self, is_v6: bool, mark: u32, priority: u32) -> SysResult<()> {
        self.raw_change(mark_rule(RTM_DELRULE, is_v6, mark, priority), 0, "remove a routing rule")
    }
}

fn mark_rule(kind: u16, is_v6: bool, mark: u32, priority: u32) -> RawMessage {
    const TO_TABLE: u8 = 1;
    let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
    let mut body = vec![0; HEAD];
    body[0] = u8::try_from(family).unwrap_or(0);
    body[7] = TO_TABLE;
    for (attribute, number) in [(FRA_PRIORITY, priority), (FRA_FWMARK, mark), (FRA_TABLE, mark)] {
        push(&mut body, attribute, &number.to_ne_bytes());
    }
    RawMessage { kind, body }
}

fn rule(body: &[u8]) -> Option<String> {
    const TO_TABLE: u8 = 1;
    const INVERT: u32 = 2;
    /// No suppression.
    const NONE: &[u8] = &[0xff; 4];
    let [family, to_bits, from_bits, tos, table, _, _, action] = *body.first_chunk::<8>()?;
    let flags = body.get(8..HEAD).and_then(u32_of)?;
    let found = |wanted| attributes(&body[HEAD..]).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let network = |value: Option<&[u8]>, bits: u8| {
        let Some(value) = value else { return "all".to_owned() };
        let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from).ok();
        let address = v4.or_else(|| <[u8; 16]>::try_from(value).map(IpAddr::from).ok());
        address.map_or_else(|| hex(value), |address| format!("{address}/{bits}"))
    };
    let version = if i32::from(family) == libc::AF_INET6 { "IPv6 " } else { "" };
    let priority = found(FRA_PRIORITY).and_then(u32_of).unwrap_or(0);
    let not = if flags & INVERT != 0 { "not " } else { "" };
    let mut text = format!("{version}{priority}: {not}from {}", network(found(FRA_SRC), from_bits));
    if found(FRA_DST).is_some() {
        let _ = write!(text, " to {}", network(found(FRA_DST), to_bits));
    }
    if tos != 0 {
        let _ = write!(text, " tos {tos:#x}");
    }
    for (word, kind) in [("iif", FRA_IIFNAME), ("oif", FRA_OIFNAME)] {
        if let Some(name) = found(kind) {
            let _ = write!(text, " {word} {}", text_of(name));
        }
    }
    if action == TO_TABLE {
        let _ = write!(text, " lookup {}", found(FRA_TABLE).and_then(u32_of).unwrap_or(u32::from(table)));
    } else {
        let _ = write!(text, " action {action}");
    }
    let known = [FRA_DST, FRA_SRC, FRA_IIFNAME, FRA_PRIORITY, FRA_TABLE, FRA_OIFNAME, FRA_PROTOCOL];
    for (kind, value) in attributes(&body[HEAD..]).filter(|(kind, _)| !known.contains(kind)) {
        if kind != FRA_SUPPRESS_PREFIXLEN || value != NONE {
            let _ = write!(text, " [{kind}={}]", hex(value));
        }
    }
    Some(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::rule;

    #[test]
    fn a_rule_is_told_in_words_and_what_has_none_in_bytes() {
        let mut body = vec![2, 0, 16, 0, 100, 0, 0, 1, 0, 0, 0, 0];
        for (kind, value) in [(2_u16, [10, 9, 0, 0]), (6, 32_765_u32.to_ne_bytes()), (15, 100_u32.to_ne_bytes())] {
            body.extend(8_u16.to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
        }
        assert_eq!(rule(&body).unwrap(), "32765: from 10.9.0.0/16 lookup 100");
        body.extend([8, 0, 10, 0, 1, 2, 3, 4]);
        assert_eq!(rule(&body).unwrap(), "32765: from 10.9.0.0/16 lookup 100 [10=01020304]");
        assert_eq!(rule(&body[..7]), None);
    }
}
