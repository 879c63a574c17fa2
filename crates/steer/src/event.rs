use serde::Serialize;
use wt_traffic::{ReceiverSettings, TrafficHoldback, TrafficReport, TrafficTally};

/// What happens while connections are assigned.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TrafficEvent {
    /// It has begun.
    Begin {
        /// Its name in the journal.
        id: String,
        /// Whom it touches, and whom not.
        whom: String,
        /// Whom it touches.
        touches: String,
        /// Whom it leaves alone.
        left_alone: String,
        /// What assigns connections: `sockops`, `routes` or `slots`.
        backend: &'static str,
        /// What the arms are called.
        arms: Vec<String>,
        /// Settings of the arms that act on what the server receives, which isn't compared; left out where there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        receiver_settings: Option<ReceiverSettings>,
    },
    /// New coins and shares.
    Epoch {
        /// Its number.
        epoch: u64,
        /// Shares of the arms, 0 to 1.
        shares: Vec<f64>,
    },
    /// How far it is.
    Progress {
        /// Since the first epoch, s.
        elapsed_s: f64,
        /// The accounts.
        tally: TrafficTally,
        /// What may be said by now.
        headline: String,
    },
    /// An arm gets no connections any more, or for a while.
    Stopped {
        /// Which.
        arm: String,
        /// What stopped it.
        why: String,
    },
    /// A holdback shows something else than before.
    Holdback {
        /// What.
        holdback: TrafficHoldback,
    },
    /// How it goes can't be written into the journal now: it goes on, and is written as soon as it can be.
    Warning {
        /// Why, in a sentence.
        text: String,
    },
    /// It has ended, and the journal doesn't take its report: here it is.
    Unwritten {
        /// What was found.
        report: Box<TrafficReport>,
    },
    /// Nothing more is assigned; those that run may end.
    Draining {
        /// How many there are.
        open: u64,
    },
}
