//! The connections of a capture.

use super::Input;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Read;
use wt_flow::{AckDelay, Analysis, Bounds, ConnectionReport, End, EndReport, Filter, Position, Spread, State, Tracker};
use wt_units::counted;
use wt_wire::{CaptureError, CaptureInterface, CaptureReader};

/// What only captures have.
#[derive(Debug, Clone, Args)]
pub(crate) struct CaptureArgs {
    /// Only these packets, in tcpdump's words: host, net, port, portrange, src, dst, tcp, ip6, and, or, not
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) filter: Option<Filter>,
    /// Tell so many connections: those with the most payload [default: 10, with --json 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
}

impl CaptureArgs {
    /// A tracker for as many connections as are told.
    pub(crate) fn tracker(&self, json: bool) -> Tracker {
        let told = self.connections.map_or(if json { 10_000 } else { 10 }, |most| most as usize);
        Tracker::new(Bounds { told, ..Bounds::default() }, self.filter.clone())
    }
}

/// Reads a capture and tells its connections.
///
/// # Errors
/// A [`Failure`] if it holds nothing that can be read.
pub(crate) fn run(args: &CaptureArgs, input: Input, json: bool) -> Outcome {
    let name = input.name.clone();
    let mut reader = CaptureReader::new(input.whole()).map_err(|e| unreadable(&name, &e))?;
    let mut tracker = args.tracker(json);
    let mut warnings = Vec::new();
    let mut strange = std::collections::BTreeSet::new();
    // A file that was captured on all devices may say of each packet which one it was.
    let mut places = Places::default();
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => match record.link.ip(record.bytes) {
                Some(ip) => {
                    let before = record.bytes.len() - ip.len().min(record.bytes.len());
                    let place = places.number((record.interface, record.link.device(record.bytes)));
                    tracker.packet(place, record.at_ns, ip, record.original_len.saturating_sub(before));
                }
                None => {
                    if !record.link.is_known() {
                        strange.insert(record.link.0);
                    }
                    tracker.no_ip();
                }
            },
            // What was read before counts.
            Err(error) if tracker.packets() > 0 => {
                warnings.push(format!("{error}; what stands before was read"));
                break;
            }
            Err(error) => return Err(unreadable(&name, &error)),
        }
    }
    for link in strange {
        warnings.push(format!("packets of link type {link} aren't understood: see tcpdump.org/linktypes.html"));
    }
    let names = places.names(reader.interfaces());
    let mut analysis = tracker.finish(&names);
    analysis.warnings = warnings;
    about_the_capture(&mut analysis);
    let source = json!({"file": name, "format": reader.format(), "interfaces": interfaces(&reader)});
    Ok(tell(&analysis, source, json))
}

/// More places than this aren't told apart.
const MOST_PLACES: usize = 8192;

/// An interface of the file, and the number of the device where each packet says it.
type Place = (usize, Option<u32>);

/// Where packets were captured, numbered in the order in which they come.
#[derive(Default)]
struct Places {
    known: HashMap<Place, usize>,
    order: Vec<Place>,
    last: Option<(Place, usize)>,
}

impl Places {
    fn number(&mut self, place: Place) -> usize {
        if let Some((last, number)) = self.last
            && last == place
        {
            return number;
        }
        let next = self.order.len();
        let number = match self.known.get(&place) {
            Some(number) => *number,
            None if next >= MOST_PLACES => next - 1,
            None => {
                self.known.insert(place, next);
                self.order.push(place);
                next
            }
        };
        self.last = Some((place, number));
        number
    }

    fn names(&self, interfaces: &[CaptureInterface]) -> Vec<String> {
        let name = |(interface, device): &Place| match device {
            Some(number) => format!("device {number}"),
            None => interfaces.get(*interface).map_or_else(String::new, |interface| interface.name.clone()),
        };
        self.order.iter().map(name).collect()
    }
}

