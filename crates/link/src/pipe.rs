use crate::stage::{HoldEvent, Stage, TimedItem, Verdict};
use crate::{ConfigError, DropReason, Event, Packet, PipeConfig, PipeStats, StageStats, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Packets that one pipe holds at most; what comes on top is dropped with [`DropReason::Overflow`].
///
/// 2²² packets of 1500 bytes are half a second at 100 Gbit/s and eight minutes at 100 Mbit/s.
pub const MAX_HELD: u64 = 1 << 22;

/// One direction of a link: packets go in, and come out as events with the time at which the model says so.
///
/// Times are logical. A departure is computed from the arrival and from the state of the stages, never from the moment
/// at which `poll` is called, so a late caller shifts nothing, and the order of events is that of their times.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use wt_link::{Event, Packet, Pipe, PipeConfig, QueueConfig, StageConfig, Time};
/// let stages = vec![
///     StageConfig::Queue(QueueConfig::drop_tail("12mbit".parse()?, 100)),
///     StageConfig::Delay { delay: Duration::from_millis(10) },
/// ];
/// let mut pipe = Pipe::new(&PipeConfig { stages }, 1)?;
/// pipe.push(Time::ZERO, Packet::new(1500, "a"));
/// assert_eq!(pipe.next_due(), Some(Time::from_millis(11)));
/// assert!(matches!(pipe.poll(Time::from_secs(1)), Some(Event::Deliver { at: Time(11_000_000), .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pipe<P> {
    stages: Vec<Stage<P>>,
    /// The stages that hold packets, upstream first.
    holding: Vec<Holding>,
    /// Where each stage stands in `holding`, if it does.
    slots: Vec<usize>,
    /// When the first of them does something.
    hold_due: u64,
    /// What comes out at the end, by time.
    delivered: VecDeque<(u64, Packet<P>)>,
    /// What ends on the way, and the few that come out at the end before others that were computed ahead.
    sundry: BinaryHeap<Reverse<Sundry<P>>>,
    sundries: u64,
    /// The latest time that the caller has named.
    clock: u64,
    counts: Counts,
    /// [`MAX_HELD`], but for tests.
    max_held: u64,
    /// What a holding stage has just let go of; kept for its memory.
    released: Vec<HoldEvent<P>>,
}

/// A stage that holds packets, and when it next does something: kept here to be looked through fast.
#[derive(Debug, Clone, Copy)]
struct Holding {
    stage: usize,
    due: u64,
    /// What lies behind it, if it is a gate.
    ahead: Ahead,
    /// Packets in the gate that may not come to the end of the pipe, so that their time must be kept exactly.
    exact: u32,
}

/// What a packet that leaves a gate meets in the rest of the pipe.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    /// It takes no less than this to the end, ns; 0 for a stage that is no gate.
    least: u64,
    /// Routers that take one from its time to live.
    routers: u8,
    /// The smallest MTU, bytes.
    mtu: u32,
}

impl Ahead {
    fn of<P>(stages: &[Stage<P>], index: usize) -> Self {
        if !stages[index].is_gate() {
            return Self::default();
        }
        let mut ahead = Self { least: 0, routers: 0, mtu: u32::MAX };
        for stage in &stages[index + 1..] {
            ahead.least = ahead.least.saturating_add(stage.fixed_delay());
            ahead.routers = ahead.routers.saturating_add(u8::from(stage.is_router()));
            ahead.mtu = ahead.mtu.min(stage.mtu());
        }
        ahead
    }

    /// Whether nothing that anybody answers can happen to a packet before the end of the pipe.
    const fn lets_through<P>(&self, packet: &Packet<P>) -> bool {
        self.least == 0 || (packet.ttl > self.routers && packet.ip_len <= self.mtu)
    }
}

type Sundry<P> = TimedItem<(Fate, Packet<P>)>;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Delivered,
    Dropped { link: usize, reason: DropReason },
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    pushed: u64,
    duplicated: u64,
    delivered: u64,
    dropped: u64,
}

impl Counts {
    const fn held(&self) -> u64 {
        self.pushed + self.duplicated - self.delivered - self.dropped
    }
}

impl<P: Clone> Pipe<P> {
    /// A pipe of these stages; the same seed loses the same packets.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and what is allowed.
    pub fn new(config: &PipeConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let stages = config.stages.iter().zip(0..);
        Ok(Self::of(stages.map(|(stage, place)| Stage::new(stage, 0, seed, place)).collect()))
    }

