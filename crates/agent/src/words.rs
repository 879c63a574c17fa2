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
            let skew = agent.skew_s.map_or(String::new(), |skew| format!("{skew:+.2} s"));
            lines.push(format!("{:<20} {seen:>9} {skew:>10} {:>7}  {}", agent.agent, agent.outbox, agent.version));
        }
        if !state.jobs.is_empty() {
            lines.push(format!("\n{:<12} {:<14} {:<8} {:>8} {:>4}  target", "mesh", "agent", "state", "due in", "run"));
        }
        for job in &state.jobs {
            let due =
                job.due_s.map_or(String::new(), |seconds| if seconds > 0.0 { span(seconds) } else { "now".to_owned() });
            let target = &job.target;
            lines
                .push(format!("{:<12} {:<14} {:<8} {due:>8} {:>4}  {target}", job.mesh, job.agent, job.state, job.run));
            let more = Some(&job.reason).filter(|reason| !reason.is_empty()).into_iter().chain(&job.experiment);
            lines.extend(more.map(|more| format!("    {more}")));
        }
        for change in &state.rollouts {
            let because = if change.reason.is_empty() { String::new() } else { format!(": {}", change.reason) };
            let mut text = format!("\nchange {}: {}{because}", change.name, change.state);
            for host in &change.hosts {
                let line =
                    format!("    wave {:<3} {:<20} {:<10} {}", host.wave, host.agent, host.phase.name(), host.reason);
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
            lines.push(format!("{:<14} {held:<5} {:>6}  {}", turn.agent, span(turn.since_s), words.join(", ")));
        }
        lines.join("\n")
    }
}

/// A time in one figure.
fn span(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= 2.0 * size).unwrap_or((1.0, "s"));
    format!("{:.0} {unit}", seconds.max(0.0) / size)
}
