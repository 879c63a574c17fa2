use crate::medium::Medium;
use crate::{ConfigError, DropReason, Event, LinkConfig, MediumStats, Packet, PathConfig, Pipe, PipeConfig, PipeStats};
use crate::{Side, Time};

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
    nodes: Vec<Node<P>>,
    /// When each node is due, in the same order: one small array to look through.
    due: Vec<u64>,
    links: usize,
    /// Which node is the medium of a link, if it has one.
    mediums: Vec<Option<usize>>,
}

/// Something that packets pass: the pipes of A → B, those of B → A, each from its sender on, then the mediums.
enum Node<P> {
    Pipe { side: Side, link: usize, pipe: Pipe<P> },
    Medium { link: usize, medium: Box<Medium<P>> },
}

/// An event with the direction and the link at which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEvent<P> {
    /// The direction of the packet.
    pub side: Side,
    /// The link, counted from host A. For a delivery it is the last one in the packet's direction; for a drop with
    /// [`DropReason::HopLimit`] or [`DropReason::TooBig`] the one that it was about to enter.
    pub link: usize,
    /// What happened.
    pub event: Event<P>,
}

/// What a path has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathStats {
    /// Each link's forward and backward pipe.
    pub links: Vec<[PipeStats; 2]>,
    /// Each link's medium, if it has one: the station at A and the one at B.
    pub mediums: Vec<Option<[MediumStats; 2]>>,
    /// Packets inside, all over the path.
    pub held: u64,
}

impl<P: Clone> Path<P> {
    /// A path of these links; the same seed loses the same packets.
    ///
    /// # Errors
    /// [`ConfigError`] with the field, its value and what is allowed.
    pub fn new(config: &PathConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let pipe = |side: Side, link: usize, config: &LinkConfig| {
            let stages = if side == Side::AToB { &config.forward } else { &config.backward }.clone();
            let pipe = Pipe::at_place(&PipeConfig { stages }, seed, place(link, side));
            Node::Pipe { side, link, pipe }
        };
        let links = config.links.iter().enumerate();
        let mut nodes: Vec<Node<P>> = links.clone().map(|(link, config)| pipe(Side::AToB, link, config)).collect();
        nodes.extend(links.clone().rev().map(|(link, config)| pipe(Side::BToA, link, config)));
        let mut mediums = vec![None; config.links.len()];
        for (link, config) in links {
            if let Some(medium) = config.medium {
                mediums[link] = Some(nodes.len());
                let medium = Box::new(Medium::new(medium, seed, place(link, Side::AToB) + MEDIUM_PLACE));
                nodes.push(Node::Medium { link, medium });
            }
        }
        Ok(Self { due: vec![u64::MAX; nodes.len()], nodes, links: config.links.len(), mediums })
    }

    /// How many links there are.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.links
    }

    /// A host sends a packet: host A for [`Side::AToB`], host B for the other. Calls come in the order of time.
    pub fn push(&mut self, side: Side, at: Time, packet: Packet<P>) {
        let link = if side == Side::AToB { 0 } else { self.links - 1 };
        self.enter(side, link, at, packet);
    }

    /// The router in front of a link sends a packet of its own over it in the direction `side`: an ICMP message, say.
    ///
    /// A router that found a packet from A too big for link 3 answers with `inject(Side::BToA, 2, …)`. A link that
    /// doesn't exist is the host itself: the packet comes back as `Err` for the engine to deliver on the spot.
    ///
    /// # Errors
    /// The packet, when there is no such link.
    pub fn inject(&mut self, side: Side, link: usize, at: Time, packet: Packet<P>) -> Result<(), Packet<P>> {
        if link >= self.links {
            return Err(packet);
        }
        self.enter(side, link, at, packet);
        Ok(())
    }

    /// The next event with a time up to `now`, in the order of their times; call it until there is none.
    pub fn poll(&mut self, now: Time) -> Option<PathEvent<P>> {
        loop {
            let (index, at) = self.first_due();
            if at > now.0 || at == u64::MAX {
                return None;
            }
            let event = match &mut self.nodes[index] {
                Node::Pipe { side, link, pipe } => {
                    let event = pipe.poll(Time(at)).map(|event| (*side, *link, event));
                    self.due[index] = pipe.due();
                    event.and_then(|(side, link, event)| self.after_pipe(side, link, event))
                }
                Node::Medium { link, medium } => {
                    let event = medium.poll(at).map(|(side, event)| (side, *link, event));
                    self.due[index] = medium.due();
                    event.and_then(|(side, link, event)| self.after_link(side, link, event))
                }
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// When `poll` is worth calling next; `None` while nothing is on the way.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let at = self.first_due().1;
        (at < u64::MAX).then_some(Time(at))
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> PathStats {
        let mut stats =
            PathStats { links: vec![Default::default(); self.links], mediums: vec![None; self.links], held: 0 };
        for node in &self.nodes {
            match node {
                Node::Pipe { side, link, pipe } => {
                    stats.links[*link][side.index()] = pipe.stats();
                    stats.held += stats.links[*link][side.index()].held;
                }
                Node::Medium { link, medium } => {
                    stats.mediums[*link] = Some([Side::AToB, Side::BToA].map(|side| medium.stats(side)));
                    stats.held += medium.held();
                }
            }
        }
        stats
    }

    /// The node that is due first, and when; upstream before downstream at the same time.
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

    fn enter(&mut self, side: Side, link: usize, at: Time, packet: Packet<P>) {
        let index = if side == Side::AToB { link } else { 2 * self.links - 1 - link };
        if let Node::Pipe { pipe, .. } = &mut self.nodes[index] {
            pipe.push(at, packet);
            self.due[index] = pipe.due();
        }
    }

    /// A packet has left the pipe of a link: it goes to the link's medium, if there is one.
    fn after_pipe(&mut self, side: Side, link: usize, event: Event<P>) -> Option<PathEvent<P>> {
        let Some(index) = self.mediums[link] else { return self.after_link(side, link, event) };
        let Event::Deliver { at, packet } = event else { return Some(PathEvent { side, link, event }) };
        if let Node::Medium { medium, .. } = &mut self.nodes[index] {
            medium.push(side, at.0, packet);
            self.due[index] = medium.due();
        }
        None
    }

    /// A packet has left a link: it is at the far end, or a router sends it on.
    fn after_link(&mut self, side: Side, link: usize, event: Event<P>) -> Option<PathEvent<P>> {
        let next = if side == Side::AToB { link + 1 } else { link.wrapping_sub(1) };
        if next >= self.links {
            return Some(PathEvent { side, link, event });
        }
        let Event::Deliver { at, mut packet } = event else { return Some(PathEvent { side, link, event }) };
        packet.ttl = packet.ttl.saturating_sub(1);
        if packet.ttl == 0 {
            let event = Event::Drop { at, reason: DropReason::HopLimit, packet };
            return Some(PathEvent { side, link: next, event });
        }
        self.enter(side, next, at, packet);
        None
    }
}

/// Where the generators of a medium's stations lie behind those of the link's forward stages.
const MEDIUM_PLACE: u64 = 1 << 15;

/// The number of the first generator of a direction of a link: far enough apart that no two stages share one.
const fn place(link: usize, side: Side) -> u64 {
    (link as u64) << 17 | (side as u64) << 16
}

impl<P> std::fmt::Debug for Path<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Path").field("links", &self.links).finish_non_exhaustive()
    }
}
