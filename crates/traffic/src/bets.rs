//! The coin-betting e-process for many units and small effects.
//!
//! A unit's coin `z = ±1` came up +1 with a known probability `p`; `s` is its outcome less a prediction made without that coin,
//! over a scale. The wealth at stake λ is multiplied by
//!
//! ```text
//! e^{λzs} / (p e^{λs} + (1−p) e^{−λs})  =  1 / (q + (1−q) e^{−2λzs}),      q = P(z)
//! ```
//!
//! If the outcomes are what they are whatever the coins, each factor has mean 1: the wealth is a martingale from 1, under any
//! drift, tails and dependence between clients, and by Ville's inequality it ever reaches 1/α with probability at most α. If the
//! second arm is better for no unit, it is a supermartingale, so that "faster" is a claim against "no unit gains".
//!
//! The stakes are 2¹ … 2⁻¹⁰, each with a twelfth of the first unit: where units count in the thousands and effects are a tenth of
//! their noise, the stakes of [`wt_experiment::EProcess`] (⅛ … 2) overbet and find nothing.
//!
//! # Source
//! Ville's inequality; Ramdas, Grünwald, Vovk, Shafer, *Game-theoretic statistics and safe anytime-valid inference* (arXiv
//! 2210.01948); Ham, Bojinov, Lindon, Tingley, *Design-based confidence sequences* (arXiv 2210.08639) for the same basis.

use serde::{Deserialize, Serialize};

/// How many stakes there are: 2¹ down to 2⁻¹⁰.
pub const STAKES: usize = 12;
/// Scaled outcomes are clipped here: an odd function, so exact, and the only protection against outliers.
const CLIP: f64 = 2.0;
/// The smallest stake, 2⁻¹⁰.
const SMALLEST: f64 = 1.0 / 1024.0;
/// So many units are kept for intervals; later ones still bet.
const KEPT: usize = 1 << 17;

/// One side's wealth, the logarithm at each stake from the smallest to the largest.
pub type LogWealth = [f64; STAKES];

/// The logarithm of the mean of the wealth over the stakes: the evidence.
#[must_use]
pub fn mixed(log_wealth: &LogWealth) -> f64 {
    let top = log_wealth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + (log_wealth.iter().map(|l| (l - top).exp()).sum::<f64>() / STAKES as f64).ln()
}

/// The wealth of one side, kept so that neither a product overflows nor each factor needs a logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wealth {
    /// The reciprocals' mantissas.
    losses: [f64; STAKES],
    logs: LogWealth,
}

impl Wealth {
    const ONE: Self = Self { losses: [1.0; STAKES], logs: [0.0; STAKES] };

    /// Bets on a coin that had this side with probability `q`, and `x = ±s`: positive if the side was right.
    fn bet(&mut self, q: f64, x: f64) {
        // The stakes double, so each exponential is the square of the one before.
        let mut u = (-2.0 * SMALLEST * x).exp();
        for (loss, log) in self.losses.iter_mut().zip(&mut self.logs) {
            *loss *= q + (1.0 - q) * u;
            if !(1e-100..1e100).contains(loss) {
                *log -= loss.ln();
                *loss = 1.0;
            }
            u *= u;
        }
    }

    /// Whether the mean over the stakes may be more than these odds: no mean is above its largest.
    fn may_exceed(&self, odds: f64) -> bool {
        let least = self.losses.iter().copied().fold(f64::INFINITY, f64::min);
        least * odds < 1.0 || self.logs != [0.0; STAKES]
    }

    /// The logarithm of the mean over the stakes.
    fn mixed(&self) -> f64 {
        if self.logs == [0.0; STAKES] {
            // No product has come near its range's ends: no logarithm per stake.
            return (self.losses.iter().map(|loss| loss.recip()).sum::<f64>() / STAKES as f64).ln();
        }
        mixed(&self.log())
    }

    fn log(&self) -> LogWealth {
        std::array::from_fn(|j| self.logs[j] - self.losses[j].ln())
    }
}

