//! What these objects say to a person, a line or a paragraph each.

use crate::{ClaimedPorts, TrafficCombined, TrafficEvent, TrafficList, TrafficPlan, TrafficStatus, TrafficStop};
use std::time::Duration;
use wt_traffic::{ArmTally, TrafficExpectation};
use wt_units::format_minutes;

impl TrafficPlan {
    /// What a dry run says.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("It would touch {}.", self.touches), format!("Left alone: {}.", self.left_alone)];
        lines.extend(self.open_now.iter().flat_map(crate::OpenNow::sentences));
        lines.push("At first they would get:".to_owned());
        lines.extend(self.arms.iter().map(|arm| format!("  {:>5.1} %  {}", arm.share * 100.0, arm.name)));
        for backend in &self.backends {
            let works = if backend.works { "works" } else { "doesn't work" };
            lines.push(format!("{} {works} here: {}", backend.name, backend.found));
        }
        if self.backends.iter().all(|backend| !backend.works) {
            lines.push("So it can't begin here.".to_owned());
        }
        if !self.other_programs.is_empty() {
            let names = self.other_programs.join(", ");
            lines.push(format!(
                "Other BPF programs see the same connections: {names}. Without --beside-programs it doesn't begin."
            ));
        }
        lines.extend(self.receiver_settings.iter().map(|receiver| receiver.text.clone()));
        if self.expects.is_empty() {
            lines.push("So no number of connections shows a gain here, and none is forecast.".to_owned());
            return lines;
        }
        let known = self.connections_per_hour > 0.0;
        // Slots take as long however many connections come.
        let by_slots = !known && self.expects.iter().all(|expected| expected.connections < 1.0);
        lines.push(String::new());
        lines.push("To show a gain of       half of experiments need            four of five need".to_owned());
        lines.extend(self.expects.iter().map(|expected| expectation(expected, known, by_slots)));
        lines.push(match known {
            _ if by_slots => "None came while this looked. Slots take as long, however many come in each.".to_owned(),
            true => format!(
                "The times are at {:.0} connections an hour, which this network namespace accepts now on all of its ports.",
                self.connections_per_hour
            ),
            false => "None came while this looked. Divide by your connections an hour to get hours.".to_owned(),
        });
        lines
    }
}

/// `    +10 %          12,000 connections, 3 h     19,000 connections, 5 h`.
fn expectation(expected: &TrafficExpectation, known: bool, by_slots: bool) -> String {
    let of = |connections: f64, hours: f64| {
        let number = grouped(connections);
        if by_slots {
            long(hours)
        } else if known {
            format!("{number} connections, {}", long(hours))
        } else {
            format!("{number} connections")
        }
    };
    let (half, most) = (of(expected.connections, expected.hours), of(expected.connections_80, expected.hours_80));
    format!("  {:>+6.0} %        {half:>28}  {most:>28}", expected.gain * 100.0)
}

/// `58,500`.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `40 min`, `3.2 h`, `12 days`.
fn long(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 => format!("{:.0} min", (hours * 60.0).ceil()),
        hours if hours < 72.0 => format!("{hours:.1} h"),
        hours => format!("{:.0} days", hours / 24.0),
    }
}

impl TrafficList {
    /// What `traffic status` says.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.running.is_empty() {
            lines.push(none_under_way(&self.elsewhere).to_owned());
        }
        lines.extend(self.elsewhere.iter().map(ClaimedPorts::line));
        if self.rules_left {
            lines.push(
                "Routing rules of an experiment stand here that was killed with its guard. They steer nobody; windtunnel traffic \
                 stop removes them."
                    .to_owned(),
            );
        }
        if self.settings_left {
            lines.push(
                "This host has a setting of an experiment that was killed with its guards. windtunnel traffic stop puts back what \
                 was before."
                    .to_owned(),
            );
        }
        lines.extend(self.running.iter().flat_map(TrafficStatus::lines));
        lines
    }
}

/// What is said where this journal has none.
fn none_under_way(elsewhere: &[ClaimedPorts]) -> &'static str {
    match elsewhere {
        [] => "No experiment on connections is under way.",
        _ => "No experiment on connections of this journal is under way.",
    }
}

impl ClaimedPorts {
    /// What is said of an experiment of which no more can be known here.
    fn line(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        format!(
            "{} assigns connections of port {} here, too, of another journal: name that with --journal (of the service: \
             /var/lib/windtunnel-traffic/journal.sqlite3).",
            self.id,
            ports.join(", ")
        )
    }
}

impl TrafficStop {
    /// What `traffic stop` says.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![match self.stopped.as_slice() {
            [] => none_under_way(&self.elsewhere).to_owned(),
            ids => format!("Ended: {}", ids.join(", ")),
        }];
        lines.extend(self.elsewhere.iter().map(ClaimedPorts::line));
        if self.rules_removed {
            lines.push("Removed: routing rules of an experiment that was killed with its guard.".to_owned());
        }
        if self.settings_put_back {
            lines.push("Put back: settings of an experiment that was killed with its guards.".to_owned());
        }
        lines
    }
}

