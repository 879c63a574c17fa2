use super::PathRequest;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::{Levels, WorkloadRequest};
use wt_trial::Direction;
use wt_units::{Assignment, Bytes, Knob, format_duration};

/// What is varied unless a request says otherwise; the send buffer, too, where that is what holds the transfer.
pub const USUAL_KNOBS: [Knob; 4] = [Knob::Rwin, Knob::Mtu, Knob::Cc, Knob::Initcwnd];
/// Seeds that a request may ask for.
const SEEDS: RangeInclusive<u64> = 1..=1000;
/// How long one transfer may be.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(3600);

/// What the model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictRequest {
    /// The path.
    pub path: PathRequest,
    /// What is varied; nothing means [`USUAL_KNOBS`], and the send buffer where the sender waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knobs: Option<Vec<Knob>>,
    /// Levels of knobs, instead of those that are chosen from the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Levels>,
    /// Settings to compare with the current ones, all of them together; then nothing else is varied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Assignment>,
    /// Whether the current settings are those of this host; otherwise they are Linux' own, so that every host has the same answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub this_host: bool,
    /// What is done.
    #[serde(default)]
    pub workload: WorkloadRequest,
    /// Or one transfer of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// How long each run transfers, 200 ms to 1 h; nothing means 75 RTTs, 3 s to 60 s.
    #[serde(default, with = "wt_setup::duration_or_none", skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Which way the payload goes.
    #[serde(default = "down")]
    pub direction: Direction,
    /// Random seeds per setting, 1 to 1000; only for paths with randomness.
    #[serde(default = "usual_seeds")]
    pub seeds: u64,
    /// The first of them.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Whether each setting's first run is told over time.
    #[serde(default)]
    pub samples: bool,
}

fn down() -> Direction {
    Direction::Down
}

fn usual_seeds() -> u64 {
    20
}

fn first_seed() -> u64 {
    1
}

impl PredictRequest {
    /// The usual question about a path.
    #[must_use]
    pub fn of(path: PathRequest) -> Self {
        Self {
            path,
            knobs: None,
            levels: Vec::new(),
            set: Vec::new(),
            this_host: false,
            workload: WorkloadRequest::default(),
            size: None,
            time: None,
            direction: down(),
            seeds: usual_seeds(),
            seed: first_seed(),
            samples: false,
        }
    }

    /// Whether the model answers in less time than it takes to hand the question to another thread: one small transfer over one link,
    /// with the current settings and with one other, once each. Nothing is read from a file for it.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let small = self.size.is_some_and(|size| size.get() <= 128 << 10);
        let one_link = matches!(self.path, PathRequest::Link(_));
        small
            && one_link
            && !self.set.is_empty()
            && self.seeds <= 1
            && !self.samples
            && !self.this_host
            && self.workload == WorkloadRequest::default()
    }

    /// What is varied.
    #[must_use]
    pub fn knobs(&self) -> &[Knob] {
        self.knobs.as_deref().unwrap_or(&USUAL_KNOBS)
    }

    /// Whether nobody says what is varied, or anything of the send buffer.
    pub(crate) fn chooses_knobs(&self) -> bool {
        self.knobs.is_none() && self.set.is_empty() && self.levels.iter().all(|levels| levels.knob != Knob::Sndbuf)
    }

    /// Whether its parts go together and are in range.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let problem = if !self.set.is_empty() && (self.knobs.is_some() || !self.levels.is_empty()) {
            Problem::usage("settings to compare as one, and knobs to vary, exclude each other")
                .hint("leave out set, or knobs and levels")
        } else if self.size.is_some() && self.time.is_some() {
            Problem::usage("a size and a time exclude each other").hint("leave one of them out")
        } else if self.size.is_some_and(|size| size.get() == 0) {
            Problem::usage("a size of 0: there is nothing to transfer")
        } else if self.size.is_some() && !self.workload.is_plain() {
            Problem::usage("a size is for one transfer").hint("page:size=… and bulk:size=… have sizes of their own")
        } else if let Err(why) = self.workload.check_direction(self.direction) {
            Problem::usage(why).hint("leave --direction out, or choose another workload")
        } else if let Some(time) = self.time.filter(|time| !TIMES.contains(time)) {
            Problem::usage(format!("{} is out of range: allowed is 200ms to 1h", format_duration(time)))
        } else if !SEEDS.contains(&self.seeds) {
            Problem::usage(format!(
                "{} seeds are out of range: allowed is {} to {}",
                self.seeds,
                SEEDS.start(),
                SEEDS.end()
            ))
        } else {
            return Ok(());
        };
        Err(problem)
    }
}