/// One unit's coin and outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoinOutcome {
    /// Whether it had the arm that is tried.
    pub treated: bool,
    /// With which probability it did, above 0 and below 1.
    pub p: f64,
    /// Its outcome less the prediction made without its coin.
    pub residual: f64,
    /// How well its outcome is known, above 0 and at most 1: the noisier, the less.
    pub weight: f64,
    /// Which part of a whole unit it counts, above 0 and at most 1, however far its outcome lies: many that are one client's count
    /// as few.
    pub part: f64,
}

/// Running root mean square, the newest included. It grows with what comes, so that a scaled outcome grows with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct RunningScale {
    n: f64,
    squares: f64,
    /// Whether an outcome counts as no more than [`CLIP`] times the scale so far: stalls then don't hide what most clients
    /// see. Not for shares of rare events, of which the scale would be that of nothing happening.
    bounded: bool,
}

impl RunningScale {
    fn scaled(&mut self, r: f64, part: f64) -> f64 {
        let most = if self.bounded && self.squares > 0.0 { CLIP * CLIP * self.squares / self.n } else { f64::INFINITY };
        self.n += part;
        self.squares += part * (r * r).min(most);
        let scale = self.scale();
        if scale > 0.0 { (r / scale).clamp(-CLIP, CLIP) } else { 0.0 }
    }

    fn scale(&self) -> f64 {
        if self.n > 0.0 { (self.squares / self.n).sqrt() } else { 0.0 }
    }
}

/// Bets on one comparison, for "higher" and for "lower", and the estimate of the effect.
#[derive(Debug, Clone, PartialEq)]
pub struct CoinBets {
    higher: Wealth,
    lower: Wealth,
    scale: RunningScale,
    /// The largest evidence so far, "higher" and "lower", as logarithms.
    best: [f64; 2],
    /// The same as odds.
    best_odds: [f64; 2],
    units: u64,
    /// Σ w r (1{z} − p) and Σ w (1{z} − p)², w being weight × part.
    cross: f64,
    square: f64,
    kept: Option<Vec<CoinOutcome>>,
}

impl Default for CoinBets {
    fn default() -> Self {
        Self {
            higher: Wealth::ONE,
            lower: Wealth::ONE,
            scale: RunningScale::default(),
            best: [0.0; 2],
            best_odds: [1.0; 2],
            units: 0,
            cross: 0.0,
            square: 0.0,
            kept: None,
        }
    }
}

impl CoinBets {
    /// Bets on outcomes with tails, that keep their units so that an interval can be had.
    #[must_use]
    pub fn with_interval() -> Self {
        let scale = RunningScale { bounded: true, ..RunningScale::default() };
        Self { kept: Some(Vec::new()), scale, ..Self::default() }
    }

    /// Takes the next unit. What isn't finite or had no coin (`p` 0 or 1) is no observation.
    pub fn push(&mut self, unit: CoinOutcome) {
        let CoinOutcome { treated, p, residual, weight, part } = unit;
        if !(residual.is_finite() && p > 0.0 && p < 1.0 && weight > 0.0 && part > 0.0) {
            return;
        }
        let s = part * self.scale.scaled(weight * residual, part);
        let (q, x) = if treated { (p, s) } else { (1.0 - p, -s) };
        self.higher.bet(q, x);
        self.lower.bet(q, -x);
        self.units += 1;
        let sides = self.best.iter_mut().zip(&mut self.best_odds).zip([&self.higher, &self.lower]);
        for ((best, odds), now) in sides.filter(|((_, odds), now)| now.may_exceed(**odds)) {
            *best = best.max(now.mixed());
            *odds = best.exp();
        }
        let centred = f64::from(u8::from(treated)) - p;
        self.cross += part * weight * residual * centred;
        self.square += part * weight * centred * centred;
        if let Some(kept) = self.kept.as_mut().filter(|kept| kept.len() < KEPT) {
            kept.push(unit);
        }
    }

    /// How many units have bet.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The log wealth at each stake, for "higher" and for "lower".
    #[must_use]
    pub fn log_wealth(&self) -> [LogWealth; 2] {
        [self.higher.log(), self.lower.log()]
    }

