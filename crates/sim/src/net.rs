//! The event loop: endpoints, the paths between them, and time.
//!
//! What this leaves out: time that hosts take. A segment that arrives at some nanosecond is answered at the same one, which a
//! kernel does some ten microseconds later; it matters where the RTT is below a millisecond.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `__netif_receive_skb`, timers | – | [`Net::step`]: one event at a time, in the order of their times |
//! | what middleboxes do to SYNs; `tcp_ack_update_window` (`snd_wscale`) | 9293 §3.7.1, 7323 §2.3 | [`Net::act`], [`Net::misread_window`] |
//! | `icmp_send`, ICMP_FRAG_NEEDED | 1191 §4 | [`Net::tell_too_big`] |
//! | `ip_do_fragment`, `ip_defrag` | 791 §2.3, §3.2 | [`Net::fragment`], [`Net::is_whole`]: pieces that never come whole are forgotten without a timer |

use crate::segment::{Segment, SynChange, flag};
use crate::tcp::{Endpoint, Out};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use wt_link::{ConfigError, DropReason, Event, Packet, Path, PathConfig, PathEvent, PathStats, Side, Time};

/// An ICMP message: IPv4 20, ICMP 8, and the head of the packet that it is about.
const ICMP_LEN: u32 = 20 + 8 + 28;
/// Datagrams in pieces whose other pieces are awaited at most.
const MAX_FRAGMENTED: usize = 1_024;

/// A path, and what its routers say.
pub(crate) struct Line {
    path: Path<Segment>,
    /// Whether who stands before each link tells of packets that are too big for it.
    icmp: Vec<bool>,
    /// What its hops do to SYNs, in their order on the way: from host A, and to it.
    syns: [Vec<SynChange>; 2],
}

/// What became of packets on one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    pub(crate) queue_full: u64,
    pub(crate) lost: u64,
    pub(crate) too_big: u64,
}

struct Slot {
    end: Endpoint,
    line: usize,
    /// The direction of what it sends.
    side: Side,
    /// When it is next in the heap of timers.
    scheduled: u64,
}

/// Endpoints and the paths between them.
pub(crate) struct Net {
    lines: Vec<Line>,
    slots: Vec<Slot>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    out: Out,
    drops: Drops,
    events: u64,
    /// Pieces that have yet to come, by datagram.
    fragments: BTreeMap<u32, u32>,
    next_datagram: u32,
}

/// The number of an endpoint.
pub(crate) type EndId = u32;

impl Net {
    pub(crate) fn new() -> Self {
        Self {
            lines: Vec::new(),
            slots: Vec::new(),
            timers: BinaryHeap::new(),
            out: Vec::new(),
            drops: Drops::default(),
            events: 0,
            fragments: BTreeMap::new(),
            next_datagram: 1,
        }
    }

    /// Adds a path; the first one is number 0.
    pub(crate) fn add_line(&mut self, config: &PathConfig, icmp: Vec<bool>, seed: u64) -> Result<usize, ConfigError> {
        self.lines.push(Line { path: Path::new(config, seed)?, icmp, syns: Default::default() });
        Ok(self.lines.len() - 1)
    }

    /// Lets the hops of a path do so to the SYNs from host A, and to those to it.
    pub(crate) fn change_syns(&mut self, line: usize, syns: [Vec<SynChange>; 2]) {
        self.lines[line].syns = syns;
    }

    /// How many endpoints there are: the number of the next one.
    pub(crate) fn ends(&self) -> EndId {
        self.slots.len() as EndId
    }

    pub(crate) fn add_end(&mut self, end: Endpoint, line: usize, side: Side) {
        self.slots.push(Slot { end, line, side, scheduled: u64::MAX });
    }

    pub(crate) fn end(&self, id: EndId) -> &Endpoint {
        &self.slots[id as usize].end
    }

    pub(crate) fn end_mut(&mut self, id: EndId) -> &mut Endpoint {
        &mut self.slots[id as usize].end
    }

