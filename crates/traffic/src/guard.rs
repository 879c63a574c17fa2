use crate::bets::{CoinBets, CoinOutcome};
use crate::units::Cell;
use serde::{Deserialize, Serialize};

/// What stops an arm by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrafficGuard {
    /// Its connections are slower.
    Slower,
    /// It retransmits a larger share.
    Retransmissions,
    /// More of its connections have a retransmission timeout.
    Rtos,
    /// More of its connections are reset or time out.
    Resets,
    /// More of its connections aren't finished at the cohort's age.
    NotFinishing,
}

/// What the stake of all guards together must have become for an arm to be stopped: one that isn't worse is in at most 5 % of
/// experiments.
pub const GUARD_THRESHOLD: f64 = 20.0;
/// The evidence at which each is mentioned: for one guard alone that is at most 5 %.
pub const GUARD_WARNING: f64 = 20.0;

impl TrafficGuard {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Slower, Self::Retransmissions, Self::Rtos, Self::Resets, Self::NotFinishing];
    /// Those that are counts; slower is the other side of the main comparison.
    pub(crate) const COUNTS: [Self; 4] = [Self::Retransmissions, Self::Rtos, Self::Resets, Self::NotFinishing];

    /// Its part of the stake that all guards share.
    pub(crate) const fn stake(self) -> f64 {
        match self {
            Self::Slower => 0.5,
            Self::Retransmissions | Self::Rtos | Self::Resets | Self::NotFinishing => 0.125,
        }
    }

    /// The evidence at which it stops an arm that no other guard speaks against.
    #[must_use]
    pub const fn threshold(self) -> f64 {
        GUARD_THRESHOLD / self.stake()
    }

    /// What it says of an arm that it stopped.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Slower => "connections are slower",
            Self::Retransmissions => "more is retransmitted",
            Self::Rtos => "more connections have retransmission timeouts",
            Self::Resets => "more connections are reset or time out",
            Self::NotFinishing => "more connections don't finish",
        }
    }

    /// Its share within one unit; none where nothing is known.
    pub(crate) fn share(self, cell: &Cell) -> Option<f64> {
        let (some, all) = match self {
            Self::Slower => return None,
            Self::Retransmissions => (cell.retransmitted as f64, cell.segments as f64),
            Self::Rtos => (f64::from(cell.with_rto), f64::from(cell.rto_known)),
            Self::Resets => (f64::from(cell.aborted), f64::from(cell.connections)),
            Self::NotFinishing => (f64::from(cell.open), f64::from(cell.connections)),
        };
        (all > 0.0).then(|| some / all)
    }
}

/// The bets of one guard on one arm.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuardBets {
    bets: CoinBets,
    weight: f64,
    sum: f64,
}

impl GuardBets {
    /// Takes a unit's share and coin, with the mean of the units before as what is expected.
    pub(crate) fn push(&mut self, share: f64, unit: CoinOutcome) {
        let expected = if self.weight > 0.0 { self.sum / self.weight } else { share };
        self.bets.push(CoinOutcome { residual: share - expected, ..unit });
        let weight = unit.weight * unit.part;
        self.sum += weight * share;
        self.weight += weight;
    }

    /// The evidence now that the arm is worse, as a logarithm.
    pub(crate) fn now(&self) -> f64 {
        self.bets.log_higher()
    }

    /// The largest evidence so far that the arm is worse, as a logarithm.
    pub(crate) fn best(&self) -> f64 {
        self.bets.best()[0]
    }
}