    /// The evidence now that the tried arm is higher, as a logarithm.
    #[must_use]
    pub fn log_higher(&self) -> f64 {
        self.higher.mixed()
    }

    /// The evidence now that the tried arm is lower, as a logarithm.
    #[must_use]
    pub fn log_lower(&self) -> f64 {
        self.lower.mixed()
    }

    /// The largest evidence there ever was for "higher" and for "lower", as logarithms: what a claim rests on.
    #[must_use]
    pub fn best(&self) -> [f64; 2] {
        self.best
    }

    /// The estimated effect on the outcome; none before both arms were seen. Where the units are kept for an interval it is the one at
    /// which what is bet on speaks for neither side, so that a few outcomes far away don't move it: a typical effect, which is the mean
    /// over units only where all have the same.
    #[must_use]
    pub fn effect(&self) -> Option<f64> {
        let mean = (self.square > 0.0 && self.units > 1).then(|| self.cross / self.square)?;
        let scale = self.scale.scale();
        let Some(kept) = self.kept.as_deref().filter(|_| scale > 0.0) else { return Some(mean) };
        // What is bet on falls as the effect grows; where all units that it rests on are bounded it is 0 over a stretch, of which the
        // middle is taken, so that swapped arms give the same with the other sign. What adding up rounds away is 0 too.
        let most: f64 = kept.iter().map(|unit| unit.part * CLIP).sum();
        let speaks = |delta: f64| {
            let of = |unit: &CoinOutcome| {
                let centred = f64::from(u8::from(unit.treated)) - unit.p;
                let s = (unit.weight * (unit.residual - delta * centred) / scale).clamp(-CLIP, CLIP);
                unit.part * centred * s
            };
            let sum = kept.iter().map(of).sum::<f64>();
            if sum.abs() > 1e-13 * most { sum } else { 0.0 }
        };
        let end = |side: f64| {
            let at = |k: i32| mean + side * scale * f64::from(k).exp2();
            at((0..40).find(|k| side * speaks(at(*k)) < 0.0).unwrap_or(0))
        };
        // Between two effects until they are neighbours.
        let between = |(mut low, mut high): (f64, f64), below: &dyn Fn(f64) -> bool| {
            for _ in 0..52 {
                let middle = 0.5 * (low + high);
                if below(speaks(middle)) { low = middle } else { high = middle }
            }
            (low, high)
        };
        let ends = (end(-1.0), end(1.0));
        let (low, first) = between(ends, &|sum| sum > 0.0);
        let high = if speaks(first) < 0.0 { first } else { between((first, ends.1), &|sum| sum >= 0.0).1 };
        Some(0.5 * (low + high))
    }

    /// Σ w r (1{z} − p) and Σ w (1{z} − p)²: the effect is their quotient, also after adding up servers.
    #[must_use]
    pub fn sums(&self) -> [f64; 2] {
        [self.cross, self.square]
    }

    /// The effects that aren't excluded at `threshold` : 1 on either side; infinite where nothing is excluded yet.
    ///
    /// Under `y(treated) = y(not) + δ` the residuals less `δ (1{z} − p)` don't depend on the coins, so each δ is a test: of an effect that
    /// all units have. Where few have a large one, their mean may lie outside. Beyond
    /// 131,072 units the interval is that of the first so many, which stays valid.
    #[must_use]
    pub fn interval(&self, threshold: f64) -> (f64, f64) {
        let (Some(kept), Some(centre)) = (self.kept.as_deref(), self.effect()) else {
            return (f64::NEG_INFINITY, f64::INFINITY);
        };
        let need = threshold.ln();
        (centre - reach(kept, centre, need, -1.0), centre + reach(kept, centre, need, 1.0))
    }
}

