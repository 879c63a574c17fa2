//! The path between the hosts with its hops: where packets enter it, what routers answer, where packets leave it. Pure:
//! time is an argument, and packets come and go as values.

use crate::hop::{HopOutcome, HopState, destination_of, hops, router_number};
use crate::record::{LinkEnd, Shot};
use crate::router;
use crate::scenario::Scenario;
use crate::segment::{Buffer, Layout, Segment, Transport};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use wt_link::{ConfigError, DropReason, Event, Packet, Path, PathEvent, Side, Time};

/// Where a host is, and what it is called there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// In front of which link it stands, counted from the client; the server stands behind the last one.
    pub(crate) node: usize,
    /// Its addresses.
    pub(crate) addresses: [IpAddr; 2],
}

/// The path, its hops, and the hosts' places.
pub(crate) struct Links {
    scenario: Scenario,
    /// The client's place, the server's, and those of the hosts on the way.
    places: Vec<Place>,
    path: Path<Segment>,
    /// One in front of each link, and one behind the last.
    hops: Vec<HopState>,
    /// What happened outside of the path: at the hops beside the hosts, or where somebody answered at once.
    ready: VecDeque<Outcome>,
    /// Which ends of links are recorded.
    ends: Vec<LinkEnd>,
    /// What was recorded and not yet fetched.
    shots: Vec<Shot>,
}

/// What became of a packet.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is for the kernel of this host.
    Arrived {
        /// Which.
        host: usize,
        /// When it came there.
        at: Time,
        /// The packet.
        packet: Packet<Segment>,
    },
    /// It ended on the way.
    Ended {
        /// Why.
        reason: DropReason,
        /// The packet.
        packet: Packet<Segment>,
    },
    /// It ended at a hop that doesn't let it through, or has no use for it.
    Stopped,
}

/// Whether a packet is a kernel talking to its link: router solicitations, multicast listener reports. No router forwards
/// such (RFC 4291 sections 2.5.6 and 2.7), nobody on the path has an answer, and their chance moments would shift the
/// random choices that other packets meet.
fn stays_on_link(buffer: &Buffer) -> bool {
    let bytes = buffer.bytes();
    let link_local = bytes[8] == 0xfe && bytes[9] & 0xc0 == 0x80;
    let unspecified = || bytes[8..24].iter().all(|byte| *byte == 0);
    buffer.layout.v6 && (link_local || (bytes[24] == 0xff && bytes[25] & 15 == 2) || unspecified())
}

/// A packet that a router made itself.
fn own(bytes: Vec<u8>) -> Option<Packet<Segment>> {
    let layout = Layout::of(&bytes, &wt_sys::vnet::VnetHeader::default())?;
    Some(Rc::new(Buffer::of(bytes, layout)).packet(0))
}

impl Links {
    /// The path of a scenario between hosts at these places.
    ///
    /// # Errors
    /// [`ConfigError`] for values that the scenario's reader didn't check.
    pub(crate) fn new(
        scenario: Scenario,
        places: Vec<Place>,
        ends: Vec<LinkEnd>,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let (path, hops) = Self::parts(&scenario, &ends, seed)?;
        Ok(Self { scenario, places, path, hops, ready: VecDeque::new(), ends, shots: Vec::new() })
    }

    fn parts(scenario: &Scenario, ends: &[LinkEnd], seed: u64) -> Result<(Path<Segment>, Vec<HopState>), ConfigError> {
        let hops = hops(scenario);
        let looks = |number: &usize| hops[*number].looks_at_packets() || ends.iter().any(|end| end.node() == *number);
        let stops: Vec<usize> = (0..hops.len()).filter(looks).collect();
        Ok((Path::with_stops(&scenario.path(), seed, &stops)?, hops))
    }

    /// Begins anew: nothing is on the way, and the hops have forgotten everything.
    pub(crate) fn reset(&mut self, seed: u64) {
        // The configuration was good the first time.
        if let Ok((path, hops)) = Self::parts(&self.scenario, &self.ends, seed) {
            (self.path, self.hops) = (path, hops);
        }
        self.ready.clear();
    }

