//! One sentence or a few on a finished table.

use super::analysis::{Better, TableAnalysis, figures};
use super::multiple::PairComparison;
use super::table::Table;
use rand::Rng;

/// The level of the tests.
const ALPHA: f64 = 0.05;
/// With fewer blocks nothing is claimed: so few relabellings hardly say what chance does; of two levels five blocks have 16,
/// and the most extreme two of those are more than 5 %.
fn fewest_blocks(levels: usize) -> usize {
    if levels == 2 { 6 } else { 5 }
}

/// Analyses a complete table of positive outcomes; `None` if an outcome isn't positive. `factor` and `block` name what the
/// rows and columns are.
pub fn analyse(table: &Table, better: Better, factor: &str, block: &str, rng: &mut impl Rng) -> Option<TableAnalysis> {
    let mut analysis = figures(table, better, rng)?;
    let (_, blocks) = table.shape();
    pronounce(&mut analysis, factor, block, blocks);
    Some(analysis)
}

/// Fills in the verdict, and whether a difference is shown.
fn pronounce(a: &mut TableAnalysis, factor: &str, block: &str, blocks: usize) {
    let words = Words { a, factor, block, blocks };
    let (shown, verdict) = words.verdict();
    a.difference_shown = shown;
    a.verdict = verdict;
}

struct Words<'a> {
    a: &'a TableAnalysis,
    factor: &'a str,
    block: &'a str,
    blocks: usize,
}

