use serde::{Deserialize, Serialize};

/// The connections of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ArmTally {
    /// Given the arm.
    pub assigned: u64,
    /// With an outcome.
    pub recorded: u64,
    /// Whose outcome was dropped, since a buffer was full.
    pub lost: u64,
    /// Without an outcome yet.
    pub open: u64,
    /// For which the kernel refused at least one setting.
    pub set_errors: u64,
    /// That had other settings at the end.
    pub not_compliant: u64,
}

/// Transfers too short for the clock that timed them: they count as if they had taken its shortest time, in whichever arm they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct ShortTransfers {
    /// How many connections that sent something there were.
    pub connections: u64,
    /// The shortest time that is told from shorter ones, µs.
    pub below_us: u64,
}

/// Every connection that the server accepted since the start, accounted for.
///
/// `passive_opens = missed + left_alone + not_assigned + Σ assigned`, and for each arm `assigned = recorded + lost + open`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TrafficTally {
    /// The kernel's own count (`TcpPassiveOpens` of the namespace); none where it can't be read.
    pub passive_opens: Option<u64>,
    /// Seen by the backend, before any filter.
    pub seen: u64,
    /// Left alone: other ports, loopback, private ranges, sockets with settings of their own.
    pub left_alone: u64,
    /// Of those, sockets with a congestion control of their own, where arms differ in theirs; left out where there were none.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub own_cc: u64,
    /// Of those with an outcome, the ones that were too short for the clock that timed them; left out where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortTransfers>,
    /// Not assigned for another reason: outside the shares, or while nobody watched (no heartbeat).
    pub not_assigned: u64,
    /// By arm.
    pub arms: Vec<ArmTally>,
}

fn is_none_of_them(count: &u64) -> bool {
    *count == 0
}

impl TrafficTally {
    /// The connections that the kernel accepted and the backend didn't see; none where the kernel's count is unknown.
    #[must_use]
    pub fn missed(&self) -> Option<i64> {
        self.passive_opens.map(|opens| opens as i64 - self.seen as i64)
    }

    /// What doesn't add up, in words; empty if everything does and nothing was missed or lost.
    #[must_use]
    pub fn discrepancies(&self) -> Vec<String> {
        let mut found = Vec::new();
        match self.missed() {
            Some(missed) if missed > 0 => {
                found.push(format!("{missed} connections of the kernel's count weren't seen"))
            }
            Some(missed) if missed < 0 => found.push(format!("{} connections more than the kernel counts", -missed)),
            _ => {}
        }
        let assigned: u64 = self.arms.iter().map(|arm| arm.assigned).sum();
        let accounted = self.left_alone + self.not_assigned + assigned;
        if accounted != self.seen {
            found.push(format!("{} connections were seen, and {accounted} are accounted for", self.seen));
        }
        for (i, arm) in self.arms.iter().enumerate() {
            let sum = arm.recorded + arm.lost + arm.open;
            if sum != arm.assigned {
                found.push(format!("arm {i}: {} connections were assigned, and {sum} are accounted for", arm.assigned));
            }
            if arm.lost > 0 {
                found.push(format!("arm {i}: {} outcomes were lost, since a buffer was full", arm.lost));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_up_is_silent_and_what_doesnt_is_said() {
        let arm = ArmTally { assigned: 10, recorded: 7, lost: 0, open: 3, ..ArmTally::default() };
        let mut tally = TrafficTally {
            passive_opens: Some(25),
            seen: 25,
            left_alone: 4,
            not_assigned: 1,
            arms: vec![arm, arm],
            ..TrafficTally::default()
        };
        assert_eq!(tally.discrepancies(), Vec::<String>::new());
        tally.passive_opens = Some(27);
        tally.arms[1].recorded = 6;
        tally.arms[0].lost = 1;
        tally.arms[0].open = 2;
        tally.left_alone = 3;
        let said = tally.discrepancies().join("\n");
        for part in
            ["2 connections of the kernel's", "25 connections were seen, and 24", "arm 1: 10", "arm 0: 1 outcomes"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
