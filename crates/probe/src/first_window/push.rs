use crate::Time;
use std::time::Duration;

/// So often at most a connection is pushed.
const MOST: u32 = 6;
/// Servers that hold something back do so for this long after they have sent something, and a little.
const RECENT: Duration = Duration::from_millis(1);
/// A tail loss probe comes two round trips and two ticks after the flight: what answers a push comes before.
const TICKS: Duration = Duration::from_micros(1500);
/// How much later than a round trip and a quarter an answer comes at most.
const LATE: Duration = Duration::from_micros(500);

/// Makes a server send what it holds back though its window has room for it.
///
/// A sender that expects an acknowledgement soon waits for it, to send one large packet instead of two small ones. Here
/// none ever comes, so the rest of the window would be held back until the retransmission timer closes it. Whatever
/// segment the server must look at makes it look at its window again: one byte that it has already, and must answer. No
/// acknowledgement is expected sooner than half a round trip after the first data, so flights shorter than that need no push.
///
/// # Source
/// `tcp_tso_should_defer()` of net/ipv4/tcp_output.c, and `tcp_rcv_established()` of net/ipv4/tcp_input.c in Linux 6.18; half a
/// round trip: Linux before 6.18.
#[derive(Debug, Clone, Default)]
pub(super) struct Push {
    /// When the first data came.
    first: Option<Time>,
    /// When something new came last.
    last: Time,
    /// Whether the server may have held something back.
    needed: bool,
    due: Option<Time>,
    sent: Option<Time>,
    count: u32,
    /// Whether the server has answered since something new came last.
    answered: bool,
    /// Its retransmission timer may have fired, and closed the window.
    closed: bool,
}

impl Push {
    /// New data came; the last message was sent at `asked`.
    pub(super) fn came(&mut self, now: Time, asked: Time, rtt: Duration) {
        let first = *self.first.get_or_insert(now);
        self.needed |= now > first + rtt * 3 / 8;
        (self.last, self.answered) = (now, false);
        let due = now.max(asked + rtt) + rtt / 8 + RECENT;
        self.due = (self.needed && !self.closed && self.count < MOST).then_some(due);
    }

    /// We answer, in the middle of the flight: what follows is expected to be acknowledged soon.
    pub(super) fn answers(&mut self) {
        self.needed = true;
    }

    /// What came is no part of the flight: there is nothing to be pushed any more.
    pub(super) fn end(&mut self) {
        self.due = None;
    }

    /// The first segment came again, so soon after others that it may be a copy made on the way or by the server's timer.
    pub(super) fn repeated(&mut self) {
        (self.closed, self.due) = (true, None);
    }

    /// When it is to be pushed.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether to push now. Where tail loss probes may come, it is too late for that when one could be taken for an answer.
    pub(super) fn take_due(&mut self, now: Time, rtt: Duration, probing: bool) -> bool {
        if self.due.take_if(|due| *due <= now).is_none() || probing && now > self.last + rtt / 2 + TICKS {
            return false;
        }
        (self.sent, self.count) = (Some(now), self.count + 1);
        true
    }

    /// An acknowledgement without data came.
    pub(super) fn heard(&mut self, now: Time, rtt: Duration) {
        if self.sent.is_some_and(|sent| now >= sent + rtt * 3 / 4) && now >= self.last + rtt / 8 {
            (self.answered, self.due) = (true, None);
        }
    }

    /// Whether data that come now may be what a push has set free.
    pub(super) fn may_bring(&self, now: Time, rtt: Duration) -> bool {
        self.sent.is_some_and(|sent| now <= sent + rtt * 5 / 4 + LATE)
    }

    /// Whether the server has sent all that its window allowed.
    pub(super) fn is_proven(&self) -> bool {
        !self.needed || self.answered && !self.closed
    }
}
