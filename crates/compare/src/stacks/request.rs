use crate::request::{LabRequest, check_rounds, check_trial};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::{WorkloadRequest, duration_or_none};
use wt_tune::TrialDirection;
use wt_units::Bytes;

/// TCP/IP stacks side by side: which, over what path, doing what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StacksRequest {
    /// The emulated path.
    pub lab: LabRequest,
    /// Which, each with settings of its own: `smoltcp:rwin=8KiB:cc=reno`.
    pub stacks: Vec<String>,
    /// What they do.
    pub workloads: Vec<WorkloadRequest>,
    /// Which way bulk transfers, soaks and streams go; each of them goes each of several ways.
    pub directions: Vec<TrialDirection>,
    /// Receive windows that each stack is run with; none means its own.
    pub rwin: Vec<Bytes>,
    /// How many rounds; nothing means two more than a ranking needs at least.
    pub rounds: Option<u32>,
    /// How long a soak takes; nothing means 5 minutes.
    #[serde(with = "duration_or_none")]
    pub soak: Option<Duration>,
    /// When a trial is given up; nothing means after 30 s and twenty times what it takes on the idle path.
    #[serde(with = "duration_or_none")]
    pub give_up: Option<Duration>,
    /// Don't ask by packet scripts what each stack can do.
    pub no_conformance: bool,
}

impl Default for StacksRequest {
    fn default() -> Self {
        let workloads = ["transactions", "bursts", "download-12mb", "page", "soak"];
        Self {
            lab: LabRequest::on("ethernet-hub"),
            stacks: ["linux", "smoltcp"].map(str::to_owned).to_vec(),
            workloads: workloads.iter().filter_map(|name| name.parse().ok()).collect(),
            directions: vec![TrialDirection::Down],
            rwin: Vec::new(),
            rounds: None,
            soak: None,
            give_up: None,
            no_conformance: false,
        }
    }
}

impl StacksRequest {
    /// Whether what was asked for makes sense.
    ///
    /// # Errors
    /// A usage [`Problem`] with what is allowed.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.stacks.is_empty() {
            return Err(Problem::usage("no stack is named").hint("windtunnel stacks list shows what there is"));
        }
        if self.workloads.is_empty() {
            return Err(Problem::usage("no workload is named").hint("--workloads transactions,download-12mb"));
        }
        if self.directions.is_empty() {
            return Err(Problem::usage("no direction is named").hint("down, up, or both"));
        }
        if let Some(rounds) = self.rounds {
            check_rounds(rounds, 1)?;
        }
        check_trial("a soak", self.soak)?;
        check_trial("a trial", self.give_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_written() {
        let request = StacksRequest {
            stacks: vec!["smoltcp:cc=reno".into()],
            directions: vec![TrialDirection::Up, TrialDirection::Both],
            rwin: vec![Bytes(8192)],
            soak: Some(Duration::from_secs(40)),
            ..StacksRequest::default()
        };
        assert_eq!((request.workloads.len(), request.check()), (5, Ok(())));
        let text = serde_json::to_string(&request).unwrap();
        let back: StacksRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(serde_json::from_str::<StacksRequest>(r#"{"stack": "linux"}"#).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let usual = StacksRequest::default;
        for request in [
            StacksRequest { stacks: Vec::new(), ..usual() },
            StacksRequest { workloads: Vec::new(), ..usual() },
            StacksRequest { directions: Vec::new(), ..usual() },
            StacksRequest { rounds: Some(0), ..usual() },
            StacksRequest { give_up: Some(Duration::from_millis(1)), ..usual() },
        ] {
            assert!(request.check().is_err(), "{request:?}");
        }
    }
}
