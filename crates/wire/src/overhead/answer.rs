use super::{OverheadError, OverheadProto, OverheadRequest};
use crate::framing::{Account, Framing, Group, Headers, IpVersion, Part, Piece};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// The version of the JSON object.
const SCHEMA_VERSION: u32 = 1;
/// The least MTU of IPv4 (RFC 791 section 3.2).
const LEAST_V4: u64 = 68;
/// The least MTU of IPv6 (RFC 8200 section 5).
const LEAST_V6: u64 = 1280;

/// All that is known of one stack. Its JSON is the contract of `windtunnel overhead --json`.
///
/// # Units
/// In JSON lengths are bytes, rates bits per second, shares numbers from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OverheadAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// The stack.
    #[schema(value_type = String)]
    pub encap: Framing,
    /// The transport.
    pub proto: OverheadProto,
    /// The version of IP.
    #[serde(serialize_with = "ip_number")]
    #[schema(value_type = u8)]
    pub ip: IpVersion,
    /// TCP's options on each segment.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub tcp_options_len: Bytes,
    /// The MTU that TCP sees.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub mtu: Bytes,
    /// The payload that was asked for, or that fits.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub payload_len: Bytes,
    /// The packets that it takes.
    pub packets: u64,
    /// Their IP packets in all, tunnels not counted.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub ip_len: Bytes,
    /// The outermost IP packet of the first of them.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub outer_len: Bytes,
    /// The wire in all.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub wire_len: Bytes,
    /// The cells in all, on a link that has them.
    pub cells: Option<u64>,
    /// What is added, as a share of the payload.
    #[serde(serialize_with = "share")]
    #[schema(value_type = Option<f64>)]
    pub overhead_ratio: Option<Ratio>,
    /// The payload's share of the wire.
    #[serde(serialize_with = "whole_share")]
    #[schema(value_type = f64)]
    pub efficiency: Ratio,
    /// The bound of the best MTU.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub max_mtu: Bytes,
    /// The best MTU at or under it.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub best_mtu: Bytes,
    /// The efficiency of full packets there.
    #[serde(serialize_with = "whole_share")]
    #[schema(value_type = f64)]
    pub best_efficiency: Ratio,
    /// The rate of the wire that was asked about.
    #[serde(serialize_with = "rate")]
    #[schema(value_type = Option<u64>)]
    pub link_rate_bps: Option<BitsPerSecond>,
    /// The payload per second at that rate.
    #[serde(serialize_with = "rate")]
    #[schema(value_type = Option<u64>)]
    pub goodput_bps: Option<BitsPerSecond>,
    /// The payload per second that was asked about.
    #[serde(serialize_with = "rate")]
    #[schema(value_type = Option<u64>)]
    pub wanted_goodput_bps: Option<BitsPerSecond>,
    /// The rate that the wire must have for it.
    #[serde(serialize_with = "rate")]
    #[schema(value_type = Option<u64>)]
    pub needed_link_rate_bps: Option<BitsPerSecond>,
    /// The first frame in the order of the wire.
    pub layers: Vec<OverheadLayer>,
    /// Full packets at every MTU of the sweep.
    pub sweep: Vec<SweepStep>,
    /// What is right by the arithmetic and may still surprise.
    pub notes: Vec<String>,
}

/// Bytes of a frame that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct OverheadLayer {
    /// What they are.
    pub name: &'static str,
    /// What they are for.
    pub part: Part,
    /// How many bytes; negative only where tc's `overhead` is.
    pub len: i64,
}

impl From<&Piece> for OverheadLayer {
    fn from(piece: &Piece) -> Self {
        Self { name: piece.name, part: piece.part, len: piece.len }
    }
}