impl TrafficStatus {
    fn lines(&self) -> Vec<String> {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let time = format_minutes(Duration::from_secs_f64(self.elapsed_s));
        let mut lines = vec![format!("{}: port {}, {}, for {time}", self.id, ports.join(", "), self.arms.join(" | "))];
        if let Some(tally) = &self.tally {
            let assigned: u64 = tally.arms.iter().map(|arm| arm.assigned).sum();
            lines.push(format!("  {assigned} connections assigned of {} accepted", tally.seen));
            lines.extend(tally.discrepancies().iter().map(|what| format!("  {what}")));
        }
        lines.extend(self.headline.iter().map(|headline| format!("  {headline}")));
        lines
    }
}

impl TrafficCombined {
    /// What `traffic combine` says.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.arms.iter().map(|arm| format!("{} beside {}: {}", arm.name, self.first, arm.text)).collect();
        lines.push(format!("Added up: {}", self.experiments.join(", ")));
        lines.extend(self.receiver_settings.iter().map(|receiver| receiver.text.clone()));
        lines
    }
}

impl TrafficEvent {
    /// What is said while it runs.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Begin { id, touches, left_alone, backend, arms, receiver_settings, .. } => {
                let mut head = format!("It touches {touches}.\nLeft alone: {left_alone}.\n");
                head.extend(receiver_settings.iter().flat_map(|receiver| [receiver.text.as_str(), "\n"]));
                head + &format!("{id}, by {backend}: {}. Ctrl-C ends it with the report.", arms.join(" | "))
            }
            Self::Epoch { epoch, shares } => {
                let shares: Vec<String> = shares.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
                format!("epoch {epoch}: {}", shares.join(" | "))
            }
            Self::Progress { elapsed_s, tally, headline } => {
                let sum = |count: fn(&ArmTally) -> u64| tally.arms.iter().map(count).sum::<u64>();
                let (assigned, open) = (sum(|arm| arm.assigned), sum(|arm| arm.open));
                let time = format_minutes(Duration::from_secs_f64(*elapsed_s));
                format!("{time}: {assigned} connections assigned, {open} of them open. {headline}")
            }
            Self::Holdback { holdback } => holdback.text.clone(),
            Self::Stopped { arm, why } => format!("{arm} gets no connections: {why}"),
            Self::Warning { text } => text.clone(),
            Self::Unwritten { report } => report.text(),
            Self::Draining { open } => format!("Nothing more is assigned; {open} connections may end."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_and_the_head_of_a_run_say_that_what_a_server_receives_isnt_compared_and_forecast_nothing_of_it() {
        let said = "What is compared is what the server sends; initrwnd acts on what it receives.";
        for (levels, is_said) in [("initrwnd=44,3", true), ("initcwnd=10,32", false)] {
            let config = wt_traffic::TrafficConfig {
                ports: vec![443],
                arms: crate::arms_of_levels(&[levels.to_owned()]).unwrap(),
                ..wt_traffic::TrafficConfig::default()
            };
            let receiver_settings = wt_traffic::ReceiverSettings::of(&config.arms);
            let plan = TrafficPlan {
                schema_version: 1,
                whom: String::new(),
                touches: String::new(),
                left_alone: String::new(),
                arms: Vec::new(),
                epoch_s: 600.0,
                open_now: None,
                backends: Vec::new(),
                other_programs: Vec::new(),
                connections_per_hour: 0.0,
                expects: config.expectations(0.0, &[0.1, 0.2]),
                receiver_settings: receiver_settings.clone(),
            };
            let lines = plan.lines().join("\n");
            assert_eq!((lines.contains(said), lines.contains("To show a gain of")), (is_said, !is_said), "{lines}");
            let begin = TrafficEvent::Begin {
                id: "traffic-1".to_owned(),
                whom: String::new(),
                touches: String::new(),
                left_alone: String::new(),
                backend: "routes",
                arms: Vec::new(),
                receiver_settings,
            };
            assert_eq!(begin.line().contains(said), is_said, "{}", begin.line());
            let json = serde_json::to_value(&begin).unwrap();
            assert_eq!(json.get("receiver_settings").is_some(), is_said, "{json}");
        }
    }

    #[test]
    fn numbers_and_times_are_written_as_people_read_them() {
        assert_eq!([0.0, 999.0, 58_500.0, 1_234_567.0].map(grouped), ["0", "999", "58,500", "1,234,567"]);
        assert_eq!([0.5, 3.25, 300.0].map(long), ["30 min", "3.2 h", "12 days"]);
        let expected = TrafficExpectation {
            gain: 0.05,
            connections: 114_000.0,
            connections_80: 186_000.0,
            hours: 31.7,
            hours_80: 51.7,
        };
        let line = expectation(&expected, true, false);
        assert!(line.chars().count() <= 80 && line.contains("114,000 connections, 31.7 h"), "{line}");
        let line = expectation(&TrafficExpectation { connections: 1e-8, ..expected }, false, true);
        assert!(line.contains("31.7 h") && !line.contains("connections"), "{line}");
    }
}
