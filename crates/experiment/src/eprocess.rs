//! The evidence against "this setting behaves as the current one", from the randomisation alone.
//!
//! Within a round a fair coin put two settings on their two slots (or on four, where each was run twice: there are six ways, each as
//! likely). If the settings do not differ, the sign of the
//! difference `d = y_i − y_0` of the logs of their goodputs is then ±1 with probability ½, given its size and all that
//! went before: under any drift, any dependence and any tails. Betting on the sign with stakes that are fixed
//! beforehand yields a martingale that starts at 1, so that by Ville's inequality it ever reaches `1/α` with
//! probability at most α, however often one looks.
//!
//! What this leaves out: a setting's own effect on the trial after it (wash it out), and anything that depends on the
//! schedule itself (somebody who watches the log and interferes).

/// What effect isn't excluded.
mod bounds;

pub use bounds::{bold_lower_bound, bold_upper_bound, lower_bound, upper_bound};
pub(crate) use bounds::{bold_lower_bound_of, bold_upper_bound_of, lower_bound_of, upper_bound_of};

/// The stakes, as multiples of the scaled difference.
const STAKES: [f64; 5] = [0.125, 0.25, 0.5, 1.0, 2.0];
/// How much of the first unit is bet at each stake. The small stakes keep the power for small effects: with
/// {½, 1, 2} alone an effect of 0.2 standard deviations is never found.
const WEIGHTS: [f64; 5] = [0.10, 0.20, 0.35, 0.20, 0.15];
/// Scaled differences are clipped here; the only protection against outliers, and an odd function, so exact.
const CLIP: f64 = 2.0;
/// A difference of settings that were run twice in a round is so many times as certain: their means vary by half, and of six ways to
/// share four places four say little.
const CERTAIN: f64 = 1.732_050_807_568_877_2;
/// The least stake on such a round, where the rounds before agree.
const SURE: f64 = 3.0;
/// Of what has been won this part is staked on such a round: what is lost in one can be won again.
const STAKED: f64 = 0.95;
/// Ways whose sums differ by no more than rounding are alike.
const ALIKE: f64 = 1e-12;
/// They agree where the square of their mean is at least this part of their mean square: a standard deviation of a third.
const AGREE: f64 = 0.9;

/// What a round says of two settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Difference {
    /// Each was run once, and this is by how much one lies above the other.
    Once(f64),
    /// Each was run twice, in an order in which each of the six ways to share their four places was as likely.
    Twice {
        /// The outcomes of one.
        own: [f64; 2],
        /// The outcomes of the other.
        other: [f64; 2],
    },
}

impl Difference {
    /// By how much one lies above the other on average.
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Once(d) => d,
            Self::Twice { own: [a, b], other: [c, d] } => f64::midpoint(a, b) - f64::midpoint(c, d),
        }
    }

    /// The same seen from the other one.
    fn mirrored(self) -> Self {
        match self {
            Self::Once(d) => Self::Once(-d),
            Self::Twice { own, other } => Self::Twice { own: other, other: own },
        }
    }

    /// A round of settings that were run twice, which loses as much as any of this size can: all six ways are this far below.
    pub(crate) fn lost(d: f64) -> Self {
        Self::Twice { own: [2.0 * d, 0.0], other: [0.0; 2] }
    }

    /// The same of settings that do not differ.
    fn none(self) -> Self {
        match self {
            Self::Once(_) => Self::Once(0.0),
            Self::Twice { .. } => Self::Twice { own: [0.0; 2], other: [0.0; 2] },
        }
    }
}

/// A product of factors kept as mantissa × e^log, so that it neither overflows nor needs a logarithm per factor.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Product {
    mantissa: f64,
    log: f64,
}

impl Product {
    const ONE: Self = Self { mantissa: 1.0, log: 0.0 };

    fn multiply(&mut self, factor: f64) {
        self.mantissa *= factor;
        if !(1e-100..1e100).contains(&self.mantissa) {
            self.log += self.mantissa.ln();
            self.mantissa = 1.0;
        }
    }

