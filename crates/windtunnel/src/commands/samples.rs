//! Samples of `TCP_INFO` as columns: a tenth of the JSON that one object for each would take.

use crate::edge::say;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use wt_sys::clock::monotonic_ns;
use wt_trial::Sample;

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
        say!(
            "{}",
            json!({"event": "sample", "end": end, "t_us": sample.t_us, "bytes": sample.bytes, "snd_cwnd": sample.snd_cwnd,
                "rtt": sample.rtt, "retransmits": sample.retransmits})
        );
    });
}

/// One list for each field, all of the same length; names and units are those of [`Sample`].
pub(crate) fn columns(samples: &[Sample]) -> Value {
    let column = |field: fn(&Sample) -> u64| samples.iter().map(field).collect::<Vec<_>>();
    json!({
        "t_us": column(|sample| sample.t_us),
        "bytes": column(|sample| sample.bytes),
        "snd_cwnd": column(|sample| sample.snd_cwnd),
        "ssthresh": column(|sample| sample.ssthresh),
        "rtt": column(|sample| sample.rtt),
        "min_rtt": column(|sample| sample.min_rtt),
        "retransmits": column(|sample| sample.retransmits),
        "snd_wnd": column(|sample| sample.snd_wnd),
        // The model paces without a limit at first, which no reader of JSON could take exactly.
        "delivery_rate_bps": column(|sample| if sample.delivery_rate_bps >= 1 << 53 { 0 } else { sample.delivery_rate_bps }),
    })
}
