//! Who is next, and who has had enough. Pure: the caller has the clock.

use crate::allowance::Allowance;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Clients that are remembered; beyond, those that were served longest ago are forgotten.
const MOST_CLIENTS: usize = 4096;

/// Whom a quota counts as one: an IPv4 address, or an IPv6 network of 64 bits, which is what one site has.
#[must_use]
pub(super) fn client_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from(u128::from(ip) & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

/// What one client may have within a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Payload, bytes.
    pub bytes: u64,
    /// Time of tests, together.
    pub time: Duration,
    /// Tests.
    pub tests: u64,
}

impl Default for Quota {
    /// As much as anybody wants.
    fn default() -> Self {
        Self { bytes: u64::MAX, time: Duration::MAX, tests: u64::MAX }
    }
}

/// After this long a quota begins anew.
const WINDOW: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Clone, Default)]
struct Account {
    since: Duration,
    last: Duration,
    /// The bytes that are left to all connections of its tests together, charged while they move, and when their time is used up.
    most: Allowance,
    time: Duration,
    tests: u64,
    running: u32,
    /// When each of those that run began, in sum.
    begins: Duration,
}

impl Account {
    /// One that begins now.
    fn anew(now: Duration, quota: Quota) -> Self {
        Self { since: now, most: Allowance::of(quota.bytes, quota.time < Duration::MAX), ..Self::default() }
    }

    /// How long its tests took so far, with those that run.
    fn time(&self, now: Duration) -> Duration {
        self.time.saturating_add(now.saturating_mul(self.running).saturating_sub(self.begins))
    }

    /// Lets those of its tests that run end when the time is used up: while several run, it passes that much faster.
    fn share(&self, now: Duration, quota: Quota) {
        let left = quota.time.saturating_sub(self.time(now));
        let end = now.saturating_add(left / self.running.max(1));
        self.most.end_at(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How long until it begins anew.
    fn renewed(&self, now: Duration) -> Duration {
        (self.since + WINDOW).saturating_sub(now)
    }
}

/// What clients have had.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    quota: Quota,
    clients: HashMap<IpAddr, Account>,
}

impl Accounts {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, clients: HashMap::new() }
    }

    /// Whether the client has had enough; then for how long.
    pub(super) fn exhausted(&self, client: IpAddr, now: Duration) -> Option<Duration> {
        // Who never came, or not for a day, may have no more than the quota either.
        let anew = Account::anew(now, self.quota);
        let known = self.clients.get(&client).filter(|account| !account.renewed(now).is_zero());
        let account = known.unwrap_or(&anew);
        let Quota { time, tests, .. } = self.quota;
        let enough = account.most.left() == 0 || account.time(now) >= time || account.tests >= tests;
        enough.then(|| account.renewed(now))
    }

    /// How long until its quota begins anew.
    pub(super) fn renewed(&self, client: IpAddr, now: Duration) -> Duration {
        self.clients.get(&client).map_or(Duration::ZERO, |account| account.renewed(now))
    }

    /// A test of its begins; what it may move, together with everything else of this client, and for how long.
    pub(super) fn begin(&mut self, client: IpAddr, now: Duration) -> Allowance {
        if !self.clients.contains_key(&client) && self.clients.len() >= MOST_CLIENTS {
            let idle = self.clients.iter().filter(|(_, account)| account.running == 0);
            let oldest = idle.min_by_key(|(_, account)| account.last).map(|(client, _)| *client);
            oldest.map(|oldest| self.clients.remove(&oldest));
        }
        let quota = self.quota;
        let account = self.clients.entry(client).or_insert_with(|| Account::anew(now, quota));
        if account.renewed(now).is_zero() {
            let anew = Account::anew(now, quota);
            let most = account.most.renewed(anew.most.clone());
            *account = Account { running: account.running, begins: account.begins, most, ..anew };
        }
        account.last = now;
        account.tests += 1;
        account.running += 1;
        account.begins = account.begins.saturating_add(now);
        account.share(now, quota);
        account.most.clone()
    }

    /// One that began then has ended, with all of its connections.
    pub(super) fn end(&mut self, client: IpAddr, begun: Duration, now: Duration) {
        let quota = self.quota;
        if let Some(account) = self.clients.get_mut(&client) {
            account.running = account.running.saturating_sub(1);
            account.begins = account.begins.saturating_sub(begun);
            account.time = account.time.saturating_add(now.saturating_sub(begun));
            account.share(now, quota);
        }
    }

    /// When it was served last; those that never were come first.
    fn last(&self, client: IpAddr) -> (u32, Duration) {
        self.clients.get(&client).map_or((0, Duration::ZERO), |account| (account.running, account.last))
    }

    /// How many bytes a client that is known may still have.
    #[cfg(test)]
    pub(super) fn bytes_left(&self, client: IpAddr) -> u64 {
        self.clients.get(&client).map_or(u64::MAX, |account| account.most.left())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.clients.len()
    }
}