    fn ln(self) -> f64 {
        self.log + self.mantissa.ln()
    }
}

/// The sign-symmetry e-process of one difference: push the rounds in order, read the evidence at any time.
///
/// One update costs the same however many rounds there were.
///
/// # Example
/// ```
/// use wt_experiment::EProcess;
/// let mut faster = EProcess::new();
/// for d in [0.20, -0.05, 0.31, 0.12, 0.08, 0.27, 0.15, 0.22, -0.02, 0.18, 0.25, 0.11] {
///     faster.push(d);
/// }
/// assert!((faster.evidence() - 68.39).abs() < 0.01);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EProcess {
    shift: f64,
    sign: f64,
    count: usize,
    sum: f64,
    sum_of_squares: f64,
    /// The reciprocal of the wealth at each stake: products are quicker than quotients.
    losses: [Product; 5],
    /// Whether half of the first unit is bet whole on every sign: it doubles until the first sign that is wrong.
    bold: bool,
    /// ln of what that half has become, as a multiple of itself.
    unbroken: f64,
}

impl Default for EProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl EProcess {
    /// Evidence that the differences lie above zero: superiority.
    #[must_use]
    pub fn new() -> Self {
        Self::above(0.0)
    }

    /// Evidence that the differences lie above `shift`, against the null that they lie at it or below.
    ///
    /// Non-inferiority within ε is `above(ln(1 − ε))`.
    #[must_use]
    pub fn above(shift: f64) -> Self {
        let losses = [Product::ONE; 5];
        Self { shift, sign: 1.0, count: 0, sum: 0.0, sum_of_squares: 0.0, losses, bold: false, unbroken: 0.0 }
    }

