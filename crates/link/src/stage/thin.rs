use super::HoldEvent;
use crate::{DropReason, Packet, ThinningConfig, Time, time::nanos};
use std::collections::VecDeque;

/// Flows of which an acknowledgement is held at the same time; those of further flows pass.
const MAX_FLOWS: usize = 256;

/// Holds acknowledgements back for a while, and drops those that a later one makes superfluous.
#[derive(Debug)]
pub(crate) struct Thinning<P> {
    every: u32,
    hold: u64,
    /// Arrivals that lie ahead, or are not looked at yet.
    arriving: VecDeque<(u64, Packet<P>)>,
    /// What is held, in the order of the deadlines.
    held: VecDeque<Pending<P>>,
}

#[derive(Debug)]
struct Pending<P> {
    deadline: u64,
    /// Acknowledgements that this one stands for.
    count: u32,
    packet: Packet<P>,
}

impl<P> Thinning<P> {
    pub(crate) fn new(config: &ThinningConfig) -> Self {
        Self { every: config.every, hold: nanos(config.hold), arriving: VecDeque::new(), held: VecDeque::new() }
    }

    pub(crate) fn hold(&mut self, at: u64, packet: Packet<P>) {
        self.arriving.push_back((at, packet));
    }

    pub(crate) fn due(&self) -> u64 {
        let arrival = self.arriving.front().map_or(u64::MAX, |first| first.0);
        self.held.front().map_or(u64::MAX, |first| first.deadline).min(arrival)
    }

    pub(crate) fn step(&mut self, out: &mut Vec<HoldEvent<P>>) {
        let now = self.due();
        if self.held.front().is_some_and(|first| first.deadline == now) {
            let release = |pending: Pending<P>| HoldEvent::Pass { at: Time(now), packet: pending.packet };
            out.extend(self.held.pop_front().map(release));
        } else if let Some((at, packet)) = self.arriving.pop_front() {
            self.arrive(at, packet, out);
        }
    }

    fn arrive(&mut self, at: u64, packet: Packet<P>, out: &mut Vec<HoldEvent<P>>) {
        let held = self.held.iter().position(|pending| pending.packet.flow == packet.flow);
        match (held, packet.pure_ack) {
            (Some(index), true) => self.supersede(index, at, packet, out),
            (Some(index), false) => {
                let release = |pending: Pending<P>| HoldEvent::Pass { at: Time(at), packet: pending.packet };
                out.extend(self.held.remove(index).map(release));
                out.push(HoldEvent::Pass { at: Time(at), packet });
            }
            (None, true) if self.held.len() < MAX_FLOWS && self.every > 1 => {
                self.held.push_back(Pending { deadline: at.saturating_add(self.hold), count: 1, packet });
            }
            (None, _) => out.push(HoldEvent::Pass { at: Time(at), packet }),
        }
    }

    /// A later acknowledgement takes the place of the one that is held, or is the one that goes on.
    fn supersede(&mut self, index: usize, at: u64, packet: Packet<P>, out: &mut Vec<HoldEvent<P>>) {
        let pending = &mut self.held[index];
        pending.count += 1;
        let complete = pending.count >= self.every;
        let older = std::mem::replace(&mut pending.packet, packet);
        out.push(HoldEvent::Drop { at: Time(at), reason: DropReason::Thinned, packet: older });
        if complete {
            let release = |pending: Pending<P>| HoldEvent::Pass { at: Time(at), packet: pending.packet };
            out.extend(self.held.remove(index).map(release));
        }
    }
}
