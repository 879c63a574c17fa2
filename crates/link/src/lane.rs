//! One direction of a path, cut into lanes: the stages of all links up to the next shared medium in one pipe, so that a
//! hop costs no more than its stages.

use crate::stage::Stage;
use crate::{LinkConfig, PathConfig, Pipe, Side};

/// The stages of several links in a row.
pub(crate) struct Lane<P> {
    pub(crate) side: Side,
    pub(crate) pipe: Pipe<P>,
    /// The link at whose other end it ends.
    pub(crate) last_link: usize,
}

/// Where packets that a host or a router sends over a link come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    /// The lane, counted in its direction.
    pub(crate) lane: usize,
    /// The stage in it.
    pub(crate) stage: usize,
}

/// The lanes of one direction from the sender on, and the entry to each link, by the link's number. A lane ends where
/// packets stop.
pub(crate) fn lanes<P: Clone>(
    config: &PathConfig,
    stops: &[bool],
    side: Side,
    seed: u64,
) -> (Vec<Lane<P>>, Vec<Entry>) {
    let count = config.links.len();
    let mut entries = vec![Entry::default(); count];
    let (mut lanes, mut stages) = (Vec::new(), Vec::new());
    // Whether what comes from the links before may have been computed ahead of time.
    let mut ahead = false;
    for hop in 0..count {
        let number = if side == Side::AToB { hop } else { count - 1 - hop };
        let link = &config.links[number];
        if hop > 0 {
            stages.push(Stage::router(number));
        }
        entries[number] = Entry { lane: lanes.len(), stage: stages.len() };
        ahead |= add_link(&mut stages, link, Place { link: number, side }, seed, ahead);
        let stops_behind = stops.get(behind(side, number)).is_some_and(|stop| *stop);
        if link.medium.is_some() || stops_behind || hop + 1 == count {
            lanes.push(Lane { side, pipe: Pipe::of(std::mem::take(&mut stages)), last_link: number });
            ahead = false;
        }
    }
    (lanes, entries)
}

/// The number of the router behind a link in a direction.
pub(crate) const fn behind(side: Side, link: usize) -> usize {
    match side {
        Side::AToB => link + 1,
        Side::BToA => link,
    }
}

/// Adds the stages of a link, with a gate in front of the first that needs arrivals in the order of time when they
/// might come otherwise; says whether packets may leave the link computed ahead.
fn add_link<P>(stages: &mut Vec<Stage<P>>, link: &LinkConfig, place: Place, seed: u64, mut ahead: bool) -> bool {
    let configs = if place.side == Side::AToB { &link.forward } else { &link.backward };
    for (config, number) in configs.iter().zip(place.first()..) {
        if ahead && config.needs_order() {
            stages.push(Stage::gate(place.link));
            ahead = false;
        }
        stages.push(Stage::new(config, place.link, seed, number));
    }
    configs.iter().any(|config| config.looks_ahead())
}

/// A direction of a link, as the place of its generators: far enough apart that no two of them are the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) link: usize,
    pub(crate) side: Side,
}

impl Place {
    /// The number of the first stage's generator.
    const fn first(self) -> u64 {
        (self.link as u64) << 17 | (self.side as u64) << 16
    }

    /// The number of the generator of the medium's station.
    pub(crate) const fn station(self) -> u64 {
        self.first() + (1 << 15)
    }
}