/// How far from the centre, in the direction `sign`, the first effect lies that is excluded.
fn reach(kept: &[CoinOutcome], centre: f64, need: f64, sign: f64) -> f64 {
    let excluded = |distance: f64| against(kept, centre + sign * distance, -sign) >= need;
    let spread = kept.iter().map(|unit| (unit.residual - centre).powi(2)).sum::<f64>() / kept.len() as f64;
    let unit = spread.sqrt().max(1e-9) / (kept.len() as f64).sqrt();
    let Some(mut high) = (0..24).map(|j| unit * f64::from(j).exp2()).find(|d| excluded(*d)) else {
        return f64::INFINITY;
    };
    let mut low = if high > unit { high / 2.0 } else { 0.0 };
    for _ in 0..18 {
        let middle = 0.5 * (low + high);
        if excluded(middle) { high = middle } else { low = middle }
    }
    high
}

/// The evidence that the effect is larger (`side` 1) or smaller (−1) than `delta`, as a logarithm.
fn against(kept: &[CoinOutcome], delta: f64, side: f64) -> f64 {
    let (mut wealth, mut scale) = (Wealth::ONE, RunningScale { bounded: true, ..RunningScale::default() });
    for CoinOutcome { treated, p, residual, weight, part } in kept {
        let one = f64::from(u8::from(*treated));
        let s = part * scale.scaled(weight * (residual - delta * (one - p)), *part);
        let (q, x) = if *treated { (*p, s) } else { (1.0 - p, -s) };
        wealth.bet(q, side * x);
    }
    wealth.mixed()
}

/// What one server's bets have come to: all that is needed to add servers up. No client is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerEvidence {
    /// Which key threw the coins: a hash of it, from which it can't be had.
    pub key_id: u64,
    /// The arm that is tried.
    pub arm: String,
    /// How many units bet.
    pub units: u64,
    /// Log wealth at each stake for "faster".
    #[schema(value_type = Vec<f64>)]
    pub faster: LogWealth,
    /// Log wealth at each stake for "slower".
    #[schema(value_type = Vec<f64>)]
    pub slower: LogWealth,
    /// The two sums whose quotient is the effect.
    #[schema(value_type = Vec<f64>)]
    pub sums: [f64; 2],
}

/// Several servers together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CombinedEvidence {
    /// Different keys among them.
    pub keys: usize,
    /// Whether servers share a key; their wealth was averaged.
    pub shared: bool,
    /// Evidence that it is faster on at least one server, as a logarithm.
    pub log_faster: f64,
    /// Evidence that it is slower on at least one server, as a logarithm.
    pub log_slower: f64,
    /// The effect over all units.
    pub effect: Option<f64>,
    /// The units of all.
    pub units: u64,
}

/// Adds up servers that tried the same arm: log wealth per stake where keys differ, and the mean of the wealth where servers
/// share a key, since then they share coins, and adding would count each twice.
#[must_use]
pub fn combine(servers: &[ServerEvidence]) -> CombinedEvidence {
    let mut keys: Vec<u64> = servers.iter().map(|server| server.key_id).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut sum = [[0.0; STAKES]; 2];
    for key in &keys {
        let of_key: Vec<&ServerEvidence> = servers.iter().filter(|server| server.key_id == *key).collect();
        let [faster, slower] = &mut sum;
        for (j, (faster, slower)) in faster.iter_mut().zip(slower).enumerate() {
            *faster += log_mean(of_key.iter().map(|server| server.faster[j]));
            *slower += log_mean(of_key.iter().map(|server| server.slower[j]));
        }
    }
    let [cross, square] = [0, 1].map(|i| servers.iter().map(|server| server.sums[i]).sum::<f64>());
    CombinedEvidence {
        keys: keys.len(),
        shared: keys.len() < servers.len(),
        log_faster: mixed(&sum[0]),
        log_slower: mixed(&sum[1]),
        effect: (square > 0.0).then(|| cross / square),
        units: servers.iter().map(|server| server.units).sum(),
    }
}

