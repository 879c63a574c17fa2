use super::evidence::Fate;
use super::{Flight, Purpose, Search, USUAL_LEAST};
use crate::{Kind, Time};

/// No pace is slower: 1500 bytes at 20 kbit/s.
const SLOWEST: Time = Time::from_millis(600);
/// What a byte takes there and back at that pace.
const SLOWEST_BYTE: Time = Time::from_micros(800);
/// When nothing was heard for so long, something else is tried beside it.
const HEDGE: Time = Time::from_millis(200);

/// A probe of the first burst that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct PacedProbe {
    /// The length of the IP packet, bytes.
    pub(super) size: u16,
    pub(super) sent: Time,
    pub(super) answered: Time,
}

/// What the narrowest link needs for a packet of a burst, by how far apart their answers came beyond how far apart the probes left; in
/// the order of sending.
///
/// The median of what each answer took for a byte: a host that stands still for a moment draws a single gap apart, and what waited
/// meanwhile comes at once, while a slow link draws all of them apart.
pub(super) fn pace(burst: &[PacedProbe]) -> Time {
    let drawn = |pair: &[PacedProbe]| {
        let [before, after] = pair else { return None };
        let apart = after.answered.saturating_sub(before.answered);
        Some(apart.saturating_sub(after.sent.saturating_sub(before.sent)).as_secs_f64() / f64::from(after.size.max(1)))
    };
    let mut per_byte: Vec<f64> = burst.windows(2).filter_map(drawn).collect();
    if per_byte.is_empty() {
        return Time::ZERO;
    }
    let middle = (per_byte.len() - 1) / 2;
    let (_, median, _) = per_byte.select_nth_unstable_by(middle, f64::total_cmp);
    let mean = burst.iter().map(|probe| f64::from(probe.size)).sum::<f64>() / burst.len() as f64;
    Time::from_secs_f64(*median * mean)
}

impl Search {
    /// How far apart the first burst's answers came beyond how far apart its probes left: what the narrowest link needs
    /// for one. Faster bursts would fill its queue and lose packets of their own making. Late answers tell it, too.
    pub(super) fn pace(&self) -> Time {
        if !self.pace.is_zero() {
            return self.pace;
        }
        let answered = |flight: &&Flight| {
            let long = flight.item.size >= USUAL_LEAST || self.max < USUAL_LEAST;
            flight.item.purpose == Purpose::Size && flight.fate == Fate::Answered && long
        };
        let paced =
            |flight: &Flight| PacedProbe { size: flight.item.size, sent: flight.sent, answered: flight.answered };
        let burst: Vec<PacedProbe> = self.flights.iter().filter(answered).map(paced).collect();
        pace(&burst).min(SLOWEST)
    }

    /// How long the first burst may take on a slow line, as far as the answers to its two shortest packets tell: the time
    /// that each byte took there and back.
    pub(super) fn crawl(&self) -> Time {
        let rtt = |flight: &Flight| flight.answered.saturating_sub(flight.sent);
        let answered = |wanted| self.first(wanted).filter(|flight| flight.fate == Fate::Answered);
        let (Some(short), Some(long)) = (answered(Purpose::Open), answered(Purpose::Size)) else { return Time::ZERO };
        let bytes = f64::from(long.item.size.saturating_sub(short.item.size).max(1));
        let each = rtt(long).saturating_sub(rtt(short)).as_secs_f64() / (2.0 * bytes);
        let burst: f64 = self.flights.iter().map(|flight| f64::from(flight.item.size)).sum();
        // The longest comes back when all have gone there.
        rtt(short) + Time::from_secs_f64(each * (burst + f64::from(self.max)) * 1.25)
    }

    /// How long a first answer is waited for where only a short SYN's has come: on a slow line, long packets take far longer. A hedge that
    /// left behind them and overtook them shows that it isn't the line.
    pub(super) fn first_answer(&self) -> Time {
        let (None, Some(rtt)) = (self.evidence.passed(), self.rtt.smoothed()) else { return Time::ZERO };
        let hedge = self.first(Purpose::Hedge).is_some_and(|hedge| hedge.fate == Fate::Answered);
        let (Some(open), Some(long)) = (self.first(Purpose::Open), self.first(Purpose::Size)) else { return rtt * 4 };
        if self.round > 0 || hedge || open.fate != Fate::Answered {
            return rtt * 4;
        }
        // All of the SYN's time may have been spent on the line.
        let rtt_by_line = rtt * u32::from(long.item.size.div_ceil(open.item.size.max(1)));
        rtt_by_line.min(rtt + SLOWEST_BYTE * u32::from(long.item.size)).max(rtt * 4)
    }

    fn first(&self, purpose: Purpose) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.item.purpose == purpose)
    }

    /// When another kind of packet is tried although the first burst's verdict isn't due.
    pub(super) fn hedge_at(&self) -> Option<Time> {
        if self.hedged || self.method() == Kind::Udp || !self.queue.is_empty() || self.round > 0 {
            return None;
        }
        match self.rtt.smoothed() {
            None => self.config.kinds.contains(&Kind::Udp).then(|| self.last_sent + HEDGE),
            // Its answer comes before the first burst would be given up where the line is fast.
            Some(rtt) => {
                (self.evidence.passed().is_none() && self.short_kind().is_some()).then(|| self.last_sent + rtt * 5 / 2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [u16; 12] = [1492, 576, 1480, 1006, 1454, 1400, 1280, 1448, 1472, 1300, 1420, 1380];

    /// Packets that leave at once and are answered over a link that needs so much for a byte.
    fn over_link(ns_per_byte: u64) -> Vec<PacedProbe> {
        let mut at = Time::from_millis(40);
        let probe = |size: &u16| {
            at += Time::from_nanos(ns_per_byte * u64::from(*size));
            PacedProbe { size: *size, sent: Time::ZERO, answered: at }
        };
        SIZES.iter().map(probe).collect()
    }

    proptest! {
        #[test]
        fn a_slow_link_is_known_by_its_burst(rate in 20_000u64..200_000_000) {
            let mean = SIZES.iter().map(|size| f64::from(*size)).sum::<f64>() / SIZES.len() as f64;
            let found = pace(&over_link(8_000_000_000 / rate)).as_secs_f64();
            let expected = mean * 8.0 / rate as f64;
            prop_assert!((found / expected - 1.0).abs() < 0.05, "{found} for {expected}");
        }

        #[test]
        fn a_moment_of_standstill_makes_no_link_slow(at in 1usize..12, ms in 1u64..500, rate in 50_000_000u64..1_000_000_000) {
            let mut burst = over_link(8_000_000_000 / rate);
            let until = burst[at].answered + Time::from_millis(ms);
            burst[at..].iter_mut().for_each(|probe| probe.answered = probe.answered.max(until));
            prop_assert!(pace(&burst) < Time::from_millis(1), "{:?}", pace(&burst));
        }
    }

    #[test]
    fn what_left_late_was_answered_late() {
        let late = |probe: (usize, &PacedProbe)| {
            let by = Time::from_millis(5) * u32::try_from(probe.0).unwrap();
            PacedProbe { sent: probe.1.sent + by, answered: probe.1.answered + by, ..*probe.1 }
        };
        let burst: Vec<PacedProbe> = over_link(0).iter().enumerate().map(late).collect();
        assert_eq!(pace(&burst), Time::ZERO);
    }

    #[test]
    fn fewer_than_two_answers_tell_nothing() {
        assert_eq!(pace(&[]), Time::ZERO);
        assert_eq!(pace(&over_link(1000)[..1]), Time::ZERO);
    }
}
