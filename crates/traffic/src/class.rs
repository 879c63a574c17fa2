use crate::{ConnectionFate, ConnectionOutcome, ResponseOutcome};
use std::collections::VecDeque;

/// The upper ends of the classes by bytes acknowledged; what is larger is the last.
const SIZES: [u64; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// A size in the middle of each of them, bytes.
const MIDDLES: [f64; SIZE_CLASSES] = [4096.0, 32_768.0, 131_072.0, 524_288.0, 4_194_304.0];
/// The upper ends of the classes by the smallest RTT of the prefix's past, µs.
const RTTS_US: [u32; 3] = [10_000, 30_000, 100_000];
/// How many classes by size there are.
pub(crate) const SIZE_CLASSES: usize = SIZES.len() + 1;
/// How many classes there are: by size, times four by RTT and one of prefixes without a past.
pub(crate) const CLASSES: usize = SIZE_CLASSES * (RTTS_US.len() + 2);
/// What classes by size are called.
pub(crate) const SIZE_NAMES: [&str; SIZE_CLASSES] =
    ["up to 16 KiB", "16 to 64 KiB", "64 to 256 KiB", "256 KiB to 1 MiB", "over 1 MiB"];
/// A class's mean forgets: it weighs no more than so many outcomes of the past.
const MEMORY: f64 = 2000.0;
/// A class with fewer outcomes of the past takes those of the epoch that is being scored, whatever their coins, for its mean.
const NEW: f64 = 50.0;
/// How many outcomes of its class an outcome is ranked among.
const RANKED: usize = 2000;
/// Fewer are too few for a rank.
const FEWEST_RANKED: usize = 20;

/// The class by size of so many bytes.
pub(crate) fn size_class(bytes: u64) -> usize {
    SIZES.iter().take_while(|end| bytes > **end).count()
}

/// The class of an outcome whose prefix had this smallest RTT before; 0 is no past.
pub(crate) fn class_of(bytes: u64, past_rtt_us: u32) -> u8 {
    let rtt = if past_rtt_us == 0 { 0 } else { 1 + RTTS_US.iter().take_while(|end| past_rtt_us > **end).count() };
    (rtt * SIZE_CLASSES + size_class(bytes)) as u8
}

/// The time that data took, µs: busy where the kernel says it, or else all of it.
fn time_us(outcome: &ConnectionOutcome) -> u64 {
    outcome.busy_us.unwrap_or(outcome.duration_us).max(1)
}

/// Bytes that were acknowledged, how long that took, and whether it was broken off: of a connection or of a response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Transfer {
    pub(crate) bytes: u64,
    pub(crate) time_us: u64,
    pub(crate) aborted: bool,
}

impl Transfer {
    pub(crate) fn of_connection(outcome: &ConnectionOutcome) -> Self {
        let aborted = matches!(outcome.fate, ConnectionFate::Reset | ConnectionFate::TimedOut);
        Self { bytes: outcome.bytes_acked, time_us: time_us(outcome), aborted }
    }

    pub(crate) fn of_response(outcome: &ResponseOutcome) -> Self {
        Self { bytes: outcome.bytes, time_us: outcome.time_us.max(1), aborted: outcome.aborted }
    }

    /// The primary outcome: ln of bytes acknowledged per second; none where nothing was acknowledged.
    pub(crate) fn log_goodput(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.bytes as f64 * 1e6 / self.time_us as f64).ln())
    }
}

/// The mean of each class.
#[derive(Debug, Clone)]
pub(crate) struct ClassMeans([(f64, f64); CLASSES]);

impl Default for ClassMeans {
    fn default() -> Self {
        Self([(0.0, 0.0); CLASSES])
    }
}

impl ClassMeans {
    /// The mean of a class's past, where that is long enough.
    pub(crate) fn known(&self, class: u8) -> Option<f64> {
        let (n, mean) = self.0.get(usize::from(class))?;
        (*n >= NEW).then_some(*mean)
    }

    /// The means to score an epoch with: those of the past, and for classes that are new those of the epoch's sums.
    pub(crate) fn for_epoch(&self, sums: &[(f64, f64); CLASSES]) -> [f64; CLASSES] {
        std::array::from_fn(|k| {
            let ((past_n, past_mean), (n, sum)) = (self.0[k], sums[k]);
            match (past_n >= NEW, past_n + n > 0.0) {
                (true, _) => past_mean,
                (false, true) => (past_n * past_mean + sum) / (past_n + n),
                (false, false) => 0.0,
            }
        })
    }