    /// The same with half of the first unit bet whole on every sign: five rounds that agree are then 21 : 1.
    #[must_use]
    pub(crate) fn boldly(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Evidence that the differences lie below `shift`; `below(0)` is "slower".
    #[must_use]
    pub fn below(shift: f64) -> Self {
        Self { sign: -1.0, ..Self::above(shift) }
    }

    /// The fewest rounds of one and the same difference after which there is this much evidence.
    #[must_use]
    pub fn fewest_rounds(needed: f64) -> u32 {
        let mut process = Self::new();
        (1..1000)
            .find(|_| {
                process.push(1.0);
                process.evidence() >= needed
            })
            .unwrap_or(1000)
    }

    /// The process after these differences, in order.
    #[must_use]
    pub fn after(mut self, differences: &[f64]) -> Self {
        for d in differences {
            self.push(*d);
        }
        self
    }

    /// The same after rounds of either kind.
    fn after_all(mut self, differences: &[Difference]) -> Self {
        for d in differences {
            self.take(*d);
        }
        self
    }

    /// The same after many that are finite, each run once; to rounding, for products are tidied up once for eight of them.
    fn after_many(mut self, differences: &[f64]) -> Self {
        for eight in differences.chunks(8) {
            let mut x = [0.0; 8];
            for (x, d) in x.iter_mut().zip(eight) {
                let d = self.sign * (d - self.shift);
                self.count += 1;
                self.sum += d;
                self.sum_of_squares += d * d;
                let mean_square = self.sum_of_squares / self.count as f64;
                *x = if mean_square > 0.0 { d / mean_square.sqrt() } else { 0.0 };
            }
            let mut products = [1.0; 5];
            for x in &x[..eight.len()] {
                let x = x.clamp(-CLIP, CLIP);
                let mut u = (-2.0 * STAKES[0] * x).exp();
                for product in &mut products {
                    *product *= 0.5 + 0.5 * u;
                    u *= u;
                }
                self.unbroken += if x > 0.0 { std::f64::consts::LN_2 } else { f64::NEG_INFINITY };
            }
            self.losses.iter_mut().zip(products).for_each(|(loss, product)| loss.multiply(product));
        }
        self
    }

    /// Takes the next difference. What isn't a finite number is no observation and is ignored.
    pub fn push(&mut self, difference: f64) {
        self.scaled(difference);
    }

    /// Takes the next difference, and gives it as a multiple of the root mean square so far, its own included.
    pub(crate) fn scaled(&mut self, difference: f64) -> Option<f64> {
        let d = self.sign * (difference - self.shift);
        if !d.is_finite() {
            return None;
        }
        self.count += 1;
        self.sum += d;
        self.sum_of_squares += d * d;
        let scale = (self.sum_of_squares / self.count as f64).sqrt();
        let scaled = if scale > 0.0 { d / scale } else { 0.0 };
        let x = scaled.clamp(-CLIP, CLIP);
        // exp(gx)/cosh(gx) = 2/(1 + exp(−2gx)); the stakes double, so each exponential is the square of the one before.
        let mut u = (-2.0 * STAKES[0] * x).exp();
        for loss in &mut self.losses {
            loss.multiply(0.5 + 0.5 * u);
            u *= u;
        }
        self.unbroken += if x > 0.0 { std::f64::consts::LN_2 } else { f64::NEG_INFINITY };
        Some(scaled)
    }

    /// Takes what the next round says; gives the difference as [`scaled`](Self::scaled) does.
    pub(crate) fn take(&mut self, difference: Difference) -> Option<f64> {
        match difference {
            Difference::Once(d) => self.scaled(d),
            Difference::Twice { own, other } => self.scaled_twice(own, other),
        }
    }

    /// Takes a round in which both were run twice. If the settings do not differ, whose of the four outcomes are whose is one of six
    /// ways, each as likely. The bet is on the one that was: exp(gx) over the mean of the six, with stakes and a scale of the
    /// rounds before. Where those agree, at least [`SURE`] is staked.
    fn scaled_twice(&mut self, own: [f64; 2], other: [f64; 2]) -> Option<f64> {
        let [a, b, c, d] = [own[0] - self.shift, own[1] - self.shift, other[0], other[1]];
        // Half of what two of the four have more than the other two: as they were, and parted otherwise.
        let ways = [a + b - c - d, a + c - b - d, a + d - b - c].map(|way| self.sign * way / 2.0);
        if !ways.iter().all(|way| way.is_finite()) {
            return None;
        }
        let largest = ways.iter().fold(0.0, |largest: f64, way| largest.max(way.abs()));
        let before = self.scale();
        let scale = if before > 0.0 { before } else { largest };
        let x = ways.map(|way| if scale > 0.0 { (CERTAIN * way / scale).clamp(-CLIP, CLIP) } else { 0.0 });
        let least = if self.agrees() { SURE } else { 0.0 };
        for (loss, stake) in self.losses.iter_mut().zip(STAKES) {
            let stake = stake.max(least);
            let all: f64 = x.iter().map(|x| (stake * x).cosh()).sum();
            let factor = (stake * x[0]).exp() * 3.0 / all;
            loss.multiply(1.0 / (STAKED * factor + 1.0 - STAKED));
        }
        let as_large = ways.iter().filter(|way| way.abs() >= largest * (1.0 - ALIKE)).count();
        let is_largest = ways[0] > 0.0 && ways[0] >= largest * (1.0 - ALIKE);
        self.unbroken += if is_largest { (6.0 / as_large as f64).ln() } else { f64::NEG_INFINITY };
        self.count += 1;
        self.sum += ways[0];
        self.sum_of_squares += largest * largest;
        let after = self.scale();
        Some(if after > 0.0 { ways[0] / after } else { 0.0 })
    }

    /// Whether the rounds so far lie above the shift by much more than they differ.
    fn agrees(&self) -> bool {
        self.sum > 0.0 && self.sum * self.sum >= AGREE * self.sum_of_squares * self.count as f64
    }

    /// The root mean square of the differences from the shift.
    pub(crate) fn scale(&self) -> f64 {
        (self.sum_of_squares / self.count.max(1) as f64).sqrt()
    }

    /// The number of differences taken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The natural logarithm of the evidence.
    #[must_use]
    pub fn log_evidence(&self) -> f64 {
        let logs: [f64; 5] = std::array::from_fn(|m| WEIGHTS[m].ln() - self.losses[m].ln());
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mixed = top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln();
        if self.bold { log_sum(mixed, self.unbroken) - std::f64::consts::LN_2 } else { mixed }
    }

    /// The evidence: how many times the first unit has multiplied. 1 is none; "71 : 1" is 71.
    #[must_use]
    pub fn evidence(&self) -> f64 {
        self.log_evidence().exp()
    }
}

/// ln(eᵃ + eᵇ).
pub(crate) fn log_sum(a: f64, b: f64) -> f64 {
    let top = a.max(b);
    if top.is_finite() { top + ((a - top).exp() + (b - top).exp()).ln() } else { top }
}

/// The evidence after each of the differences.
#[must_use]
pub fn evidence_series(mut process: EProcess, differences: &[f64]) -> Vec<f64> {
    differences
        .iter()
        .map(|d| {
            process.push(*d);
            process.evidence()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    mod twice;

    use super::*;
    use crate::golden::assert_golden;
    use proptest::prelude::*;

    const SYNTHETIC: [f64; 12] = [0.20, -0.05, 0.31, 0.12, 0.08, 0.27, 0.15, 0.22, -0.02, 0.18, 0.25, 0.11];
    const TTL_0: [f64; 4] = [1309.0, 1597.0, 1888.0, 1206.0];
    const TTL_128: [f64; 4] = [923.0, 1864.0, 1633.0, 975.0];
    const NONE: [f64; 4] = [1530.0, 1340.0, 1327.0, 1122.0];
    const BLACK_HOLE: [f64; 4] = [1286.0, 985.0, 941.0, 816.0];

    fn log_ratios(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect()
    }

    #[test]
    fn the_dial_up_pairs_and_the_synthetic_series_give_the_golden_evidence() {
        let cases: [(Vec<f64>, &[f64]); 3] = [
            (log_ratios(&TTL_0, &TTL_128), &[1.520, 0.9116, 1.201, 1.763]),
            (log_ratios(&NONE, &BLACK_HOLE), &[1.520, 2.479, 4.140, 6.953]),
            (SYNTHETIC.to_vec(), &[1.520, 1.115, 1.805, 2.510, 3.357, 5.767, 9.116, 15.82, 13.78, 23.55, 42.88, 68.39]),
        ];
        for (differences, golden) in cases {
            for (got, want) in evidence_series(EProcess::new(), &differences).iter().zip(golden) {
                assert_golden(*got, *want);
            }
        }
        let slower = |d: &[f64]| EProcess::below(0.0).after(d).evidence();
        assert_golden(slower(&log_ratios(&TTL_0, &TTL_128)), 0.2948);
        assert_golden(slower(&log_ratios(&NONE, &BLACK_HOLE)), 0.1297);
        assert_golden(EProcess::above(0.95f64.ln()).after(&SYNTHETIC).evidence(), 224.2);
    }

    #[test]
    fn the_synthetic_bounds_are_the_golden_ones() {
        assert_golden(lower_bound(&SYNTHETIC, 20.0), 0.03612);
        assert_golden(lower_bound(&SYNTHETIC, 20.0).exp(), 1.037);
        assert_golden(upper_bound(&SYNTHETIC, 20.0).exp(), 1.272);
    }

    #[test]
    fn the_bounds_of_a_long_series_lie_where_the_evidence_is_what_is_needed() {
        let long: Vec<f64> =
            (0..20_000u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 16) / 65_536.0).collect();
        let (low, high) = (lower_bound(&long, 60.0), upper_bound(&long, 60.0));
        assert!((EProcess::above(low).after(&long).evidence() - 60.0).abs() < 0.1);
        assert!((EProcess::below(high).after(&long).evidence() - 60.0).abs() < 0.1);
        assert!(0.48 < low && low < 0.5 && 0.5 < high && high < 0.52);
    }

    #[test]
    fn too_few_rounds_exclude_nothing_however_clear_they_are() {
        for (threshold, floor) in [(20.0, 7), (60.0, 8), (140.0, 10)] {
            let equal = |n: usize| EProcess::new().after(&vec![1.0; n]).evidence();
            assert!(equal(floor - 1) < threshold && equal(floor) >= threshold, "{threshold}: {floor}");
            assert_eq!(lower_bound(&vec![1.0; floor - 1], threshold), f64::NEG_INFINITY);
            assert!((lower_bound(&vec![1.0; floor], threshold) - 1.0).abs() < 1e-6);
        }
        assert_eq!(lower_bound(&[], 20.0), f64::NEG_INFINITY);
        assert_eq!(upper_bound(&[], 20.0), f64::INFINITY);
    }

    #[test]
    fn what_is_no_number_is_no_observation_and_nothing_overflows() {
        let mut process = EProcess::new();
        for d in [f64::NAN, f64::INFINITY, 0.0] {
            process.push(d);
        }
        assert_eq!((process.count(), process.evidence()), (1, 1.0));
        let long = EProcess::new().after(&vec![1.0; 100_000]);
        assert!(long.log_evidence().is_finite() && long.log_evidence() > 1e4);
        assert!(EProcess::below(0.0).after(&vec![1.0; 100_000]).log_evidence() < -1e3);
    }

    proptest! {
        #[test]
        fn over_all_sign_patterns_the_evidence_averages_one(
            sizes in prop::collection::vec(0.0f64..3.0, 1..11), heavy in 0.0f64..50.0,
        ) {
            let sizes: Vec<f64> = sizes.iter().enumerate().map(|(i, s)| if i == 2 { s * heavy } else { *s }).collect();
            let patterns = 1u32 << sizes.len();
            let sum: f64 = (0..patterns)
                .map(|p| {
                    let signed: Vec<f64> =
                        sizes.iter().enumerate().map(|(i, s)| if p >> i & 1 == 1 { *s } else { -s }).collect();
                    EProcess::new().after(&signed).evidence()
                })
                .sum();
            prop_assert!((sum / f64::from(patterns) - 1.0).abs() < 1e-12);
        }

        #[test]
        fn swapping_the_labels_swaps_faster_and_slower(d in prop::collection::vec(-2.0f64..2.0, 0..40)) {
            let swapped: Vec<f64> = d.iter().map(|d| -d).collect();
            let (a, b) = (EProcess::new().after(&d).evidence(), EProcess::below(0.0).after(&swapped).evidence());
            prop_assert_eq!(a, b);
        }

        #[test]
        fn rescaling_changes_nothing(d in prop::collection::vec(-2.0f64..2.0, 1..40), by in 1e-3f64..1e3) {
            let scaled: Vec<f64> = d.iter().map(|d| d * by).collect();
            let (a, b) = (EProcess::new().after(&d).log_evidence(), EProcess::new().after(&scaled).log_evidence());
            prop_assert!((a - b).abs() < 1e-9);
        }

        #[test]
        fn all_below_the_lower_bound_is_excluded_and_the_bounds_embrace_what_is_not(
            d in prop::collection::vec(-1.0f64..2.0, 8..40),
        ) {
            let (low, high) = (lower_bound(&d, 20.0), upper_bound(&d, 20.0));
            prop_assert!(low <= high);
            for j in 0..50 {
                let below = low - 1e-6 - f64::from(j) * 0.05;
                prop_assert!(!low.is_finite() || EProcess::above(below).after(&d).evidence() >= 20.0);
            }
        }

        #[test]
        fn the_bounds_move_with_the_data(d in prop::collection::vec(-1.0f64..2.0, 8..30), by in -2.0f64..2.0) {
            let moved: Vec<f64> = d.iter().map(|d| d + by).collect();
            prop_assert!((lower_bound(&moved, 20.0) - lower_bound(&d, 20.0) - by).abs() < 1e-6);
        }
    }
}
