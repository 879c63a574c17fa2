//! What would be run, and what it would cost.

use super::drive::Plan;
use super::expected::Expected;
use super::{Prepared, Session, design, live, minutes};
use crate::edge::{Exit, Outcome, say};
use serde_json::json;
use std::time::Duration;
use wt_trial::{PathFacts, Tunnel};

impl<T: Tunnel> Session<'_, T> {
    /// What would be run, as one object.
    pub(super) fn show_json(&self, prepared: &Prepared, plan: &Plan) -> Exit {
        let most = prepared.config.max_trials.unwrap_or(0);
        let per_trial = plan.per_trial(Duration::from_micros(prepared.path.rtt_us));
        let arm = |arm: &design::Arm| json!({"label": arm.label, "settings": arm.settings, "why": arm.why});
        let arms: Vec<_> = prepared.design.arms.iter().map(arm).collect();
        let mut path = json!(prepared.path);
        path["loss"] = json!(self.live.as_ref().and_then(live::Live::loss));
        say!(
            "{}",
            json!({
                "schema_version": 1, "path": path, "current": prepared.current, "arms": arms, "max_trials": most,
                "model": prepared.expected.as_ref().map(Expected::to_json),
                "trial_s": plan.length().as_secs_f64(),
                "expected_s": per_trial.saturating_mul(u32::try_from(most).unwrap_or(u32::MAX)).as_secs_f64(),
                "expected_bytes": self.bytes_at_most(plan, most),
            })
        );
        Exit::Done
    }
}

/// What would be run.
pub(super) fn show(prepared: &Prepared, plan: &Plan) -> Outcome {
    let most = prepared.config.max_trials.unwrap_or(0);
    show_cost(&prepared.path, plan, most);
    for arm in &prepared.design.arms {
        say!("  {:<40} {}", arm.label, arm.why);
    }
    prepared.expected.iter().flat_map(Expected::lines).for_each(|line| say!("  {line}"));
    Ok(Exit::Done)
}

/// The path, and what it may cost.
pub(super) fn show_cost(path: &PathFacts, plan: &Plan, most: usize) {
    let per_trial = plan.per_trial(Duration::from_micros(path.rtt_us));
    say!("Path: RTT {:.1} ms, PMTU {}, BDP {} bytes", path.rtt_us as f64 / 1e3, path.pmtu, path.bdp_bytes);
    say!(
        "Each trial {:.1} s; at most {most} trials, {}",
        plan.length().as_secs_f64(),
        minutes(per_trial.saturating_mul(u32::try_from(most).unwrap_or(u32::MAX)))
    );
}
