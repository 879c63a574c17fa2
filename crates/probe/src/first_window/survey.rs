use super::connection::Incoming;
use super::host::{Found, Goal, Host, MOST_PROBES, Opener, Send};
use crate::{Pacer, Time};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// How many local ports a survey uses: one for each probe of a host.
pub const PORTS: usize = MOST_PROBES;
/// Stray packets of hosts that are done are answered with resets so long.
const LINGER: Duration = Duration::from_secs(3);
/// So many hosts that are done are remembered at most.
const MOST_DONE: usize = 512;
/// A host that has no verdict after this time never gets a better one.
const LONGEST: Duration = Duration::from_secs(45);

/// How fast, and how polite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyConfig {
    /// The sizes of segments to offer, bytes.
    pub sizes: [u16; 2],
    /// Hosts begun a second, all together.
    pub rate: u32,
    /// The same for those that aren't public.
    pub rate_private: u32,
    /// The time between two hosts of one network: a /24 of IPv4, a /48 of IPv6.
    pub apart: Duration,
    /// The same for networks that aren't public.
    pub apart_private: Duration,
    /// Hosts at once; bounds memory.
    pub at_once: usize,
}

impl Default for SurveyConfig {
    fn default() -> Self {
        Self {
            sizes: [1240, 64],
            rate: 100,
            rate_private: 5000,
            apart: Duration::from_secs(1),
            apart_private: Duration::ZERO,
            at_once: 2000,
        }
    }
}

/// A network whose hosts are asked one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Net {
    V4([u8; 3]),
    V6([u8; 6]),
}

impl Net {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, ..] = v6.octets();
                Self::V6([a, b, c, d, e, f])
            }
        }
    }
}

/// Whether an address isn't on the public Internet, so that its owner is most likely who asks.
///
/// # Source
/// RFC 6890: private use, loopback, link-local, shared address space (RFC 6598), benchmarking (RFC 2544), documentation;
/// RFC 4193 for IPv6.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && b & 0xc0 == 64;
            let benchmark = a == 198 && b & 0xfe == 18;
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_documentation() || shared || benchmark
        }
        IpAddr::V6(v6) => {
            let documentation = v6.segments()[..2] == [0x2001, 0x0db8];
            v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local() || documentation
        }
    }
}

#[derive(Debug)]
struct Active {
    job: usize,
    host: Host,
    begun: Time,
    /// The earliest of its timers.
    timer: Option<Time>,
    told: bool,
}

/// Many hosts, at a pace that none of them minds.
pub struct Survey<O> {
    config: SurveyConfig,
    opener: O,
    rng: ChaCha8Rng,
    /// Public hosts', and the others'.
    pacers: [Pacer; 2],
    /// Hosts that wait, by network; a network is in `ready` when hosts of it wait.
    waiting: HashMap<Net, VecDeque<(usize, Goal)>>,
    ready: [BinaryHeap<Reverse<(Time, Net)>>; 2],
    /// Until when a network is left alone.
    rests: HashMap<Net, Time>,
    active: HashMap<IpAddr, Active>,
    running: usize,
    timers: BinaryHeap<Reverse<(Time, IpAddr)>>,
    done: VecDeque<(Time, IpAddr)>,
    sends: VecDeque<Send>,
    found: Vec<(usize, Found)>,
}

impl<O: Opener> Survey<O> {
    /// None yet.
    #[must_use]
    pub fn new(config: SurveyConfig, opener: O, rng: ChaCha8Rng) -> Self {
        Self {
            pacers: [config.rate, config.rate_private].map(|rate| Pacer::new(rate, (rate / 100).max(1))),
            config,
            opener,
            rng,
            waiting: HashMap::new(),
            ready: [BinaryHeap::new(), BinaryHeap::new()],
            rests: HashMap::new(),
            active: HashMap::new(),
            running: 0,
            timers: BinaryHeap::new(),
            done: VecDeque::new(),
            sends: VecDeque::new(),
            found: Vec::new(),
        }
    }

    /// Adds a host; `job` names it in [`take_found`](Self::take_found).
    pub fn add(&mut self, job: usize, goal: Goal) {
        let net = Net::of(goal.address);
        let queue = self.waiting.entry(net).or_default();
        if queue.is_empty() {
            let class = usize::from(is_private(goal.address));
            self.ready[class].push(Reverse((self.rests.get(&net).copied().unwrap_or_default(), net)));
        }
        queue.push_back((job, goal));
    }