    /// When [`Links::poll`] is worth calling next.
    pub(crate) fn next_due(&self) -> Option<Time> {
        if self.ready.is_empty() { self.path.next_wake() } else { Some(Time::ZERO) }
    }

    /// A host sends what lies in a buffer.
    pub(crate) fn send(&mut self, host: usize, now: Time, buffer: &Rc<Buffer>) {
        let node = self.places[host].node;
        let first = buffer.packet(0);
        if stays_on_link(buffer) {
            return;
        }
        let destination = destination_of(&first);
        let side = self.towards(node, destination).unwrap_or(if node == self.last() { Side::BToA } else { Side::AToB });
        let lives = destination.and_then(|address| self.lives_to(node, side, address));
        let plain = lives.is_none() && self.is_plain(node, side);
        for mut packet in buffer.packets() {
            if plain {
                self.path.push(side, now, packet);
                continue;
            }
            if let Some(lives) = lives {
                if lives == 0 {
                    self.shoot_beside(node, now, false, &packet);
                    self.answer_own(node, side, now, &packet);
                    continue;
                }
                packet.ttl = packet.ttl.min(lives);
            }
            self.enter(node, side, now, packet);
        }
    }

    /// What happened up to `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.ready.pop_front() {
                return Some(outcome);
            }
            let PathEvent { side, link, event } = self.path.poll(now)?;
            match event {
                Event::Deliver { at, packet } => {
                    self.shoot_in(side, link, at, &packet);
                    let node = if side == Side::AToB { link + 1 } else { link };
                    if node == 0 || node == self.last() {
                        if let Some(outcome) = self.at_end(side, node, at, packet) {
                            return Some(outcome);
                        }
                    } else {
                        self.at_hop(side, node, at, packet);
                    }
                }
                Event::Drop { at, reason, packet } => {
                    self.answer(side, link, at, reason, &packet);
                    return Some(Outcome::Ended { reason, packet });
                }
            }
        }
    }

    /// What was recorded since the last call.
    pub(crate) fn shots(&mut self) -> std::vec::Drain<'_, Shot> {
        self.shots.drain(..)
    }

    /// Records a packet at an end of a link, if that is recorded.
    fn shoot(&mut self, at_end: LinkEnd, at: Time, inbound: bool, packet: &Packet<Segment>) {
        let Some(end) = self.ends.iter().position(|end| *end == at_end) else { return };
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        self.shots.extend(router::on_the_wire(packet).map(|bytes| Shot { end, at, inbound, bytes }));
    }

    /// A packet goes onto a link in a direction; `lives` is what its time to live will be on it. What is too long for the link no
    /// router puts on it; a host does, since its device is the one that is recorded there, and the first router looks at it behind that.
    fn shoot_out(&mut self, side: Side, link: usize, at: Time, packet: &Packet<Segment>, lives: u8) {
        let fits = self.scenario.links.get(link).is_some_and(|link| u64::from(packet.ip_len) <= link.mtu.get());
        if !self.ends.is_empty() && (fits || self.is_outer(side, link)) && lives > 0 {
            let end = LinkEnd { link, server_side: side == Side::BToA };
            self.shoot(end, at, false, &Packet { ttl: lives, ..packet.clone() });
        }
    }

    /// Whether client or server puts on a link what goes over it in a direction.
    fn is_outer(&self, side: Side, link: usize) -> bool {
        link == if side == Side::AToB { 0 } else { self.last() - 1 }
    }

    /// Client or server sends a packet to the router beside it (or gets one from it), which goes over no link.
    fn shoot_beside(&mut self, node: usize, at: Time, inbound: bool, packet: &Packet<Segment>) {
        let server_side = node == self.last();
        if !self.ends.is_empty() && (server_side || node == 0) {
            self.shoot(LinkEnd { link: node.saturating_sub(1), server_side }, at, inbound, packet);
        }
    }

    /// A packet comes off a link.
    fn shoot_in(&mut self, side: Side, link: usize, at: Time, packet: &Packet<Segment>) {
        if !self.ends.is_empty() {
            self.shoot(LinkEnd { link, server_side: side == Side::AToB }, at, true, packet);
        }
    }

    /// The number of the hop behind the last link.
    fn last(&self) -> usize {
        self.hops.len() - 1
    }

    /// Whether what a host sends needs no more than the path: nobody looks at it beside the host, and nobody records it.
    fn is_plain(&self, node: usize, side: Side) -> bool {
        let at_end = (side == Side::AToB && node == 0) || (side == Side::BToA && node == self.last());
        at_end && self.ends.is_empty() && !(node == 0 && self.hops[0].looks_at_packets())
    }

    /// In which direction an address lies from a hop; `None` if it is there, or not known.
    fn towards(&self, node: usize, address: Option<IpAddr>) -> Option<Side> {
        let there = self.place_of(address?)?;
        match there.cmp(&node) {
            std::cmp::Ordering::Less => Some(Side::BToA),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Side::AToB),
        }
    }

    fn place_of(&self, address: IpAddr) -> Option<usize> {
        let host = self.places.iter().find(|place| place.addresses.contains(&address)).map(|place| place.node);
        host.or_else(|| router_number(address).filter(|number| *number < self.hops.len()))
    }

    fn host_at(&self, node: usize, address: Option<IpAddr>) -> Option<usize> {
        let address = address?;
        self.places.iter().position(|place| place.node == node && place.addresses.contains(&address))
    }

    /// How many lives a packet for a router's own address has at most, so that it ends there; `None` for other addresses,
    /// and where the address may stand for somebody behind it.
    fn lives_to(&self, node: usize, side: Side, address: IpAddr) -> Option<u8> {
        let there = router_number(address).filter(|there| *there < self.hops.len())?;
        let beside_host = there == 0 || there == self.last();
        if self.hops[there].translates() || (beside_host && there != node) {
            return None;
        }
        let hops = if side == Side::AToB { there.saturating_sub(node) } else { node.saturating_sub(there) };
        u8::try_from(hops).ok()
    }

    /// A packet from a hop or the host there goes onto the next link in a direction.
    fn enter(&mut self, node: usize, side: Side, at: Time, packet: Packet<Segment>) {
        if node == 0 && side == Side::AToB && self.hops[0].looks_at_packets() {
            match self.hops[0].pass(side, at, packet) {
                HopOutcome::On(packet) => {
                    self.shoot_out(side, 0, at, &packet, packet.ttl);
                    self.path.push(side, at, packet);
                }
                HopOutcome::Own(packet) => self.answer_own(0, side, at, &packet),
                HopOutcome::Ended => self.ready.push_back(Outcome::Stopped),
            }
            return;
        }
        let over = if side == Side::AToB { node } else { node.wrapping_sub(1) };
        self.shoot_out(side, over, at, &packet, packet.ttl);
        if (side == Side::AToB && node == 0) || (side == Side::BToA && node == self.last()) {
            return self.path.push(side, at, packet);
        }
        if let Err(packet) = self.path.inject(side, over, at, packet) {
            let host = usize::from(side == Side::AToB);
            self.ready.push_back(Outcome::Arrived { host, at, packet });
        }
    }

    /// A packet has come to the end of the path.
    fn at_end(&mut self, side: Side, node: usize, at: Time, packet: Packet<Segment>) -> Option<Outcome> {
        let packet = if node == 0 && self.hops[0].looks_at_packets() {
            match self.hops[0].pass(side, at, packet) {
                HopOutcome::On(packet) => packet,
                HopOutcome::Own(packet) => {
                    self.answer_own(node, side, at, &packet);
                    return None;
                }
                HopOutcome::Ended => return Some(Outcome::Stopped),
            }
        } else {
            packet
        };
        let other = packet.payload.buffer.layout.transport != Transport::Tcp;
        if other && destination_of(&packet).and_then(router_number) == Some(node) {
            self.answer_own(node, side, at, &packet);
            return None;
        }
        Some(Outcome::Arrived { host: usize::from(side == Side::AToB), at, packet })
    }

    /// A packet has come to a hop that wants to see it.
    fn at_hop(&mut self, side: Side, node: usize, at: Time, packet: Packet<Segment>) {
        if let Some(host) = self.host_at(node, destination_of(&packet)) {
            self.ready.push_back(Outcome::Arrived { host, at, packet });
            return;
        }
        // What a router can't send on it quotes as it came.
        let passed = if packet.ttl > 1 { self.hops[node].pass(side, at, packet) } else { HopOutcome::On(packet) };
        match passed {
            HopOutcome::On(packet) => {
                let next = if side == Side::AToB { node } else { node - 1 };
                self.shoot_out(side, next, at, &packet, packet.ttl.saturating_sub(1));
                // There is such a link, and packets stop in front of it.
                let _ = self.path.forward(side, next, at, packet);
            }
            HopOutcome::Own(packet) => self.answer_own(node, side, at, &packet),
            HopOutcome::Ended => self.ready.push_back(Outcome::Stopped),
        }
    }

    /// What the router does about a packet that it can't forward.
    fn answer(&mut self, side: Side, link: usize, at: Time, reason: DropReason, packet: &Packet<Segment>) {
        let node = if side == Side::AToB { link } else { link + 1 };
        let v6 = packet.payload.buffer.layout.v6;
        match reason {
            DropReason::TooBig { mtu } if !packet.dont_fragment => {
                for fragment in router::fragments(packet, mtu).into_iter().filter_map(own) {
                    // What a host sent passed its device whole.
                    if !self.is_outer(side, link) {
                        self.shoot_out(side, link, at, &fragment, fragment.ttl);
                    }
                    // The link is there: a packet was just too big for it.
                    let _ = self.path.inject(side, link, at, fragment);
                }
            }
            DropReason::TooBig { mtu } if self.scenario.links[link].icmp && self.hops[node].tells_too_big(at, v6) => {
                let message = router::too_big(packet, node, self.hops[node].named_mtu(mtu));
                self.say(node, side.opposite(), at, message);
            }
            DropReason::HopLimit if destination_of(packet).and_then(router_number) == Some(node) => {
                self.answer_own(node, side, at, packet);
            }
            DropReason::HopLimit if self.hops[node].tells_time_exceeded(at) => {
                // It came with one life left, and is quoted so.
                let came = Packet { ttl: packet.ttl.saturating_add(1), ..packet.clone() };
                self.say(node, side.opposite(), at, router::time_exceeded(&came, node));
            }
            _ => {}
        }
    }

    /// A router answers what is for itself.
    fn answer_own(&mut self, node: usize, side: Side, at: Time, packet: &Packet<Segment>) {
        if self.hops[node].answers(at) {
            let message = router::own_answer(packet, node);
            self.say(node, side.opposite(), at, message);
        }
    }

    /// A router sends a message of its own; `back` is where the packet came from that it is about.
    fn say(&mut self, node: usize, back: Side, at: Time, message: Option<Vec<u8>>) {
        let Some(mut message) = message.and_then(own) else { return };
        let here = destination_of(&message).and_then(router_number) == Some(node);
        if here && self.hops[node].translates() {
            // For somebody behind this very router.
            match self.hops[node].pass(Side::BToA, at, message) {
                HopOutcome::On(translated) => message = translated,
                HopOutcome::Ended | HopOutcome::Own(_) => return,
            }
        }
        let destination = destination_of(&message);
        if let Some(host) = self.host_at(node, destination) {
            self.shoot_beside(node, at, true, &message);
            self.ready.push_back(Outcome::Arrived { host, at, packet: message });
            return;
        }
        let side = self.towards(node, destination).unwrap_or(back);
        self.enter(node, side, at, message);
    }
}

#[cfg(test)]
mod tests;