fn interfaces<R: Read>(reader: &CaptureReader<R>) -> Vec<Value> {
    let one = |i: &CaptureInterface| json!({"name": i.name, "link_type": i.link.0, "snap_len": i.snap_len});
    reader.interfaces().iter().map(one).collect()
}

fn unreadable(name: &str, error: &CaptureError) -> Failure {
    let cause =
        std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    Failure::usage(format!("cannot read the capture {name}"))
        .because(cause)
        .hint("tcpdump -r FILE or capinfos FILE shows what other programs make of it")
}

/// What a person should know of the capture itself.
pub(crate) fn about_the_capture(analysis: &mut Analysis) {
    let packets = &analysis.packets;
    let mut warnings = Vec::new();
    if packets.cut > 0 {
        warnings.push(format!(
            "{} TCP packets were cut too short to be read: capture at least 128 bytes of each",
            packets.cut
        ));
    }
    if packets.copies > 0 {
        warnings.push(format!(
            "{} TCP packets were captured twice (a mirror port, or all devices of a host that passes them on); each counts once",
            packets.copies
        ));
    }
    let one_way = analysis.connections.iter().filter(|connection| connection.only_seen().is_some()).count();
    if one_way > 0 {
        warnings.push(format!(
            "of {} only one direction was captured: the other one took another way, or a filter left it out",
            counted(one_way, "connection")
        ));
    }
    if packets.fragments > 0 {
        warnings.push(format!("{} packets were fragments, which aren't put together", packets.fragments));
    }
    let sides = analysis.connections.iter().flat_map(|c| [&c.client, &c.server]);
    let joined: u64 = sides.map(|end| end.sent.super_packets).sum();
    if joined > 0 {
        warnings.push(format!(
            "{joined} packets are longer than links carry: they were captured on a host whose device splits or joins \
             segments, so sizes and numbers of packets aren't those of the wire"
        ));
    }
    let gaps: u64 = analysis.connections.iter().map(|c| c.client.sent.acked_unseen + c.server.sent.acked_unseen).sum();
    if gaps > 0 {
        warnings.push(format!(
            "{gaps} ACKs are of data that isn't in the capture: it lost packets, or they went another way"
        ));
    }
    if analysis.connections_left_out > 0 {
        warnings.push(format!(
            "{} connections with little payload aren't told one by one: --connections N",
            analysis.connections_left_out
        ));
    }
    analysis.warnings.extend(warnings);
}

/// Prints the analysis; no connection is the answer "no".
pub(crate) fn tell(analysis: &Analysis, source: Value, json: bool) -> Exit {
    if json {
        let mut object = json!(analysis);
        object["kind"] = json!("capture");
        object["source"] = source;
        say!("{object}");
    } else {
        say!("{}", text(analysis));
    }
    if analysis.packets.connections + analysis.packets.taken_up_again == 0 { Exit::No } else { Exit::Done }
}

fn text(analysis: &Analysis) -> String {
    let packets = &analysis.packets;
    let mut lines = vec![format!(
        "{} packets in {}, {} of them TCP, {}.",
        packets.all,
        time(analysis.duration_us as f64),
        packets.tcp,
        counted(packets.connections as usize, "connection"),
    )];
    lines.extend(analysis.warnings.iter().map(|warning| format!("Note: {warning}.")));
    let mut told: Vec<&ConnectionReport> = analysis.connections.iter().collect();
    told.sort_by_key(|connection| (std::cmp::Reverse(connection.bytes()), connection.number));
    for connection in told {
        lines.push(String::new());
        one(connection, &mut lines);
    }
    lines.join("\n")
}

