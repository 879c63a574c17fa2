use crate::clock::Clock;
use crate::connection::Connection;
use crate::filter::{Filter, Subject};
use crate::packet::{ParsedPacket, Segment, is_tunnel, parse};
use crate::report::{Analysis, ConnectionReport, Packets};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use wt_wire::{Protocol, TcpFlags};

/// How much is kept at once.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Connections that are followed at once. Of more, those that were silent for longest are told as they are by then.
    pub followed: usize,
    /// Connections that are told one by one. Of more, those with the most payload.
    pub told: usize,
    /// Segments that wait for their ACK, of all connections together.
    pub outstanding: usize,
    /// Connections that are remembered after they were given up, so that none counts twice.
    pub remembered: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { followed: 16_384, told: 10_000, outstanding: 1 << 20, remembered: 1 << 20 }
    }
}

/// Two ends, the smaller first, at one place of capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    interface: usize,
    ends: (SocketAddr, SocketAddr),
}

impl Key {
    fn new(interface: usize, src: SocketAddr, dst: SocketAddr) -> Self {
        Self { interface, ends: if src <= dst { (src, dst) } else { (dst, src) } }
    }
}

/// In few and large pieces: this is done for every packet.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (one, other) = self.ends;
        match (one.ip(), other.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => state.write_u64(u64::from(u32::from(a)) << 32 | u64::from(u32::from(b))),
            ends => [ends.0, ends.1].iter().for_each(|end| match end {
                IpAddr::V4(ip) => state.write_u32(u32::from(*ip)),
                IpAddr::V6(ip) => state.write_u128(u128::from(*ip)),
            }),
        }
        let ports = u64::from(one.port()) << 16 | u64::from(other.port());
        state.write_u64(ports | (self.interface as u64) << 32);
    }
}

#[derive(Debug)]
struct FollowedConnection {
    connection: Connection,
    number: u64,
    /// The packet that touched it last.
    touched: u64,
}

/// Entries of connections that are gone already which are kept before they are cleared out.
const SPARE: usize = 1024;

/// A connection as it was silent since a packet; it may have been touched later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SilentConnection {
    /// The packet that touched it.
    touched: u64,
    number: u64,
    key: Key,
}

/// Connections by the packet that touched them, the longest silent first. Packets of connections that are followed change nothing here: whoever
/// takes the first one looks whether it was touched since, and puts it back.
#[derive(Debug, Default)]
struct SilentOrder {
    /// As they began, each once.
    begun: VecDeque<SilentConnection>,
    /// Those that were put back.
    later: BinaryHeap<Reverse<SilentConnection>>,
}

impl SilentOrder {
    fn begun(&mut self, connection: SilentConnection) {
        self.begun.push_back(connection);
    }

    fn touched_since(&mut self, connection: SilentConnection) {
        self.later.push(Reverse(connection));
    }

    fn len(&self) -> usize {
        self.begun.len() + self.later.len()
    }

    /// Takes the one whose last known touch is the longest ago.
    fn longest(&mut self) -> Option<SilentConnection> {
        match (self.begun.front(), self.later.peek()) {
            (Some(begun), Some(Reverse(later))) if later < begun => self.later.pop().map(|Reverse(later)| later),
            (None, _) => self.later.pop().map(|Reverse(later)| later),
            (Some(_), _) => self.begun.pop_front(),
        }
    }

    fn retain(&mut self, is_followed: impl Fn(&SilentConnection) -> bool) {
        self.begun.retain(&is_followed);
        self.later.retain(|Reverse(later)| is_followed(later));
    }
}

/// Follows the TCP connections of a stream of packets. Takes a bounded amount of memory, whatever comes.
///
/// # Example
/// ```
/// let mut tracker = wt_flow::Tracker::new(wt_flow::Bounds::default(), None);
/// tracker.packet(0, 0, &[0x45, 0, 0], 3); // nothing that makes sense
/// assert_eq!(tracker.finish(&[]).packets.broken, 1);
/// ```
#[derive(Debug)]
pub struct Tracker {
    bounds: Bounds,
    filter: Option<Filter>,
    followed: HashMap<Key, Box<FollowedConnection>>,
    silent: SilentOrder,
    /// Connections that were given up, by a number that stands for their key: with 64 bits hardly two of a million share one.
    remembered: HashSet<u64>,
    told: Vec<ConnectionReport>,
    left_out: u64,
    /// Payload of the connection with the least among those that stayed when some were left out.
    least: Option<u64>,
    room: usize,
    counts: Packets,
    number: u64,
    clock: Clock,
    first_ns: Option<u64>,
    last_ns: u64,
    until_ns: u64,
}

