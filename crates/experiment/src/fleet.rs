//! Many sites with one question: does it help somewhere, everywhere, at which of them, and how much on a new one?
//!
//! Each site brings an e-value, the evidence of its own randomised rounds. Sites share an hour, a link, a server, so their noise
//! is common; what makes their e-values multiply is that each draws its order of rounds from a seed of its own. Where two drew from the
//! same seed, or one goes on with another's trials, the mean is taken instead, which holds whatever depends on whatever.
//!
//! What this leaves out: why sites differ. Where a setting's effect depends on the path, "everywhere" stays below its threshold
//! and the interval for a new site is wide.
//!
//! # Source
//! Vovk and Wang, "E-values: calibration, combination and applications", Annals of Statistics 49 (2021): products of independent
//! e-values and means of any are e-values. Wang and Ramdas, "False discovery rate control with e-values", JRSS B 84 (2022): e-BH.

use crate::meta::{Effect, Summary, summarise};
use serde::Serialize;
use std::collections::BTreeSet;

/// What one site found out about a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteFinding {
    /// The evidence at its end that the setting helps there; 1 is none.
    pub evidence: f64,
    /// The log of the ratio with its standard error, where there is one.
    pub effect: Option<Effect>,
}

/// How the evidence of several experiments becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combination {
    /// They drew their orders independently of each other: the product.
    Product,
    /// They share trials or what the order was drawn from: the mean, whatever depends on whatever.
    Mean,
}

impl Combination {
    /// What is allowed to experiments whose sessions, each with the seed of its order, are these: an experiment that goes on with
    /// another one has that one's session among its own.
    pub fn of<'a>(experiments: impl IntoIterator<Item = &'a [(String, u64)]>) -> Self {
        let (mut names, mut seeds) = (BTreeSet::new(), BTreeSet::new());
        let mut sessions = experiments.into_iter().flatten();
        if sessions.all(|(name, seed)| names.insert(name) && seeds.insert(seed)) { Self::Product } else { Self::Mean }
    }

    /// The word of JSON: `product`, `mean`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Mean => "mean",
        }
    }

    /// The evidence of all together; 1 of none.
    #[must_use]
    pub fn evidence(self, each: &[f64]) -> f64 {
        if each.is_empty() {
            return 1.0;
        }
        match self {
            Self::Product => each.iter().map(|e| e.ln()).sum::<f64>().exp(),
            Self::Mean => each.iter().sum::<f64>() / each.len() as f64,
        }
    }
}

/// What all sites together say about one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFinding {
    /// Evidence that it helps at one site at least.
    pub somewhere: f64,
    /// How that was combined.
    pub combined: Combination,
    /// Evidence that it helps at each of them: the least.
    pub everywhere: f64,
    /// At which it is shown to help, by place; of these a share of `alpha` is wrong on average.
    pub at: Vec<usize>,
    /// How much, and what to expect of a site that wasn't measured; `None` below three sites.
    pub new_site: Option<Summary>,
    /// The evidence that a claim takes: 1 / `alpha`.
    pub needed: f64,
}

impl FleetFinding {
    /// Puts findings together; `alpha` is the risk of each kind of claim.
    #[must_use]
    pub fn of(findings: &[SiteFinding], combined: Combination, alpha: f64) -> Self {
        let evidence: Vec<f64> = findings.iter().map(|one| one.evidence).collect();
        let effects: Option<Vec<Effect>> = findings.iter().map(|one| one.effect).collect();
        Self {
            somewhere: combined.evidence(&evidence),
            combined,
            everywhere: everywhere(&evidence),
            at: at_which(&evidence, alpha),
            new_site: effects.and_then(|effects| summarise(&effects)),
            needed: 1.0 / alpha,
        }
    }

    /// Whether it is shown to help at one site at least.
    #[must_use]
    pub fn is_shown_somewhere(&self) -> bool {
        self.somewhere >= self.needed
    }

    /// Whether it is shown to help at each of them.
    #[must_use]
    pub fn is_shown_everywhere(&self) -> bool {
        self.everywhere >= self.needed
    }

    /// Whether a site that wasn't measured is expected to gain: the lower end of the 95 % interval for it is above none. Where half
    /// of the spread between ten sites is noise, that end is missed by 6 % of new sites instead of 2.5 % (measured, tests/fleets.rs).
    #[must_use]
    pub fn is_gain_expected(&self) -> bool {
        self.new_site.as_ref().is_some_and(|summary| summary.prediction_low > 0.0)
    }
}

/// The evidence that every site gains: the least, since the one without a gain has an e-value too; 1 of none.
#[must_use]
pub fn everywhere(each: &[f64]) -> f64 {
    each.iter().copied().reduce(f64::min).unwrap_or(1.0)
}

/// The sites at which a gain is shown, by place: the k with the most evidence, for the largest k whose k-th has N / (αk) (e-BH). The
/// share of wrong ones among them is at most α on average, whatever depends on whatever.
#[must_use]
pub fn at_which(each: &[f64], alpha: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..each.len()).filter(|place| !each[*place].is_nan()).collect();
    order.sort_by(|a, b| each[*b].total_cmp(&each[*a]));
    let total = each.len() as f64;
    let enough = |(k, place): (usize, &usize)| each[*place] >= total / (alpha * (k + 1) as f64);
    let shown = order.iter().enumerate().rev().find(|(k, place)| enough((*k, place))).map_or(0, |(k, _)| k + 1);
    order.truncate(shown);
    order.sort_unstable();
    order
}

/// The seed from which a site draws the order of its rounds: its own, and the same whenever it is asked for.
///
/// FNV-1a of both names, parted by their lengths, stirred as SplitMix64 does: names that differ in one letter give seeds that have
/// nothing in common.
#[must_use]
pub fn order_seed_of(experiment: &str, site: &str) -> u64 {
    let parts = [experiment.len().to_le_bytes().as_slice(), experiment.as_bytes(), site.as_bytes()].concat();
    let hash = parts
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3));
    let stirred = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let stirred = (stirred ^ (stirred >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    stirred ^ (stirred >> 31)
}
