use crate::connection::{Connection, End, LastSilence, Shares};
use crate::counts::{Counts, Offer};
use crate::finding::Blame;
use crate::half::Half;
use crate::samples::Spread;
use crate::supply::SupplyShares;
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use wt_experiment::drift;

/// What came, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Packets {
    /// All packets.
    pub all: u64,
    /// Segments of TCP.
    pub tcp: u64,
    /// Connections.
    pub connections: u64,
    /// Other protocols over IP.
    pub not_tcp: u64,
    /// Of these, such that carry other packets (GRE, IP in IP, IPsec, VXLAN and the like), which aren't looked at.
    pub tunnelled: u64,
    /// No IP, or behind headers that aren't known.
    pub not_ip: u64,
    /// Parts of packets; they are counted only.
    pub fragments: u64,
    /// Answers of routers that a packet was too large.
    pub too_big: u64,
    /// TCP of which too little was kept: not its whole header. What of it can be read counts as a segment, too.
    pub cut: u64,
    /// Packets that contradict themselves, or of which not even the IP header was kept.
    pub broken: u64,
    /// Of these, those of which not even the IP header was kept.
    pub cut_in_ip: u64,
    /// TCP that was captured twice; each counts once.
    pub copies: u64,
    /// Of these, those of connections that were captured at places far apart: files were joined.
    #[serde(skip_serializing_if = "is_zero")]
    pub far_copies: u64,
    /// Packets that the filter left out.
    pub filtered_out: u64,
    /// Packets whose time the capture doesn't tell.
    pub without_time: u64,
    /// Packets that are earlier than one before by more than 0.1 s: the clock was set back, or the capture isn't sorted.
    pub set_back: u64,
    /// Packets of a file that stood behind later ones of the same place, by less than 0.1 s: they were read in the order of their times.
    pub unsorted: u64,
    /// Connections that had been given up to bound memory, and were taken up again.
    pub taken_up_again: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// All that can be said of the packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// 1.
    pub schema_version: u32,
    /// The first packet, µs since 1970.
    pub first_unix_us: u64,
    /// From the first packet to the last, µs.
    pub duration_us: u64,
    /// What came.
    pub packets: Packets,
    /// The connections, in the order in which they began.
    pub connections: Vec<ConnectionReport>,
    /// Connections that aren't told one by one: those with the least payload.
    pub connections_left_out: u64,
    /// What a person should know of the capture itself.
    pub warnings: Vec<String>,
}

/// How far a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The capture ends right behind the SYN, before an answer could come, or it was given up then to bound memory.
    Opening,
    /// Nobody answered the SYN.
    Unanswered,
    /// It was answered by a reset.
    Refused,
    /// The handshake wasn't completed.
    HalfOpen,
    /// It stands, or its end wasn't seen.
    Open,
    /// Both ends closed it.
    Closed,
    /// One end reset it.
    Reset,
}

/// Where on the path this was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// At the client or near it.
    NearClient,
    /// At the server or near it.
    NearServer,
    /// In between.
    Between,
    /// Unknown.
    Unknown,
}

/// The beginning of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Handshake {
    /// Whether SYN, SYN-ACK and ACK were seen.
    pub complete: bool,
    /// From SYN to the last ACK, µs; unknown if one of them was retransmitted.
    pub rtt_us: Option<u64>,
}

/// How an end's receive window was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Windows {
    /// Whether the shift is known; without it the figures are as they stand in the header.
    pub scale_known: bool,
    /// The smallest, bytes.
    pub min: Option<u32>,
    /// The largest, bytes.
    pub max: u32,
    /// The last, bytes.
    pub last: u32,
    /// The mean of those of its ACKs, bytes, once it was sent anything.
    pub mean: Option<f64>,
    /// The mean over time, bytes: each window counts for as long as it was the last that was told.
    pub mean_over_time: Option<f64>,
    /// What a sender that sends whole segments can have under way with these windows, in the mean over time, bytes.
    pub usable: Option<f64>,
    /// How often it was closed.
    pub closed_times: u64,
    /// How long it was closed, µs.
    pub closed_us: u64,
    /// The longest time of these, µs.
    pub closed_longest_us: u64,
}

