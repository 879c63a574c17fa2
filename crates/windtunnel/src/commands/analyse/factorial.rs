//! The answer on two factors of two levels.

use super::charts;
use super::design::Design;
use super::render::{Answer, PLOT, object, optional, short, with_notes};
use serde_json::{Value, json};
use std::fmt::Write as _;
use wt_experiment::classic::{Better, Effect, Square, TwoByTwoAnalysis, p_value};

/// The probability below which an effect is shown.
const ALPHA: f64 = 0.05;

/// Two factors with their levels.
type Factors = [(String, [String; 2]); 2];

/// Two factors of two levels, each combination once.
pub(super) fn single(design: &Design, factors: &Factors, cells: &Square) -> Answer {
    let t = wt_experiment::factorial::two_by_two(*cells);
    let [(first, first_levels), (second, second_levels)] = factors;
    let effects = [
        (first.clone(), t.first, t.first_ratio),
        (second.clone(), t.second, t.second_ratio),
        (format!("{first} × {second}"), t.interaction, t.interaction_ratio),
    ];
    let value = &design.value;
    let verdict = format!(
        "Nothing can be claimed: each of the four combinations of {first} and {second} was measured once, so there is no \
         measure of the noise. Measure all four in each of at least 8 rounds, in random order; then both main effects and \
         the interaction can be tested."
    );
    let mut text = format!("{verdict}\n\nWhat the four numbers are, for what they are worth ({value}):");
    let describe = |levels: &[String; 2]| format!("{} to {}", levels[0], levels[1]);
    let changes = [describe(first_levels), describe(second_levels), "interaction".to_owned()];
    for ((name, difference, ratio), change) in effects.iter().zip(&changes) {
        let _ = write!(text, "\n  {name}, {change}: {difference:+.4}");
        if let Some(ratio) = ratio {
            let _ = write!(text, " (×{ratio:.3})");
        }
    }
    let chart = charts::interaction(factors, cells, value);
    let _ = write!(text, "\n\n{}", chart.to_terminal(PLOT.0, PLOT.1, false).trim_end());
    let rows: Vec<Value> =
        effects.iter().map(|(name, d, r)| json!({"effect": name, "difference": d, "ratio": r})).collect();
    let description = json!({"kind": "two-by-two", "blocks": [],
        "factors": [{"factor": first, "levels": first_levels}, {"factor": second, "levels": second_levels}]});
    let found = json!({"effects": rows, "cells": cells, "verdict": verdict, "difference_shown": false});
    Answer {
        text: with_notes(text, design),
        json: object(design, description, found),
        charts: vec![("interaction", chart)],
        difference_shown: false,
    }
}