/// Full packets at one MTU of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct SweepStep {
    /// The MTU.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub mtu: Bytes,
    /// The payload of a full packet.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub payload_len: Bytes,
    /// What it takes on the wire.
    #[serde(serialize_with = "bytes")]
    #[schema(value_type = u64)]
    pub wire_len: Bytes,
    /// Its cells, on a link that has them.
    pub cells: Option<u64>,
    /// The payload's share of the wire.
    #[serde(serialize_with = "whole_share")]
    #[schema(value_type = f64)]
    pub efficiency: Ratio,
}

impl SweepStep {
    fn new(mtu: Bytes, account: &Account) -> Self {
        let Account { payload_len, wire_len, cells, .. } = *account;
        Self { mtu, payload_len, wire_len, cells, efficiency: account.efficiency() }
    }
}

impl OverheadAnswer {
    /// Computes everything.
    pub(super) fn of(request: &OverheadRequest) -> Result<Self, OverheadError> {
        let (framing, headers) = (&request.encap, request.headers()?);
        let sweep = sweep(request, headers)?;
        let max = request.max_mtu.map(|max| max.get());
        let asked = request.mtu.map(|mtu| mtu.get());
        let given = asked.or(request.sweep.map(|sweep| sweep.last()));
        let most = given.or(max).unwrap_or_else(|| request.default_mtu());
        // Where nobody names a bound, the best one must fit into the link.
        let max_mtu = max.or(given).unwrap_or_else(|| most.min(request.fitting_mtu()));
        let best_mtu = framing.best_mtu(max_mtu, headers)?;
        // Of a sweep, or with only a maximum to go by, the best one is shown.
        let mtu = asked.unwrap_or(if given.is_none() && max.is_none() { most } else { best_mtu });
        let payload = request.payload.map_or_else(|| headers.payload_of(mtu), |payload| Ok(payload.get()))?;
        let account = framing.account(headers, mtu, payload)?;
        let first_payload = headers.payload_of(mtu)?.min(payload);
        let at_mtu = framing.at_mtu(mtu);
        // Where the best one doesn't fit into the link, the best of those that do.
        let room = request.fitting_mtu();
        let best_of_all = if max_mtu < most { framing.best_mtu(most, headers)? } else { best_mtu };
        let fitting =
            (request.is_bounded() && best_of_all > room).then(|| framing.best_mtu(room, headers).ok()).flatten();
        let fitting = fitting.and_then(|best| Some((best, framing.bulk(headers, best).ok()?.efficiency())));
        let link_rate = request.link_rate.map(|rate| rate.get());
        let wanted = request.goodput.map(|rate| rate.get());
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            proto: request.proto,
            ip: request.ip,
            tcp_options_len: headers.options_len(),
            mtu,
            payload_len: account.payload_len,
            packets: account.packets,
            ip_len: account.ip_len,
            outer_len: at_mtu.outer_len(headers.header_len() + first_payload),
            wire_len: account.wire_len,
            cells: account.cells,
            overhead_ratio: account.overhead(),
            efficiency: account.efficiency(),
            max_mtu,
            best_mtu,
            best_efficiency: framing.bulk(headers, best_mtu)?.efficiency(),
            link_rate_bps: link_rate,
            goodput_bps: link_rate.map(|rate| account.goodput(rate)),
            wanted_goodput_bps: wanted,
            needed_link_rate_bps: wanted.map(|rate| account.link_rate_for(rate)),
            layers: at_mtu.pieces(headers, first_payload).iter().map(OverheadLayer::from).collect(),
            sweep,
            notes: notes(request, &at_mtu, mtu, account, fitting),
            encap: framing.clone(),
        })
    }
}

fn sweep(request: &OverheadRequest, headers: Headers) -> Result<Vec<SweepStep>, OverheadError> {
    let Some(range) = request.sweep else {
        return Ok(Vec::new());
    };
    (range.first().get()..=range.last().get())
        .map(Bytes)
        .map(|mtu| Ok(SweepStep::new(mtu, &request.encap.bulk(headers, mtu)?)))
        .collect()
}

