use crate::target::Target;
use wt_probe::Cells;

/// What the narrowest link may be, from the MTU, and from whether packets take time by the cell.
///
/// # Source
/// 1492: RFC 2516 section 7; 1480: RFC 2003 and RFC 4213 (IP in IP); 1476: RFC 2784 (GRE); 1420: wg-quick(8); 1280: RFC
/// 8200 section 5; ATM: RFC 2364 (PPPoA), RFC 2684 (bridged).
pub(super) fn link_guess(pmtu: Option<u16>, cells: Option<Cells>, target: &Target) -> &'static str {
    match (pmtu, cells) {
        _ if target.ip.is_loopback() => "this host itself",
        (None, _) => "unknown",
        (Some(1492), Some(_)) => "PPPoE over ATM (DSL)",
        (Some(1500), Some(_)) => "PPPoA or bridged Ethernet over ATM (DSL)",
        (Some(_), Some(_)) => "tunnel or VPN over ATM (DSL)",
        (Some(9000..), None) => "Ethernet with jumbo frames",
        (Some(1500..), None) => "Ethernet",
        (Some(1492), None) => "PPPoE",
        (Some(1480), None) => "IP in IP",
        (Some(1476), None) => "GRE",
        (Some(1420 | 1440), None) => "WireGuard",
        (Some(1280), None) => "tunnel at IPv6's least MTU",
        (Some(_), None) => "tunnel or VPN",
    }
}
