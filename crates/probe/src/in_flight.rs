use crate::Time;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Bytes that may wait for their answers at first, and again once answers come later: three packets of the usual length.
const LEAST: u32 = 4500;
/// An answer this much later than the earliest of its host waited behind others of ours; on longer ways a quarter of that time.
const LATER: Time = Time::from_millis(10);

/// Keeps long probes from filling a slow line themselves, which would look like its loss: only so many bytes wait for their answers at
/// once, and more as long as answers come no later than before.
///
/// # Source
/// The rule is that of a slow start that ends by delay (RFC 9406), with a fixed number of bytes instead of what was reached by then.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// As many may wait, bytes.
    window: u32,
    bytes: u32,
    /// When each left, by its number, and its length in bytes.
    probes: BTreeMap<u32, (Time, u16)>,
    /// The earliest answer of each host.
    earliest: BTreeMap<IpAddr, Time>,
}

impl InFlight {
    pub(crate) const fn new() -> Self {
        Self { window: LEAST, bytes: 0, probes: BTreeMap::new(), earliest: BTreeMap::new() }
    }

    /// Whether one of this length may leave now. Those that left longer ago than `patience` are given up.
    pub(crate) fn has_room(&mut self, len: u16, now: Time, patience: Time) -> bool {
        while let Some(oldest) = self.probes.first_entry().filter(|oldest| oldest.get().0 + patience <= now) {
            let (_, len) = oldest.remove();
            self.bytes -= u32::from(len);
        }
        self.bytes == 0 || self.bytes + u32::from(len) <= self.window
    }

    /// When the oldest is given up.
    pub(crate) fn opens_at(&self, patience: Time) -> Option<Time> {
        self.probes.first_key_value().map(|(_, (sent, _))| *sent + patience)
    }

    pub(crate) fn send(&mut self, id: u32, len: u16, now: Time) {
        self.probes.insert(id, (now, len));
        self.bytes += u32::from(len);
    }

    /// An answer, from whom and after what time.
    pub(crate) fn hear(&mut self, id: u32, from: Option<IpAddr>, rtt: Time) {
        let len = self.probes.remove(&id).map_or(0, |(_, len)| u32::from(len));
        self.bytes -= len;
        let Some(from) = from else { return };
        let earliest = self.earliest.entry(from).or_insert(rtt);
        if rtt > *earliest + LATER.max(*earliest / 4) {
            self.window = LEAST;
        } else {
            self.window = self.window.saturating_add(len);
        }
        *earliest = rtt.min(*earliest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn three_long_probes_wait_at_first_twice_as_many_after_prompt_answers_and_three_again_after_late_ones() {
        let from = Some(IpAddr::from([192, 0, 2, 1]));
        let mut flight = InFlight::new();
        let mut next = 0;
        let mut fill = |flight: &mut InFlight, now| {
            let first = next;
            while flight.has_room(1500, now, ms(500)) {
                flight.send(next, 1500, now);
                next += 1;
            }
            first..next
        };
        let burst = fill(&mut flight, ms(0));
        assert_eq!(burst.len(), 3);
        burst.for_each(|id| flight.hear(id, from, ms(40)));
        let burst = fill(&mut flight, ms(40));
        assert_eq!(burst.len(), 6);
        burst.for_each(|id| flight.hear(id, from, ms(51)));
        assert_eq!(fill(&mut flight, ms(100)).len(), 3);
    }

    #[test]
    fn what_is_never_answered_holds_the_others_back_no_longer_than_patience_lasts() {
        let mut flight = InFlight::new();
        assert!(flight.has_room(9000, ms(0), ms(200)), "a single one may be as long as it likes");
        flight.send(0, 9000, ms(0));
        assert!(!flight.has_room(1500, ms(199), ms(200)));
        assert_eq!(flight.opens_at(ms(200)), Some(ms(200)));
        assert!(flight.has_room(1500, ms(200), ms(200)));
        // An answer that comes after all counts nothing twice.
        flight.hear(0, None, ms(300));
        assert_eq!((flight.bytes, flight.opens_at(ms(200))), (0, None));
    }
}