    /// Begins what may begin, and does what is due.
    pub fn wake(&mut self, now: Time) {
        while let Some(Reverse((at, address))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.wake_host(address, now);
        }
        while self.done.front().is_some_and(|(at, _)| *at + LINGER <= now || self.done.len() > MOST_DONE) {
            let Some((_, address)) = self.done.pop_front() else { break };
            if self.active.get(&address).is_some_and(|active| active.told) {
                self.active.remove(&address);
            }
        }
        self.begin(0, now);
        self.begin(1, now);
    }

    /// Takes a segment from a host's port to our port of this number.
    pub fn handle(&mut self, now: Time, from: IpAddr, port: u16, to: usize, segment: &Incoming<'_>) {
        if let Some(active) = self.active.get_mut(&from) {
            active.host.handle(now, port, to, segment, &self.opener);
            self.after(from, now);
        }
    }

    /// The next segment to send.
    pub fn poll(&mut self) -> Option<Send> {
        self.sends.pop_front()
    }

    /// When it wants to be woken; `None` when all is done.
    #[must_use]
    pub fn wakeup(&self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let room = self.running < self.config.at_once;
        let begin =
            self.ready.iter().zip(&self.pacers).filter_map(|(ready, pacer)| {
                ready.peek().filter(|_| room).map(|Reverse((at, _))| (*at).max(pacer.next()))
            });
        timer.into_iter().chain(begin).min()
    }

    /// What was found out since this was last asked.
    pub fn take_found(&mut self) -> Vec<(usize, Found)> {
        std::mem::take(&mut self.found)
    }

    /// Whether every host is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.running == 0 && self.ready.iter().all(BinaryHeap::is_empty)
    }

    /// Ends all: resets every connection and begins no more.
    pub fn stop(&mut self, now: Time) {
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.waiting.clear();
        let addresses: Vec<IpAddr> = self.active.keys().copied().collect();
        for address in addresses {
            if let Some(active) = self.active.get_mut(&address) {
                active.host.give_up(now);
                self.after(address, now);
            }
        }
    }

    fn wake_host(&mut self, address: IpAddr, now: Time) {
        let Some(active) = self.active.get_mut(&address) else { return };
        active.timer = None;
        if now >= active.begun + LONGEST {
            active.host.give_up(now);
        } else if active.host.deadline().is_some_and(|at| at <= now) {
            active.host.wake(now, &self.opener);
        }
        self.after(address, now);
    }

    /// Sends, sets timers and notes what was found, after something has happened to a host.
    fn after(&mut self, address: IpAddr, now: Time) {
        let Some(active) = self.active.get_mut(&address) else { return };
        while let Some(send) = active.host.poll() {
            self.sends.push_back(send);
        }
        // One timer for each host: one that is too early only asks again.
        if let Some(at) = active
            .host
            .deadline()
            .map(|at| at.min(active.begun + LONGEST))
            .filter(|at| active.timer.is_none_or(|timer| *at < timer))
        {
            active.timer = Some(at);
            self.timers.push(Reverse((at, address)));
        }
        if let Some(found) = active.host.found().filter(|_| !active.told) {
            self.found.push((active.job, found.clone()));
            active.told = true;
            self.running -= 1;
            self.done.push_back((now, address));
        }
    }

    /// Begins hosts of one class.
    fn begin(&mut self, class: usize, now: Time) {
        while self.running < self.config.at_once && self.pacers[class].next() <= now {
            let Some(Reverse((_, net))) = self.ready[class].peek().copied().filter(|Reverse((at, _))| *at <= now)
            else {
                return;
            };
            self.ready[class].pop();
            let Some(queue) = self.waiting.get_mut(&net) else { continue };
            let Some((job, goal)) = queue.pop_front() else { continue };
            let address = goal.address;
            let apart = if is_private(address) { self.config.apart_private } else { self.config.apart };
            if self.active.get(&address).is_some_and(|active| !active.told) {
                // One host by several names: one name after the other.
                queue.push_back((job, goal));
                self.ready[class].push(Reverse((now + apart.max(Duration::from_millis(20)), net)));
                continue;
            }
            self.rests.insert(net, now + apart);
            if queue.is_empty() {
                self.waiting.remove(&net);
            } else {
                self.ready[class].push(Reverse((now + apart, net)));
            }
            self.pacers[class].take(now);
            let host = Host::start(goal, self.config.sizes, self.rng.next_u32(), &self.opener, now);
            self.active.insert(address, Active { job, host, begun: now, timer: None, told: false });
            self.running += 1;
            self.after(address, now);
        }
    }
}
