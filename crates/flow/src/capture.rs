//! Captures as one question and one answer: from bytes of a file to [`CaptureAnswer`].

use crate::filter::Filter;
use crate::order::{PacketOrder, PlacedPacket};
use crate::packet::parse;
use crate::report::{Analysis, EndReport};
use crate::table::{Bounds, Tracker};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use wt_units::counted;
use wt_wire::{CaptureError, CaptureInterface, CaptureReader, CapturedRecord};

/// More places than this aren't told apart.
const MOST_PLACES: usize = 8192;

/// What is asked of captured packets.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureRequest {
    /// Only these packets.
    pub filter: Option<Filter>,
    /// Report so many connections: those with the most payload.
    pub connections: usize,
}

impl CaptureRequest {
    /// A tracker for as many connections as are reported.
    #[must_use]
    pub fn tracker(&self) -> Tracker {
        Tracker::new(Bounds { told: self.connections, ..Bounds::default() }, self.filter.clone())
    }
}

/// What captured packets tell. Its JSON is the contract of `windtunnel analyse --json` of a capture, and of
/// `windtunnel watch --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureAnswer {
    /// `capture`.
    pub kind: CaptureKind,
    /// Where the packets came from.
    pub source: CaptureSource,
    /// What they tell.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// What tells this answer from that on a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureKind {
    /// Captured packets.
    Capture,
}

/// Where packets came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CaptureSource {
    /// A file.
    File {
        /// What it is called.
        file: String,
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Where its packets were captured.
        interfaces: Vec<SourceInterface>,
    },
    /// A device that was watched.
    Device {
        /// Its name, or `any`.
        device: String,
        /// The devices that packets passed.
        interfaces: Vec<String>,
        /// Packets that came too fast to be looked at.
        dropped: u64,
    },
}

/// Where packets of a file were captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceInterface {
    /// Its name, empty where the file doesn't say.
    pub name: String,
    /// What its packets begin with, as tcpdump.org numbers it.
    pub link_type: u16,
    /// The most bytes that were kept of a packet; 0: all.
    pub snap_len: u32,
}

impl CaptureAnswer {
    /// The answer on a device that was watched; `broken` says why it can't be watched any more.
    #[must_use]
    pub fn of_device(
        mut analysis: Analysis,
        device: &str,
        interfaces: Vec<String>,
        dropped: u64,
        broken: Option<&dyn std::fmt::Display>,
    ) -> Self {
        if dropped > 0 {
            analysis.warnings.push(format!("{dropped} packets came too fast to be looked at; gaps may be these"));
        }
        if let Some(error) = broken {
            analysis.warnings.push(format!("the device {device} can't be watched any more: {error}"));
        }
        Self::new(analysis, CaptureSource::Device { device: device.to_owned(), interfaces, dropped })
    }

    fn new(mut analysis: Analysis, source: CaptureSource) -> Self {
        let warnings = warnings(&analysis);
        analysis.warnings.extend(warnings);
        Self { kind: CaptureKind::Capture, source, analysis }
    }

    /// Whether there was any connection.
    #[must_use]
    pub const fn has_connections(&self) -> bool {
        self.analysis.packets.connections + self.analysis.packets.taken_up_again > 0
    }
}

/// Reads a capture to its end; `file` is what it is called. A file that breaks off counts as far as it could be read.
///
/// # Errors
/// [`CaptureError`] if nothing of it can be read.
pub fn analyse_capture(input: impl Read, file: &str, request: &CaptureRequest) -> Result<CaptureAnswer, CaptureError> {
    let mut reader = CaptureReader::new(input)?;
    let mut intake = Intake {
        tracker: request.tracker(),
        places: Places::default(),
        order: PacketOrder::default(),
        strange: BTreeSet::new(),
    };
    let mut warnings = Vec::new();
    loop {
        match reader.next_record() {
            Ok(None) => break,
            Ok(Some(record)) => intake.record(&record),
            Err(error) => {
                intake.order.flush(&mut intake.tracker);
                if intake.tracker.packets() == 0 {
                    return Err(error);
                }
                warnings.push(format!("{error}; what stands before was read"));
                break;
            }
        }
    }
    intake.order.flush(&mut intake.tracker);
    for link in intake.strange {
        warnings.push(format!("packets of link type {link} aren't understood: see tcpdump.org/linktypes.html"));
    }
    let names = intake.places.names(reader.interfaces());
    let mut analysis = intake.tracker.finish(&names);
    analysis.warnings = warnings;
    analysis.packets.unsorted = intake.order.unsorted;
    let interface =
        |i: &CaptureInterface| SourceInterface { name: i.name.clone(), link_type: i.link.0, snap_len: i.snap_len };
    let interfaces = reader.interfaces().iter().map(interface).collect();
    let source = CaptureSource::File { file: file.to_owned(), format: reader.format(), interfaces };
    Ok(CaptureAnswer::new(analysis, source))
}

