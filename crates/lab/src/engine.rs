//! The thread that runs the stages of `wt-link` in real time between two kernels' ports.
//!
//! Departures are logical times: a late wake-up delays a packet once and never adds up. How late packets really left is
//! counted, because a lab that was late has measured itself and not the path.

use crate::links::{Links, Outcome, Place};
use crate::port::{LARGEST, Port};
use crate::record::{LinkEnd, Shooter};
use crate::scenario::Scenario;
use crate::segment::{Buffer, Layout, Run, Segment, held_bytes};
use crate::stats::{Counters, Round};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use wt_link::{Packet, Time};
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{Waker, wait_readable};

/// Packets that are taken from one port before the other one is looked at.
const BATCH: usize = 16;
/// Smaller packets are copied out of the large buffer, so that a queue of them doesn't hold megabytes …
const SMALL: usize = 2048;
/// … and up to here those that are no super-packet: of one packet nothing is shared.
const ONE_PACKET: usize = 16_384;
/// Large buffers kept for reuse.
const SPARE: usize = 64;
/// Packets on the way take at most so many bytes, and at most a quarter of the machine's memory: more than 10 Gbit/s over a second.
/// What comes on top the lab loses, and says so.
const MOST_HELD: usize = 2 << 30;

/// The engine asks to be woken at most so long before something is due, ns; several in a process share it.
const EARLIEST: u64 = 300_000;

/// Engines that run in this process.
static ENGINES: AtomicU64 = AtomicU64::new(0);

/// A packet that wakes the engine counts as having come at most so much earlier, ns: what nearly every wake-up of a halted processor
/// takes at least. Where one took less, as on a processor that had just gone idle, a packet is that much too early: no more.
const LONGEST_WAKE: u64 = 50_000;

/// How late this machine's timers wake the engine, and so how much earlier it asks for: a virtual processor that had halted
/// takes 50 to 200 µs to go on. What it is woken too early it spins.
///
/// The margin follows the lateness of most wake-ups: a step up for each that was later, a smaller one down for each that
/// was not, so that it rests where as many steps go up as down, at 6 of 7. Who waits for longer than a wake-up can take waits
/// for a core: there it would only take more of what is short, and goes back to nothing.
#[derive(Debug, Default)]
struct Margin(u64);

impl Margin {
    const UP: u64 = 12_000;
    const DOWN: u64 = 2_000;

    /// The engine was woken so long after the time that it had asked for.
    ///
    /// [`Margin::of_an_arrival`] tells how long ago that was which woke it.
    fn learn(&mut self, late_ns: u64) {
        self.0 = match late_ns {
            waited if waited > EARLIEST => self.0 / 2,
            late if late > self.0 => (self.0 + Self::UP).min(EARLIEST / ENGINES.load(Relaxed).max(1)),
            _ => self.0.saturating_sub(Self::DOWN),
        };
    }

    /// How long ago the packet came that has woken the engine: no device says it, and a wake-up takes what it takes, whether a
    /// timer or a packet is the cause. Bounded, since on a busy machine most of a timer's lateness is waiting for a core.
    fn of_an_arrival(&self) -> u64 {
        self.0.min(LONGEST_WAKE)
    }
}

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
    /// Say whether all ports still work.
    Check {
        /// Told if they do.
        done: Sender<()>,
    },
    /// End.
    Stop,
}

/// What the engine needs to begin.
pub(crate) struct EngineConfig {
    /// The client's port, the server's, and those of the hosts on the way.
    pub(crate) ports: Vec<Port>,
    /// Where each of these hosts is.
    pub(crate) places: Vec<Place>,
    /// What lies between them.
    pub(crate) scenario: Scenario,
    /// Which ends of links are recorded, and by whom.
    pub(crate) record: Option<(Vec<LinkEnd>, Shooter)>,
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
    ports: Vec<Port>,
    links: Links,
    shooter: Option<Shooter>,
    counters: Arc<Counters>,
    commands: Receiver<Command>,
    waker: Arc<Waker>,
    start_ns: u64,
    scratch: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// Segments towards each host that may still grow.
    runs: Vec<Option<Run>>,
    /// Bytes that packets on the way may take.
    most_held: usize,
    margin: Margin,
    /// The ports that the last wait called ready, a bit each.
    ready: u128,
    /// How much earlier than it is seen the packet came that has woken the engine, ns.
    earlier: u64,
    /// Time is virtual: nothing takes any but what waits, so nothing is late, and who spins keeps the one processor from the hosts.
    is_virtual: bool,
}

/// Runs until it is told to stop or a port breaks.
///
/// # Errors
/// What broke, for people.
pub(crate) fn run(config: EngineConfig) -> Result<(), String> {
    wt_sys::poll::sharpen_timers();
    config.counters.runs_here();
    let EngineConfig { ports, places, scenario, record, seed, counters, commands, waker } = config;
    let (ends, shooter) = record.map_or((Vec::new(), None), |(ends, shooter)| (ends, Some(shooter)));
    let mut engine = Engine {
        links: Links::new(scenario, places, ends, seed).map_err(|error| error.to_string())?,
        shooter,
        runs: ports.iter().map(|_| None).collect(),
        ports,
        counters,
        commands,
        waker,
        start_ns: monotonic_ns(),
        scratch: vec![0; LARGEST],
        spare: Vec::new(),
        most_held: memory().map_or(MOST_HELD, |memory| MOST_HELD.min(memory / 4)),
        margin: Margin::default(),
        ready: 0,
        earlier: 0,
        is_virtual: crate::guest::is_guest(),
    };
    ENGINES.fetch_add(1, Relaxed);
    let ended = loop {
        match engine.turn() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(broken) => break Err(broken),
        }
    };
    ENGINES.fetch_sub(1, Relaxed);
    ended
}

