//! Two faults that old stacks had, and three that any may have, to be switched on, so that a test can show that they would be
//! caught.
//!
//! They sit beside a stack, not in it: between it and its device, and between it and the program that uses it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::process::wait_for_ever;
use wt_units::{Bytes, parse_duration};

/// How late ACKs are after five times the time at which they begin to be: what was once measured after five minutes.
const LATEST: Duration = Duration::from_millis(400);
/// The most that is lost of an answer.
const MOST_LOST: usize = 1460;
/// Packets that are held back at most; beyond, the oldest goes.
const MOST_HELD: usize = 10_000;

/// Which faults are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Faults {
    /// From this time on ACKs are held back, longer and longer: 0.4 s at five times this time.
    late_acks: Option<Duration>,
    /// The beginning of an answer that comes within this time is lost.
    fast_loss: Option<Duration>,
    /// The byte of this number that comes is changed, counted from zero in each connection.
    corrupt_at: Option<u64>,
    /// The stack crashes when this one has come.
    crash_at: Option<u64>,
    /// The stack stops for good when this one has come, and does nothing more, not even end.
    hang_at: Option<u64>,
}

impl Faults {
    /// From an adapter's options.
    ///
    /// # Errors
    /// What a value should be.
    pub(crate) fn of(options: &BTreeMap<String, String>) -> Result<Self, String> {
        let time = |key: &str| {
            let Some(text) = options.get(key) else { return Ok(None) };
            let time = parse_duration(text).map_err(|error| format!("{key}: {error}"))?;
            let sensible = Duration::from_micros(1)..=Duration::from_secs(3600);
            if sensible.contains(&time) { Ok(Some(time)) } else { Err(format!("{key}: allowed is 1us to 1h")) }
        };
        let place = |key: &str| {
            let bytes = options.get(key).map(|text| text.parse::<Bytes>()).transpose();
            bytes.map(|bytes| bytes.map(Bytes::get)).map_err(|error| format!("{key}: {error}"))
        };
        Ok(Self {
            late_acks: time("late-acks")?,
            fast_loss: time("fast-loss")?,
            corrupt_at: place("corrupt-at")?,
            crash_at: place("crash-at")?,
            hang_at: place("hang-at")?,
        })
    }

    /// How long an ACK is held back so long after the beginning.
    fn hold(&self, since_ns: u64) -> u64 {
        let Some(start) = self.late_acks else { return 0 };
        let start_ns = start.as_nanos() as u64;
        let late = since_ns.saturating_sub(start_ns) as f64 / (4.0 * start_ns as f64);
        (late.min(1.0) * LATEST.as_nanos() as f64) as u64
    }
}

/// Whether it is an IPv4 packet of TCP that acknowledges and carries nothing else.
fn is_pure_ack(packet: &[u8]) -> bool {
    let header = usize::from(packet.first().copied().unwrap_or(0) & 15) * 4;
    let tcp = packet.get(header..).unwrap_or_default();
    let (Some(6), Some(offset), Some(flags)) = (packet.get(9), tcp.get(12), tcp.get(13)) else { return false };
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let headers = header + usize::from(offset >> 4) * 4;
    // ACK alone of FIN, SYN, RST, PSH and ACK.
    packet[0] >> 4 == 4 && length == headers && flags & 0x17 == 0x10
}

/// Packets on their way out of a stack, of which some are held back.
#[derive(Debug)]
pub(crate) struct LateAcks {
    faults: Faults,
    begun_ns: u64,
    held: VecDeque<(u64, Vec<u8>)>,
}

impl LateAcks {
    pub(crate) fn new(faults: &Faults) -> Self {
        Self { faults: *faults, begun_ns: monotonic_ns(), held: VecDeque::new() }
    }

    /// Whether a packet may go now; otherwise it was taken. `prefix` bytes stand before its IP header.
    pub(crate) fn pass(&mut self, prefix: usize, packet: &[u8]) -> bool {
        if self.faults.late_acks.is_none() || !is_pure_ack(packet.get(prefix..).unwrap_or_default()) {
            return true;
        }
        let now = monotonic_ns();
        let hold = self.faults.hold(now.saturating_sub(self.begun_ns));
        if hold == 0 || self.held.len() >= MOST_HELD {
            return true;
        }
        self.held.push_back((now + hold, packet.to_vec()));
        false
    }