/// How long an end waits before it acknowledges: beyond the time to it and back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AckDelay {
    /// The median, µs.
    pub median_us: f64,
    /// Exceeded by one in twenty, µs.
    pub p95_us: f64,
    /// The largest, µs.
    pub max_us: f64,
    /// Means of each third of the time, µs.
    pub thirds_us: Option<[f64; 3]>,
    /// The one-sided p value of "it doesn't rise" ([`drift::rise`]).
    pub trend_p: Option<f64>,
    /// ACKs that are late at the same time in the last third, by Little's law: one or two if the end holds each back, many
    /// if they, or what they answer, stand in a queue.
    pub at_once: Option<f64>,
    /// Whether it grows: shown, doubled at least, and by 5 ms or more.
    pub growing: bool,
    /// Means over time: s since its beginning, µs.
    pub course: Vec<(f64, f64)>,
}

/// Large packets vanish where small ones pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BlackHole {
    /// Whether it is beyond doubt: the same bytes went through once they were cut up. Otherwise it looks like one.
    pub shown: bool,
    /// The smallest packet that never got through, bytes.
    pub smallest_lost: u32,
    /// How often it was sent.
    pub times: u8,
    /// The largest packet that did get through, bytes.
    pub largest_passed: u32,
    /// What a router said in time or too late: its address and MTU.
    pub router: Option<(IpAddr, u32)>,
}

/// What is told of one end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndReport {
    /// Address and port.
    pub address: SocketAddr,
    /// Payload that it sent, each byte once, bytes.
    pub bytes: u64,
    /// Payload beyond that which was acknowledged and isn't in the capture, bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_unseen: u64,
    /// That over the duration of the connection, bit/s.
    pub goodput_bps: f64,
    /// What it sent.
    pub sent: Counts,
    /// Of its packets with payload, those that were retransmitted: 0 to 1.
    pub retransmission_rate: f64,
    /// What its SYN offered.
    pub offer: Option<Offer>,
    /// Its receive window.
    pub window: Windows,
    /// From here to it and back, by the ACKs of what was sent to it.
    pub rtt: Option<Spread>,
    /// The same by the echoes of timestamps.
    pub rtt_timestamps: Option<Spread>,
    /// How late it acknowledges.
    pub ack_delay: Option<AckDelay>,
    /// From a byte of the other end's until this end's ACK of it, as both pass here, µs: the mean over all bytes that were sent once.
    pub ack_wait_us: Option<f64>,
    /// The most that it had under way, as seen from here, bytes.
    pub most_in_flight: u32,
    /// Packets with which it reached the other end's window.
    pub window_limited_packets: u64,
    /// Packets that may have reached it: its scale isn't known, and they went as far as it would go unscaled.
    pub window_unsure_packets: u64,
    /// How long it may have been idle, µs.
    #[serde(skip)]
    pub(crate) unsure_us: u64,
    /// How long its window held the other end back while it was less than half of what it had been, µs.
    #[serde(skip)]
    pub(crate) low_window_us: u64,
    /// What kept it from sending more while its data was under way.
    pub supply: SupplyShares,
    /// Large packets of it vanish.
    pub black_hole: Option<BlackHole>,
}

/// What is told of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// Its number, from 1, in the order in which connections began.
    pub number: u64,
    /// Where it was captured, if the capture names places.
    pub interface: Option<String>,
    /// The number of that place.
    #[serde(skip)]
    pub(crate) place: usize,
    /// Whether a SYN was seen, so that it is certain who is the client; otherwise it is the end with the larger port.
    pub roles_known: bool,
    /// Its packets whose time the capture doesn't tell. If there are any, all that depends on times is unknown, and durations
    /// and rates are 0.
    pub without_time: u64,
    /// When it began, µs since 1970.
    pub started_unix_us: u64,
    /// From its first packet to its last, µs.
    pub duration_us: u64,
    /// How far it came.
    pub state: State,
    /// Where this was captured.
    pub captured: Position,
    /// Its beginning.
    pub handshake: Handshake,
    /// The smallest RTT of the whole path, µs.
    pub min_rtt_us: Option<u64>,
    /// The one that opened it.
    pub client: EndReport,
    /// The other one.
    pub server: EndReport,
    /// From a request's last byte to the answer's first, as seen from here.
    pub answer_time: Option<Spread>,
    /// Where its time went.
    pub time: Shares,
    /// The end that is to blame, and for what.
    pub blame: Blame,
    /// Its state was given up once to bound memory: figures are of the time since.
    pub interrupted: bool,
    /// How long the capture lacks what was under way, while nothing else was, µs.
    #[serde(skip)]
    pub(crate) hole_us: u64,
    /// Nearly all of its packets came twice, long after each other.
    #[serde(skip)]
    pub(crate) looks_joined: bool,
    /// What it ended in.
    #[serde(skip)]
    pub(crate) silence: Option<LastSilence>,
    /// From its last packet to the end of the capture, µs, if that is known.
    #[serde(skip)]
    pub(crate) tail_us: Option<u64>,
    /// From its last packet until it was given up to bound memory, µs, if it was.
    #[serde(skip)]
    pub(crate) given_up_us: Option<u64>,
}

