//! What the layers below TCP cost, as one question and one answer: every front end asks by [`overhead`].
//!
//! Pure computing: a question takes microseconds, a sweep over all MTUs some milliseconds.

/// The answer, and how it is computed.
mod answer;
/// Numbers, ranges and options as people write them.
mod words;

pub use answer::{OverheadAnswer, OverheadLayer, OverheadWord, OverheadWords, SweepStep, overhead_words};
pub use words::{GoodputRate, MtuRange, OptionsLen, PacketLen, PayloadLen, QuantityError, WireRate};

use crate::framing::{Framing, Headers, IpVersion, SplitError, Transport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wt_units::Bytes;

/// The transport of which the overhead is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverheadProto {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// The question: what a stack of layers costs.
///
/// As JSON every field is a text of the same grammar as on the command line; fields that are left out have their
/// defaults.
///
/// # Example
/// ```
/// use wt_units::Bytes;
/// use wt_wire::{OverheadRequest, overhead};
/// let request = OverheadRequest { encap: "pppoe-llc-bridged-fcs-atm".parse()?, ..OverheadRequest::default() };
/// let answer = overhead(&request)?;
/// assert_eq!((answer.cells, answer.best_mtu), (Some(33), Bytes(1492)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OverheadRequest {
    /// What carries the packet.
    pub encap: Framing,
    /// The payload to send, in as many packets as it takes; by default what fits into one.
    pub payload: Option<PayloadLen>,
    /// The transport.
    pub proto: OverheadProto,
    /// The version of IP.
    pub ip: IpVersion,
    /// The largest IP packet that TCP or UDP makes; by default what the link leaves: 1500 without anything around it.
    pub mtu: Option<PacketLen>,
    /// Compare every MTU of a range.
    pub sweep: Option<MtuRange>,
    /// Seek the best MTU at or under this one; by default the MTU, the end of the sweep, or what the link leaves.
    pub max_mtu: Option<PacketLen>,
    /// Options on each data segment.
    pub tcp_options: OptionsLen,
    /// The rate of the wire, for the goodput ceiling.
    pub link_rate: Option<WireRate>,
    /// The payload per second that is wanted, for the rate that the wire must have.
    pub goodput: Option<GoodputRate>,
    /// The largest packet that the link carries, tunnels, PPPoE and MPLS included.
    pub link_mtu: PacketLen,
}