impl CombinedEvidence {
    /// What it says, in a sentence or two: of at least one server, not of each.
    #[must_use]
    pub fn text(&self, needed: f64) -> String {
        let by =
            self.effect.map_or(String::new(), |effect| format!(", goodput {:.2} times over all units", effect.exp()));
        let (side, log) = match self.log_faster >= self.log_slower {
            true => ("faster", self.log_faster),
            false => ("slower", self.log_slower),
        };
        let odds = log.min(690.0).exp();
        let head = match odds >= needed {
            true => format!("On at least one server it is {side}{by}"),
            false => format!("Nothing is shown yet; it leads as {side}{by}"),
        };
        let shared = if self.shared { " Servers share a key: their wealth is averaged." } else { "" };
        format!(
            "{head}: evidence {}, {needed:.0} : 1 is needed, {} units, {}.{shared}",
            if odds >= 1e6 { "over 1,000,000 : 1".to_owned() } else { format!("{odds:.1} : 1") },
            self.units,
            wt_units::counted(self.keys, "key")
        )
    }
}

/// ln of the mean of eˣ.
fn log_mean(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    let (sum, n) = logs.fold((0.0, 0.0), |(sum, n), log| (sum + (log - top).exp(), n + 1.0));
    top + (sum / n).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    fn units(seed: u64, n: usize, p: f64, effect: f64) -> Vec<CoinOutcome> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        let mut coin = ChaCha8Rng::seed_from_u64(seed + 1_000_000);
        (0..n)
            .map(|_| {
                let treated = coin.random::<f64>() < p;
                let residual = normal() + effect * (f64::from(u8::from(treated)) - p);
                CoinOutcome { treated, p, residual, weight: 1.0, part: 1.0 }
            })
            .collect()
    }

    fn after(units: &[CoinOutcome]) -> CoinBets {
        let mut bets = CoinBets::with_interval();
        units.iter().for_each(|unit| bets.push(*unit));
        bets
    }

    proptest! {
        #[test]
        fn over_all_coins_with_their_probabilities_the_evidence_averages_one(
            outcomes in prop::collection::vec((-3.0f64..3.0, 0.05f64..0.95), 1..9), heavy in 0.0f64..50.0,
        ) {
            let mut sums = [0.0; 2];
            for pattern in 0..1u32 << outcomes.len() {
                let (mut bets, mut chance) = (CoinBets::default(), 1.0);
                for (i, (residual, p)) in outcomes.iter().enumerate() {
                    let treated = pattern >> i & 1 == 1;
                    chance *= if treated { *p } else { 1.0 - p };
                    let residual = if i == 2 { residual * heavy } else { *residual };
                    bets.push(CoinOutcome { treated, p: *p, residual, weight: 0.7, part: 0.6 });
                }
                sums[0] += chance * bets.log_higher().exp();
                sums[1] += chance * bets.log_lower().exp();
            }
            prop_assert!((sums[0] - 1.0).abs() < 1e-9 && (sums[1] - 1.0).abs() < 1e-9, "{:?}", sums);
        }

        #[test]
        fn swapping_the_arms_swaps_higher_and_lower(seed in 0u64..1000, p in 0.05f64..0.95) {
            let one = units(seed, 50, p, 0.3);
            let swapped: Vec<_> =
                one.iter().map(|u| CoinOutcome { treated: !u.treated, p: 1.0 - u.p, ..*u }).collect();
            let (a, b) = (after(&one), after(&swapped));
            prop_assert!((a.log_higher() - b.log_lower()).abs() < 1e-9);
            prop_assert!((a.effect().unwrap_or(0.0) + b.effect().unwrap_or(0.0)).abs() < 1e-9);
        }
    }

    #[test]
    fn where_a_stretch_of_effects_speaks_for_neither_side_its_middle_is_the_effect() {
        // The first outcome lies close to 0, and so do the bounds of the next fifty.
        for (seed, p) in [(550, 0.860_348_268_879_168_4), (825, 0.929_369)] {
            let one = units(seed, 50, p, 0.3);
            let swapped: Vec<_> = one.iter().map(|u| CoinOutcome { treated: !u.treated, p: 1.0 - u.p, ..*u }).collect();
            let (a, b) = (after(&one).effect().unwrap(), after(&swapped).effect().unwrap());
            assert!((a + b).abs() < 1e-9, "{a} and {b}, seed {seed}");
        }
    }

    #[test]
    fn evidence_beyond_a_million_is_told_as_such_and_one_key_is_one() {
        let sum = |log_faster| {
            let none = combine(&[]);
            CombinedEvidence { keys: 1, log_faster, units: 7, ..none }.text(20.0)
        };
        assert_eq!(
            sum(100.0),
            "On at least one server it is faster: evidence over 1,000,000 : 1, 20 : 1 is needed, 7 units, 1 key."
        );
        assert!(sum(2.0).contains("evidence 7.4 : 1, 20 : 1 is needed"), "{}", sum(2.0));
    }

    #[test]
    fn small_effects_are_found_where_the_stakes_for_few_rounds_overbet() {
        // 0.1 standard deviations: about 2 (z₄₀ / 0.1)² units.
        let bets = after(&units(1, 8000, 0.5, 0.1));
        assert!(bets.best()[0] > 40f64.ln(), "{}", bets.log_higher());
        let mut coarse = wt_experiment::EProcess::new();
        for unit in units(1, 8000, 0.5, 0.1) {
            coarse.push(if unit.treated { unit.residual } else { -unit.residual });
        }
        assert!(coarse.log_evidence() < bets.log_higher());
    }

    #[test]
    fn intervals_cover_the_effect_and_narrow_whatever_the_shares() {
        let mut covered = 0;
        for seed in 0..60 {
            let p = [0.05, 0.25, 0.5][seed as usize % 3];
            let bets = after(&units(seed, 2000, p, 0.4));
            let (low, high) = bets.interval(40.0);
            assert!(low < high && high - low < if p < 0.1 { 1.2 } else { 0.6 }, "{p}: {low} {high}");
            covered += u32::from(low <= 0.4 && 0.4 <= high);
        }
        assert!(covered >= 57, "{covered}");
        assert_eq!(after(&[]).interval(40.0), (f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn nothing_that_is_no_observation_bets_and_nothing_overflows() {
        let good = CoinOutcome { treated: true, p: 0.5, residual: 1.0, weight: 1.0, part: 1.0 };
        let bad = [f64::NAN, f64::INFINITY].map(|residual| CoinOutcome { residual, ..good });
        let sure = [0.0, 1.0].map(|p| CoinOutcome { p, ..good });
        assert_eq!(after(&[bad, sure].concat()).units(), 0);
        let long = after(&vec![good; 20_000]);
        assert!(long.log_higher().is_finite() && long.log_higher() > 1e3);
        assert!(long.log_lower().is_finite() && long.log_lower() < 0.0);
    }

    fn server(key_id: u64, seed: u64, effect: f64) -> ServerEvidence {
        let bets = after(&units(seed, 800, 0.5, effect));
        let [faster, slower] = bets.log_wealth();
        ServerEvidence { key_id, arm: "B".to_owned(), units: bets.units(), faster, slower, sums: bets.sums() }
    }

    #[test]
    fn servers_with_their_own_keys_find_together_what_none_finds_alone() {
        let servers: Vec<_> = (0..8).map(|i| server(i, 200 + i, 0.15)).collect();
        let alone = servers.iter().map(|s| mixed(&s.faster)).fold(f64::NEG_INFINITY, f64::max);
        let all = combine(&servers);
        assert!(alone < 40f64.ln() && all.log_faster > 40f64.ln(), "{alone} {}", all.log_faster);
        assert!(!all.shared && all.keys == 8 && all.units == 6400);
        assert!((all.effect.unwrap() - 0.15).abs() < 0.1);
        assert!(all.text(40.0).starts_with("On at least one server it is faster, goodput 1."), "{}", all.text(40.0));
        assert!(
            combine(&servers[..1]).text(40.0).starts_with("Nothing is shown yet"),
            "{}",
            combine(&servers[..1]).text(40.0)
        );
    }

    #[test]
    fn a_server_that_is_counted_twice_under_one_key_counts_once() {
        let one = server(7, 3, 0.2);
        let all = combine(&[one.clone(), one.clone()]);
        assert!(all.shared && all.keys == 1);
        assert!((all.log_faster - mixed(&one.faster)).abs() < 1e-12);
        assert!(all.text(40.0).contains("share a key"), "{}", all.text(40.0));
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<ServerEvidence>(&json).unwrap().key_id, 7);
    }
}