fn one(c: &ConnectionReport, lines: &mut Vec<String>) {
    let place = c.interface.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    lines.push(format!(
        "{}  {} → {}  ({}, {}{place})",
        c.number,
        c.client.address,
        c.server.address,
        state(c.state),
        time(c.duration_us as f64)
    ));
    lines.push(format!("   {}", c.blame.text));
    for finding in c.blame.findings.iter().skip(1) {
        lines.push(format!("   Also: {}", finding.text));
    }
    let captured = match c.captured {
        Position::NearClient => "captured near the client",
        Position::NearServer => "captured near the server",
        Position::Between => "captured between the ends",
        Position::Unknown => "captured nobody knows where",
    };
    let rtt = c.min_rtt_us.map_or_else(|| "unknown".to_owned(), |us| time(us as f64));
    let handshake = c.handshake.rtt_us.map_or_else(String::new, |us| format!(", handshake {}", time(us as f64)));
    lines.push(format!("   RTT at least {rtt}{handshake}; {captured}"));
    for end in [End::Client, End::Server] {
        about_end(c, end, lines);
    }
}

fn about_end(c: &ConnectionReport, end: End, lines: &mut Vec<String>) {
    let own = c.end(end);
    let sent = &own.sent;
    lines.push(format!(
        "   {:<7} sent {} bytes ({:.2} Mbit/s) in {} packets; {} retransmitted ({} fast, {} spurious), {} out of order",
        end.name(),
        own.bytes,
        own.goodput_bps / 1e6,
        sent.packets,
        sent.retransmissions,
        sent.fast_retransmissions,
        sent.spurious_retransmissions,
        sent.out_of_order
    ));
    let mut parts = Vec::new();
    parts.extend(own.rtt.as_ref().map(|rtt| format!("RTT to it {}", spread(rtt))));
    parts.extend(own.ack_delay.as_ref().map(delay));
    parts.push(window(own));
    parts.extend(own.offer.map(|offer| {
        let mss = offer.mss.map_or_else(|| "no MSS".to_owned(), |mss| format!("MSS {mss}"));
        let scale =
            offer.window_scale.map_or_else(|| "no window scale".to_owned(), |shift| format!("window scale {shift}"));
        let yes = |on: bool, name: &str| if on { name.to_owned() } else { format!("no {name}") };
        format!(
            "{mss}, {scale}, {}, {}, {}",
            yes(offer.sack, "SACK"),
            yes(offer.timestamps, "timestamps"),
            yes(offer.ecn, "ECN")
        )
    }));
    for part in parts {
        lines.push(format!("           {part}"));
    }
}

fn spread(spread: &Spread) -> String {
    format!(
        "{} (least {}, one in twenty above {}, most {})",
        time(spread.median_us),
        time(spread.min_us),
        time(spread.p95_us),
        time(spread.max_us)
    )
}

fn delay(delay: &AckDelay) -> String {
    let mut text = format!("acknowledges {} late (one in twenty {})", time(delay.median_us), time(delay.p95_us));
    if let Some(thirds) = delay.thirds_us {
        text.push_str(&format!("; by thirds of the time {}", thirds.map(time).join(", ")));
    }
    if delay.growing {
        text.push_str(": it grows");
    }
    text
}

fn window(own: &EndReport) -> String {
    let known = if own.window.scale_known { "" } else { " (scale unknown: the handshake isn't here)" };
    let closed = match own.window.closed_times {
        0 => String::new(),
        times => format!(", closed {times} times for {}", time(own.window.closed_us as f64)),
    };
    format!("window {} to {} bytes{known}{closed}", own.window.min.unwrap_or(0), own.window.max)
}

const fn state(state: State) -> &'static str {
    match state {
        State::Unanswered => "unanswered",
        State::Refused => "refused",
        State::HalfOpen => "half open",
        State::Open => "open",
        State::Closed => "closed",
        State::Reset => "reset",
    }
}

fn time(us: f64) -> String {
    if us < 1e3 {
        format!("{us:.0} µs")
    } else if us < 1e6 {
        format!("{:.1} ms", us / 1e3)
    } else {
        format!("{:.1} s", us / 1e6)
    }
}