impl ConnectionReport {
    /// Payload of both ends, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.client.bytes.saturating_add(self.server.bytes)
    }

    /// The end whose packets alone were captured, though the other one answered: asymmetric routes, or a filter.
    #[must_use]
    pub fn only_seen(&self) -> Option<End> {
        match (self.client.sent.packets, self.server.sent.packets, self.state) {
            (_, _, State::Unanswered | State::Opening) => None,
            (1.., 0, _) => Some(End::Client),
            (0, 1.., _) => Some(End::Server),
            _ => None,
        }
    }

    /// One of the ends.
    #[must_use]
    pub fn end(&self, end: End) -> &EndReport {
        if end == End::Client { &self.client } else { &self.server }
    }

    /// Its figures; nobody is blamed yet.
    pub(crate) fn of(connection: &Connection, number: u64) -> Self {
        let end = |end| end_report(connection, end);
        let [to_client, to_server] = [End::Client, End::Server].map(|end| connection.loop_ns(end));
        let min_rtt_ns = match (to_client, to_server) {
            (Some(client), Some(server)) => Some(client + server),
            _ => connection.first_rtt_ns,
        };
        let begun_ns = connection.begun_ns.unwrap_or(connection.last_ns);
        let report = Self {
            number,
            interface: None,
            place: connection.interface,
            roles_known: connection.sure,
            without_time: connection.without_time,
            started_unix_us: begun_ns / 1000,
            duration_us: connection.last_ns.saturating_sub(begun_ns) / 1000,
            state: state(connection),
            captured: position(to_client, to_server),
            handshake: Handshake {
                complete: connection.sure && connection.syn_ack_seen && connection.half(End::Client).ack.is_some(),
                rtt_us: connection.first_rtt_ns.map(|ns| ns / 1000),
            },
            min_rtt_us: min_rtt_ns.map(|ns| ns / 1000),
            client: end(End::Client),
            server: end(End::Server),
            answer_time: connection.answers.spread(),
            time: connection.shares(),
            blame: Blame::default(),
            interrupted: connection.interrupted,
            hole_us: connection.hole_us(),
            looks_joined: connection.looks_joined(),
            silence: connection.last_silence(),
            tail_us: connection.tail_ns.map(|ns| ns / 1000),
            given_up_us: connection.given_up_ns.map(|ns| ns.saturating_sub(connection.last_ns) / 1000),
        };
        if report.without_time > 0 { report.untimed() } else { report }
    }

    /// The same without what depends on times.
    fn untimed(self) -> Self {
        let end = |end: EndReport| EndReport {
            goodput_bps: 0.0,
            rtt: None,
            rtt_timestamps: None,
            ack_delay: None,
            ack_wait_us: None,
            supply: SupplyShares::default(),
            window: Windows { mean_over_time: None, usable: None, closed_us: 0, closed_longest_us: 0, ..end.window },
            ..end
        };
        Self {
            duration_us: 0,
            captured: Position::Unknown,
            handshake: Handshake { rtt_us: None, ..self.handshake },
            min_rtt_us: None,
            client: end(self.client),
            server: end(self.server),
            answer_time: None,
            time: Shares::default(),
            silence: None,
            tail_us: None,
            given_up_us: None,
            ..self
        }
    }
}

fn state(connection: &Connection) -> State {
    let (client, server) = (connection.half(End::Client), connection.half(End::Server));
    let only_syn = client.counts.data_packets + server.counts.data_packets == 0 && !connection.syn_ack_seen;
    match (client.rst, server.rst) {
        (_, true) if connection.sure && only_syn && !client.fin => State::Refused,
        (true, _) | (_, true) => State::Reset,
        _ if client.fin && server.fin => State::Closed,
        // Of a client that acknowledges something, only the answers weren't captured.
        _ if connection.sure && only_syn && server.counts.packets == 0 && client.ack.is_none() => {
            if connection.may_still_be_answered() { State::Opening } else { State::Unanswered }
        }
        _ if connection.sure && connection.syn_ack_seen && client.ack.is_none() && server.counts.data_packets == 0 => {
            State::HalfOpen
        }
        _ => State::Open,
    }
}

