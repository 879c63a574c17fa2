use crate::packet::ParsedPacket;
use crate::table::Tracker;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets that stand behind later ones by less than this are put in order: queues of a device and joined files mix them up by less.
const WINDOW_NS: u64 = 100_000_000;
/// Packets that are held back at once.
const MOST_HELD: usize = 8192;
/// So many are put in order at the beginning of a capture, and after each that stands behind a later one; as long as all stand as they
/// came it costs nothing.
const CALM: u64 = 8192;

/// A packet of a capture, with the place where it was captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedPacket {
    pub(crate) place: usize,
    pub(crate) at_ns: Option<u64>,
    pub(crate) parsed: ParsedPacket,
    pub(crate) original_len: usize,
}

/// Puts packets in the order of their times as they are read, as far as they stand behind later ones by little. What is held back is
/// bounded in time and number.
#[derive(Debug)]
pub(crate) struct PacketOrder {
    /// By time, then as they stand: the places of those that are held back.
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    held: Vec<PlacedPacket>,
    free: Vec<usize>,
    /// The latest time of each place, and of all.
    latest_ns: Vec<u64>,
    newest_ns: u64,
    taken: u64,
    /// The packet as of which none are held back.
    until: u64,
    /// Packets that stood behind later ones of their place.
    pub(crate) unsorted: u64,
}

impl Default for PacketOrder {
    fn default() -> Self {
        Self {
            queue: BinaryHeap::new(),
            held: Vec::new(),
            free: Vec::new(),
            latest_ns: Vec::new(),
            newest_ns: 0,
            taken: 0,
            until: CALM,
            unsorted: 0,
        }
    }
}

impl PacketOrder {
    /// Whether the next packet of the capture, which came at a place and a time, is to be held back: then it is handed to
    /// [`Self::hold`], otherwise all before it have gone on.
    pub(crate) fn holds(&mut self, place: usize, at_ns: Option<u64>, to: &mut Tracker) -> bool {
        self.taken += 1;
        // Without a time it stays where it stands.
        let at_ns = at_ns.unwrap_or(self.newest_ns);
        if self.latest_ns.len() <= place {
            self.latest_ns.resize(place + 1, 0);
        }
        if let Some(latest) = self.latest_ns.get_mut(place) {
            if at_ns < *latest && at_ns.saturating_add(WINDOW_NS) >= *latest {
                self.unsorted += 1;
                self.until = self.taken + CALM;
            } else {
                *latest = at_ns;
            }
        }
        if at_ns.saturating_add(WINDOW_NS) < self.newest_ns {
            // The clock was set back, or another file begins.
            self.flush(to);
            self.newest_ns = at_ns;
        }
        self.newest_ns = self.newest_ns.max(at_ns);
        if self.taken < self.until {
            return true;
        }
        self.flush(to);
        false
    }

    /// Holds a packet back; those whose turn has come go on.
    pub(crate) fn hold(&mut self, packet: PlacedPacket, to: &mut Tracker) {
        let slot = self.free.pop().unwrap_or(self.held.len());
        let at_ns = packet.at_ns.unwrap_or(self.newest_ns);
        match self.held.get_mut(slot) {
            Some(held) => *held = packet,
            None => self.held.push(packet),
        }
        self.queue.push(Reverse((at_ns, self.taken, slot)));
        while let Some(Reverse((oldest, ..))) = self.queue.peek()
            && (self.queue.len() > MOST_HELD || oldest.saturating_add(WINDOW_NS) < self.newest_ns)
        {
            self.release(to);
        }
    }

    fn release(&mut self, to: &mut Tracker) {
        let Some(Reverse((.., slot))) = self.queue.pop() else { return };
        if let Some(packet) = self.held.get(slot) {
            to.parsed(packet.place, packet.at_ns, &packet.parsed, packet.original_len);
        }
        self.free.push(slot);
    }

    /// All that are held back go on.
    pub(crate) fn flush(&mut self, to: &mut Tracker) {
        while !self.queue.is_empty() {
            self.release(to);
        }
    }
}
