use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Values that are kept for quantiles.
const KEPT: usize = 1024;
/// Parts of the time for which means are kept, at most.
const PARTS: usize = 64;

/// Quantiles of a stream of durations, of which an even sample is kept.
///
/// # Source
/// Vitter, "Random sampling with a reservoir", ACM TOMS 11 (1985), algorithm R.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    kept: Vec<u32>,
    count: u64,
    min_ns: Option<u64>,
    max_ns: u64,
    rng: Option<Box<ChaCha8Rng>>,
}

/// What is told of durations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many there were.
    pub samples: u64,
    /// The smallest, µs.
    pub min_us: f64,
    /// The median, µs.
    pub median_us: f64,
    /// Exceeded by one in twenty, µs.
    pub p95_us: f64,
    /// The largest, µs.
    pub max_us: f64,
}

impl Sample {
    /// Takes a duration in; those above 4 s lose digits, never their order.
    pub(crate) fn push(&mut self, ns: u64) {
        self.count += 1;
        self.min_ns = Some(self.min_ns.map_or(ns, |min| min.min(ns)));
        self.max_ns = self.max_ns.max(ns);
        let coded = encode(ns);
        if self.kept.len() < KEPT {
            self.kept.push(coded);
            return;
        }
        let rng = self.rng.get_or_insert_with(|| Box::new(ChaCha8Rng::seed_from_u64(1)));
        let place = rng.random_range(0..self.count);
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| self.kept.get_mut(place)) {
            *slot = coded;
        }
    }

    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.min_ns
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        let min_ns = self.min_ns?;
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let at = |share: f64| {
            let place = ((sorted.len() as f64 - 1.0) * share).round() as usize;
            decode(sorted.get(place).copied().unwrap_or(0)) / 1e3
        };
        Some(Spread {
            samples: self.count,
            min_us: min_ns as f64 / 1e3,
            median_us: at(0.5),
            p95_us: at(0.95),
            max_us: self.max_ns as f64 / 1e3,
        })
    }
}

/// Nanoseconds up to 2³¹, then units of 4096 of them up to 10¹²·⁹.
fn encode(ns: u64) -> u32 {
    match u32::try_from(ns) {
        Ok(small) if small >> 31 == 0 => small,
        _ => 1 << 31 | u32::try_from(ns >> 12).unwrap_or(u32::MAX >> 1).min(u32::MAX >> 1),
    }
}

fn decode(coded: u32) -> f64 {
    if coded >> 31 == 0 { f64::from(coded) } else { f64::from(coded & u32::MAX >> 1) * 4096.0 }
}

/// A quantity over time: means of parts of equal length, which grow as time goes on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    begun_ns: u64,
    part_ns: u64,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Part {
    count: u32,
    sum_ns: u64,
    max_ns: u64,
}

/// A third of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Third {
    pub(crate) mean_ns: f64,
    /// Values a second.
    pub(crate) per_second: f64,
}

/// The first length of a part: 50 ms.
const FIRST_PART: u64 = 50_000_000;

impl Course {
    pub(crate) fn push(&mut self, at_ns: u64, value_ns: u64) {
        if self.parts.is_empty() {
            (self.begun_ns, self.part_ns) = (at_ns, FIRST_PART);
        }
        let since = at_ns.saturating_sub(self.begun_ns);
        while since / self.part_ns >= PARTS as u64 {
            // Two neighbours become one.
            self.parts =
                self.parts.chunks(2).map(|pair| pair.iter().copied().fold(Part::default(), Part::with)).collect();
            self.part_ns = self.part_ns.saturating_mul(2);
        }
        let place = (since / self.part_ns) as usize;
        if self.parts.len() <= place {
            self.parts.resize(place + 1, Part::default());
        }
        if let Some(part) = self.parts.get_mut(place) {
            *part = part.with(Part { count: 1, sum_ns: value_ns, max_ns: value_ns });
        }
    }

    /// Time since its beginning in the middle of each part, s, and the mean there, ns; parts without a value are left out.
    pub(crate) fn means(&self) -> Vec<(f64, f64)> {
        let middle = |place: usize| (place as f64 + 0.5) * self.part_ns as f64 / 1e9;
        let full = self.parts.iter().enumerate().filter(|(_, part)| part.count > 0);
        full.map(|(place, part)| (middle(place), part.sum_ns as f64 / f64::from(part.count))).collect()
    }

    /// The thirds of the time; `None` unless all have a value.
    pub(crate) fn thirds(&self) -> Option<[Third; 3]> {
        let n = self.parts.len();
        let third = |number: usize| {
            let parts = self.parts.get(n * number / 3..n * (number + 1) / 3)?;
            let whole = parts.iter().copied().fold(Part::default(), Part::with);
            let seconds = parts.len() as f64 * self.part_ns as f64 / 1e9;
            (whole.count > 0).then(|| Third {
                mean_ns: whole.sum_ns as f64 / f64::from(whole.count),
                per_second: f64::from(whole.count) / seconds,
            })
        };
        Some([third(0)?, third(1)?, third(2)?])
    }
}

impl Part {
    fn with(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_values_are_exact_and_of_many_near() {
        let mut sample = Sample::default();
        (1..=101u64).for_each(|ms| sample.push(ms * 1_000_000));
        let spread = sample.spread().unwrap();
        assert_eq!(
            (spread.samples, spread.min_us, spread.median_us, spread.p95_us, spread.max_us),
            (101, 1e3, 51e3, 96e3, 101e3)
        );
        let mut sample = Sample::default();
        (0..100_000u64).for_each(|n| sample.push((n * 7919) % 100_000 * 1000));
        let median = sample.spread().unwrap().median_us;
        assert!((45_000.0..55_000.0).contains(&median), "{median}");
        assert_eq!(Sample::default().spread(), None);
    }

    #[test]
    fn long_times_keep_their_order_and_three_digits() {
        for (ns, near) in [(0, 0.0), (2_000_000_000, 2e9), (3_000_000_000, 3e9), (600_000_000_000, 6e11)] {
            assert!((decode(encode(ns)) - near).abs() <= near / 1000.0, "{ns}");
        }
        assert!(encode(u64::MAX) > encode(1 << 40));
    }

    #[test]
    fn a_course_of_hours_has_few_parts_and_the_right_thirds() {
        let mut course = Course::default();
        for second in 0..36_000u64 {
            course.push(second * 1_000_000_000, if second < 24_000 { 10 } else { 40 });
        }
        assert!(course.parts.len() <= PARTS, "{}", course.parts.len());
        let [first, middle, last] = course.thirds().unwrap().map(|third| third.mean_ns);
        assert!(first == 10.0 && middle < 14.0 && last > 36.0, "{first} {middle} {last}");
    }
}