/// Those that wait.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: VecDeque<(IpAddr, T)>,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, client: IpAddr, item: T) {
        self.waiting.push_back((client, item));
    }

    /// Takes the next: of the client with the fewest tests under way, then of the one that was served longest ago; and
    /// of several of one client the first. So nobody who asks more often gets more.
    pub(super) fn pop(&mut self, accounts: &Accounts) -> Option<(IpAddr, T)> {
        let next = self.waiting.iter().enumerate().min_by_key(|(at, (client, _))| (accounts.last(*client), *at));
        let (at, _) = next?;
        self.waiting.remove(at)
    }

    /// Everybody who waits, the first first; those for whom `stays` is false are taken out.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(usize, &mut T) -> bool) {
        let mut place = 0;
        self.waiting.retain_mut(|(_, item)| {
            let stay = stays(place, item);
            place += usize::from(stay);
            stay
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ip(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn an_ipv6_site_is_one_client_and_a_mapped_address_is_its_ipv4_one() {
        let of = |text: &str| client_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), ip(1));
    }

    #[test]
    fn a_quota_holds_for_a_day_from_the_first_test() {
        let mut accounts = Accounts::new(Quota { bytes: 100, time: s(10), tests: 3 });
        assert!(accounts.begin(ip(1), s(1000)).take(60));
        accounts.end(ip(1), s(1000), s(1001));
        assert_eq!(accounts.exhausted(ip(1), s(1001)), None);
        let most = accounts.begin(ip(1), s(1001));
        assert_eq!((most.left(), accounts.renewed(ip(1), s(1001))), (40, s(86_400 - 1)));
        most.take(60);
        accounts.end(ip(1), s(1001), s(1002));
        assert_eq!(accounts.exhausted(ip(1), s(2000)), Some(s(1000 + 86_400 - 2000)));
        assert_eq!(accounts.exhausted(ip(2), s(2000)), None, "others aren't touched");
        assert_eq!(accounts.exhausted(ip(1), s(1000 + 86_400)), None);
        assert_eq!(accounts.begin(ip(1), s(1000 + 86_400)).left(), 100);
    }

    #[test]
    fn tests_of_one_client_at_once_share_its_bytes() {
        let mut accounts = Accounts::new(Quota { bytes: 100, ..Quota::default() });
        let (one, two, other) = (accounts.begin(ip(1), s(0)), accounts.begin(ip(1), s(1)), accounts.begin(ip(2), s(1)));
        assert!(one.take(60) && two.left() == 40 && accounts.exhausted(ip(1), s(2)).is_none());
        assert!(!two.take(40) && accounts.exhausted(ip(1), s(2)).is_some(), "while both are under way");
        assert_eq!((one.left(), other.left()), (0, 100));
    }

    #[test]
    fn time_and_number_of_tests_are_quotas_too() {
        let mut accounts = Accounts::new(Quota { bytes: u64::MAX, time: s(10), tests: 2 });
        accounts.begin(ip(1), s(0));
        accounts.end(ip(1), s(0), s(11));
        assert!(accounts.exhausted(ip(1), s(1)).is_some());
        for _ in 0..2 {
            accounts.begin(ip(2), s(0));
            accounts.end(ip(2), s(0), s(1));
        }
        assert!(accounts.exhausted(ip(2), s(1)).is_some());
    }

    #[test]
    fn a_quota_of_nothing_is_nothing_and_time_counts_while_it_passes() {
        let usual = Quota::default();
        for none in [Quota { bytes: 0, ..usual }, Quota { time: s(0), ..usual }, Quota { tests: 0, ..usual }] {
            assert_eq!(Accounts::new(none).exhausted(ip(1), s(7)), Some(WINDOW), "{none:?}");
        }
        let mut accounts = Accounts::new(Quota { time: s(10), ..usual });
        accounts.begin(ip(1), s(100));
        accounts.begin(ip(1), s(103));
        assert_eq!(accounts.exhausted(ip(1), s(104)), None);
        accounts.end(ip(1), s(100), s(105));
        assert!(accounts.exhausted(ip(1), s(107)).is_none(), "the second one has a second left");
        assert!(accounts.exhausted(ip(1), s(108)).is_some(), "while the second one runs");
    }

    #[test]
    fn tests_of_one_client_at_once_end_when_their_time_is_used_up_in_sum() {
        let mut accounts = Accounts::new(Quota { time: s(12), ..Quota::default() });
        let ends = |allowance: &Allowance| Duration::from_nanos(allowance.until_ns());
        let one = accounts.begin(ip(1), s(100));
        assert_eq!(ends(&one), s(112));
        // Two seconds are used; ten are left to two, then eight to four.
        let two = accounts.begin(ip(1), s(102));
        assert_eq!((ends(&one), ends(&two)), (s(107), s(107)));
        accounts.begin(ip(1), s(103));
        let four = accounts.begin(ip(1), s(103));
        assert_eq!((ends(&one), ends(&four)), (s(105), s(105)));
        assert!(accounts.exhausted(ip(1), s(104)).is_none() && accounts.exhausted(ip(1), s(105)).is_some());
        // What ends leaves the rest to the others: four seconds to three, then to the last one.
        accounts.end(ip(1), s(100), s(104));
        assert_eq!(ends(&two), s(104) + s(4) / 3);
        accounts.end(ip(1), s(102), s(104));
        accounts.end(ip(1), s(103), s(104));
        assert_eq!(ends(&four), s(108));
        let other = accounts.begin(ip(2), s(104));
        assert_eq!((ends(&other), ends(&four)), (s(116), s(108)), "others aren't touched");
        let endless = Accounts::new(Quota::default()).begin(ip(1), s(1));
        assert_eq!(endless.until_ns(), u64::MAX);
    }

    #[test]
    fn a_test_that_runs_when_the_day_ends_has_the_time_of_the_next_one() {
        let mut accounts = Accounts::new(Quota { bytes: 100, time: s(90_000), tests: 9 });
        let long = accounts.begin(ip(1), s(0));
        accounts.begin(ip(1), WINDOW);
        // All of it so far is charged to the new day: 3,600 seconds are left to two.
        assert_eq!(long.until_ns(), (WINDOW + s(1800)).as_nanos() as u64);
    }

    #[test]
    fn who_asks_more_often_gets_no_more() {
        let mut accounts = Accounts::new(Quota::default());
        let mut queue = Queue::new();
        for number in 0..6 {
            queue.push(ip(1), number);
        }
        queue.push(ip(2), 10);
        queue.push(ip(3), 20);
        let mut order = Vec::new();
        let mut now = s(1);
        while let Some((client, item)) = queue.pop(&accounts) {
            accounts.begin(client, now);
            accounts.end(client, now, now + s(1));
            now += s(1);
            order.push(item);
        }
        assert_eq!(order, [0, 10, 20, 1, 2, 3, 4, 5]);
    }

    proptest! {
        #[test]
        fn clients_with_much_to_do_are_served_alternately(asks in proptest::collection::vec(0..4_u8, 1..80)) {
            let mut accounts = Accounts::new(Quota::default());
            let mut queue = Queue::new();
            for client in &asks {
                queue.push(ip(*client), *client);
            }
            let (mut now, mut served) = (s(1), [0_usize; 4]);
            while let Some((client, number)) = queue.pop(&accounts) {
                let waits = |other: usize| asks.iter().filter(|c| **c as usize == other).count() > served[other];
                // Nobody who still waits has been served less often.
                for other in (0..4).filter(|other| waits(*other)) {
                    prop_assert!(served[number as usize] <= served[other]);
                }
                served[number as usize] += 1;
                accounts.begin(client, now);
                accounts.end(client, now, now);
                now += s(1);
            }
        }
    }

    #[test]
    fn memory_is_bounded_however_many_come() {
        let mut accounts = Accounts::new(Quota::default());
        for number in 0..2 * MOST_CLIENTS as u32 {
            let client = IpAddr::from(number.to_be_bytes());
            accounts.begin(client, Duration::from_secs(number.into()));
            accounts.end(client, s(number.into()), s(number.into()) + s(1));
        }
        assert_eq!(accounts.len(), MOST_CLIENTS);
    }
}
