//! Samples of `TCP_INFO` as they are taken.

use crate::edge::emit;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use wt_sys::clock::monotonic_ns;

/// Each end of a transfer is told of so often.
const EVERY_NS: u64 = 200_000_000;

/// Prints an event for samples as they are taken: `{"event": "sample", …}`, a few in a second for each end.
pub(crate) fn stream() {
    static NEXT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    wt_load::listen(|receiver, sample| {
        let (now, next) = (monotonic_ns(), &NEXT[usize::from(receiver)]);
        if now < next.load(Ordering::Relaxed) {
            return;
        }
        next.store(now + EVERY_NS, Ordering::Relaxed);
        let end = if receiver { "receiver" } else { "sender" };
        emit!(
            "{}",
            json!({"event": "sample", "end": end, "t_us": sample.t_us, "bytes": sample.bytes, "snd_cwnd": sample.snd_cwnd,
                "rtt": sample.rtt, "retransmits": sample.retransmits})
        );
    });
}