/// What it means that a port can't be read.
#[expect(clippy::needless_pass_by_value, reason = "errors are mapped to it")]
fn gone(error: std::io::Error) -> String {
    format!("can't read from the device of a host: {error}")
}

/// This machine's memory, bytes: `MemTotal` of proc_meminfo(5).
fn memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// The most of a wait that ends early enough whatever the kernel adds: it may let a poll end a thousandth of its time later, to
/// wake for several things at once. The rest is waited for anew.
///
/// # Source
/// `select_estimate_accuracy()` of fs/select.c of Linux.
fn in_steps(wait: Duration) -> Duration {
    if wait > Duration::from_micros(2) { wait - wait / 500 } else { wait }
}

impl Engine {
    fn now(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// One round: in, through, out, wait. False when it is to stop.
    fn turn(&mut self) -> Result<bool, String> {
        let mut busy = false;
        for port in 0..self.ports.len() {
            let took = self.take_in(port)?;
            busy |= took == BATCH;
            if took == 0 && self.ready >> port & 1 != 0 {
                self.ports[port].take_error().map_err(gone)?;
            }
        }
        self.ready = 0;
        self.put_out();
        if busy {
            return Ok(true);
        }
        let asked = self.links.next_due().map(|due| Time(due.0.saturating_sub(self.margin.0)));
        let wait = asked.map(|asked| asked - self.now());
        if wait == Some(Duration::ZERO) {
            return Ok(true);
        }
        let wait = if self.is_virtual { wait.map(in_steps) } else { wait };
        let fds: Vec<BorrowedFd<'_>> = self.ports.iter().map(Port::as_fd).chain([self.waker.as_fd()]).collect();
        let before = self.now();
        let ready = wait_readable(&fds, wait).map_err(|error| error.to_string())?;
        self.ready = ready;
        if let Some(asked) = asked.filter(|_| ready == 0 && !self.is_virtual) {
            self.margin.learn(self.now().0.saturating_sub(asked.0));
        }
        // It came while we waited: what was there before had no wake-up.
        let waited = self.now().0.saturating_sub(before.0);
        self.earlier = if ready == 0 { 0 } else { self.margin.of_an_arrival().min(waited) };
        if ready >> self.ports.len() & 1 != 0 {
            self.waker.clear();
            return self.obey();
        }
        Ok(true)
    }

    /// Does what it was told; false to stop.
    fn obey(&mut self) -> Result<bool, String> {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return Ok(false),
                Command::Check { done } => {
                    for port in 0..self.ports.len() {
                        self.take_in(port)?;
                        self.ports[port].take_error().map_err(gone)?;
                    }
                    let _ = done.send(());
                }
                Command::Reset { seed, done } => {
                    self.links.reset(seed);
                    self.start_ns = monotonic_ns();
                    let _ = done.send(());
                }
            }
        }
        Ok(true)
    }

    /// Reads what a host sent and lets it enter the path: how many packets. There may be more after [`BATCH`] of them.
    fn take_in(&mut self, port: usize) -> Result<usize, String> {
        for took in 0..BATCH {
            let received = self.ports[port].receive(&mut self.scratch).map_err(gone)?;
            let Some((header, place)) = received else { return Ok(took) };
            let now = Time(self.now().0.saturating_sub(std::mem::take(&mut self.earlier)));
            let Some(layout) = Layout::of(&self.scratch[place.clone()], &header) else { continue };
            if held_bytes() > self.most_held {
                self.counters.overflowed(u64::from(layout.segments()));
                continue;
            }
            let buffer = Rc::new(self.keep(place, layout));
            self.counters.received(layout.segments());
            self.links.send(port, now, &buffer);
        }
        Ok(BATCH)
    }

    /// Takes the packet that was just read: a small one is copied, a large one keeps the buffer it was read into.
    fn keep(&mut self, place: std::ops::Range<usize>, layout: Layout) -> Buffer {
        if place.len() <= if layout.gso_size == 0 { ONE_PACKET } else { SMALL } {
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
        let mut round = Round::default();
        while let Some(outcome) = self.links.poll(now) {
            match outcome {
                Outcome::Arrived { host, at, packet } => {
                    round.delivered(now.0.saturating_sub(at.0));
                    if packet.ce && !packet.payload.buffer.came_marked() {
                        round.marked();
                    }
                    self.deliver(host, packet);
                }
                Outcome::Ended { reason, packet } => {
                    self.counters.dropped(reason);
                    self.recycle(packet.payload.buffer);
                }
                Outcome::Stopped => self.counters.stopped(),
            }
        }
        self.counters.delivered(&round);
        for host in 0..self.ports.len() {
            self.flush(host);
        }
        if let Some(shooter) = &self.shooter {
            self.links.shots().for_each(|shot| shooter.shoot(self.start_ns, shot));
        }
    }

    #[inline]
    fn deliver(&mut self, host: usize, packet: Packet<Segment>) {
        if let Some(run) = &mut self.runs[host]
            && run.extend(&packet)
        {
            return;
        }
        self.flush(host);
        self.runs[host] = Some(Run::of(&packet));
    }

    fn flush(&mut self, host: usize) {
        let Some(run) = self.runs[host].take() else { return };
        let port = &mut self.ports[host];
        let outgoing = run.outgoing(port.link_header());
        let payload = &run.buffer.bytes()[outgoing.payload.clone()];
        if port.send(&outgoing.vnet, &outgoing.headers[..outgoing.headers_len], payload).is_err() {
            self.counters.refused();
        }
        self.recycle(run.buffer);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let lost: u64 = self.ports.iter_mut().map(Port::take_drops).sum();
        self.counters.overflowed(lost);
    }
}