    pub(crate) fn of(stages: Vec<Stage<P>>) -> Self {
        let holds: Vec<usize> = (0..stages.len()).filter(|stage| stages[*stage].holds()).collect();
        Self {
            slots: (0..stages.len()).map(|stage| holds.partition_point(|holding| *holding < stage)).collect(),
            holding: holds
                .into_iter()
                .map(|stage| Holding { stage, due: u64::MAX, ahead: Ahead::of(&stages, stage), exact: 0 })
                .collect(),
            stages,
            hold_due: u64::MAX,
            delivered: VecDeque::new(),
            sundry: BinaryHeap::new(),
            sundries: 0,
            clock: 0,
            counts: Counts::default(),
            max_held: MAX_HELD,
            released: Vec::new(),
        }
    }

    /// A packet arrives. A time before that of an earlier call counts as that earlier time.
    #[inline]
    pub fn push(&mut self, at: Time, packet: Packet<P>) {
        self.enter(0, at, packet);
    }

    /// A packet arrives at the stage of this index.
    #[inline]
    pub(crate) fn enter(&mut self, stage: usize, at: Time, packet: Packet<P>) {
        self.clock = self.clock.max(at.0);
        let full = self.counts.held() >= self.max_held;
        self.counts.pushed += 1;
        if full {
            self.drop_at(self.clock, stage, DropReason::Overflow, packet);
        } else {
            self.walk(stage, self.clock, packet);
        }
    }