impl Tracker {
    /// Knows of nothing yet.
    #[must_use]
    pub fn new(bounds: Bounds, filter: Option<Filter>) -> Self {
        let room = bounds.outstanding;
        Self {
            bounds,
            filter,
            followed: HashMap::new(),
            silent: SilentOrder::default(),
            remembered: HashSet::new(),
            told: Vec::new(),
            left_out: 0,
            least: None,
            room,
            counts: Packets::default(),
            number: 0,
            clock: Clock::default(),
            first_ns: None,
            last_ns: 0,
            until_ns: 0,
        }
    }

    /// A packet without an IP header, or behind one that isn't known.
    pub fn no_ip(&mut self) {
        self.counts.all += 1;
        self.counts.not_ip += 1;
    }

    /// An IP packet, captured at a place and a time where that is known, `original_len` bytes long on the wire.
    pub fn packet(&mut self, interface: usize, at_ns: impl Into<Option<u64>>, bytes: &[u8], original_len: usize) {
        self.parsed(interface, at_ns.into(), &parse(bytes, original_len), original_len);
    }

    /// The same of one whose headers were read.
    pub(crate) fn parsed(&mut self, interface: usize, at_ns: Option<u64>, parsed: &ParsedPacket, original_len: usize) {
        self.counts.all += 1;
        if !self.is_wanted(parsed, original_len) {
            self.counts.filtered_out += 1;
            return;
        }
        if let Some(at_ns) = at_ns {
            let (now, is_set_back) = self.clock.read(at_ns, self.last_ns);
            self.counts.set_back += u64::from(is_set_back);
            self.first_ns = Some(self.first_ns.map_or(now, |first| first.min(now)));
            self.last_ns = self.last_ns.max(now);
        } else {
            self.counts.without_time += 1;
        }
        match parsed {
            ParsedPacket::Tcp(segment) => {
                self.counts.tcp += 1;
                self.counts.cut += u64::from(!segment.is_header_whole);
                self.segment(interface, at_ns, segment);
            }
            ParsedPacket::Fragment(..) => self.counts.fragments += 1,
            ParsedPacket::TooBig(told) => {
                self.counts.too_big += 1;
                if let Some(followed) = self.followed.get_mut(&Key::new(interface, told.src, told.dst)) {
                    followed.connection.too_big(told);
                }
            }
            ParsedPacket::Other { protocol, ports, .. } => {
                self.counts.not_tcp += 1;
                self.counts.tunnelled += u64::from(is_tunnel(*protocol, *ports));
            }
            ParsedPacket::Cut => self.counts.cut += 1,
            ParsedPacket::CutInIp => {
                self.counts.broken += 1;
                self.counts.cut_in_ip += 1;
            }
            ParsedPacket::Broken => self.counts.broken += 1,
        }
    }

    fn is_wanted(&self, parsed: &ParsedPacket, len: usize) -> bool {
        let Some(filter) = &self.filter else { return true };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let subject = match parsed {
            ParsedPacket::Tcp(s) => Subject {
                src: s.src.ip(),
                dst: s.dst.ip(),
                protocol: Protocol::TCP,
                ports: Some((s.src.port(), s.dst.port())),
                len,
            },
            ParsedPacket::Other { src, dst, protocol, ports } => {
                Subject { src: *src, dst: *dst, protocol: *protocol, ports: *ports, len }
            }
            // An answer about a packet is wanted if the packet was.
            ParsedPacket::TooBig(told) => Subject {
                src: told.src.ip(),
                dst: told.dst.ip(),
                protocol: Protocol::TCP,
                ports: Some((told.src.port(), told.dst.port())),
                len,
            },
            ParsedPacket::Fragment(src, dst) => {
                Subject { src: *src, dst: *dst, protocol: Protocol::TCP, ports: None, len }
            }
            ParsedPacket::Cut | ParsedPacket::CutInIp | ParsedPacket::Broken => return true,
        };
        filter.matches(&subject)
    }

    fn segment(&mut self, interface: usize, at_ns: Option<u64>, s: &Segment) {
        let key = Key::new(interface, s.src, s.dst);
        let reopened = match self.followed.get_mut(&key) {
            Some(followed) if !followed.connection.is_reopened_by(s) => {
                followed.touched = self.counts.all;
                let counts = followed.connection.segment(s, at_ns, &mut self.room);
                self.counts.copies += u64::from(!counts);
                self.counts.far_copies += u64::from(!counts && followed.connection.has_far_copies());
                return;
            }
            known => known.is_some(),
        };
        if reopened && let Some(old) = self.followed.remove(&key) {
            self.tell(*old, None);
        }
        self.follow(key, interface, at_ns, s);
    }

