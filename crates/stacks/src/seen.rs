use serde::{Deserialize, Serialize};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wt_flow::{Analysis, Bounds, ConnectionReport, Tracker};
use wt_sys::SysResult;
use wt_sys::poll::wait_readable;
use wt_sys::watch::Watch;

/// How often one looks whether to stop.
const GLANCE: Duration = Duration::from_millis(20);
/// Packets that one may still take when the trial is over.
const LAST: u32 = 100_000;

/// What is seen of a stack at its own device: nothing that the stack says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StackObservation {
    /// How late it acknowledges, if it acknowledged anything.
    pub ack_delay: Option<AckDelay>,
    /// What its SYN offered.
    pub offer: Option<Offer>,
    /// The largest window that it advertised, bytes; unknown of what isn't TCP.
    pub window: Option<u32>,
    /// The mean of the windows that it offered, bytes, each as long as it was the last.
    #[serde(default)]
    pub window_mean: Option<f64>,
    /// What of these windows a sender of whole segments can use, bytes, in the mean.
    #[serde(default)]
    pub window_usable: Option<f64>,
    /// From a byte's arrival until it was acknowledged, µs, in the mean over all bytes.
    #[serde(default)]
    pub ack_wait_us: Option<f64>,
    /// Segments that it retransmitted; unknown of what isn't TCP.
    pub retransmissions: Option<u64>,
    /// Segments that the server retransmitted to it.
    pub server_retransmissions: Option<u64>,
    /// From a request's last byte to the answer's first, µs: the smallest, if there were any.
    pub answer_us: Option<f64>,
    /// Packets that came too fast to be looked at.
    pub missed: u64,
}

/// How late a stack acknowledges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AckDelay {
    /// The median, µs.
    pub median_us: f64,
    /// In the first and in the last third of the time, µs.
    pub ends_us: Option<(f64, f64)>,
    /// Means over time: s, µs.
    pub course: Vec<(f64, f64)>,
}

/// What a SYN offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Largest segment that it takes, bytes.
    pub mss: Option<u16>,
    /// The shift of its windows.
    pub window_scale: Option<u8>,
    /// Whether it understands SACK.
    pub sack: bool,
    /// Whether it sends timestamps.
    pub timestamps: bool,
}

/// Listens at a device until it is stopped.
#[derive(Debug)]
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(Analysis, u64)>,
}

impl Watcher {
    /// Begins, in this thread's network namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn start(device: &str) -> SysResult<Self> {
        let mut watch = Watch::open(device)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut tracker = Tracker::new(Bounds { followed: 1024, told: 1024, ..Bounds::default() }, None);
            let mut see = |packet: &wt_sys::watch::WatchedPacket<'_>| match wt_wire::ip_behind_ethertype(
                packet.ethertype,
                packet.bytes,
            ) {
                Some(ip) => {
                    let before = packet.bytes.len() - ip.len().min(packet.bytes.len());
                    tracker.packet(0, packet.at_ns, ip, packet.original_len.saturating_sub(before));
                }
                None => tracker.no_ip(),
            };
            while !stopped.load(Ordering::Acquire) {
                if !watch.receive(&mut see) {
                    let _ = wait_readable(&[watch.as_fd()], Some(GLANCE));
                }
            }
            for _ in 0..LAST {
                if !watch.receive(&mut see) {
                    break;
                }
            }
            (tracker.finish(&[]), watch.take_drops())
        });
        Ok(Self { stop, thread })
    }

    /// What was seen.
    pub(crate) fn finish(self) -> StackObservation {
        self.stop.store(true, Ordering::Release);
        let Ok((analysis, missed)) = self.thread.join() else { return StackObservation::default() };
        StackObservation { missed, ..StackObservation::of(&analysis.connections) }
    }
}

/// To three digits behind the point, as many as are meant: so few come out of the journal as they went into it.
fn to_thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl AckDelay {
    /// The mean over time, µs.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.course.iter().map(|(_, us)| us).sum::<f64>() / self.course.len().max(1) as f64
    }
}

impl StackObservation {
    /// What its window allows a sender that nothing else holds, over an RTT, bit/s: what can be under way with the windows that it
    /// offered, in the mean over time, once in each round trip and the time that a byte waits for its ACK, in the mean over bytes. Unknown of what isn't TCP.
    ///
    /// # Source
    /// Little's law: what is under way in the mean is the rate times how long a byte is.
    #[must_use]
    pub fn window_limit_bps(&self, rtt_us: u64) -> Option<f64> {
        let delay = || self.ack_delay.as_ref().map(AckDelay::mean_us);
        let late_us = self.ack_wait_us.or_else(delay)?;
        Some(self.window_usable.or(self.window_mean)? * 8e6 / (rtt_us.max(1) as f64 + late_us))
    }

    /// Of the connections of one trial. Delays are those of the one with the most payload.
    fn of(connections: &[ConnectionReport]) -> Self {
        let Some(main) = connections.iter().max_by_key(|one| one.bytes()) else { return Self::default() };
        let delay = main.client.ack_delay.as_ref().map(|delay| AckDelay {
            median_us: to_thousandths(delay.median_us),
            ends_us: delay.thirds_us.map(|[first, _, last]| (to_thousandths(first), to_thousandths(last))),
            course: delay.course.iter().map(|(s, us)| (*s, to_thousandths(*us))).collect(),
        });
        let offer = main.client.offer.map(|offer| Offer {
            mss: offer.mss,
            window_scale: offer.window_scale,
            sack: offer.sack,
            timestamps: offer.timestamps,
        });
        let sum = |of: fn(&ConnectionReport) -> u64| Some(connections.iter().map(of).sum());
        Self {
            ack_delay: delay,
            offer,
            window_mean: main.client.window.mean_over_time.map(to_thousandths),
            window_usable: main.client.window.usable.map(to_thousandths),
            ack_wait_us: main.client.ack_wait_us.map(to_thousandths),
            window: connections.iter().map(|one| one.client.window.max).max(),
            retransmissions: sum(|one| one.client.sent.retransmissions),
            server_retransmissions: sum(|one| one.server.sent.retransmissions),
            answer_us: main.answer_time.map(|spread| to_thousandths(spread.min_us)),
            missed: 0,
        }
    }
}