    /// A packet whose time has come.
    pub(crate) fn due(&mut self) -> Option<Vec<u8>> {
        let (due, _) = self.held.front()?;
        if *due <= monotonic_ns() { self.held.pop_front().map(|(_, packet)| packet) } else { None }
    }

    /// How long until the next one.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.held.front().map(|(due, _)| Duration::from_nanos(due.saturating_sub(monotonic_ns())))
    }
}

/// What becomes of the data of one connection on their way to the program.
#[derive(Debug)]
pub(crate) struct Spoiler {
    faults: Faults,
    /// Bytes that have come.
    came: u64,
    /// When the last request went, until an answer has come.
    asked_ns: Option<u64>,
}

impl Spoiler {
    pub(crate) fn new(faults: &Faults) -> Self {
        Self { faults: *faults, came: 0, asked_ns: None }
    }

    /// Something was sent.
    pub(crate) fn asked(&mut self) {
        self.asked_ns = Some(monotonic_ns());
    }

    /// Spoils these bytes, which have just come, if they shall be; how many of them are lost at their beginning.
    pub(crate) fn spoil(&mut self, bytes: &mut [u8]) -> usize {
        let begin = self.came;
        self.came += bytes.len() as u64;
        let place = |at: Option<u64>| at.and_then(|at| usize::try_from(at.checked_sub(begin)?).ok());
        if let Some(byte) = place(self.faults.corrupt_at).and_then(|at| bytes.get_mut(at)) {
            *byte ^= 0x20;
        }
        if place(self.faults.crash_at).is_some_and(|at| at < bytes.len()) {
            std::process::abort();
        }
        if place(self.faults.hang_at).is_some_and(|at| at < bytes.len()) {
            wait_for_ever();
        }
        let (Some(limit), Some(asked)) = (self.faults.fast_loss, self.asked_ns.take()) else { return 0 };
        let fast = monotonic_ns().saturating_sub(asked) <= limit.as_nanos() as u64;
        if fast { bytes.len().min(MOST_LOST) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(pairs: &[(&str, &str)]) -> Result<Faults, String> {
        Faults::of(&pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn acks_are_late_from_a_time_on_and_never_later_than_measured_once() {
        let faults = faults(&[("late-acks", "60s")]).unwrap();
        let at = |seconds: u64| faults.hold(seconds * 1_000_000_000) / 1_000_000;
        assert_eq!([at(0), at(60), at(180), at(300), at(900)], [0, 0, 200, 400, 400]);
        assert_eq!(Faults::default().hold(1 << 60), 0);
    }

    #[test]
    fn only_pure_acks_are_held_back() {
        let mut ack = vec![0u8; 40];
        (ack[0], ack[3], ack[9], ack[32], ack[33]) = (0x45, 40, 6, 0x50, 0x10);
        assert!(is_pure_ack(&ack));
        for (at, value) in [(33, 0x11), (33, 0x12), (33, 0x14), (3, 41), (9, 17), (0, 0x65)] {
            let mut other = ack.clone();
            other[at] = value;
            assert!(!is_pure_ack(&other), "{at}={value}");
        }
        for length in 0..34 {
            assert!(!is_pure_ack(&ack[..length]));
        }
    }

    #[test]
    fn one_byte_is_changed_wherever_pieces_end() {
        let faults = faults(&[("corrupt-at", "1000B")]).unwrap();
        for size in [1, 7, 999, 1000, 1001, 5000] {
            let mut spoiler = Spoiler::new(&faults);
            let mut all = vec![0u8; 5000];
            let lost: usize = all.chunks_mut(size).map(|piece| spoiler.spoil(piece)).sum();
            let wrong: Vec<usize> = (0..5000).filter(|at| all[*at] != 0).collect();
            assert_eq!((wrong, lost), (vec![1000], 0), "pieces of {size}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let wrong = [
            ("late-acks", "soon"),
            ("late-acks", "0s"),
            ("fast-loss", "2h"),
            ("corrupt-at", "x"),
            ("crash-at", "-1"),
            ("hang-at", "late"),
        ];
        for (key, value) in wrong {
            assert!(faults(&[(key, value)]).unwrap_err().contains(key));
        }
        assert_eq!(faults(&[("cc", "reno")]), Ok(Faults::default()));
    }
}