    pub(crate) fn drops(&self) -> Drops {
        self.drops
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn line_stats(&self, line: usize) -> PathStats {
        self.lines[line].path.stats()
    }

    /// Lets an endpoint do something, and sends what it wants to send.
    pub(crate) fn act(&mut self, id: EndId, now_ns: u64, what: impl FnOnce(&mut Endpoint, &mut Out)) {
        let slot = &mut self.slots[id as usize];
        what(&mut slot.end, &mut self.out);
        let line = &mut self.lines[slot.line];
        for mut packet in self.out.drain(..) {
            if packet.syn {
                let syn = &mut packet.payload.syn;
                *syn = line.syns[slot.side as usize].iter().fold(*syn, |syn, change| syn.changed(*change));
            }
            line.path.push(slot.side, Time(now_ns), packet);
        }
        let due = slot.end.due();
        if due < slot.scheduled {
            slot.scheduled = due;
            self.timers.push(Reverse((due, id)));
        }
    }

    /// When something happens next.
    pub(crate) fn next_due(&self) -> u64 {
        let timer = self.timers.peek().map_or(u64::MAX, |first| first.0.0);
        self.lines.iter().fold(timer, |due, line| line.path.next_due().map_or(due, |at| due.min(at.0)))
    }

    /// Does the next thing that is due by `now_ns`, and says to which endpoint it happened, if to any.
    pub(crate) fn step(&mut self, now_ns: u64) -> Option<EndId> {
        self.events += 1;
        for line in 0..self.lines.len() {
            if let Some(event) = self.lines[line].path.poll(Time(now_ns)) {
                return self.on_path(line, now_ns, event);
            }
        }
        let Reverse((at, id)) = *self.timers.peek()?;
        if at > now_ns {
            return None;
        }
        self.timers.pop();
        let slot = &mut self.slots[id as usize];
        if slot.scheduled != at {
            // An earlier one has taken its place.
            return None;
        }
        slot.scheduled = u64::MAX;
        if slot.end.due() > now_ns {
            // It was put off in the meantime.
            self.act(id, now_ns, |_, _| {});
            return None;
        }
        self.act(id, now_ns, |end, out| end.on_timer(now_ns, out));
        Some(id)
    }

    fn on_path(&mut self, line: usize, now_ns: u64, event: PathEvent<Segment>) -> Option<EndId> {
        let PathEvent { side, link, event } = event;
        match event {
            Event::Deliver { packet, .. } => self.deliver(now_ns, &packet),
            Event::Drop { reason, packet, .. } => {
                self.on_drop(line, now_ns, (side, link), reason, packet);
                None
            }
        }
    }

    fn deliver(&mut self, now_ns: u64, packet: &Packet<Segment>) -> Option<EndId> {
        let segment = &packet.payload;
        if packet.corrupted || !self.is_whole(segment) {
            return None;
        }
        let id = segment.to;
        let ce = packet.ce;
        let misread = self.misread_window(segment).map(|window| segment.clone().with_window(window));
        let segment = misread.as_ref().unwrap_or(segment);
        self.act(id, now_ns, |end, out| end.on_segment(now_ns, segment, ce, out));
        Some(id)
    }

    /// The window as the receiver of a segment reads it, where a hop has shown it another shift than the sender's.
    fn misread_window(&self, segment: &Segment) -> Option<u32> {
        let slot = &self.slots[segment.to as usize];
        if self.lines[slot.line].syns.iter().all(Vec::is_empty) || segment.has(flag::SYN | flag::TOO_BIG) {
            return None;
        }
        let (meant, read) = (self.end(slot.end.peer()).window_scale(), slot.end.peer_window_scale());
        (meant != read).then(|| u32::try_from(u64::from(segment.window >> meant) << read).unwrap_or(u32::MAX))
    }

    /// Whether a segment is there with all its pieces.
    fn is_whole(&mut self, segment: &Segment) -> bool {
        if segment.fragment_of == 0 {
            return true;
        }
        let Some(missing) = self.fragments.get_mut(&segment.fragment_of) else { return false };
        *missing -= 1;
        let whole = *missing == 0;
        if whole {
            self.fragments.remove(&segment.fragment_of);
        }
        whole
    }

    fn on_drop(&mut self, line: usize, now_ns: u64, place: (Side, usize), reason: DropReason, packet: Packet<Segment>) {
        let (side, link) = place;
        match reason {
            DropReason::TooBig { mtu } => {
                self.drops.too_big += 1;
                if packet.dont_fragment {
                    self.tell_too_big(line, now_ns, place, mtu, &packet.payload);
                } else {
                    self.fragment(line, now_ns, (side, link), mtu, &packet);
                }
            }
            DropReason::QueueFull | DropReason::Aqm | DropReason::Policed | DropReason::Overflow => {
                self.drops.queue_full += 1;
            }
            _ => self.drops.lost += 1,
        }
    }

    /// The router in front of a link tells the sender that the link's MTU is smaller.
    fn tell_too_big(&mut self, line: usize, now_ns: u64, place: (Side, usize), mtu: u32, segment: &Segment) {
        let (side, link) = place;
        if !self.lines[line].icmp.get(link).copied().unwrap_or(true) {
            return;
        }
        let sender = self.end(segment.to).peer();
        let mut message = Segment::new(sender, flag::TOO_BIG, 0, 0);
        message.window = mtu;
        let mut packet = message.packet(0, 0);
        packet.ip_len = ICMP_LEN;
        let over = if side == Side::AToB { link.wrapping_sub(1) } else { link + 1 };
        if let Err(packet) = self.lines[line].path.inject(side.opposite(), over, Time(now_ns), packet) {
            self.deliver(now_ns, &packet);
        }
    }

    /// The router in front of a link sends the packet in pieces.
    fn fragment(&mut self, line: usize, now_ns: u64, place: (Side, usize), mtu: u32, packet: &Packet<Segment>) {
        const HEADER: u32 = 20;
        let room = mtu.saturating_sub(HEADER) / 8 * 8;
        if room == 0 || packet.payload.fragment_of != 0 {
            return;
        }
        while self.fragments.len() >= MAX_FRAGMENTED {
            self.fragments.pop_first();
        }
        let number = self.next_datagram;
        self.next_datagram = self.next_datagram.checked_add(1).unwrap_or(1);
        let mut left = packet.ip_len - HEADER;
        self.fragments.insert(number, left.div_ceil(room));
        while left > 0 {
            let len = left.min(room);
            left -= len;
            let mut piece = packet.clone();
            piece.payload.fragment_of = number;
            piece.ip_len = HEADER + len;
            let _ = self.lines[line].path.inject(place.0, place.1, Time(now_ns), piece);
        }
    }
}