    /// Takes in an epoch that was scored.
    pub(crate) fn learn(&mut self, sums: &[(f64, f64); CLASSES]) {
        for ((past_n, mean), (n, sum)) in self.0.iter_mut().zip(sums) {
            if *n > 0.0 {
                *mean = (*past_n * *mean + sum) / (*past_n + n);
                *past_n = (*past_n + n).min(MEMORY);
            }
        }
    }
}

/// How the logarithm of goodput grows with that of the size within each class, as outcomes so far show it, whatever their coins: a
/// class spans sizes of which the largest moves several times as much a second as the smallest, on any path that is long.
#[derive(Debug, Clone)]
pub(crate) struct SizeSlopes(Vec<SizeSlope>);

/// Sums over outcomes of a class: how many, sizes and goodput as logarithms, squares and products.
#[derive(Debug, Clone, Copy, Default)]
struct SizeSlope {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Default for SizeSlopes {
    fn default() -> Self {
        Self(vec![SizeSlope::default(); CLASSES])
    }
}

impl SizeSlopes {
    /// What is expected before anything is known, by size: what begins with ten segments and doubles them each RTT has 1 while all of
    /// it leaves at once, and less the longer it takes; what is long moves at the path's rate.
    const EXPECTED: [f64; SIZE_CLASSES] = [0.9, 0.6, 0.6, 0.4, 0.0];
    /// How much that counts: as ten outcomes do, of sizes that are spread over a class.
    const WEIGHT: f64 = 1.6;
    /// It forgets: so many outcomes of the past are as many as it goes by.
    const MEMORY: f64 = 2000.0;

    /// The goodput's logarithm of so many bytes as it would be in the middle of their class; then it is one of those that are known.
    pub(crate) fn levelled(&mut self, class: u8, bytes: u64, y: f64) -> f64 {
        let size = usize::from(class) % SIZE_CLASSES;
        let x = (bytes.max(1) as f64 / MIDDLES[size]).ln();
        let Some(of) = self.0.get_mut(usize::from(class)) else { return y };
        let slope = of.slope(Self::EXPECTED[size]);
        of.take(x, y);
        y - slope * x
    }
}

impl SizeSlope {
    fn slope(&self, expected: f64) -> f64 {
        let n = self.n.max(1.0);
        let (xx, xy) = (self.xx - self.x * self.x / n, self.xy - self.x * self.y / n);
        let found = (xy + SizeSlopes::WEIGHT * expected) / (xx.max(0.0) + SizeSlopes::WEIGHT);
        // What is larger takes no less time, and no more for each byte; who makes it seem so sways nothing further.
        found.clamp(0.0, 1.0)
    }

    fn take(&mut self, x: f64, y: f64) {
        if self.n >= SizeSlopes::MEMORY {
            let kept = 1.0 - 1.0 / self.n;
            for sum in [&mut self.n, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy] {
                *sum *= kept;
            }
        }
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }
}

/// How far single outcomes lie from what is expected of them, as one that stalls doesn't make it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutcomeSpread {
    n: f64,
    squares: f64,
}

impl OutcomeSpread {
    /// What lies further from what is expected than so many times the spread counts as this far: of three stalls in a hundred the
    /// mean of a unit would be that of its stalls.
    const FAR: f64 = 4.0;
    /// The spread is known from so many outcomes on.
    const KNOWN: f64 = 200.0;
    /// It forgets: so many outcomes of the past are as many as it goes by.
    const MEMORY: f64 = 20_000.0;
    /// The stalls among them aren't part of it: bounded at so many times itself it is that of the rest.
    const OWN: f64 = 2.0;

    /// The residual as far as it counts.
    pub(crate) fn bounded(&mut self, residual: f64) -> f64 {
        let spread = if self.n > 0.0 { (self.squares / self.n).sqrt() } else { residual.abs() };
        let own = if spread > 0.0 { residual.abs().min(Self::OWN * spread) } else { residual.abs() };
        if self.n >= Self::MEMORY {
            self.squares *= 1.0 - 1.0 / self.n;
        } else {
            self.n += 1.0;
        }
        self.squares += own * own;
        let far = if self.n < Self::KNOWN { f64::INFINITY } else { Self::FAR * spread };
        residual.clamp(-far, far)
    }
}

/// The last outcomes of each class, in order of time and of size.
#[derive(Debug, Clone)]
pub(crate) struct ClassRanks(Vec<(VecDeque<f64>, Vec<f64>)>);

impl Default for ClassRanks {
    fn default() -> Self {
        Self(vec![Default::default(); CLASSES])
    }
}