/// What is right by the arithmetic and may still surprise.
fn notes(
    request: &OverheadRequest,
    framing: &Framing,
    mtu: Bytes,
    account: Account,
    best: Option<(Bytes, Ratio)>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let link_mtu = request.link_mtu.get();
    let longest = framing.outer_len(mtu.min(account.ip_len)) + framing.shim_len();
    if longest > link_mtu && request.is_bounded() {
        notes.push(format!(
            "a link with an MTU of {} does not carry the {} bytes that this makes of a packet: it fits with an MTU of \
             at most {}",
            link_mtu.get(),
            longest.get(),
            request.encap.fitting_mtu(link_mtu).get(),
        ));
    }
    if let Some((best, efficiency)) = best {
        let share = efficiency.get() * 100.0;
        notes.push(format!(
            "of those that fit into {} bytes the best MTU is {}: {share:.2} %",
            link_mtu.get(),
            best.get()
        ));
    }
    let carried = request.encap.to_string();
    match (carried.split('+').next(), request.ip) {
        (Some("6in4"), IpVersion::V4) => notes.push("6in4 carries IPv6 only: --ip 6".to_owned()),
        (Some("ipip"), IpVersion::V6) => notes.push("ipip carries IPv4 only: --ip 4".to_owned()),
        _ => {}
    }
    for (tunnel, carrier, other) in framing.carriers_by_tunnels() {
        notes.push(format!("{carrier} was counted as the one IP header that carries {tunnel}: with a header of its own inside it, {other}"));
    }
    let (least, rfc) = match request.ip {
        IpVersion::V4 => (LEAST_V4, "RFC 791 section 3.2"),
        IpVersion::V6 => (LEAST_V6, "RFC 8200 section 5"),
    };
    if mtu < Bytes(least) {
        notes.push(format!("no link for this version of IP has an MTU below {least} ({rfc})"));
    }
    if request.proto == OverheadProto::Udp && account.packets > 1 {
        notes.push(format!("counted as {} datagrams, not as fragments of one", account.packets));
    }
    notes
}

/// The words of which stacks are made. Its JSON is the contract of `windtunnel overhead --list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OverheadWords {
    /// The version of this object.
    pub schema_version: u32,
    /// The words, in the order in which they are shown.
    pub words: Vec<OverheadWord>,
}

/// A word of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct OverheadWord {
    /// The word as it is written; `N` stands for a number.
    pub name: &'static str,
    /// Other spellings.
    #[schema(value_type = Vec<String>)]
    pub aliases: &'static [&'static str],
    /// What it stands for, in one line.
    pub about: &'static str,
    /// What it is for.
    pub group: Group,
    /// Bytes that its own layers add.
    pub bytes: Option<i32>,
    /// Bytes that the word alone adds to a long packet before cells, carriers included.
    pub alone_bytes: Option<i64>,
}

/// Lists the words of which stacks are made.
#[must_use]
pub fn overhead_words() -> OverheadWords {
    let alone = |name: &str| Framing::parse(name).ok()?.linear().map(|linear| linear.add);
    let words = Framing::words().map(|word| OverheadWord {
        name: word.name,
        aliases: word.aliases,
        about: word.about,
        group: word.group,
        bytes: word.bytes(),
        alone_bytes: alone(word.name),
    });
    OverheadWords { schema_version: SCHEMA_VERSION, words: words.collect() }
}

fn ip_number<S: Serializer>(ip: &IpVersion, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(match ip {
        IpVersion::V4 => 4,
        IpVersion::V6 => 6,
    })
}

fn bytes<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(bytes.get())
}

fn rate<S: Serializer>(rate: &Option<BitsPerSecond>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(BitsPerSecond::get).serialize(serializer)
}

fn share<S: Serializer>(share: &Option<Ratio>, serializer: S) -> Result<S::Ok, S::Error> {
    share.map(Ratio::get).serialize(serializer)
}

fn whole_share<S: Serializer>(share: &Ratio, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(share.get())
}
