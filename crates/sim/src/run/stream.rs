//! Streams: messages at a steady pace.
//!
//! What this leaves out: senders that come late to their own pace, as programs on a busy machine do; it matters where the
//! interval is below a millisecond.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | a program's timer and `write` | – | [`Simulation::begin_stream`] |

use super::{Flow, Simulation, nanos};
use crate::spec::Job;
use std::cmp::Reverse;
use std::time::Duration;
use wt_trial::Direction;

/// What the other end answers when the last message of a client has come, bytes.
const CONFIRMATION: u64 = 8;

/// A stream's parameters.
#[derive(Debug, Clone, Copy)]
struct Pace {
    up: bool,
    ask: u64,
    message: u64,
    interval: Duration,
    count: u32,
}

impl Flow {
    fn pace(&self) -> Option<Pace> {
        match self.spec.job {
            Job::Stream { direction, ask, message, interval, count } => {
                Some(Pace { up: direction == Direction::Up, ask, message, interval, count })
            }
            _ => None,
        }
    }

    /// Whether a message is to be sent when the flow wakes.
    pub(super) fn is_pacing(&self) -> bool {
        self.pace().is_some_and(|pace| self.turns < pace.count && (pace.up || self.reacting))
    }

    /// Bytes before the first message, where messages go from the client to the server.
    pub(super) fn before_messages(&self) -> Option<u64> {
        self.pace().filter(|pace| pace.up).map(|pace| pace.ask)
    }
}

impl Simulation {
    /// The connection of a stream stands: the client asks, and begins itself if the messages are its own.
    pub(super) fn begin_stream(&mut self, number: usize) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        let Some(pace) = flow.pace() else { return };
        let all = pace.message * u64::from(pace.count);
        flow.asked = if pace.up { pace.ask + all } else { pace.ask };
        flow.pending_answer = if pace.up { CONFIRMATION } else { all };
        flow.current.asked = Duration::from_nanos(now);
        flow.current.bytes = flow.pending_answer;
        let client = flow.client;
        self.net.act(client, now, |end, out| end.write_to(now, pace.ask, out));
        if pace.up {
            self.send_message(number);
        }
    }

    /// The next message is due; what the connection doesn't take at its time goes as soon as it does.
    pub(super) fn send_message(&mut self, number: usize) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        let Some(pace) = flow.pace() else { return };
        flow.turns += 1;
        let messages = u64::from(flow.turns) * pace.message;
        let (writer, to) = if pace.up { (flow.client, pace.ask + messages) } else { (flow.server, messages) };
        if flow.turns < pace.count {
            self.wake.push(Reverse((now.saturating_add(nanos(pace.interval)), number)));
        } else {
            flow.reacting = false;
        }
        self.net.act(writer, now, |end, out| end.write_to(now, to, out));
    }

    /// Notes which messages have come by now.
    pub(super) fn note_messages(&mut self, number: usize) {
        let flow = &self.flows[number];
        let Some(pace) = flow.pace() else { return };
        let (reader, before) = if pace.up { (flow.server, pace.ask) } else { (flow.client, 0) };
        let come = self.net.end(reader).received().saturating_sub(before) / pace.message.max(1);
        let come = come.min(u64::from(pace.count)) as usize;
        let now = Duration::from_nanos(self.now_ns);
        let messages = &mut self.flows[number].report.messages;
        if come > messages.len() {
            messages.resize(come, now);
        }
    }
}
