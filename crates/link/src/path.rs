use crate::lane::{Entry, Lane, Place, behind, lanes};
use crate::medium::Medium;
use crate::{ConfigError, Event, LinkStats, Packet, PathConfig, PathStats, Side, Time};

/// A chain of links between host A and host B, both directions of it.
///
/// Between each two links stands a router: it takes one from a packet's time to live and drops it at zero. Links are
/// counted from host A in both directions.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use wt_link::{Event, LinkConfig, Packet, Path, PathConfig, Side, StageConfig, Time};
/// let delay = |ms| vec![StageConfig::Delay { delay: Duration::from_millis(ms) }];
/// let link = LinkConfig { forward: delay(10), backward: delay(15), medium: None };
/// let mut path = Path::new(&PathConfig { links: vec![link.clone(), link] }, 1)?;
/// path.push(Side::BToA, Time::ZERO, Packet::new(1500, ()));
/// let arrival = path.poll(Time::from_secs(1)).map(|event| (event.side, event.link, event.event.at()));
/// assert_eq!(arrival, Some((Side::BToA, 0, Time::from_millis(30))));
/// # Ok::<(), wt_link::ConfigError>(())
/// ```
pub struct Path<P> {
    /// Those from A to B, then those from B to A.
    lanes: Vec<Lane<P>>,
    /// The shared mediums, with their links.
    mediums: Vec<(usize, Medium<P>)>,
    /// When each lane and then each medium is due: one small array to look through.
    due: Vec<u64>,
    /// Which medium each link has, if it has one.
    medium_of: Vec<Option<usize>>,
    /// The entry to each link, in each direction.
    entries: [Vec<Entry>; 2],
    /// At which routers packets are handed out.
    stops: Vec<bool>,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    pushed: u64,
    delivered: u64,
    dropped: u64,
}

/// An event with the direction and the link at which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEvent<P> {
    /// The direction of the packet.
    pub side: Side,
    /// The link, counted from host A. For a delivery it is the last one in the packet's direction, or the one in front of
    /// a router at which packets stop ([`Path::with_stops`]); for a drop with
    /// [`HopLimit`](crate::DropReason::HopLimit) or [`TooBig`](crate::DropReason::TooBig) the one that it was about to enter.
    pub link: usize,
    /// What happened.
    pub event: Event<P>,
}

impl<P: Clone> Path<P> {
    /// A path of these links; the same seed loses the same packets.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and what is allowed.
    pub fn new(config: &PathConfig, seed: u64) -> Result<Self, ConfigError> {
        Self::with_stops(config, seed, &[])
    }

    /// A path that hands out each packet that reaches certain routers, for the caller to look at, change or keep, and to
    /// [`Path::forward`]. Router n stands before link n as seen from host A, so 1 is the first one; the hosts' own
    /// numbers 0 and `links` mean nothing here. What stops nowhere costs nothing more.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and what is allowed.
    pub fn with_stops(config: &PathConfig, seed: u64, stops: &[usize]) -> Result<Self, ConfigError> {
        config.validate()?;
        let stops: Vec<bool> = (0..config.links.len()).map(|router| router > 0 && stops.contains(&router)).collect();
        let (forward, forward_entries) = lanes(config, &stops, Side::AToB, seed);
        let (backward, mut backward_entries) = lanes(config, &stops, Side::BToA, seed);
        for entry in &mut backward_entries {
            entry.lane += forward.len();
        }
        let lanes: Vec<Lane<P>> = forward.into_iter().chain(backward).collect();
        let mut mediums = Vec::new();
        let mut medium_of = vec![None; config.links.len()];
        for (link, config) in config.links.iter().enumerate() {
            if let Some(medium) = config.medium {
                medium_of[link] = Some(mediums.len());
                let places = [Side::AToB, Side::BToA].map(|side| Place { link, side }.station());
                mediums.push((link, Medium::new(medium, seed, places)));
            }
        }
        let due = vec![u64::MAX; lanes.len() + mediums.len()];
        let entries = [forward_entries, backward_entries];
        Ok(Self { lanes, mediums, due, medium_of, entries, stops, counts: Counts::default() })
    }

