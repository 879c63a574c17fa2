//! The thread that runs the stages of `wt-link` in real time between two kernels' ports.
//!
//! Departures are logical times: a late wake-up delays a packet once and never adds up. How late packets really left is
//! counted, because a lab that was late has measured itself and not the path.

use crate::port::{LARGEST, Port};
use crate::segment::{Buffer, Layout, Run, Segment};
use crate::stats::Counters;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use wt_link::{DropReason, Event, Packet, Path, PathConfig, PathEvent, Side, Time};
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{Waker, wait_readable};

/// Packets that are taken from one port before the other one is looked at.
const BATCH: usize = 16;
/// Smaller packets are copied out of the large buffer, so that a queue of them doesn't hold megabytes.
const SMALL: usize = 2048;
/// Large buffers kept for reuse.
const SPARE: usize = 64;

/// What the engine is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// Begin anew with this seed: nothing is on the way any more, and the same losses come again.
    Reset {
        /// The seed.
        seed: u64,
        /// Told when it is done.
        done: Sender<()>,
    },
    /// End.
    Stop,
}

/// What the engine needs to begin.
pub(crate) struct EngineConfig {
    /// The client's port and the server's.
    pub(crate) ports: [Port; 2],
    /// The stages.
    pub(crate) path: PathConfig,
    /// Whether who stands before each link sends ICMP messages.
    pub(crate) icmp: Vec<bool>,
    /// The first seed.
    pub(crate) seed: u64,
    /// What it counts.
    pub(crate) counters: Arc<Counters>,
    /// What it is told.
    pub(crate) commands: Receiver<Command>,
    /// Wakes it to read a command.
    pub(crate) waker: Arc<Waker>,
}

struct Engine {
    config: EngineConfig,
    path: Path<Segment>,
    start_ns: u64,
    scratch: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// Segments towards each host that may still grow.
    runs: [Option<Run>; 2],
}

/// Runs until it is told to stop or a port breaks.
///
/// # Errors
/// What broke, for people.
pub(crate) fn run(config: EngineConfig) -> Result<(), String> {
    wt_sys::poll::sharpen_timers();
    let path = Path::new(&config.path, config.seed).map_err(|error| error.to_string())?;
    let mut engine = Engine {
        path,
        config,
        start_ns: monotonic_ns(),
        scratch: vec![0; LARGEST],
        spare: Vec::new(),
        runs: [None, None],
    };
    while engine.turn()? {}
    Ok(())
}

/// The host at which packets of a direction arrive: 0 the client, 1 the server.
fn destination(side: Side) -> usize {
    match side {
        Side::AToB => 1,
        Side::BToA => 0,
    }
}

/// A packet that a router made itself.
fn own(bytes: Vec<u8>) -> Option<Packet<Segment>> {
    let layout = Layout::of(&bytes, &wt_sys::vnet::VnetHeader::default())?;
    Some(Rc::new(Buffer::of(bytes, layout)).packet(0))
}

