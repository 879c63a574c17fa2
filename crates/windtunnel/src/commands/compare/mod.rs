//! `windtunnel compare`: experiments of the journal side by side, and whether they can be compared at all.

/// What of an experiment is compared.
mod side;
/// What is said.
mod words;

use crate::commands::journal;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde::Serialize;
use side::Side;
use std::path::PathBuf;
use wt_experiment::means::{GroupComparison, compare_groups};
use wt_journal::Journal as _;

/// Experiments of the journal side by side: do they differ, and can they be compared at all?
///
/// Within an experiment settings are compared by randomised rounds, and that evidence counts. Between experiments nothing was
/// randomised: whatever else changed meanwhile is part of the difference, so that there is an estimate with an interval, and no
/// evidence. What was tried in all of them is told with its evidence from each, and from all together. Ends with code 1 if they
/// can't be compared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel compare 20261121-0815 20261122-0815
  windtunnel compare before after last --json
Experiments are those of windtunnel journal list: their names, or beginnings of them.")]
pub(crate) struct CompareArgs {
    /// The experiments, two or more; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Put them side by side though they can't be compared
    #[arg(long)]
    anyway: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// The journal [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// More are no comparison that anybody reads.
const MOST: usize = 20;

/// What comes of it.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    schema_version: u32,
    kind: &'static str,
    experiments: Vec<Side>,
    /// Whether they can be compared.
    comparable: bool,
    /// Why not.
    because: Vec<String>,
    /// What differs and is part of any difference.
    notes: Vec<String>,
    /// The current settings of each, against those of the first.
    current: Vec<Between>,
    /// Settings that several of them tried, each against the current ones of its experiment.
    settings: Vec<Shared>,
    text: String,
}

/// Two experiments' current settings.
#[derive(Debug, Serialize)]
pub(super) struct Between {
    experiment: String,
    against: String,
    /// The ratio of the typical goodput and its interval; `None` with fewer than two trials each, or without any noise.
    difference: Option<GroupComparison>,
    /// Always none: nothing was randomised between experiments.
    evidence: Option<f64>,
}

/// One setting in several experiments.
#[derive(Debug, Serialize)]
pub(super) struct Shared {
    label: String,
    settings: wt_units::Settings,
    each: Vec<Tried>,
    /// The evidence of all of them that it is faster: e-values of separate experiments multiply.
    evidence: f64,
    /// How many times an experiment of that many settings would need.
    needed: f64,
    /// Whether its gain differs between the first and the last of them: p of the difference of the logs.
    gains_differ_p: Option<f64>,
}

/// One setting in one experiment, against its current settings.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    experiment: String,
    rounds: usize,
    ratio: Option<f64>,
    /// The 95 % interval of the ratio, by the model.
    low: Option<f64>,
    high: Option<f64>,
    /// The evidence at its end.
    evidence: f64,
    #[serde(skip)]
    log: Option<(f64, f64)>,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &CompareArgs) -> Outcome {
    if args.experiments.len() > MOST {
        return Err(Failure::usage(format!("at most {MOST} experiments are compared at once")));
    }
    let journal = journal::open(args.journal.as_deref())?;
    let mut sides: Vec<Side> = Vec::new();
    for key in &args.experiments {
        let stored = journal.load(key).map_err(|error| journal::failure(&error))?;
        if sides.iter().any(|side| side.id == stored.id) {
            return Err(Failure::usage(format!("{} is named twice", stored.id)).hint("name different experiments"));
        }
        sides.push(Side::read(&journal, &stored)?);
    }
    let comparison = compare(sides, args.anyway);
    if args.json {
        let text = serde_json::to_string(&comparison).map_err(|error| Failure::ours(error.to_string()))?;
        say!("{text}");
    } else {
        say!("{}", words::table(&comparison));
    }
    Ok(if comparison.comparable { Exit::Done } else { Exit::No })
}

fn compare(sides: Vec<Side>, anyway: bool) -> Comparison {
    let (mut because, mut notes) = (Vec::new(), Vec::new());
    if let Some((first, others)) = sides.split_first() {
        because.extend(first.unusable());
        for other in others {
            because.extend(other.unusable());
            because.extend(first.obstacles(other));
            notes.extend(first.differences(other));
        }
    }
    notes.extend(sides.iter().filter_map(Side::link_changed));
    because.dedup();
    let comparable = because.is_empty();
    let go_on = comparable || anyway;
    let current = if go_on { currents(&sides) } else { Vec::new() };
    let settings = if go_on { shared(&sides) } else { Vec::new() };
    let mut comparison = Comparison {
        schema_version: 1,
        kind: "compare",
        experiments: sides,
        comparable,
        because,
        notes,
        current,
        settings,
        text: String::new(),
    };
    comparison.text = words::text(&comparison);
    comparison
}

fn currents(sides: &[Side]) -> Vec<Between> {
    let Some((first, others)) = sides.split_first() else { return Vec::new() };
    let with = |other: &Side| Between {
        experiment: other.id.clone(),
        against: first.id.clone(),
        difference: compare_groups(other.rates(0), first.rates(0)),
        evidence: None,
    };
    others.iter().map(with).collect()
}

/// What at least two of them tried, beside the current settings.
fn shared(sides: &[Side]) -> Vec<Shared> {
    let mut all: Vec<Shared> = Vec::new();
    for (place, side) in sides.iter().enumerate() {
        for arm in side.arms.iter().skip(1) {
            if all.iter().any(|known| known.settings == arm.settings) {
                continue;
            }
            let each: Vec<Tried> = sides.iter().skip(place).filter_map(|other| other.tried(&arm.settings)).collect();
            if each.len() < 2 {
                continue;
            }
            let evidence = each.iter().map(|tried| tried.evidence).product();
            let needed = sides.iter().map(Side::needed).fold(1.0, f64::max);
            let gains_differ_p = each.first().zip(each.last()).and_then(|(first, last)| differ(first.log?, last.log?));
            all.push(Shared {
                label: arm.label.clone(),
                settings: arm.settings.clone(),
                each,
                evidence,
                needed,
                gains_differ_p,
            });
        }
    }
    all
}

/// The two-sided p value that two estimates with standard errors are of the same.
fn differ(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let mean =
        |(log, error): (f64, f64)| wt_experiment::means::SummaryMean { mean: log.exp(), sd_of_mean: log.exp() * error };
    wt_experiment::means::compare_means(mean(a), mean(b)).map(|comparison| comparison.p)
}