    /// How many links there are.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.medium_of.len()
    }

    /// A host sends a packet: host A for [`Side::AToB`], host B for the other. Calls come in the order of time.
    #[inline]
    pub fn push(&mut self, side: Side, at: Time, packet: Packet<P>) {
        let link = if side == Side::AToB { 0 } else { self.links() - 1 };
        self.counts.pushed += 1;
        self.enter(self.entries[side.index()][link], at, packet);
    }

    /// The router in front of a link sends a packet of its own over it in the direction `side`: an ICMP message, say.
    ///
    /// A router that found a packet from A too big for link 3 answers with `inject(Side::BToA, 2, …)`. A link that
    /// doesn't exist is the host itself: the packet comes back for the engine to deliver on the spot.
    ///
    /// # Errors
    /// The packet, when there is no such link.
    pub fn inject(&mut self, side: Side, link: usize, at: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let Some(entry) = self.entries[side.index()].get(link) else { return Err(packet) };
        self.counts.pushed += 1;
        self.enter(*entry, at, packet);
        Ok(())
    }

    /// The router in front of a link sends on a packet that was handed out there: it takes one from the time to live.
    ///
    /// # Errors
    /// The packet, when there is no such link, or none with a router in front of it.
    pub fn forward(&mut self, side: Side, link: usize, at: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        let router = behind(side.opposite(), link);
        let Some(entry) = self.entries[side.index()].get(link) else { return Err(packet) };
        if !self.stops.get(router).is_some_and(|stop| *stop) {
            return Err(packet);
        }
        self.counts.pushed += 1;
        // A lane that begins at a stop begins with the router.
        self.enter(Entry { stage: 0, ..*entry }, at, packet);
        Ok(())
    }

    /// The next event with a time up to `now`, in the order of their times; call it until there is none.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<PathEvent<P>> {
        loop {
            let (index, at) = self.first_due();
            if at > now.0 || at == u64::MAX {
                return None;
            }
            let event = match self.lanes.get_mut(index) {
                Some(lane) => {
                    let (side, last_link) = (lane.side, lane.last_link);
                    let event = lane.pipe.poll_link(Time(at));
                    self.due[index] = lane.pipe.due();
                    event.and_then(|(link, event)| self.after_lane(side, link, last_link, event))
                }
                None => {
                    let (link, medium) = &mut self.mediums[index - self.lanes.len()];
                    let (link, event) = (*link, medium.poll(at));
                    self.due[index] = medium.due();
                    event.and_then(|(side, event)| self.after_medium(side, link, event))
                }
            };
            if let Some(event) = event {
                let delivered = matches!(event.event, Event::Deliver { .. });
                self.counts.delivered += u64::from(delivered);
                self.counts.dropped += u64::from(!delivered);
                return Some(event);
            }
        }
    }

    /// When `poll` is worth calling next; `None` while nothing is on the way.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let at = self.first_due().1;
        (at < u64::MAX).then_some(Time(at))
    }

    /// When the next event can come, at the earliest: for callers in real time, who need not wake for each link that a packet
    /// enters. Packets that a hop may have to answer wake them at each link, so that the answers are in time; drops that
    /// nobody answers may be told later than they happened.
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let lanes = self.lanes.iter().map(|lane| lane.pipe.wake());
        let mediums = self.due[self.lanes.len()..].iter().copied();
        let at = lanes.chain(mediums).min().unwrap_or(u64::MAX);
        (at < u64::MAX).then_some(Time(at))
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        let Counts { pushed, delivered, dropped } = self.counts;
        let mut links = vec![LinkStats::default(); self.links()];
        let mut duplicated = 0;
        for Lane { side, pipe, .. } in &self.lanes {
            duplicated += pipe.duplicated();
            for (link, stage) in pipe.stage_stats() {
                let LinkStats { forward, backward, .. } = &mut links[link];
                if *side == Side::AToB { forward } else { backward }.push(stage);
            }
        }
        for (link, medium) in &self.mediums {
            links[*link].medium = Some([Side::AToB, Side::BToA].map(|side| medium.stats(side)));
        }
        PathStats { pushed, duplicated, delivered, dropped, held: pushed + duplicated - delivered - dropped, links }
    }

    /// The lane or medium that is due first, and when; upstream before downstream at the same time.
    #[inline]
    fn first_due(&self) -> (usize, u64) {
        let mut first = (0, u64::MAX);
        for (index, at) in self.due.iter().enumerate() {
            if *at < first.1 {
                first = (index, *at);
            }
        }
        first
    }

    #[inline]
    fn enter(&mut self, entry: Entry, at: Time, packet: Packet<P>) {
        let pipe = &mut self.lanes[entry.lane].pipe;
        pipe.enter(entry.stage, at, packet);
        self.due[entry.lane] = pipe.due();
    }

    /// A packet has left a lane: it goes to the medium at its end, or it is at the other end.
    #[inline]
    fn after_lane(&mut self, side: Side, link: usize, last_link: usize, event: Event<P>) -> Option<PathEvent<P>> {
        match event {
            Event::Drop { .. } => Some(PathEvent { side, link, event }),
            Event::Deliver { at, packet } => match self.medium_of[last_link] {
                None => Some(PathEvent { side, link: last_link, event: Event::Deliver { at, packet } }),
                Some(index) => {
                    let medium = &mut self.mediums[index].1;
                    medium.push(side, at.0, packet);
                    self.due[self.lanes.len() + index] = medium.due();
                    None
                }
            },
        }
    }

    /// A packet has left a medium: a router sends it on, or it is at the other end.
    fn after_medium(&mut self, side: Side, link: usize, event: Event<P>) -> Option<PathEvent<P>> {
        let next = if side == Side::AToB { link + 1 } else { link.wrapping_sub(1) };
        let stops = self.stops.get(behind(side, link)).is_some_and(|stop| *stop);
        match (event, self.entries[side.index()].get(next).copied().filter(|_| !stops)) {
            (Event::Deliver { at, packet }, Some(entry)) => {
                // The lane begins with the router in front of the link.
                self.enter(Entry { stage: 0, ..entry }, at, packet);
                None
            }
            (event, _) => Some(PathEvent { side, link, event }),
        }
    }
}

impl<P> std::fmt::Debug for Path<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Path").field("links", &self.medium_of.len()).finish_non_exhaustive()
    }
}