/// By the times to both ends: what is a tenth of the other is near.
fn position(to_client: Option<u64>, to_server: Option<u64>) -> Position {
    match (to_client, to_server) {
        // A clock that is too coarse.
        (Some(0), Some(0)) => Position::Unknown,
        (Some(client), Some(server)) if client.saturating_mul(10) <= server => Position::NearClient,
        (Some(client), Some(server)) if server.saturating_mul(10) <= client => Position::NearServer,
        (Some(_), Some(_)) => Position::Between,
        _ => Position::Unknown,
    }
}

fn end_report(connection: &Connection, end: End) -> EndReport {
    let (own, other) = (connection.half(end), connection.half(end.other()));
    let begun_ns = connection.begun_ns.unwrap_or(connection.last_ns);
    let seconds = connection.last_ns.saturating_sub(begun_ns) as f64 / 1e9;
    let bytes = own.unique_bytes();
    EndReport {
        address: if end == End::Client { connection.client } else { connection.server },
        bytes,
        bytes_unseen: own.unseen_bytes,
        goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
        sent: own.counts,
        retransmission_rate: own.counts.data_retransmissions as f64 / own.counts.data_packets.max(1) as f64,
        offer: own.offer,
        window: Windows {
            scale_known: own.shift(other).is_some(),
            min: own.window_min,
            max: own.window_max,
            last: own.window_bytes,
            mean: own.over_time.of_acks(),
            mean_over_time: own.over_time.window(),
            usable: own.over_time.usable(),
            closed_times: own.zero_episodes,
            closed_us: own.zero_ns / 1000,
            closed_longest_us: own.zero_longest_ns / 1000,
        },
        rtt: other.rtt.spread(),
        rtt_timestamps: other.echo.spread(),
        ack_delay: ack_delay(own, connection.loop_ns(end)),
        ack_wait_us: ratio(own.waited).map(|ns| ns / 1e3),
        most_in_flight: own.most_in_flight,
        window_limited_packets: own.limited_segments,
        window_unsure_packets: own.unsure_segments,
        unsure_us: connection.unsure_us(end),
        low_window_us: connection.low_window_us(end),
        supply: own.supply.shares(),
        black_hole: black_hole(own, connection),
    }
}

/// A sum over what it is the sum of, where there is any.
fn ratio((sum, of): (f64, f64)) -> Option<f64> {
    (of > 0.0).then(|| sum / of)
}

/// ACKs that are told of at least.
const FEWEST_ACKS: u64 = 3;
/// A rise is shown if chance alone would make one so steady this rarely: parts of one transfer depend on each other.
const CHANCE: f64 = 0.001;

fn ack_delay(own: &Half, loop_ns: Option<u64>) -> Option<AckDelay> {
    let spread = own.acks.spread().filter(|spread| spread.samples >= FEWEST_ACKS)?;
    let least_us = loop_ns.unwrap_or(0) as f64 / 1e3;
    let beyond = |us: f64| (us - least_us).max(0.0);
    let thirds = own.ack_course.thirds();
    let thirds_us = thirds.map(|thirds| thirds.map(|third| beyond(third.mean_ns / 1e3)));
    let trend_p = drift::rise(&own.ack_course.means().into_iter().map(|(_, ns)| ns).collect::<Vec<_>>());
    let grown = thirds_us.is_some_and(|[first, _, last]| last >= 2.0 * first && last - first >= 5000.0);
    Some(AckDelay {
        median_us: beyond(spread.median_us),
        p95_us: beyond(spread.p95_us),
        max_us: beyond(spread.max_us),
        thirds_us,
        trend_p,
        at_once: thirds.map(|[.., last]| last.per_second * beyond(last.mean_ns / 1e3) / 1e6),
        growing: grown && trend_p.is_some_and(|p| p < CHANCE),
        course: own.ack_course.means().into_iter().map(|(at, ns)| (at, beyond(ns / 1e3))).collect(),
    })
}

fn black_hole(own: &Half, connection: &Connection) -> Option<BlackHole> {
    let sizes = &own.sizes;
    let smallest_lost = sizes.smallest_stuck?;
    // That small ones pass must have been seen: an answer to the handshake at least.
    let passes = sizes.largest_passed > 0 && sizes.largest_passed < smallest_lost;
    if !sizes.shrunk && (!passes || smallest_lost < 576) {
        return None;
    }
    Some(BlackHole {
        shown: sizes.shrunk,
        smallest_lost,
        times: sizes.times,
        largest_passed: sizes.largest_passed,
        router: connection.too_big,
    })
}