    /// Begins with the first segment of a connection.
    fn follow(&mut self, key: Key, interface: usize, at_ns: Option<u64>, s: &Segment) {
        while self.followed.len() >= self.bounds.followed.max(1) {
            let Some(longest) = self.silent.longest() else { break };
            let Some(followed) = self.followed.get(&longest.key).filter(|now| now.number == longest.number) else {
                continue;
            };
            if followed.touched > longest.touched {
                self.silent.touched_since(SilentConnection { touched: followed.touched, ..longest });
            } else if let Some(mut followed) = self.followed.remove(&longest.key) {
                if self.remembered.len() < self.bounds.remembered && !followed.connection.is_over() {
                    self.remembered.insert(self.followed.hasher().hash_one(longest.key));
                }
                followed.connection.given_up_ns = Some(self.last_ns);
                self.tell(*followed, None);
            }
        }
        let mut connection = Connection::new(interface, s);
        let known = self.remembered.remove(&self.followed.hasher().hash_one(key));
        // A SYN that acknowledges nothing opens another one.
        let goes_on = !s.has(TcpFlags::SYN) || s.has(TcpFlags::ACK);
        if goes_on && known {
            connection.interrupted = true;
            self.counts.taken_up_again += 1;
        } else {
            self.counts.connections += 1;
        }
        connection.segment(s, at_ns, &mut self.room);
        self.number += 1;
        let (number, touched) = (self.number, self.counts.all);
        self.silent.begun(SilentConnection { touched, number, key });
        self.followed.insert(key, Box::new(FollowedConnection { connection, number, touched }));
        if self.silent.len() > 2 * self.followed.len() + SPARE {
            self.silent.retain(|silent| self.followed.get(&silent.key).is_some_and(|now| now.number == silent.number));
        }
    }

    /// A connection that isn't followed any more; `until_ns` is when the capture ends, if that is why.
    fn tell(&mut self, followed: FollowedConnection, until_ns: Option<u64>) {
        let FollowedConnection { mut connection, number, .. } = followed;
        connection.finish(&mut self.room, until_ns);
        if self.least.is_some_and(|least| connection.bytes() <= least) {
            self.left_out += 1;
            return;
        }
        self.told.push(crate::blame::judged(&connection, number));
        if self.told.len() >= self.bounds.told.saturating_mul(2).max(2) {
            self.thin();
        }
    }

    /// Leaves those with the most payload.
    fn thin(&mut self) {
        let keep = self.bounds.told;
        if self.told.len() > keep {
            self.told.sort_by_key(|told| (Reverse(told.bytes()), told.number));
            self.left_out += (self.told.len() - keep) as u64;
            self.told.truncate(keep);
            self.least = self.told.last().map(ConnectionReport::bytes);
        }
    }

    /// No more packets came up to this time, ns since 1970: connections were silent until then. Unless told otherwise a capture ends with
    /// its last packet.
    pub const fn listened_until(&mut self, unix_ns: u64) {
        self.until_ns = unix_ns;
    }

    /// Connections that are followed now.
    #[must_use]
    pub fn followed(&self) -> usize {
        self.followed.len()
    }

    #[cfg(test)]
    pub(crate) fn remembered_order(&self) -> usize {
        self.silent.len()
    }

    /// Packets so far that the filter takes.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.counts.all - self.counts.filtered_out
    }

    /// All that can be said. `interfaces` are the names of the places of capture.
    #[must_use]
    pub fn finish(mut self, interfaces: &[String]) -> Analysis {
        let mut rest: Vec<Box<FollowedConnection>> = std::mem::take(&mut self.followed).into_values().collect();
        // Of a clock that was set back nobody knows how long ago something was.
        let until_ns = (self.counts.set_back == 0).then_some(self.last_ns.max(self.until_ns));
        // Of those with the least nothing has to be computed if they aren't told.
        rest.sort_by_key(|followed| (Reverse(followed.connection.bytes()), followed.number));
        for followed in rest {
            self.tell(*followed, until_ns);
        }
        self.thin();
        self.told.sort_by_key(|told| told.number);
        for told in &mut self.told {
            told.interface = interfaces.get(told.place).filter(|name| !name.is_empty()).cloned();
        }
        let first_ns = self.first_ns.unwrap_or(0);
        Analysis {
            schema_version: 1,
            first_unix_us: first_ns / 1000,
            duration_us: self.last_ns.saturating_sub(first_ns) / 1000,
            packets: self.counts,
            connections: self.told,
            connections_left_out: self.left_out,
            warnings: Vec::new(),
        }
    }
}
