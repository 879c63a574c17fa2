//! Two factors of two levels each.

use super::answer::{FactorLevels, OneSquareAnswer, SquareChange, SquareDesign, SquareEffect, SquaresAnswer};
use super::{Outcome, SCHEMA_VERSION};
use crate::classic::{Better, Effect, Square, TwoByTwoAnalysis, p_value};

/// The probability below which an effect is shown.
const ALPHA: f64 = 0.05;

/// Two factors with their levels.
type Factors = [(String, [String; 2]); 2];

/// Two factors of two levels, each combination once.
pub(super) fn single(outcome: Outcome, factors: Factors, cells: &Square) -> OneSquareAnswer {
    let t = crate::factorial::two_by_two(*cells);
    let design = SquareDesign::new(&outcome, factors, None);
    let [first, second] = &design.factors;
    let verdict = format!(
        "Nothing can be claimed: each of the four combinations of {} and {} was measured once, so there is no \
         measure of the noise. Measure all four in each of at least 8 rounds, in random order; then both main effects and \
         the interaction can be tested.",
        first.factor, second.factor
    );
    let [on_first, on_second, together] = design.effect_names();
    OneSquareAnswer {
        schema_version: SCHEMA_VERSION,
        design,
        notes: outcome.notes,
        effects: [
            SquareChange { effect: on_first, difference: t.first, ratio: t.first_ratio },
            SquareChange { effect: on_second, difference: t.second, ratio: t.second_ratio },
            SquareChange { effect: together, difference: t.interaction, ratio: t.interaction_ratio },
        ],
        cells: *cells,
        verdict,
        difference_shown: false,
    }
}

/// Each combination once in every block.
pub(super) fn in_blocks(
    outcome: Outcome,
    factors: Factors,
    block: String,
    blocks: &[(String, Square)],
    a: TwoByTwoAnalysis,
) -> SquaresAnswer {
    let mut design = SquareDesign::new(&outcome, factors, Some(block));
    design.blocks = blocks.iter().map(|(name, _)| name.clone()).collect();
    let cells = geometric_means(blocks);
    let verdict = verdict(&design, &cells, blocks.len(), &a);
    let difference_shown = a.effects.iter().any(is_shown);
    let [on_first, on_second, together] = design.effect_names();
    let TwoByTwoAnalysis { effects: [first, second, both], mse, df, evidence_needed } = a;
    SquaresAnswer {
        schema_version: SCHEMA_VERSION,
        design,
        notes: outcome.notes,
        effects: [
            SquareEffect { effect: on_first, estimate: first },
            SquareEffect { effect: on_second, estimate: second },
            SquareEffect { effect: together, estimate: both },
        ],
        cells,
        mse,
        df,
        evidence_needed,
        verdict,
        difference_shown,
    }
}

fn is_shown(effect: &Effect) -> bool {
    effect.p_holm.is_some_and(|p| p < ALPHA)
}

fn geometric_means(blocks: &[(String, Square)]) -> Square {
    let mean = |i: usize, j: usize| {
        (blocks.iter().map(|(_, square)| square[i][j].ln()).sum::<f64>() / blocks.len() as f64).exp()
    };
    [[mean(0, 0), mean(0, 1)], [mean(1, 0), mean(1, 1)]]
}

fn verdict(design: &SquareDesign, means: &Square, blocks: usize, a: &TwoByTwoAnalysis) -> String {
    let lower = design.better == Better::Lower;
    let [first, second, both] = &a.effects;
    let main = |FactorLevels { factor: name, levels }: &FactorLevels, effect: &Effect| {
        let second_better = (effect.ratio > 1.0) != lower;
        let (good, bad) = if second_better { (&levels[1], &levels[0]) } else { (&levels[0], &levels[1]) };
        let swap = effect.ratio < 1.0;
        let (ratio, low, high) = if swap {
            (1.0 / effect.ratio, 1.0 / effect.high, 1.0 / effect.low)
        } else {
            (effect.ratio, effect.low, effect.high)
        };
        let gain = |r: f64| format!("{:.1}%", (r - 1.0) * 100.0);
        format!("{name} {good} is shown to be better than {bad} by {} ({} to {}).", gain(ratio), gain(low), gain(high))
    };
    let mut sentences = Vec::new();
    for (factor, effect) in design.factors.iter().zip([first, second]) {
        sentences.push(if is_shown(effect) {
            main(factor, effect)
        } else {
            let most = effect.high.max(1.0 / effect.low);
            let p = effect.p_holm.map_or_else(String::new, |p| format!(" (p {})", p_value(p)));
            format!(
                "No effect of {} is shown{p}; one above {:.0}% is excluded.",
                factor.factor,
                ((most - 1.0) * 100.0).ceil()
            )
        });
    }
    let [first, second] = &design.factors;
    if is_shown(both) {
        let best = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().reduce(|x, y| {
            let more = means[y.0][y.1] > means[x.0][x.1];
            if more != lower { y } else { x }
        });
        let (i, j) = best.unwrap_or((0, 0));
        sentences.push(format!(
            "They interact: what {0} does depends on {1}, so look at combinations; {0} {2} \
             with {1} {3} has the best mean of the four.",
            first.factor, second.factor, first.levels[i], second.levels[j]
        ));
    } else {
        sentences.push("No interaction is shown.".to_owned());
    }
    if !a.effects.iter().any(is_shown) {
        sentences.push("Keep what you have.".to_owned());
    }
    sentences.push(format!(
        "{blocks} blocks; this holds if their number was fixed before the first, and the order within each was random."
    ));
    sentences.join(" ")
}