impl Default for OverheadRequest {
    /// A full TCP segment over IPv4 and Ethernet.
    fn default() -> Self {
        Self {
            encap: Framing::ethernet(),
            payload: None,
            proto: OverheadProto::default(),
            ip: IpVersion::default(),
            mtu: None,
            sweep: None,
            max_mtu: None,
            tcp_options: OptionsLen::default(),
            link_rate: None,
            goodput: None,
            link_mtu: PacketLen::ETHERNET,
        }
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverheadError {
    /// Options of TCP were asked of UDP.
    #[error("UDP has no TCP options")]
    OptionsOfUdp,
    /// A sweep names all its MTUs, and its payload is what fits into each.
    #[error("a sweep cannot be used with an MTU or a payload")]
    SweepAndOne,
    /// No payload fits.
    #[error(transparent)]
    TooSmall(#[from] SplitError),
}

/// Computes what a stack costs.
///
/// # Errors
/// [`OverheadError`], which says what contradicts itself or doesn't fit.
pub fn overhead(request: &OverheadRequest) -> Result<OverheadAnswer, OverheadError> {
    if request.sweep.is_some() && (request.mtu.is_some() || request.payload.is_some()) {
        return Err(OverheadError::SweepAndOne);
    }
    OverheadAnswer::of(request)
}

impl OverheadRequest {
    /// The headers between the MTU and the payload.
    fn headers(&self) -> Result<Headers, OverheadError> {
        let options_len = self.tcp_options.get();
        let transport = match self.proto {
            OverheadProto::Tcp => Transport::Tcp { options_len },
            OverheadProto::Udp if options_len > 0 => return Err(OverheadError::OptionsOfUdp),
            OverheadProto::Udp => Transport::Udp,
        };
        Ok(Headers { ip: self.ip, transport })
    }

    /// The largest MTU that fits into the link, whatever is around the packet.
    fn fitting_mtu(&self) -> Bytes {
        self.encap.fitting_mtu(self.link_mtu.get())
    }

    /// The MTU that is counted where none is named.
    fn default_mtu(&self) -> Bytes {
        self.encap.usual_mtu(self.link_mtu.get())
    }

    /// Whether packets can be too long for the link: something is around them, or it was said what the link carries.
    fn is_bounded(&self) -> bool {
        self.encap.has_tunnel() || self.encap.shim_len() > Bytes(0) || self.link_mtu != PacketLen::ETHERNET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_best_mtu_that_doesnt_fit_is_told_with_the_best_that_does_and_so_is_what_a_tunnel_cant_carry() {
        let notes = |encap: &str, ip| {
            let request = OverheadRequest { encap: encap.parse().unwrap(), ip, ..OverheadRequest::default() };
            overhead(&request).unwrap().notes.join("; ")
        };
        let pppoe = notes("pppoe-llcsnap", IpVersion::V4);
        assert!(pppoe.contains("at most 1492; of those that fit into 1500 bytes the best MTU is 1448"), "{pppoe}");
        assert_eq!(notes("ethernet", IpVersion::V4), "");
        assert!(notes("6in4+ethernet", IpVersion::V4).contains("6in4 carries IPv6 only"));
        assert!(!notes("6in4+ethernet", IpVersion::V6).contains("6in4 carries"));
    }

    #[test]
    fn a_tunnel_that_was_taken_for_the_header_of_another_one_is_said_so_with_the_way_to_write_both() {
        let answer = |encap: &str| {
            let request =
                OverheadRequest { encap: encap.parse().unwrap(), ip: IpVersion::V6, ..OverheadRequest::default() };
            overhead(&request).unwrap().notes.join("; ")
        };
        let note = "6in4 was counted as the one IP header that carries wireguard: with a header of its own inside it, wireguard+ip6+6in4";
        assert!(answer("wireguard+6in4+ethernet").contains(note), "{}", answer("wireguard+6in4+ethernet"));
        assert!(answer("gre+ipip").contains("gre+ip4+ipip"));
        for clear in ["wireguard+ip6+6in4+ethernet", "6in4+ethernet", "wireguard+ethernet", "vxlan+udp+ip6"] {
            assert!(!answer(clear).contains("was counted"), "{clear}");
        }
        let unknown = "gtp".parse::<Framing>().unwrap_err().to_string();
        assert_eq!(unknown, "\"gtp\" is no layer that I know; `windtunnel overhead --list` shows all");
    }

    #[test]
    fn without_an_mtu_the_largest_that_fits_is_counted_and_the_best_one_fits_too() {
        let of = |encap: &str, link_mtu: &str| {
            let (encap, link_mtu) = (encap.parse().unwrap(), link_mtu.parse().unwrap());
            let request = OverheadRequest { encap, link_mtu, ..OverheadRequest::default() };
            let answer = overhead(&request).unwrap();
            (answer.mtu.get(), answer.max_mtu.get(), answer.best_mtu.get(), answer.notes.len())
        };
        assert_eq!(of("ethernet", "1500"), (1500, 1500, 1500, 0));
        assert_eq!(of("pppoe", "1500"), (1492, 1492, 1492, 0));
        assert_eq!(of("pppoe+vlan", "1500"), (1492, 1492, 1492, 0));
        assert_eq!(of("mpls", "1500"), (1496, 1496, 1496, 0));
        assert_eq!(of("wireguard+pppoe", "1500"), (1432, 1432, 1432, 0));
        // What the link carries is heeded without a tunnel, too, also where it is more.
        assert_eq!(of("ethernet", "1400"), (1400, 1400, 1400, 0));
        assert_eq!(of("vlan", "9000"), (9000, 9000, 9000, 0));
        // Cells carry more than Ethernet does, unless somebody says how much; the best MTU is one that fits either way.
        assert_eq!(of("pppoe-llc-bridged-fcs-atm", "1500"), (1500, 1492, 1492, 1));
        assert_eq!(of("pppoe-llc-bridged-fcs-atm", "1499"), (1491, 1491, 1491, 0));
    }

    #[test]
    fn an_mtu_that_a_named_link_doesnt_carry_is_told_without_a_tunnel_too() {
        let notes = |mtu: &str, link_mtu: &str| {
            let (mtu, link_mtu) = (Some(mtu.parse().unwrap()), link_mtu.parse().unwrap());
            overhead(&OverheadRequest { mtu, link_mtu, ..OverheadRequest::default() }).unwrap().notes.join("; ")
        };
        assert!(notes("1500", "1400").contains("it fits with an MTU of at most 1400"), "{}", notes("1500", "1400"));
        // Nobody said that the link isn't one of jumbo frames.
        assert_eq!((notes("9000", "1500"), notes("1400", "1400")), (String::new(), String::new()));
    }

    #[test]
    fn the_answer_is_the_same_whether_the_question_has_types_or_is_text() {
        let text = r#"{"encap": "wireguard+ethernet", "ip": "v6", "proto": "udp", "mtu": "1400", "link_rate": "8mbit",
            "goodput": "1MiB/s", "link_mtu": "1500"}"#;
        let read: OverheadRequest = serde_json::from_str(text).unwrap();
        let made = OverheadRequest {
            encap: "wireguard+ethernet".parse().unwrap(),
            ip: IpVersion::V6,
            proto: OverheadProto::Udp,
            mtu: Some("1400".parse().unwrap()),
            link_rate: Some("8mbit".parse().unwrap()),
            goodput: Some("1MiB/s".parse().unwrap()),
            ..OverheadRequest::default()
        };
        assert_eq!(read, made);
        let answer = overhead(&read).unwrap();
        assert_eq!((answer.mtu, answer.payload_len), (Bytes(1400), Bytes(1400 - 48)));
        let object = serde_json::to_value(&answer).unwrap();
        assert_eq!((object["ip"].as_u64(), object["proto"].as_str()), (Some(6), Some("udp")));
        assert_eq!(object["encap"], "wireguard+ethernet");
        for bad in [r#"{"mtu": "0"}"#, r#"{"ip": "5"}"#, r#"{"proto": "sctp"}"#, r#"{"encap": ""}"#, r#"{"svg": "x"}"#]
        {
            assert!(serde_json::from_str::<OverheadRequest>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_contradicts_itself_has_no_answer() {
        let base = OverheadRequest::default;
        let sweep = Some("1400..1500".parse().unwrap());
        let options: OptionsLen = "timestamps".parse().unwrap();
        let udp = OverheadRequest { proto: OverheadProto::Udp, tcp_options: options, ..base() };
        assert_eq!(overhead(&udp), Err(OverheadError::OptionsOfUdp));
        let both = OverheadRequest { sweep, mtu: Some(PacketLen::ETHERNET), ..base() };
        assert_eq!(overhead(&both), Err(OverheadError::SweepAndOne));
        let small = OverheadRequest { mtu: Some("40".parse().unwrap()), ..base() };
        assert!(matches!(overhead(&small), Err(OverheadError::TooSmall(error)) if error.least == Bytes(41)));
    }

    #[test]
    fn the_default_is_a_full_segment_over_ethernet() {
        let answer = overhead(&OverheadRequest::default()).unwrap();
        assert_eq!((answer.encap.to_string().as_str(), answer.wire_len), ("ethernet", Bytes(1538)));
    }
}
