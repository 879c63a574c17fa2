use crate::request::{LabRequest, check_different, check_rounds, check_trial};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_lab::scenario::Disturbance;
use wt_problem::Problem;
use wt_setup::duration_or_none;

/// FreeBSD's set, those that count FreeBSD's clock in both clocks: they decide differently on a slow path.
pub const DEFAULT_CONTROLS: &str = "newreno,cubic,htcp,vegas,hd,hd@freebsd-hz100,chd,chd@freebsd-hz100";

/// How long the other flow lasts where trials are long enough.
const FLOW: Duration = Duration::from_secs(10);

/// Congestion controls side by side: which, over what path, for how long.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ControlsRequest {
    /// The emulated path.
    pub lab: LabRequest,
    /// Which, the first one being what the others are compared with; with variants: `chd@freebsd-hz100`.
    pub algorithms: Vec<String>,
    /// How many rounds.
    pub rounds: u32,
    /// How long each trial transfers; nothing means about 300 RTTs, 10 s to 60 s.
    #[serde(with = "duration_or_none")]
    pub trial: Option<Duration>,
    /// What happens once in every trial, after four tenths of it.
    pub disturb: Option<DisturbanceKind>,
}

impl Default for ControlsRequest {
    fn default() -> Self {
        Self {
            lab: LabRequest::on("freebsd-scp"),
            algorithms: DEFAULT_CONTROLS.split(',').map(str::to_owned).collect(),
            rounds: 5,
            trial: None,
            disturb: None,
        }
    }
}

impl ControlsRequest {
    /// Whether what was asked for makes sense.
    ///
    /// # Errors
    /// A usage [`Problem`] with what is allowed.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.algorithms.is_empty() {
            return Err(Problem::usage("no congestion control is named").hint("windtunnel cc list shows them"));
        }
        check_rounds(self.rounds, 1)?;
        check_trial("a trial", self.trial)?;
        check_different(&self.algorithms)
    }
}

/// What can be made to happen in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisturbanceKind {
    /// One packet is lost.
    Loss,
    /// Ten packets in a row are lost.
    Burst,
    /// Nothing passes for a second.
    Outage,
    /// Half the rate for a fifth of the trial.
    HalfRate,
    /// The RTT grows by half, for good.
    RttStep,
    /// A newreno flow beside it for 10 s, or 3 tenths of a short trial.
    Flow,
}

impl DisturbanceKind {
    /// In a trial of that length.
    pub(super) fn in_trial(self, length: Duration) -> Disturbance {
        match self {
            Self::Loss => Disturbance::Loss,
            Self::Burst => Disturbance::Burst,
            Self::Outage => Disturbance::Outage,
            Self::HalfRate => Disturbance::HalfRate { lasts: length / 5 },
            Self::RttStep => Disturbance::RttStep,
            Self::Flow => Disturbance::Flow { lasts: FLOW.min(length * 3 / 10) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_it_was_written() {
        let request = ControlsRequest {
            algorithms: vec!["reno".into(), "chd@freebsd-hz100".into()],
            trial: Some(Duration::from_millis(1500)),
            disturb: Some(DisturbanceKind::HalfRate),
            ..ControlsRequest::default()
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(text.contains("\"half-rate\"") && text.contains("\"1.5s\""), "{text}");
        let back: ControlsRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert!(serde_json::from_str::<ControlsRequest>(r#"{"algorithm": "reno"}"#).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let usual = ControlsRequest::default;
        assert!(usual().check().is_ok());
        for request in [
            ControlsRequest { algorithms: Vec::new(), ..usual() },
            ControlsRequest { algorithms: vec!["reno".into(), "reno".into()], ..usual() },
            ControlsRequest { rounds: 0, ..usual() },
            ControlsRequest { trial: Some(Duration::from_millis(1)), ..usual() },
        ] {
            assert!(request.check().is_err(), "{request:?}");
        }
    }
}
