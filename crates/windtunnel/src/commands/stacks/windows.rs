//! What a larger window brought, and what it should have brought.
//!
//! RWIN/RTT is of a window that was set, and of a stack that acknowledges at once. The prediction here is of what a sender of whole
//! segments can have under way with the windows that were offered, as seen at the stack's device, and of the time that a byte waits
//! for its ACK: a stack that acknowledges before its program has read offers less than was set, and one that waits with every odd
//! segment has a longer RTT.

use super::result::Row;
use serde_json::{Value, json};
use wt_trial::bulk::PathNow;

/// Transfers whose rate a window can bound.
const TRANSFERS: [&str; 2] = ["bulk", "soak"];
/// Of the path's capacity; a transfer that makes more isn't bound by its window.
const BOUND: f64 = 0.85;

/// One stack with two windows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raised {
    stack: String,
    workload: &'static str,
    /// The windows that were set, bytes.
    set: (u32, u32),
    /// The windows that were offered in the mean, bytes.
    offered: (f64, f64),
    /// Goodput with the larger over that with the smaller one.
    measured: f64,
    /// The same of what the windows allowed.
    predicted: f64,
}

/// Each stack's windows, each with the next larger one, where both bounded the transfer.
pub(super) fn all(rows: &[Row], path: &PathNow) -> Vec<Raised> {
    let mut found = Vec::new();
    for workload in TRANSFERS {
        for small in rows {
            let Some((label, window)) = small.window() else { continue };
            let others =
                rows.iter().filter_map(|row| Some((row.window().filter(|(other, _)| *other == label)?.1, row)));
            let next = others.filter(|(other, _)| *other > window).min_by_key(|(other, _)| *other);
            found.extend(next.and_then(|(larger, large)| raised([small, large], (window, larger), workload, path)));
        }
    }
    found
}

fn raised(rows: [&Row; 2], set: (u32, u32), workload: &'static str, path: &PathNow) -> Option<Raised> {
    let bound = path.capacity_bps.map_or(f64::INFINITY, |bps| bps as f64 * BOUND);
    let figures =
        |row: &Row| Some((row.goodput(workload)?, row.limit(workload, path.base_rtt_us)?, row.offered(workload)?));
    let [(slow, low, small), (fast, high, large)] = [figures(rows[0])?, figures(rows[1])?];
    (fast < bound && low > 0.0).then(|| Raised {
        stack: rows[0].stack().to_owned(),
        workload,
        set,
        offered: (small, large),
        measured: fast / slow,
        predicted: high / low,
    })
}

impl Raised {
    pub(super) fn json(&self) -> Value {
        let Self { stack, workload, set, offered, measured, predicted } = self;
        json!({
            "stack": stack, "workload": workload, "rwin": [set.0, set.1], "offered_bytes": [offered.0, offered.1],
            "measured": measured, "predicted": predicted, "error": measured / predicted - 1.0,
        })
    }

    pub(super) fn text(&self) -> String {
        let Self { stack, workload, set, offered, measured, predicted } = self;
        format!(
            "{stack} ({workload}): rwin {} instead of {} makes ×{measured:.2}; the windows that it offered, {:.0} instead of {:.0} \
             bytes in the mean, and the time of its ACKs say ×{predicted:.2} ({:+.1} %)",
            set.1,
            set.0,
            offered.1,
            offered.0,
            (measured / predicted - 1.0) * 100.0
        )
    }
}