    /// The next event with a time up to `now`; call it until there is none.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        self.poll_link(now).map(|(_, event)| event)
    }

    /// The next event up to `now`, and for a drop the link at which it happened.
    #[inline]
    pub(crate) fn poll_link(&mut self, now: Time) -> Option<(usize, Event<P>)> {
        self.clock = self.clock.max(now.0);
        if self.hold_due <= now.0 {
            self.advance(now.0);
        }
        let deliver = self.delivered.front().map_or(u64::MAX, |(at, _)| *at);
        let sundry = self.sundry.peek().map_or(u64::MAX, |first| first.0.at);
        if deliver.min(sundry) > now.0 {
            return None;
        }
        if sundry <= deliver {
            return self.take_sundry();
        }
        let (at, packet) = self.delivered.pop_front()?;
        self.counts.delivered += 1;
        Some((0, Event::Deliver { at: Time(at), packet }))
    }

    /// When `poll` is worth calling next: not before there is an event, or something inside that must be done first.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let due = self.due();
        (due < u64::MAX).then_some(Time(due))
    }

    /// [`Pipe::next_due`] with the end of time for never.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        let deliver = self.delivered.front().map_or(u64::MAX, |(at, _)| *at);
        let sundry = self.sundry.peek().map_or(u64::MAX, |first| first.0.at);
        deliver.min(sundry).min(self.hold_due)
    }

    /// When something can come out next, at the earliest: like [`Pipe::due`], but what only goes on from one link to the next
    /// wakes nobody, since the times of it are logical.
    pub(crate) fn wake(&self) -> u64 {
        let deliver = self.delivered.front().map_or(u64::MAX, |(at, _)| *at);
        let sundry = self.sundry.peek().map_or(u64::MAX, |first| first.0.at);
        let wake = |holding: &Holding| match holding.exact {
            0 => holding.due.saturating_add(holding.ahead.least),
            _ => holding.due,
        };
        self.holding.iter().map(wake).fold(deliver.min(sundry), u64::min)
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> PipeStats {
        PipeStats {
            pushed: self.counts.pushed,
            duplicated: self.counts.duplicated,
            delivered: self.counts.delivered,
            dropped: self.counts.dropped,
            held: self.counts.held(),
            stages: self.stage_stats().map(|(_, stats)| stats).collect(),
        }
    }

    /// The counters of each stage, with its link.
    pub(crate) fn stage_stats(&self) -> impl Iterator<Item = (usize, StageStats)> {
        let configured = self.stages.iter().filter(|stage| stage.is_configured());
        configured.map(|stage| (stage.link(), stage.stats_at(self.clock)))
    }

    /// Packets that stages added.
    pub(crate) const fn duplicated(&self) -> u64 {
        self.counts.duplicated
    }

    /// Leads a packet through the stages from `first` on, until one holds it, one drops it, or it is through.
    #[inline]
    fn walk(&mut self, first: usize, mut at: u64, mut packet: Packet<P>) {
        for index in first..self.stages.len() {
            match self.stages[index].arrive(at, &mut packet) {
                Verdict::Pass(departure) => at = departure,
                Verdict::Drop(reason) => return self.drop_at(at, index, reason, packet),
                Verdict::Twice => self.double(index + 1, at, packet.clone()),
                Verdict::Hold => return self.hold(index, at, packet),
            }
        }
        self.deliver(at, packet);
    }

    #[inline]
    fn deliver(&mut self, at: u64, packet: Packet<P>) {
        if self.delivered.back().is_some_and(|(last, _)| *last > at) {
            self.add_sundry(at, self.stages.len(), Fate::Delivered, packet);
        } else {
            self.delivered.push_back((at, packet));
        }
    }

    #[inline]
    fn hold(&mut self, index: usize, at: u64, packet: Packet<P>) {
        let holding = &mut self.holding[self.slots[index]];
        holding.exact += u32::from(!holding.ahead.lets_through(&packet));
        let stage = &mut self.stages[index];
        stage.hold(at, packet);
        let due = stage.due();
        self.hold_due = self.hold_due.min(due);
        holding.due = due;
    }

    /// Leads a copy through the stages from `first` on, in front of its original.
    #[cold]
    fn double(&mut self, first: usize, at: u64, copy: Packet<P>) {
        let full = self.counts.held() >= self.max_held;
        self.counts.duplicated += 1;
        if full {
            self.drop_at(at, first - 1, DropReason::Overflow, copy);
        } else {
            self.walk(first, at, copy);
        }
    }

    /// A packet ends at a stage; beyond the last one it is the last one's link that counts.
    fn drop_at(&mut self, at: u64, stage: usize, reason: DropReason, packet: Packet<P>) {
        let link = self.stages.get(stage).or(self.stages.last()).map_or(0, Stage::link);
        self.add_sundry(at, stage, Fate::Dropped { link, reason }, packet);
    }

    /// Of what happens at the same time, upstream comes first, and then who came first: so the order doesn't depend on
    /// how far ahead something was computed.
    #[cold]
    fn add_sundry(&mut self, at: u64, stage: usize, fate: Fate, packet: Packet<P>) {
        let number = (stage as u64) << 48 | self.sundries;
        self.sundry.push(Reverse(TimedItem { at, number, item: (fate, packet) }));
        self.sundries += 1;
    }

    /// Lets the holding stages do what is due by `now`, upstream first: each needs nothing but its arrivals until then.
    fn advance(&mut self, now: u64) {
        let mut first = u64::MAX;
        for slot in 0..self.holding.len() {
            while self.holding[slot].due <= now && self.holding[slot].due < u64::MAX {
                self.step(slot);
            }
            first = first.min(self.holding[slot].due);
        }
        self.hold_due = first;
    }

    /// Lets one of them do its next thing.
    #[inline]
    fn step(&mut self, slot: usize) {
        let index = self.holding[slot].stage;
        if let Some((at, packet)) = self.stages[index].open_gate() {
            let holding = &mut self.holding[slot];
            holding.due = self.stages[index].due();
            holding.exact -= u32::from(!holding.ahead.lets_through(&packet));
            return self.walk(index + 1, at, packet);
        }
        let mut released = std::mem::take(&mut self.released);
        self.stages[index].step(&mut released);
        self.holding[slot].due = self.stages[index].due();
        for held in released.drain(..) {
            match held {
                HoldEvent::Pass { at, packet } => self.walk(index + 1, at.0, packet),
                HoldEvent::Drop { at, reason, packet } => self.drop_at(at.0, index, reason, packet),
            }
        }
        self.released = released;
    }

    #[cold]
    fn take_sundry(&mut self) -> Option<(usize, Event<P>)> {
        let TimedItem { at, item: (fate, packet), .. } = self.sundry.pop()?.0;
        let at = Time(at);
        match fate {
            Fate::Delivered => {
                self.counts.delivered += 1;
                Some((0, Event::Deliver { at, packet }))
            }
            Fate::Dropped { link, reason } => {
                self.counts.dropped += 1;
                Some((link, Event::Drop { at, reason, packet }))
            }
        }
    }
}

impl<P> std::fmt::Debug for Pipe<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("stages", &self.stages.len()).field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StageConfig;
    use std::time::Duration;
    use wt_units::Ratio;

    #[test]
    fn what_a_pipe_cannot_hold_is_dropped_and_says_so() {
        let delay = StageConfig::Delay { delay: Duration::from_secs(3_600) };
        let doubling = StageConfig::Duplicate { probability: Ratio(1.0) };
        let mut pipe: Pipe<u32> = Pipe::new(&PipeConfig { stages: vec![delay, doubling] }, 1).unwrap();
        pipe.max_held = 3;
        (0..3).for_each(|number| pipe.push(Time(number), Packet::new(100, number as u32)));
        let events: Vec<_> = std::iter::from_fn(|| pipe.poll(Time::MAX)).collect();
        let overflow = |event: &&Event<u32>| matches!(event, Event::Drop { reason: DropReason::Overflow, .. });
        assert_eq!(events.iter().filter(overflow).count(), 2);
        let stats = pipe.stats();
        assert_eq!((stats.pushed, stats.duplicated, stats.delivered, stats.dropped, stats.held), (3, 2, 3, 2, 0));
    }
}
