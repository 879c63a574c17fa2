use crate::stage::{Held, Stage, Timed, Verdict};
use crate::{ConfigError, DropReason, Event, Packet, PipeConfig, PipeStats, Time};
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
    /// Which stages hold packets, upstream first.
    holding: Vec<usize>,
    /// When the first of the holding stages does something.
    hold_due: u64,
    /// What comes out at the end, by time.
    delivered: VecDeque<(u64, Packet<P>)>,
    /// What ends on the way, by time.
    dropped: BinaryHeap<Reverse<Timed<Dropped<P>>>>,
    drops: u64,
    /// The latest time that the caller has named.
    clock: u64,
    counts: Counts,
}

type Dropped<P> = (DropReason, Packet<P>);

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
    /// A pipe of these stages.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and what is allowed.
    pub fn new(config: &PipeConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self::at_place(config, seed, 0))
    }

    /// The same for a configuration that was validated, at a place in a path: the stages' generators are numbered from
    /// `place` on.
    pub(crate) fn at_place(config: &PipeConfig, seed: u64, place: u64) -> Self {
        let stages: Vec<Stage<P>> =
            config.stages.iter().zip(place..).map(|(stage, place)| Stage::new(stage, seed, place)).collect();
        Self {
            holding: (0..stages.len()).filter(|index| stages[*index].holds()).collect(),
            stages,
            hold_due: u64::MAX,
            delivered: VecDeque::new(),
            dropped: BinaryHeap::new(),
            drops: 0,
            clock: 0,
            counts: Counts::default(),
        }
    }

    /// A packet arrives. A time before that of an earlier call counts as that earlier time.
    pub fn push(&mut self, at: Time, packet: Packet<P>) {
        self.clock = self.clock.max(at.0);
        let full = self.counts.held() >= MAX_HELD;
        self.counts.pushed += 1;
        if full {
            self.drop_at(self.clock, DropReason::Overflow, packet);
        } else {
            self.walk(0, self.clock, packet);
        }
    }

    /// The next event with a time up to `now`; call it until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        self.clock = self.clock.max(now.0);
        loop {
            let deliver = self.delivered.front().map_or(u64::MAX, |(at, _)| *at);
            let drop = self.dropped.peek().map_or(u64::MAX, |first| first.0.at);
            let first = deliver.min(drop);
            if self.hold_due < first {
                if self.hold_due > now.0 {
                    return None;
                }
                self.step();
            } else if first > now.0 {
                return None;
            } else if drop <= deliver {
                return self.take_drop();
            } else {
                return self.take_delivery();
            }
        }
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
        let drop = self.dropped.peek().map_or(u64::MAX, |first| first.0.at);
        deliver.min(drop).min(self.hold_due)
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
            stages: self.stages.iter().map(|stage| stage.stats_at(self.clock)).collect(),
        }
    }

    /// Leads a packet through the stages from `first` on, until one holds it, one drops it, or it is through.
    fn walk(&mut self, first: usize, mut at: u64, mut packet: Packet<P>) {
        for index in first..self.stages.len() {
            match self.stages[index].arrive(at, &mut packet) {
                Verdict::Pass(departure) => at = departure,
                Verdict::Drop(reason) => return self.drop_at(at, reason, packet),
                Verdict::Twice => self.double(index + 1, at, packet.clone()),
                Verdict::Hold => {
                    self.stages[index].hold(at, packet);
                    self.hold_due = self.hold_due.min(self.stages[index].due());
                    return;
                }
            }
        }
        self.delivered.push_back((at, packet));
    }

    /// Leads a copy through the stages from `first` on, in front of its original.
    #[cold]
    fn double(&mut self, first: usize, at: u64, copy: Packet<P>) {
        let full = self.counts.held() >= MAX_HELD;
        self.counts.duplicated += 1;
        if full {
            self.drop_at(at, DropReason::Overflow, copy);
        } else {
            self.walk(first, at, copy);
        }
    }

    #[cold]
    fn drop_at(&mut self, at: u64, reason: DropReason, packet: Packet<P>) {
        self.dropped.push(Reverse(Timed { at, number: self.drops, item: (reason, packet) }));
        self.drops += 1;
    }

    /// Lets the holding stage that is due first do its next thing.
    fn step(&mut self) {
        let Some(index) = self.holding.iter().copied().min_by_key(|index| self.stages[*index].due()) else { return };
        match self.stages[index].step() {
            Some(Held::Pass { at, packet }) => self.walk(index + 1, at.0, packet),
            None => {}
        }
        self.hold_due = self.holding.iter().map(|index| self.stages[*index].due()).min().unwrap_or(u64::MAX);
    }

    fn take_delivery(&mut self) -> Option<Event<P>> {
        let (at, packet) = self.delivered.pop_front()?;
        self.counts.delivered += 1;
        Some(Event::Deliver { at: Time(at), packet })
    }

    #[cold]
    fn take_drop(&mut self) -> Option<Event<P>> {
        let Timed { at, item: (reason, packet), .. } = self.dropped.pop()?.0;
        self.counts.dropped += 1;
        Some(Event::Drop { at: Time(at), reason, packet })
    }
}

impl<P> std::fmt::Debug for Pipe<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("stages", &self.stages.len()).field("counts", &self.counts).finish_non_exhaustive()
    }
}
