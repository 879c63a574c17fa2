use crate::Time;

/// A probe of the first burst that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paced {
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
pub(super) fn pace(burst: &[Paced]) -> Time {
    let drawn = |pair: &[Paced]| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [u16; 12] = [1492, 576, 1480, 1006, 1454, 1400, 1280, 1448, 1472, 1300, 1420, 1380];

    /// Packets that leave at once and are answered over a link that needs so much for a byte.
    fn over_link(ns_per_byte: u64) -> Vec<Paced> {
        let mut at = Time::from_millis(40);
        let probe = |size: &u16| {
            at += Time::from_nanos(ns_per_byte * u64::from(*size));
            Paced { size: *size, sent: Time::ZERO, answered: at }
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
        let late = |probe: (usize, &Paced)| {
            let by = Time::from_millis(5) * u32::try_from(probe.0).unwrap();
            Paced { sent: probe.1.sent + by, answered: probe.1.answered + by, ..*probe.1 }
        };
        let burst: Vec<Paced> = over_link(0).iter().enumerate().map(late).collect();
        assert_eq!(pace(&burst), Time::ZERO);
    }

    #[test]
    fn fewer_than_two_answers_tell_nothing() {
        assert_eq!(pace(&[]), Time::ZERO);
        assert_eq!(pace(&over_link(1000)[..1]), Time::ZERO);
    }
}