impl Engine {
    fn now(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// One round: in, through, out, wait. False when it is to stop.
    fn turn(&mut self) -> Result<bool, String> {
        let mut busy = false;
        for (port, side) in [(0, Side::AToB), (1, Side::BToA)] {
            busy |= self.take_in(port, side)?;
        }
        self.put_out();
        if busy {
            return Ok(true);
        }
        let wait = self.path.next_due().map(|due| due - self.now());
        if wait == Some(Duration::ZERO) {
            return Ok(true);
        }
        let fds = [self.config.ports[0].as_fd(), self.config.ports[1].as_fd(), self.config.waker.as_fd()];
        let ready = wait_readable(&fds, wait).map_err(|error| error.to_string())?;
        if ready & 0b100 != 0 {
            self.config.waker.clear();
            return Ok(self.obey());
        }
        Ok(true)
    }

    /// Does what it was told; false to stop.
    fn obey(&mut self) -> bool {
        while let Ok(command) = self.config.commands.try_recv() {
            match command {
                Command::Stop => return false,
                Command::Reset { seed, done } => {
                    // The configuration was good the first time.
                    if let Ok(path) = Path::new(&self.config.path, seed) {
                        self.path = path;
                        self.start_ns = monotonic_ns();
                    }
                    let _ = done.send(());
                }
            }
        }
        true
    }

    /// Reads what a host sent and lets it enter the path. True if there may be more.
    fn take_in(&mut self, port: usize, side: Side) -> Result<bool, String> {
        for _ in 0..BATCH {
            let received = self.config.ports[port].receive(&mut self.scratch);
            let received = received.map_err(|error| format!("can't read from the device of a host: {error}"))?;
            let Some((header, place)) = received else { return Ok(false) };
            let now = self.now();
            let Some(layout) = Layout::of(&self.scratch[place.clone()], &header) else { continue };
            let buffer = Rc::new(self.keep(place, layout));
            for index in 0..layout.segments() {
                self.path.push(side, now, buffer.packet(index));
            }
            self.config.counters.received(layout.segments());
        }
        Ok(true)
    }

    /// Takes the packet that was just read: a small one is copied, a large one keeps the buffer it was read into.
    fn keep(&mut self, place: std::ops::Range<usize>, layout: Layout) -> Buffer {
        if place.len() <= SMALL {
            return Buffer::of(self.scratch[place].to_vec(), layout);
        }
        let next = self.spare.pop().unwrap_or_else(|| vec![0; LARGEST]);
        Buffer::new(std::mem::replace(&mut self.scratch, next), place, layout)
    }

    fn recycle(&mut self, buffer: Rc<Buffer>) {
        if self.spare.len() < SPARE
            && let Some(buffer) = Rc::into_inner(buffer)
        {
            let storage = buffer.into_storage();
            if storage.len() == LARGEST {
                self.spare.push(storage);
            }
        }
    }

    /// Hands over everything that is due.
    fn put_out(&mut self) {
        let now = self.now();
        while let Some(PathEvent { side, link, event }) = self.path.poll(now) {
            match event {
                Event::Deliver { at, packet } => {
                    self.config.counters.delivered(now - at);
                    self.deliver(destination(side), &packet);
                }
                Event::Drop { at, reason, packet } => {
                    self.config.counters.dropped(reason);
                    self.answer(side, link, at, reason, &packet);
                    self.recycle(packet.payload.buffer);
                }
            }
        }
        self.flush(0);
        self.flush(1);
    }

    fn deliver(&mut self, host: usize, packet: &Packet<Segment>) {
        if let Some(run) = &mut self.runs[host]
            && run.extend(packet)
        {
            return;
        }
        self.flush(host);
        self.runs[host] = Some(Run::of(packet));
    }

    fn flush(&mut self, host: usize) {
        let Some(run) = self.runs[host].take() else { return };
        let port = &mut self.config.ports[host];
        let outgoing = run.outgoing(port.link_header());
        let payload = &run.buffer.bytes()[outgoing.payload.clone()];
        if port.send(&outgoing.vnet, &outgoing.headers[..outgoing.headers_len], payload).is_err() {
            self.config.counters.refused();
        }
        self.recycle(run.buffer);
    }

    /// What the router does about a packet that it can't forward.
    fn answer(&mut self, side: Side, link: usize, at: Time, reason: DropReason, packet: &Packet<Segment>) {
        if let DropReason::TooBig { mtu } = reason
            && !packet.dont_fragment
        {
            for fragment in crate::router::fragments(packet, mtu).into_iter().filter_map(own) {
                // The link is there: a packet was just too big for it.
                let _ = self.path.inject(side, link, at, fragment);
            }
            return;
        }
        let message = match reason {
            DropReason::TooBig { mtu } if self.config.icmp.get(link).copied().unwrap_or(true) => {
                crate::router::too_big(packet, self.router(side, link), mtu)
            }
            DropReason::HopLimit => crate::router::time_exceeded(packet, self.router(side, link)),
            _ => None,
        };
        let Some(message) = message.and_then(own) else { return };
        let back = side.opposite();
        let over = if side == Side::AToB { link.wrapping_sub(1) } else { link + 1 };
        if let Err(message) = self.path.inject(back, over, at, message) {
            self.deliver(destination(back), &message);
        }
    }

    /// The number of the router that stands before a link in a direction, from 0 beside the client.
    fn router(&self, side: Side, link: usize) -> usize {
        if side == Side::AToB { link } else { link + 1 }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let lost: u64 = self.config.ports.iter_mut().map(Port::take_drops).sum();
        self.config.counters.overflowed(lost);
    }
}
