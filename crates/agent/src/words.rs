//! What a fleet's owner is told, in words.

use crate::owner::{FleetAddAnswer, FleetStatusAnswer};
use std::fmt::Write as _;

impl FleetAddAnswer {
    /// What is left to do for a host that was taken in.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { host, is_new, hba, certificate, policy, .. } = self;
        let indented = |line: &str| format!("   {line}\n");
        let certificate: String = certificate.iter().map(|line| indented(line)).collect();
        let policy: String = policy.lines().map(indented).collect();
        format!(
            "{host} is {} the fleet. What is left to do:\n\n\
             1. In the server's pg_hba.conf, once, above other lines for this database; then reload it:\n   {hba}\n\n\
             2. Where your authority's key is (or by whatever else makes certificates; the name counts):\n{certificate}\n\
             3. On {host}, in /etc/windtunnel: ca.crt, {host}.crt as agent.crt, and what only root may read,\n   \
             {host}.key as secret/agent.key, and in agent.toml:\n{policy}\n\
             4. On {host}: sudo systemctl enable --now windtunnel-agent",
            if *is_new { "in" } else { "already in" }
        )
    }
}

impl FleetStatusAnswer {
    /// Tables of agents, what they measure, changes on their way and turns.
    #[must_use]
    pub fn text(&self) -> String {
        let state = &self.state;
        if state.agents.is_empty() {
            return "Nobody is in the fleet yet: windtunnel fleet add HOST URL".to_owned();
        }
        let mut lines = vec![format!("{:<20} {:>9} {:>10} {:>7}  version", "agent", "heard of", "clock", "to push")];
        for agent in &state.agents {
            let seen = agent.seen_s.map_or("never".to_owned(), |seconds| format!("{} ago", span(seconds)));
            // No sign before what is none to two digits.
            let skew = agent.skew_s.map(|skew| if skew.abs() < 0.005 { 0.0 } else { skew });
            let skew = skew.map_or(String::new(), |skew| format!("{skew:+.2} s"));
            let version = on_one_line(&agent.version);
            lines.push(format!("{:<20} {seen:>9} {skew:>10} {:>7}  {version}", agent.agent, agent.outbox));
        }
        if !state.jobs.is_empty() {
            lines.push(format!("\n{:<12} {:<14} {:<8} {:>8} {:>4}  target", "mesh", "agent", "state", "due in", "run"));
        }
        for job in &state.jobs {
            let due =
                job.due_s.map_or(String::new(), |seconds| if seconds > 0.0 { span(seconds) } else { "now".to_owned() });
            let target = on_one_line(&job.target);
            lines
                .push(format!("{:<12} {:<14} {:<8} {due:>8} {:>4}  {target}", job.mesh, job.agent, job.state, job.run));
            let more = Some(&job.reason).filter(|reason| !reason.is_empty()).into_iter().chain(&job.experiment);
            lines.extend(more.map(|more| format!("    {}", on_one_line(more))));
        }
        for change in &state.rollouts {
            let because =
                if change.reason.is_empty() { String::new() } else { format!(": {}", on_one_line(&change.reason)) };
            let mut text = format!("\nchange {}: {}{because}", change.name, change.state);
            for host in &change.hosts {
                let reason = on_one_line(&host.reason);
                let line = format!("    wave {:<3} {:<20} {:<10} {reason}", host.wave, host.agent, host.phase.name());
                // Writing to a text can't fail.
                let _ = write!(text, "\n{}", line.trim_end());
            }
            lines.push(text);
        }
        if !state.turns.is_empty() {
            lines.push(format!("\n{:<14} {:<5} {:>6}  turn on", "agent", "", "since"));
        }
        for turn in &state.turns {
            let words: Vec<&str> = turn.alone.iter().chain(&turn.shared).map(String::as_str).collect();
            let held = if turn.granted { "has" } else { "waits" };
            let words = on_one_line(&words.join(", "));
            lines.push(format!("{:<14} {held:<5} {:>6}  {words}", turn.agent, span(turn.since_s)));
        }
        lines.join("\n")
    }
}

/// What an agent says, which may be anything: it begins no line of its own that looks like one of ours.
pub(crate) fn on_one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time in one figure.
fn span(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1.0, "s"));
    format!("{:.0} {unit}", seconds.max(0.0) / size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::FleetApplyAnswer;
    use std::time::Duration;
    use wt_fleet::{AgentLine, FleetState, JobLine, Rollout, RolloutHost, RolloutOrder, RolloutPhase, TurnLine};

    #[test]
    fn what_an_agent_says_begins_no_line_that_looks_like_one_of_ours() {
        let forged = || "no\n\u{1b}[2J\r\nchange early: done\u{2028}change early: done".to_owned();
        let name = || "b".to_owned();
        let agent = AgentLine { agent: name(), seen_s: None, version: forged(), skew_s: Some(-0.001), outbox: 0 };
        let job = JobLine { target: forged(), reason: forged(), experiment: Some(forged()), ..JobLine::default() };
        let host = RolloutHost {
            agent: name(),
            wave: 1,
            ordered: RolloutOrder::Apply,
            asked: Duration::ZERO,
            phase: RolloutPhase::Refused,
            since: Duration::ZERO,
            reason: forged(),
        };
        let change = Rollout {
            name: "late".to_owned(),
            state: "running".to_owned(),
            reason: forged(),
            number: 1,
            spec: String::new(),
            hosts: vec![host],
        };
        let turn = TurnLine { agent: name(), granted: true, alone: vec![forged()], shared: Vec::new(), since_s: 0.0 };
        let state =
            FleetState { agents: vec![agent], jobs: vec![job], turns: vec![turn], rollouts: vec![change.clone()] };
        let text = FleetStatusAnswer { schema_version: 1, server: None, state }.text();
        assert!(text.contains(" +0.00 s ") && !text.contains("-0.00"), "a clock that isn't off has no minus: {text}");
        let ended = FleetApplyAnswer { schema_version: 1, rollout: change, silent: Vec::new() }.text();
        for text in [text, ended] {
            assert!(text.contains("change early: done"), "{text}");
            assert!(!text.lines().any(|line| line.starts_with("change early")), "{text}");
            assert!(!text.contains(['\r', '\u{2028}']), "{text}");
        }
    }
}
