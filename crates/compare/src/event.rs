//! What happens while something is compared.

use serde::Serialize;
use wt_problem::Problem;
use wt_trial::Status;

/// Takes events as they happen; called on the thread that runs the comparison.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(CompareEvent);

/// What happens while something is compared.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CompareEvent {
    /// A comparison begins.
    Begin {
        /// What is compared.
        subject: Subject,
        /// How many of them.
        arms: usize,
        /// The most rounds.
        rounds: u32,
        /// Trials in all, if none has to be run again.
        trials: u32,
        /// How long each trial takes, seconds, where all take the same.
        trial_s: Option<f64>,
        /// How long all of it takes, seconds.
        expected_s: f64,
    },
    /// A trial has ended.
    Trial(ComparedTrial),
    /// A round has ended.
    Round {
        /// Rounds so far.
        done: u32,
        /// The most rounds.
        rounds: u32,
    },
    /// Pairs of transactions begin, with and without an adapter in turn.
    Pairs {
        /// How many.
        pairs: u32,
    },
    /// The comparison ends before its last round, with those that are complete.
    EndsEarly {
        /// Why.
        problem: Problem,
        /// Complete rounds.
        rounds: u32,
    },
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Congestion controls.
    Controls,
    /// TCP/IP stacks.
    Stacks,
    /// Initial windows along a chain of a client, an edge and a backend.
    Windows,
}

/// A trial that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedTrial {
    /// What is compared.
    pub subject: Subject,
    /// Its round, from 1.
    pub round: u32,
    /// What was tried.
    pub label: String,
    /// What it did: the workload's name, with `-up` where the client sends.
    pub workload: &'static str,
    /// How it ended.
    pub status: Status,
    /// Whether it counts; one that doesn't is run again.
    pub counts: bool,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// What it is ranked by, in words; nothing unless it was completed.
    pub figure: Option<String>,
    /// What is to be said of it.
    pub notes: Vec<String>,
}
