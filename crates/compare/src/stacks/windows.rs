//! What a larger window brought, and what it should have brought.
//!
//! RWIN/RTT is of a window that was set, and of a stack that acknowledges at once. The prediction here is of what a sender of whole
//! segments can have under way with the windows that were offered, as seen at the stack's device, and of the time that a byte waits
//! for its ACK: a stack that acknowledges before its program has read offers less than was set, and one that waits with every odd
//! segment has a longer RTT.

use super::trials::StackTrials;
use serde::Serialize;
use wt_trial::bulk::PathNow;

/// Transfers whose rate a window can bound.
const TRANSFERS: [&str; 2] = ["bulk", "soak"];
/// Of the path's capacity; a transfer that makes more isn't bound by its window.
const BOUND: f64 = 0.85;
/// Of what its windows allow in an idle RTT; a transfer that makes less waits for something else: a queue, a shared wire.
const NEAR: f64 = 0.6;

/// One stack with two windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowGain {
    /// The stack.
    pub stack: String,
    /// The workload.
    pub workload: &'static str,
    /// The windows that were set, bytes.
    pub rwin: [u32; 2],
    /// The windows that were offered in the mean, bytes.
    pub offered_bytes: [f64; 2],
    /// Goodput with the larger over that with the smaller one.
    pub measured: f64,
    /// The same of what the windows allowed.
    pub predicted: f64,
    /// How far what was measured is from what was predicted, as a share.
    pub error: f64,
}

/// Each stack's windows, each with the next larger one, where both bounded the transfer.
pub(super) fn all(stacks: &[StackTrials], path: &PathNow) -> Vec<WindowGain> {
    let mut found = Vec::new();
    for workload in TRANSFERS {
        for small in stacks {
            let Some((label, window)) = small.window() else { continue };
            let same = |other: &&StackTrials| other.window().is_some_and(|(of, _)| of == label);
            let others = stacks.iter().filter(same).filter_map(|other| Some((other.window()?.1, other)));
            let next = others.filter(|(other, _)| *other > window).min_by_key(|(other, _)| *other);
            found.extend(next.and_then(|(larger, large)| gain([small, large], [window, larger], workload, path)));
        }
    }
    found
}

fn gain(stacks: [&StackTrials; 2], rwin: [u32; 2], workload: &'static str, path: &PathNow) -> Option<WindowGain> {
    let bound = path.capacity_bps.map_or(f64::INFINITY, |bps| bps as f64 * BOUND);
    let figures = |stack: &StackTrials| {
        Some((stack.goodput(workload)?, stack.limit(workload, path.base_rtt_us)?, stack.offered(workload)?))
    };
    let [(slow, low, small), (fast, high, large)] = [figures(stacks[0])?, figures(stacks[1])?];
    let (measured, predicted) = (fast / slow, high / low);
    let limited = slow > low * NEAR && fast > high * NEAR;
    (fast < bound && low > 0.0 && limited).then(|| WindowGain {
        stack: stacks[0].choice().label.clone(),
        workload,
        rwin,
        offered_bytes: [small, large],
        measured,
        predicted,
        error: measured / predicted - 1.0,
    })
}

impl WindowGain {
    /// In words.
    pub(super) fn text(&self) -> String {
        let Self { stack, workload, rwin, offered_bytes, measured, predicted, error } = self;
        format!(
            "{stack} ({workload}): rwin {} instead of {} makes ×{measured:.2}; the windows that it offered, {:.0} instead of {:.0} \
             bytes in the mean, and the time of its ACKs say ×{predicted:.2} ({:+.1} %)",
            rwin[1],
            rwin[0],
            offered_bytes[1],
            offered_bytes[0],
            error * 100.0
        )
    }
}
