use wt_wire::Seq;

/// An end's windows over time, and what of them a sender can use.
#[derive(Debug, Default)]
pub(crate) struct OverTime {
    /// When its last ACK passed, the window of that, and what a sender has under way by then.
    last: Option<(u64, u32, u32)>,
    /// How far such a sender has gone.
    sent: Option<Seq>,
    /// Windows times ns, what is under way times ns, and ns.
    sums: [f64; 3],
    /// The windows of all ACKs together, and how many these were.
    acks: (u64, u64),
}

impl OverTime {
    /// An ACK passes. The sender goes on as soon as one whole segment fits, and then as far as the window goes.
    ///
    /// # Source
    /// RFC 9293 section 3.8.6.2.1, the sender's algorithm against silly windows, without the override time-out; a segment that isn't
    /// whole goes behind one that is, as Linux sends it.
    pub(crate) fn note(&mut self, now: u64, ack: Seq, window: u32, segment: u32) {
        if let Some((since, window, used)) = self.last {
            let lasted = now.saturating_sub(since) as f64;
            for (sum, value) in self.sums.iter_mut().zip([f64::from(window), f64::from(used), 1.0]) {
                *sum += value * lasted;
            }
        }
        self.acks = (self.acks.0 + u64::from(window), self.acks.1 + 1);
        let edge = ack.plus(window);
        let sent = self.sent.filter(|sent| edge.is_before(sent.plus(segment)) && !sent.is_before(ack)).unwrap_or(edge);
        self.sent = Some(sent);
        self.last = Some((now, window, u32::try_from(sent.since(ack)).unwrap_or(0).min(window)));
    }

    /// The mean of the windows, bytes, each counted once.
    pub(crate) fn of_acks(&self) -> Option<f64> {
        let (bytes, acks) = self.acks;
        (acks > 0).then(|| bytes as f64 / acks as f64)
    }

    /// The mean of the windows, bytes, each for as long as it was the last that was told.
    pub(crate) fn window(&self) -> Option<f64> {
        let [windows, _, time] = self.sums;
        (time > 0.0).then(|| windows / time)
    }

    /// The mean of what a sender can have under way, bytes.
    pub(crate) fn usable(&self) -> Option<f64> {
        let [_, used, time] = self.sums;
        (time > 0.0).then(|| used / time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_waits_until_a_whole_segment_fits() {
        let mut windows = OverTime::default();
        // 3000 for 10 ns; then too little more for another segment for 20; then just enough for 30.
        for (now, ack) in [(0, 0), (10, 1000), (30, 1460), (60, 2000)] {
            windows.note(now, Seq(5000).plus(ack), 3000, 1460);
        }
        assert_eq!(windows.window(), Some(3000.0));
        assert_eq!(windows.usable(), Some((3000.0 * 10.0 + 2000.0 * 20.0 + 3000.0 * 30.0) / 60.0));
    }

    #[test]
    fn a_window_that_shrinks_bounds_what_can_be_under_way_and_one_ack_says_nothing() {
        let mut windows = OverTime::default();
        windows.note(5, Seq(0), 10_000, 1000);
        assert_eq!((windows.of_acks(), windows.window(), windows.usable()), (Some(10_000.0), None, None));
        windows.note(10, Seq(1000), 500, 1000);
        windows.note(20, Seq(9999), 500, 1000);
        assert_eq!(windows.usable(), Some((10_000.0 * 5.0 + 500.0 * 10.0) / 15.0));
    }
}