impl ClassRanks {
    /// The share of the last outcomes of its class that were worse, ties by half; then it is one of them. None among too few.
    /// An aborted connection is −∞.
    pub(crate) fn rank(&mut self, class: u8, value: f64) -> Option<f64> {
        let (recent, sorted) = &mut self.0[usize::from(class)];
        let below = sorted.partition_point(|v| *v < value);
        let up_to = sorted.partition_point(|v| *v <= value);
        let rank = (sorted.len() >= FEWEST_RANKED).then(|| 0.5 * (below + up_to) as f64 / sorted.len() as f64);
        // Once there are enough, each takes the place of the oldest, and only those between the two move.
        let oldest = (recent.len() >= RANKED).then(|| recent.pop_front()).flatten();
        match oldest.map(|oldest| sorted.partition_point(|v| *v < oldest)) {
            None => sorted.insert(up_to, value),
            Some(at) if at < up_to => {
                sorted.copy_within(at + 1..up_to, at);
                sorted[up_to - 1] = value;
            }
            Some(at) => {
                sorted.copy_within(up_to..at, up_to + 1);
                sorted[up_to] = value;
            }
        }
        recent.push_back(value);
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_by_size_and_by_the_rtt_of_the_past() {
        assert_eq!([1, 16 << 10, 16_385, 1 << 20, (1 << 20) + 1].map(size_class), [0, 0, 1, 3, 4]);
        assert_eq!(class_of(1, 0), 0);
        assert_eq!(class_of(1, 10_000), 5);
        assert_eq!(usize::from(class_of(u64::MAX, u32::MAX)), CLASSES - 1);
    }

    #[test]
    fn goodput_is_levelled_by_how_it_grows_with_size() {
        let mut slopes = SizeSlopes::default();
        let mut levelled = Vec::new();
        for i in 0..400u64 {
            let bytes = 17_000 + i.wrapping_mul(2_654_435_761) % 48_000;
            // Each takes two RTTs.
            levelled.push(slopes.levelled(1, bytes, (bytes as f64 / 0.08).ln()));
        }
        let middle = (32_768f64 / 0.08).ln();
        let off = |from: usize| levelled[from..].iter().map(|y| (y - middle).abs()).fold(0.0, f64::max);
        assert!(off(0) > 0.1 && off(50) < 0.1 && off(300) < 0.02, "{} {} {}", off(0), off(50), off(300));
        // Where all move at one rate, the size says nothing.
        let mut flat = SizeSlopes::default();
        let last = (0..400u64).map(|i| flat.levelled(1, 17_000 + i * 7_919 % 48_000, 14.0)).last();
        assert!(last.is_some_and(|y| (y - 14.0).abs() < 0.05), "{last:?}");
        assert_eq!(flat.levelled(u8::MAX, 1, 3.0), 3.0);
    }

    #[test]
    fn ranks_are_those_among_the_last_outcomes() {
        let mut ranks = ClassRanks::default();
        let mut last: Vec<f64> = Vec::new();
        for i in 0..(3 * RANKED as u64) {
            let value = if i % 97 == 0 { f64::NEG_INFINITY } else { (i.wrapping_mul(2_654_435_761) % 1_009) as f64 };
            let among = &last[last.len().saturating_sub(RANKED)..];
            let [below, alike] =
                [among.iter().filter(|v| **v < value).count(), among.iter().filter(|v| **v == value).count()];
            let wanted =
                (among.len() >= FEWEST_RANKED).then(|| (below as f64 + 0.5 * alike as f64) / among.len() as f64);
            assert_eq!(ranks.rank(0, value), wanted, "{i}");
            last.push(value);
        }
    }

    #[test]
    fn a_stall_counts_as_four_times_what_outcomes_spread_and_the_rest_as_it_is() {
        let mut spread = OutcomeSpread::default();
        let of = |i: i32| if i % 2 == 0 { 1.0 } else { -1.0 };
        for i in 0..1_000 {
            let residual = if i % 50 == 49 { -40.0 } else { of(i) };
            let bounded = spread.bounded(residual);
            if i > 300 {
                assert!(
                    if residual < -1.0 { (-5.0..-3.0).contains(&bounded) } else { bounded == residual },
                    "{i}: {bounded}"
                );
            }
        }
    }

    #[test]
    fn a_rank_is_the_share_of_the_last_ones_that_were_worse() {
        let mut ranks = ClassRanks::default();
        for i in 0..4000 {
            let rank = ranks.rank(0, f64::from(i));
            assert_eq!(rank.is_some(), i >= 20);
        }
        assert_eq!(ranks.rank(0, 3000.5), Some(1001.0 / 2000.0));
        assert_eq!(ranks.rank(0, f64::NEG_INFINITY), Some(0.0));
        assert_eq!(ranks.rank(0, f64::NEG_INFINITY), Some(0.5 / 2000.0));
        assert_eq!(ranks.0[0].0.len(), 2000);
        assert_eq!(ranks.0[0].1.len(), 2000);
    }
}