/// Where the records of a file go.
struct Intake {
    tracker: Tracker,
    /// A file that was captured on all devices may say of each packet which one it was.
    places: Places,
    order: PacketOrder,
    /// Link types that aren't understood.
    strange: BTreeSet<u16>,
}

impl Intake {
    fn record(&mut self, record: &CapturedRecord<'_>) {
        match record.link.ip(record.bytes) {
            Some(ip) => {
                let before = record.bytes.len() - ip.len().min(record.bytes.len());
                let place = self.places.number((record.interface, record.link.device(record.bytes)));
                let original_len = record.original_len.saturating_sub(before);
                if self.order.holds(place, record.at_ns, &mut self.tracker) {
                    let parsed = parse(ip, original_len);
                    let packet = PlacedPacket { place, at_ns: record.at_ns, parsed, original_len };
                    self.order.hold(packet, &mut self.tracker);
                } else {
                    self.tracker.packet(place, record.at_ns, ip, original_len);
                }
            }
            None => {
                if !record.link.is_known() {
                    self.strange.insert(record.link.0);
                }
                self.tracker.no_ip();
            }
        }
    }
}

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

/// `1 packet was` or `2 packets were`.
fn were(packets: u64) -> String {
    format!("{} {}", counted(packets as usize, "packet"), if packets == 1 { "was" } else { "were" })
}

/// What a person should know of the capture itself.
fn warnings(analysis: &Analysis) -> Vec<String> {
    let packets = &analysis.packets;
    let mut warnings = Vec::new();
    if packets.cut > 0 {
        warnings.push(format!(
            "{} TCP packets were cut too short for all of their header to be read: capture at least 128 bytes of each",
            packets.cut
        ));
    }
    if packets.cut_in_ip > 0 {
        warnings.push(format!(
            "{} cut short within the IP header, so that nothing of them can be read: capture at least 128 bytes of each",
            were(packets.cut_in_ip)
        ));
    }
    let broken = packets.broken - packets.cut_in_ip;
    if packets.tcp == 0 && broken > 0 {
        warnings.push(format!("{} damaged: their headers contradict themselves", were(broken)));
    }
    if packets.tunnelled > 0 {
        warnings.push(format!(
            "{} of tunnels (GRE, IP in IP, IPsec, L2TP, VXLAN, Geneve, GTP): what is within them isn't looked at; capture where it \
             comes out",
            were(packets.tunnelled)
        ));
    }
    if packets.without_time > 0 {
        warnings.push(format!(
            "of {} the capture doesn't tell the time (simple packet blocks): of their connections only bytes and numbers \
             of packets are told",
            counted(packets.without_time as usize, "packet")
        ));
    }
    if packets.set_back > 0 {
        warnings.push(format!(
            "at {} the time goes back by more than 0.1 s: the clock was set, or they aren't sorted (reordercap sorts a file)",
            counted(packets.set_back as usize, "packet")
        ));
    }
    if packets.unsorted > 0 {
        warnings.push(format!(
            "{} stood behind later ones, by less than 0.1 s (several queues, or files that were joined): they were read in the order \
             of their times",
            counted(packets.unsorted as usize, "packet")
        ));
    }
    // What a receiver has twice though it wasn't sent again.
    let both = |had: &EndReport, sent: &EndReport| {
        had.sent.duplicate_reports.saturating_sub(sent.sent.spurious_retransmissions)
    };
    let on_path: u64 =
        analysis.connections.iter().map(|c| both(&c.client, &c.server) + both(&c.server, &c.client)).sum();
    if packets.copies > 0 && on_path * 2 >= packets.copies {
        warnings.push(format!(
            "{} TCP packets came twice, and the receivers say that they had both (D-SACK): the path duplicates packets; each counts \
             once",
            packets.copies
        ));
    } else if packets.copies > 0 {
        warnings.push(format!(
            "{} TCP packets were captured twice (a mirror port, or all devices of a host that passes them on); each counts once",
            packets.copies
        ));
    }
    if packets.far_copies > 0 {
        warnings.push(format!(
            "{} of these copies come from another place of capture, far away (files that were joined): each packet counts where it passes \
             first, mostly at its sender; for figures of one place analyse its capture by itself",
            packets.far_copies
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
        warnings.push(match packets.fragments {
            1 => "1 packet was a fragment, which isn't put together".to_owned(),
            many => format!("{many} packets were fragments, which aren't put together"),
        });
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
            "{} of data that isn't in the capture: it lost packets, or they went another way",
            if gaps == 1 { "1 ACK is".to_owned() } else { format!("{gaps} ACKs are") }
        ));
    }
    if analysis.connections_left_out > 0 {
        warnings.push(match analysis.connections_left_out {
            1 => "1 connection with little payload isn't told one by one: --connections N".to_owned(),
            many => format!("{many} connections with little payload aren't told one by one: --connections N"),
        });
    }
    warnings
}
