use super::config::{SurveyConfig, is_private};
use super::pace::{Pace, SeenPace};
use crate::Time;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// A host that is being asked under another name is looked at again after this time at least.
const AGAIN: Duration = Duration::from_millis(20);

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

/// Hosts that wait for their turn: so many a second altogether, and of each network one after the other.
#[derive(Debug)]
pub struct Queue<T> {
    config: SurveyConfig,
    /// Public hosts', and the others'.
    pacers: [Pace; 2],
    /// Hosts that wait, by network; a network is in `ready` when hosts of it wait.
    waiting: HashMap<Net, VecDeque<(IpAddr, T)>>,
    ready: [BinaryHeap<Reverse<(Time, Net)>>; 2],
    /// Until when a network is left alone.
    rests: HashMap<Net, Time>,
    /// The shortest round trip of each network that isn't public.
    shortest: HashMap<Net, Duration>,
}

impl<T> Queue<T> {
    /// Nobody yet.
    #[must_use]
    pub fn new(config: SurveyConfig) -> Self {
        Self {
            pacers: [
                Pace::fixed(config.rate),
                config.rate_private.map_or_else(|| Pace::Seen(SeenPace::default()), Pace::fixed),
            ],
            config,
            waiting: HashMap::new(),
            ready: [BinaryHeap::new(), BinaryHeap::new()],
            rests: HashMap::new(),
            shortest: HashMap::new(),
        }
    }

    /// Adds a host.
    pub fn add(&mut self, address: IpAddr, host: T) {
        let net = Net::of(address);
        let queue = self.waiting.entry(net).or_default();
        if queue.is_empty() {
            let class = usize::from(is_private(address));
            self.ready[class].push(Reverse((self.rests.get(&net).copied().unwrap_or_default(), net)));
        }
        queue.push_back((address, host));
    }

    /// How much longer than the shortest one of its network a round trip to a host took: so long packets waited on the way.
    /// Only of networks that aren't public, which are asked so fast that they may be what those wait for, and of hosts there
    /// that aren't the first.
    pub fn delay(&mut self, address: IpAddr, round_trip: Duration) -> Option<Duration> {
        if !is_private(address) {
            return None;
        }
        match self.shortest.entry(Net::of(address)) {
            Entry::Occupied(mut shortest) => {
                let least = round_trip.min(*shortest.get());
                shortest.insert(least);
                Some(round_trip - least)
            }
            Entry::Vacant(first) => {
                first.insert(round_trip);
                None
            }
        }
    }

    /// The shortest RTT to a host's network, if it isn't public and has answered.
    pub(super) fn shortest_rtt(&self, address: IpAddr) -> Option<Duration> {
        self.shortest.get(&Net::of(address)).copied()
    }

    /// How fast hosts that aren't public are begun.
    pub(super) fn pace(&mut self) -> &mut Pace {
        &mut self.pacers[1]
    }

    /// The next one whose turn it is, if there is one; whoever is `busy` under another name waits on.
    pub fn next(&mut self, now: Time, busy: impl Fn(IpAddr) -> bool) -> Option<(IpAddr, T)> {
        (0..2).find_map(|class| self.next_of(class, now, &busy))
    }

    /// When somebody's turn comes; `None` if nobody waits.
    #[must_use]
    pub fn wakeup(&self) -> Option<Time> {
        let turns = self.ready.iter().zip(&self.pacers);
        turns.filter_map(|(ready, pacer)| ready.peek().map(|Reverse((at, _))| (*at).max(pacer.next()))).min()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.iter().all(BinaryHeap::is_empty)
    }

    /// Sends everybody away.
    pub fn clear(&mut self) {
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.waiting.clear();
    }

    fn next_of(&mut self, class: usize, now: Time, busy: &impl Fn(IpAddr) -> bool) -> Option<(IpAddr, T)> {
        while self.pacers[class].next() <= now {
            let Reverse((_, net)) = self.ready[class].peek().copied().filter(|Reverse((at, _))| *at <= now)?;
            self.ready[class].pop();
            let Some(queue) = self.waiting.get_mut(&net) else { continue };
            let Some((address, host)) = queue.pop_front() else { continue };
            let apart = if is_private(address) { self.config.apart_private } else { self.config.apart };
            if busy(address) {
                queue.push_back((address, host));
                self.ready[class].push(Reverse((now + apart.max(AGAIN), net)));
                continue;
            }
            self.rests.insert(net, now + apart);
            if queue.is_empty() {
                self.waiting.remove(&net);
            } else {
                self.ready[class].push(Reverse((now + apart, net)));
            }
            self.pacers[class].take(now);
            return Some((address, host));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut Queue<u32>, until: Duration) -> Vec<(Time, IpAddr)> {
        let mut turns = Vec::new();
        let mut now = Duration::ZERO;
        while now < until {
            while let Some((address, _)) = queue.next(now, |_| false) {
                turns.push((now, address));
            }
            let Some(next) = queue.wakeup() else { break };
            assert!(next > now, "what is due is given");
            now = next;
        }
        turns
    }

    #[test]
    fn a_network_of_strangers_is_asked_once_a_second() {
        let mut queue = Queue::new(SurveyConfig::default());
        for n in 0..40u8 {
            queue.add(IpAddr::from([9, 9, n % 4, n]), u32::from(n));
        }
        let turns = drain(&mut queue, Duration::from_secs(60));
        assert_eq!(turns.len(), 40);
        for net in 0..4 {
            let of_net = |turn: &&(Time, IpAddr)| matches!(turn.1, IpAddr::V4(v4) if v4.octets()[2] == net);
            let times: Vec<Time> = turns.iter().filter(of_net).map(|turn| turn.0).collect();
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(1)), "{times:?}");
        }
        assert!(turns.last().unwrap().0 <= Duration::from_millis(9_100));
    }

    #[test]
    fn ones_own_network_is_asked_at_once_and_a_host_under_two_names_one_after_the_other() {
        let mut queue = Queue::new(SurveyConfig::default());
        for n in 0..200u8 {
            queue.add(IpAddr::from([10, 3, 1, n]), 0);
        }
        assert!(drain(&mut queue, Duration::from_secs(9)).last().unwrap().0 <= Duration::from_millis(50));
        assert!(queue.is_empty());
        let twice = IpAddr::from([10, 3, 1, 1]);
        queue.add(twice, 1);
        let now = Duration::from_secs(9);
        assert_eq!(queue.next(now, |address| address == twice), None);
        assert!(queue.wakeup().unwrap() > now && !queue.is_empty());
        assert_eq!(queue.next(now + AGAIN, |_| false), Some((twice, 1)));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_delay_is_what_a_round_trip_took_more_than_the_shortest_of_its_network() {
        let mut queue: Queue<()> = Queue::new(SurveyConfig::default());
        let ms = Duration::from_millis;
        let mut delay = |address: &str, took: u64| queue.delay(address.parse().unwrap(), ms(took));
        assert_eq!(delay("10.0.0.1", 40), None, "nothing to compare it with");
        assert_eq!(delay("10.0.0.2", 55), Some(ms(15)));
        assert_eq!(delay("10.0.1.1", 90), None, "another network");
        assert_eq!(delay("10.0.0.3", 30), Some(ms(0)));
        assert_eq!(delay("10.0.0.2", 55), Some(ms(25)));
        assert_eq!((delay("8.8.8.8", 10), delay("8.8.8.9", 90)), (None, None), "strangers' hosts may be anywhere");
    }
}
