use super::config::SurveyConfig;
use super::host::{Goal, Host, HostResult, MOST_PROBES, Opener, Send};
use super::pace::WaitingPlace;
use super::queue::Queue;
use super::segment::Incoming;
use crate::Time;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use wt_wire::TcpFlags;

/// How many local ports a survey uses: one for each probe of a host.
pub const PORTS: usize = MOST_PROBES;
/// Stray packets of hosts that are done are answered with resets so long.
const LINGER: Duration = Duration::from_secs(3);
/// So many hosts that are done are remembered at most.
const MOST_DONE: usize = 512;
/// A host that has no verdict after this time never gets a better one.
const LONGEST: Duration = Duration::from_secs(45);
/// Handshakes that take so much longer than the shortest one of their network have waited behind packets of others, most
/// likely of this survey's: then nobody else is begun for as long, so that the queue drains. It is less than what makes the
/// time of a tail loss probe uncertain.
const CROWDED: Duration = Duration::from_millis(10);

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
    queue: Queue<(usize, Goal)>,
    /// Who refused is never asked again.
    refused: HashSet<(IpAddr, u16)>,
    /// Until then nobody is begun.
    held_until: Time,
    active: HashMap<IpAddr, Active>,
    running: usize,
    timers: BinaryHeap<Reverse<(Time, IpAddr)>>,
    done: VecDeque<(Time, IpAddr)>,
    sends: VecDeque<Send>,
    found: Vec<(usize, HostResult)>,
}

impl<O: Opener> Survey<O> {
    /// None yet.
    #[must_use]
    pub fn new(config: SurveyConfig, opener: O, rng: ChaCha8Rng) -> Self {
        Self {
            config,
            opener,
            rng,
            queue: Queue::new(config),
            refused: HashSet::new(),
            held_until: Time::ZERO,
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
        self.queue.add(goal.address, (job, goal));
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
        self.begin(now);
    }

    /// Takes a segment from a host's port to our port of this number.
    pub fn handle(&mut self, now: Time, from: IpAddr, port: u16, to: usize, segment: &Incoming<'_>) {
        if let Some(active) = self.active.get_mut(&from) {
            active.host.handle(now, port, to, segment, &self.opener);
            let opened = active.host.handshake(to).filter(|_| segment.flags.has(TcpFlags::SYN));
            self.after(from, now);
            let delay = opened.and_then(|round_trip| self.queue.delay(from, round_trip));
            if let Some(delay) = delay {
                self.waited(now, WaitingPlace::There, delay);
            }
            if let Some(delay) = delay.filter(|delay| *delay >= CROWDED) {
                self.hold(now + delay);
            }
        }
    }

    /// Hears how long a packet has waited: hosts that aren't public are begun more slowly where all do.
    pub fn waited(&mut self, now: Time, place: WaitingPlace, delay: Duration) {
        self.queue.pace().waited(now, place, delay);
    }

    /// Hears that packets found no room on this host.
    pub fn overflown(&mut self, now: Time) {
        self.queue.pace().overflown(now);
    }

    /// Begins nobody until then: packets wait longer than they should, on this host or on the way.
    pub fn hold(&mut self, until: Time) {
        self.held_until = self.held_until.max(until);
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
        let begin = self.queue.wakeup().filter(|_| room).map(|at| at.max(self.held_until));
        timer.into_iter().chain(begin).min()
    }

    /// What was found out since this was last asked.
    pub fn take_found(&mut self) -> Vec<(usize, HostResult)> {
        std::mem::take(&mut self.found)
    }

    /// How many hosts are being asked.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// Whether every host is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.running == 0 && self.queue.is_empty()
    }