impl Words<'_> {
    fn verdict(&self) -> (bool, String) {
        let k = self.a.describe.len();
        if self.blocks < 2 {
            let text = format!(
                "Nothing can be concluded about {}: each of the {k} levels was measured once, so there is no measure of \
                 the noise. Repeat the whole set, in random order, at least {} times.",
                self.factor,
                fewest_blocks(k)
            );
            return (false, text);
        }
        let Some(p) = self.a.permutation.log.map(|t| t.p) else {
            return (false, format!("Nothing can be concluded about {}.", self.factor));
        };
        let clear: Vec<&PairComparison> = self.a.tukey.iter().filter(|pair| pair.p < ALPHA).collect();
        // One test decides whether anything is claimed; what differs from what is asked only then.
        let shown = p < ALPHA && self.blocks >= fewest_blocks(k);
        let mut sentences = match clear.as_slice() {
            _ if !shown => vec![self.none(p)],
            [] => self.better_of_two(p).unwrap_or_else(|| vec![self.differ(p)]),
            pairs => self.faster(pairs),
        };
        if shown {
            sentences.extend(self.not_the_best());
        } else {
            sentences.extend(self.too_few());
            sentences.extend(self.needed());
            sentences.push("Keep what you have.".to_owned());
        }
        sentences.extend(self.blocks_matter());
        if shown {
            sentences.push(format!(
                "This holds if the number of {} was fixed before the first, and the order within each was random.",
                self.blocks_word()
            ));
        }
        (shown, sentences.join(" "))
    }

    fn blocks_word(&self) -> String {
        match self.block {
            "series" => "series".to_owned(),
            word => format!("blocks ({word})"),
        }
    }

    fn none(&self, p: f64) -> String {
        let levels = self.a.describe.len();
        format!("No difference shown between the {levels} levels of {} (permutation p {}).", self.factor, p_value(p))
    }

    fn differ(&self, p: f64) -> String {
        format!(
            "The levels of {} differ (permutation p {}), but which from which isn't shown.",
            self.factor,
            p_value(p)
        )
    }

    /// Of two levels the better one, where relabelling shows a difference and no interval does: there is no noise to compute one
    /// from, or so much in one block that it holds a ratio of 1. `None` of more levels. With two, to relabel is to flip the signs
    /// of their differences, whose mean has the direction that was tested.
    fn better_of_two(&self, p: f64) -> Option<Vec<String>> {
        let [a, b] = self.a.describe.as_slice() else { return None };
        let lower = self.a.better == Better::Lower;
        let a_better = (a.geometric_mean > b.geometric_mean) != lower;
        let (good, bad) = if a_better { (a, b) } else { (b, a) };
        let ratio = good.geometric_mean / bad.geometric_mean;
        Some(vec![
            format!(
                "Use {} {}: it is shown to be better than {} (permutation p {}).",
                self.factor,
                good.level,
                bad.level,
                p_value(p)
            ),
            format!(
                "In the geometric mean that is {}; how much it is at least isn't shown.",
                percent(ratio.max(1.0 / ratio) - 1.0)
            ),
        ])
    }

    /// The best of the levels that are shown to be better than another, and all that it is better than.
    fn faster(&self, pairs: &[&PairComparison]) -> Vec<String> {
        let lower = self.a.better == Better::Lower;
        // Each pair as (better, worse, gain, least, most); where less is better, the ratio the other way round.
        let oriented = |pair: &&PairComparison| {
            let a_better = (pair.ratio > 1.0) != lower;
            let (good, bad) = if a_better { (&pair.a, &pair.b) } else { (&pair.b, &pair.a) };
            let large = pair.ratio > 1.0;
            let (ratio, low, high) = if large {
                (pair.ratio, pair.low, pair.high)
            } else {
                (1.0 / pair.ratio, 1.0 / pair.high, 1.0 / pair.low)
            };
            (good.clone(), bad.clone(), ratio, low, high)
        };
        let wins: Vec<_> = pairs.iter().map(oriented).collect();
        let value = |level: &str| {
            let mean = self.a.describe.iter().find(|d| d.level == level).map_or(f64::NAN, |d| d.geometric_mean);
            if lower { -mean } else { mean }
        };
        let Some(best) = wins.iter().max_by(|a, b| value(&a.0).total_cmp(&value(&b.0))).map(|w| w.0.clone()) else {
            return Vec::new();
        };
        let beaten: Vec<String> = wins
            .iter()
            .filter(|win| win.0 == best)
            .map(|(_, bad, ratio, low, high)| {
                format!("{bad} by {} ({} to {})", percent(ratio - 1.0), percent(low - 1.0), percent(high - 1.0))
            })
            .collect();
        let factor = self.factor;
        vec![format!(
            "Use {factor} {best}: it is shown to be better than {} (95%, all pairs together).",
            beaten.join(", ")
        )]
    }

    fn too_few(&self) -> Option<String> {
        let (blocks, fewest, word) = (self.blocks, fewest_blocks(self.a.describe.len()), self.blocks_word());
        (blocks < fewest).then(|| format!("Nothing is claimed from {blocks} {word}: {fewest} at least are needed."))
    }

    /// Levels that are shown not to be the best, all of them together, where nothing more is shown of them.
    fn not_the_best(&self) -> Option<String> {
        let better = |pair: &&PairComparison| pair.p < ALPHA;
        let known: Vec<&String> = self.a.tukey.iter().filter(better).flat_map(|pair| [&pair.a, &pair.b]).collect();
        let levels = self.a.mcb.len() as f64;
        let rows = self.a.mcb.iter().filter(|row| row.p * levels < ALPHA && !known.contains(&&row.level));
        let names: Vec<String> = rows.map(|row| format!("{} (p {})", row.level, p_value(row.p))).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty())
            .then(|| format!("{} {verb} shown not to be the best of these, all levels together.", names.join(", ")))
    }

    fn needed(&self) -> Option<String> {
        let mde = self.a.mde?;
        let fewest = fewest_blocks(self.a.describe.len());
        let blocks = |gain: &str| match self.a.blocks_needed.get(gain).copied().flatten() {
            Some(needed) => needed.max(fewest).to_string(),
            None => "millions".to_owned(),
        };
        // Nothing would have shown, however large: fewer say nothing.
        if self.blocks < fewest {
            return Some(format!("+20% takes {} {}, +5% takes {}.", blocks("20"), self.blocks_word(), blocks("5")));
        }
        let seen = match mde.ratio_percent.ceil() {
            most if most <= 1000.0 => format!("A true +{most:.0}% would have shown (80% chance)"),
            _ => "Even ten times as much need not have shown".to_owned(),
        };
        Some(format!("{seen}; +20% takes {} {}, +5% takes {}.", blocks("20"), self.blocks_word(), blocks("5")))
    }

    fn blocks_matter(&self) -> Option<String> {
        let p = self.a.anova.blocked_log.and_then(|a| a.all.blocks.p).filter(|p| *p < ALPHA)?;
        Some(format!(
            "The {} differ among themselves (p {}): compare only within each.",
            self.blocks_word(),
            p_value(p)
        ))
    }
}

/// What p is, to two digits, to stand behind "p ": `= 0.029`, `< 0.0001`.
#[must_use]
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "< 0.0001".to_owned(),
        p if p < 0.1 => format!("= {p:.*}", usize::try_from(1 - p.log10().floor() as i32).unwrap_or(2)),
        p => format!("= {p:.2}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}