/// Each combination once in every block.
pub(super) fn in_blocks(
    design: &Design,
    factors: &Factors,
    block: &str,
    blocks: &[(String, Square)],
    a: &TwoByTwoAnalysis,
) -> Answer {
    let means = geometric_means(blocks);
    let names = names(factors);
    let verdict = verdict(design, factors, &means, blocks.len(), a);
    let shown = a.effects.iter().any(is_shown);
    let mut text = format!("{verdict}\n\n{}\n", table(factors, &means));
    for (name, effect) in names.iter().zip(&a.effects) {
        let interval = format!("×{:.3} ({:.3} to {:.3})", effect.ratio, effect.low, effect.high);
        let evidence = effect.e.iter().chain(&effect.e_below).copied().fold(1.0, f64::max);
        let flips = effect.sign_flip.map(|flip| flip.p);
        let _ = writeln!(
            text,
            "{name}\n    {interval}, p = {} (Holm {}, signs {}), evidence {evidence:.1} : 1",
            optional(effect.p),
            optional(effect.p_holm),
            optional(flips)
        );
    }
    let _ = write!(
        text,
        "Intervals hold together with 95%. Noise of one measurement {:.1}% (CV). Evidence holds however often one looks; \
         {:.0} : 1 is needed.",
        a.mse.exp_m1().sqrt() * 100.0,
        a.evidence_needed
    );
    let squares = charts::interaction(factors, &means, &design.value);
    let effects = charts::effects(&names, a);
    let _ = write!(text, "\n\n{}", squares.to_terminal(PLOT.0, PLOT.1, false).trim_end());
    let [(first, first_levels), (second, second_levels)] = factors;
    let names_of_blocks: Vec<&String> = blocks.iter().map(|(name, _)| name).collect();
    let description = json!({"kind": "two-by-two", "block": block, "blocks": names_of_blocks,
        "factors": [{"factor": first, "levels": first_levels}, {"factor": second, "levels": second_levels}]});
    let rows: Vec<Value> = names
        .iter()
        .zip(&a.effects)
        .map(|(name, effect)| {
            let mut row = serde_json::to_value(effect).unwrap_or_default();
            row["effect"] = json!(name);
            row
        })
        .collect();
    let found = json!({"effects": rows, "cells": means, "mse": a.mse, "df": a.df,
        "evidence_needed": a.evidence_needed, "verdict": verdict, "difference_shown": shown});
    Answer {
        text: with_notes(text, design),
        json: object(design, description, found),
        charts: vec![("interaction", squares), ("effects", effects)],
        difference_shown: shown,
    }
}

fn is_shown(effect: &Effect) -> bool {
    effect.p_holm.is_some_and(|p| p < ALPHA)
}

fn names([(first, _), (second, _)]: &Factors) -> [String; 3] {
    [first.clone(), second.clone(), format!("{first} × {second}")]
}

fn geometric_means(blocks: &[(String, Square)]) -> Square {
    let mean = |i: usize, j: usize| {
        (blocks.iter().map(|(_, square)| square[i][j].ln()).sum::<f64>() / blocks.len() as f64).exp()
    };
    [[mean(0, 0), mean(0, 1)], [mean(1, 0), mean(1, 1)]]
}

/// The four geometric means.
fn table(factors: &Factors, means: &Square) -> String {
    let [(first, first_levels), (second, second_levels)] = factors;
    let width = first_levels.iter().map(|l| l.chars().count()).max().unwrap_or(0) + first.chars().count() + 1;
    let mut text = format!("{:<width$}", "");
    for level in second_levels {
        let _ = write!(text, " {:>16}", format!("{second} {level}"));
    }
    for (level, row) in first_levels.iter().zip(means) {
        let _ = write!(text, "\n{:<width$} {:>16} {:>16}", format!("{first} {level}"), short(row[0]), short(row[1]));
    }
    text + "\n"
}

fn verdict(design: &Design, factors: &Factors, means: &Square, blocks: usize, a: &TwoByTwoAnalysis) -> String {
    let lower = design.better == Better::Lower;
    let [first, second, both] = &a.effects;
    let main = |(name, levels): &(String, [String; 2]), effect: &Effect| {
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
    for (factor, effect) in factors.iter().zip([first, second]) {
        sentences.push(if is_shown(effect) {
            main(factor, effect)
        } else {
            let most = effect.high.max(1.0 / effect.low);
            let p = effect.p_holm.map_or_else(String::new, |p| format!(" (p {})", p_value(p)));
            format!(
                "No effect of {} is shown{p}; one above {:.0}% is excluded.",
                factor.0,
                ((most - 1.0) * 100.0).ceil()
            )
        });
    }
    let [(first_name, first_levels), (second_name, second_levels)] = factors;
    if is_shown(both) {
        let best = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().reduce(|x, y| {
            let more = means[y.0][y.1] > means[x.0][x.1];
            if more != lower { y } else { x }
        });
        let (i, j) = best.unwrap_or((0, 0));
        sentences.push(format!(
            "They interact: what {first_name} does depends on {second_name}, so look at combinations; {first_name} {} \
             with {second_name} {} has the best mean of the four.",
            first_levels[i], second_levels[j]
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