    /// Ends all: resets every connection and begins no more.
    pub fn stop(&mut self, now: Time) {
        self.queue.clear();
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
            self.refused.extend(found.refused.map(|port| (address, port)));
            self.found.push((active.job, found.clone()));
            active.told = true;
            self.running -= 1;
            self.done.push_back((now, address));
        }
    }

    /// Begins those whose turn it is.
    fn begin(&mut self, now: Time) {
        while self.running < self.config.at_once && now >= self.held_until {
            let active = &self.active;
            let busy = |address| active.get(&address).is_some_and(|active: &Active| !active.told);
            let Some((address, (job, goal))) = self.queue.next(now, busy) else { return };
            if self.refused.contains(&(address, goal.port)) {
                self.found.push((job, HostResult::refused(goal, now)));
                continue;
            }
            let net_rtt = self.queue.shortest_rtt(address);
            let host = Host::start(goal, self.config.sizes, self.rng.next_u32(), net_rtt, &self.opener, now);
            self.active.insert(address, Active { job, host, begun: now, timer: None, told: false });
            self.running += 1;
            self.after(address, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Plain, Session};
    use super::*;
    use crate::SynOptions;
    use rand_chacha::rand_core::SeedableRng as _;

    struct Nothing;

    impl Opener for Nothing {
        fn open(&self, _: &Goal) -> Box<dyn Session> {
            Box::new(Plain::new(b"GET".to_vec()))
        }
    }

    fn goal(address: [u8; 4]) -> Goal {
        Goal { address: IpAddr::from(address), port: 80, tls: false, host: "x".into(), path: "/".into() }
    }

    fn syn_ack(syn: &Send) -> Incoming<'static> {
        Incoming {
            seq: 7,
            ack: syn.segment.seq.wrapping_add(1),
            flags: TcpFlags::SYN | TcpFlags::ACK,
            window: 1000,
            options: Some(SynOptions::default()),
            timestamp: None,
            payload: &[],
            len: 0,
            unit: None,
        }
    }

    /// When a third host of a network begins, after two that were begun at 100 ms have answered after so many milliseconds.
    fn next_begins(first: u64, second: u64) -> Time {
        let ms = Duration::from_millis;
        let mut survey = Survey::new(SurveyConfig::default(), Nothing, ChaCha8Rng::seed_from_u64(1));
        let goal = |n: u8| goal([10, 0, 0, n]);
        let mut syns = Vec::new();
        for (n, took) in [(1, first), (2, second)] {
            survey.add(0, goal(n));
            survey.wake(ms(100));
            let syn = std::iter::from_fn(|| survey.poll()).find(|send| send.from == 0).unwrap();
            syns.push((ms(100 + took), syn));
        }
        for (at, syn) in syns {
            survey.handle(at, syn.address, 80, 0, &syn_ack(&syn));
        }
        survey.add(0, goal(3));
        let mut now = ms(100 + second);
        loop {
            survey.wake(now);
            if std::iter::from_fn(|| survey.poll()).any(|send| send.address == goal(3).address) {
                return now;
            }
            now = survey.wakeup().unwrap();
        }
    }

    #[test]
    fn nobody_is_begun_where_handshakes_wait_behind_others() {
        let ms = Duration::from_millis;
        assert_eq!(next_begins(40, 45), ms(145), "a little more is no sign");
        assert_eq!(next_begins(40, 70), ms(170 + 30));
    }

    /// After how long a SYN to the second address is repeated, once the first one has answered after so many milliseconds.
    fn syn_repeated(first: [u8; 4], second: [u8; 4], rtt: u64) -> Duration {
        let mut survey = Survey::new(SurveyConfig::default(), Nothing, ChaCha8Rng::seed_from_u64(1));
        survey.add(0, goal(first));
        survey.wake(Time::ZERO);
        let syn = std::iter::from_fn(|| survey.poll()).find(|send| send.from == 0).unwrap();
        survey.handle(Duration::from_millis(rtt), syn.address, 80, 0, &syn_ack(&syn));
        survey.add(1, goal(second));
        let (mut now, mut syns) = (Duration::from_millis(rtt), Vec::new());
        while syns.len() < 2 {
            survey.wake(now);
            let to_second = |send: &Send| send.address == IpAddr::from(second) && send.from == 0;
            syns.extend(std::iter::from_fn(|| survey.poll()).filter(to_second).map(|_| now));
            now = survey.wakeup().unwrap();
        }
        syns[1] - syns[0]
    }

    #[test]
    fn a_lost_syn_is_repeated_by_the_rtt_of_its_network_if_that_is_known_and_not_public() {
        let ms = Duration::from_millis;
        assert_eq!(syn_repeated([10, 0, 0, 1], [10, 0, 0, 2], 90), ms(360));
        assert_eq!(syn_repeated([10, 0, 0, 1], [10, 0, 0, 2], 2), ms(250), "servers think, too");
        assert_eq!(syn_repeated([10, 0, 0, 1], [10, 0, 1, 2], 90), ms(1000), "nothing is known of another network");
        assert_eq!(syn_repeated([9, 9, 9, 1], [9, 9, 9, 2], 90), ms(1000), "strangers have the usual second");
    }
}
