use crate::cli::forms::Forms;
use crate::commands::report;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use serde::Serialize;
use std::time::Duration;
use wt_report::RetypedOptions;
use wt_trial::PathFacts;
use wt_tune::{ScreenPlan, TuneAnswer, TunePlan};
use wt_units::format_minutes;

/// Writes the files that were asked for, prints the answer, and says with the exit code what it is.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(super) fn answer(answer: TuneAnswer, forms: &Forms, json: bool, retyped: &RetypedOptions) -> Outcome {
    match answer {
        TuneAnswer::Report(report) => report::give(*report, forms, json, retyped),
        TuneAnswer::Screen(mut screen) => {
            let next = if json { Vec::new() } else { screen.next(retyped) };
            report::give_screen(&screen, forms, json, &next)
        }
        TuneAnswer::Plan(plan) if json => object(&plan),
        TuneAnswer::Plan(plan) => show(&plan),
        TuneAnswer::ScreenPlan(plan) if json => object(&plan),
        TuneAnswer::ScreenPlan(plan) => show_screen(&plan),
    }
}

fn object(plan: &impl Serialize) -> Outcome {
    let text = serde_json::to_string(plan).map_err(|error| Problem::internal(error.to_string()))?;
    emit!("{text}");
    Ok(Exit::Done)
}

fn show(plan: &TunePlan) -> Outcome {
    show_cost(&plan.path.facts, plan.trial_s, plan.max_trials, plan.expected_s);
    for arm in &plan.arms {
        say!("  {:<40} {}", arm.label, arm.why);
    }
    plan.model_notes.iter().for_each(|line| say!("  {line}"));
    plan.cost_notes.iter().for_each(|line| say!("{line}"));
    Ok(Exit::Done)
}

fn show_screen(plan: &ScreenPlan) -> Outcome {
    show_cost(&plan.path, plan.trial_s, plan.max_trials, plan.expected_s);
    let (rounds, runs) = (plan.rounds, plan.trials_per_round);
    say!("Screen: {} knobs at once, at most {rounds} rounds of {runs} trials:", plan.factors.len());
    for factor in &plan.factors {
        say!("  {:<14} {} or {}", factor.knob, factor.low, factor.high);
    }
    let left = plan.max_trials.saturating_sub(rounds * runs);
    say!("Then, in at most {left} trials, what came out against the current settings ({})", plan.current);
    if let Some(reach) = &plan.reach {
        say!("Warning: {reach}");
    }
    Ok(Exit::Done)
}

/// The path, and what it may cost.
fn show_cost(path: &PathFacts, trial_s: f64, most: usize, expected_s: f64) {
    say!("Path: RTT {:.1} ms, PMTU {}, BDP {} bytes", path.rtt_us as f64 / 1e3, path.pmtu, path.bdp_bytes);
    say!("Each trial {trial_s:.1} s; at most {most} trials, {}", format_minutes(Duration::from_secs_f64(expected_s)));
}
