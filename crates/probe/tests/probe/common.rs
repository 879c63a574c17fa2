//! A path that exists only in memory: links with MTUs and losses, routers with manners, a target.
#![allow(dead_code, unreachable_pub, reason = "every test file uses another part")]

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use wt_probe::{Answer, Kind, Machine, Pacer, Probe, ProbeAnswer, Quote, SynOptions, Time};

/// What a SYN offers, and its type-of-service byte.
pub const OFFERED: (SynOptions, u8) = (
    SynOptions { mss: Some(1460), window_scale: Some(7), sack: true, timestamps: true, fast_open: true, ecn: true },
    2,
);

/// A link and the router at its near end.
#[derive(Debug, Clone)]
pub struct Link {
    pub mtu: u16,
    /// Whether the router before it says "too big".
    pub icmp: bool,
    /// What it says instead of the truth.
    pub says: Option<u16>,
    /// What the router drops silently, after having checked the MTU.
    pub drop_above: Option<u16>,
    /// Longer packets vanish on the way back.
    pub back: Option<u16>,
    /// How many "too big" it may say: at once, and per second.
    pub limit: Option<(f64, f64)>,
    /// Loss of packets longer than so many bytes, there and back.
    pub loss_above: u16,
    pub loss: [f64; 2],
    /// The router lowers the MSS.
    pub clamp: Option<u16>,
    /// What else the router does to a SYN.
    pub tamper: Option<fn(&mut SynOptions, &mut u8)>,
    /// The router never says "time exceeded".
    pub mute: bool,
    /// A policer: so many packets at once, and so many per second.
    pub police: Option<(f64, f64)>,
    /// One that counts bytes.
    pub police_bytes: Option<(f64, f64)>,
    /// The router clears "don't fragment".
    pub clears_df: bool,
}

impl Link {
    pub fn mtu(mtu: u16) -> Self {
        Self {
            mtu,
            icmp: true,
            says: None,
            drop_above: None,
            back: None,
            limit: None,
            loss_above: u16::MAX,
            loss: [0.0; 2],
            clamp: None,
            tamper: None,
            mute: false,
            police: None,
            police_bytes: None,
            clears_df: false,
        }
    }
}

/// Another way: its links, which TCP connections take it by their number and the path's seed, and whether everything else does.
pub type Branch = (Vec<Link>, fn(u32, u64) -> bool, bool);

#[derive(Debug, Clone)]
pub struct Net {
    pub links: Vec<Link>,
    pub rtt: Duration,
    pub v6: bool,
    pub echo: bool,
    /// Answers to echoes: how many at once and per second.
    pub echoes: Option<(f64, f64)>,
    pub tcp: bool,
    /// The port refuses connections.
    pub refuses: bool,
    /// Another way, on which load balancers send some flows: TCP connections by this rule, and all others if said so.
    pub branch: Option<Branch>,
    /// Routers have no word left at first.
    pub spent: bool,
    /// This host's kernel retransmits what its connections carry.
    pub retransmits: bool,
    /// What it retransmits may take another branch.
    pub rehashes: bool,
    /// "Port unreachable": how many at once and per second.
    pub udp: Option<(f64, f64)>,
    /// Whether routers say "time exceeded".
    pub expires: bool,
    pub mss: u16,
    /// Routers lower the MSS on the way there alone.
    pub clamps_one_way: bool,
    /// The longest packet that this host's TCP sends, when a cached path MTU says so.
    pub stream_limit: u16,
    /// The pace at which probes leave.
    pub pps: u32,
    /// From some time on, the path is another one.
    pub later: Option<(Duration, Vec<Link>)>,
    /// From when until when all that routers say gets lost.
    pub hush: Option<(Duration, Duration)>,
    /// From when until when answers are held up: this host is busy with others.
    pub stall: Option<(Duration, Duration)>,
    /// What the narrowest link carries each way, bits a second; its queue is long.
    pub rate: Option<f64>,
    pub seed: u64,
}

impl Net {
    /// The path of the published measurements: 1500, 1492, 1400, 1500 bytes; 40 ms.
    pub fn new(seed: u64) -> Self {
        Self {
            links: [1500, 1492, 1400, 1500].map(Link::mtu).to_vec(),
            rtt: Duration::from_millis(40),
            v6: false,
            echo: true,
            echoes: None,
            tcp: true,
            refuses: false,
            branch: None,
            spent: false,
            retransmits: false,
            rehashes: false,
            udp: Some((6.0, 1.0)),
            expires: true,
            mss: 1460,
            clamps_one_way: false,
            stream_limit: u16::MAX,
            pps: 20_000,
            later: None,
            hush: None,
            stall: None,
            rate: None,
            seed,
        }
    }

    pub fn router(&self, number: usize) -> IpAddr {
        let n = u8::try_from(number).unwrap_or(u8::MAX);
        if self.v6 {
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)).into()
        } else {
            Ipv4Addr::new(10, 0, n, 2).into()
        }
    }

    pub fn target(&self) -> IpAddr {
        self.router(200)
    }
}

/// What a run cost.
#[derive(Debug, Clone)]
pub struct RunCost {
    pub packets: u32,
    pub time: Time,
    pub sent: Vec<(Time, Probe)>,
}

/// A bucket of tokens.
struct Bucket {
    tokens: f64,
    at: f64,
}

struct World<'a> {
    net: &'a Net,
    rng: ChaCha8Rng,
    limits: Vec<Bucket>,
    policers: Vec<[Bucket; 2]>,
    echoes: Bucket,
}

/// How long the queue of a link delays packets each way, by when each was free again.
#[derive(Default)]
struct Queues {
    free: [Time; 2],
}

impl Queues {
    /// Delays an answer by what its probe and itself wait for and take on the link.
    fn delay(&mut self, rate: f64, probe: &Probe, now: Time, at: Time) -> Time {
        let takes = |len: u16| Duration::from_secs_f64(f64::from(len) * 8.0 / rate);
        let back = if probe.kind == Kind::Echo { probe.ip_len } else { probe.ip_len.min(52) };
        self.free[0] = self.free[0].max(now) + takes(probe.ip_len);
        self.free[1] = self.free[1].max(at + self.free[0].saturating_sub(now)) + takes(back);
        self.free[1]
    }
}

/// Takes a token, if the limit leaves one.
fn allowed(bucket: &mut Bucket, limit: Option<(f64, f64)>, now: Time) -> bool {
    allows(bucket, limit, now, 1.0)
}

/// Takes so many.
fn allows(bucket: &mut Bucket, limit: Option<(f64, f64)>, now: Time, many: f64) -> bool {
    let Some((burst, rate)) = limit else { return true };
    let now = now.as_secs_f64().max(bucket.at);
    bucket.tokens = (bucket.tokens + (now - bucket.at) * rate).min(burst);
    bucket.at = now;
    if bucket.tokens < many {
        return false;
    }
    bucket.tokens -= many;
    true
}

impl World<'_> {
    fn lost(&mut self, link: &Link, len: u16, way: usize) -> bool {
        len > link.loss_above && self.rng.random_bool(link.loss[way])
    }

    /// Sends one probe on its way; gives the answer and when it arrives.
    fn travel(&mut self, probe: &Probe, now: Time) -> Vec<Answer> {
        let first = self.once(probe, now);
        let stream = matches!(probe.kind, Kind::Stream | Kind::LastingStream);
        if let Some(local) = first.filter(|answer| stream && answer.said == ProbeAnswer::LocalTooBig) {
            let longest = self.net.stream_limit.min(self.net.links[0].mtu);
            return vec![Answer { said: ProbeAnswer::StreamLimit { longest }, ..local }, local];
        }
        if !stream || !self.net.retransmits {
            return first.into_iter().collect();
        }
        let (id, from, rtt) = (probe.id, Some(self.net.target()), self.net.rtt);
        if !self.net.tcp {
            return first.into_iter().collect();
        }
        let connected = Answer { id, at: now + rtt, from, said: ProbeAnswer::Connected };
        let mut answers = vec![connected];
        if let Some(first) = first {
            answers.push(first);
            return answers;
        }
        if probe.kind == Kind::Stream {
            return answers;
        }
        // As Linux does: a tail loss probe, and then timeouts that double.
        let rto = rtt + Duration::from_millis(200);
        let mut at = now + rtt * 3 + Duration::from_millis(200);
        for copies in 2..=6 {
            answers.push(Answer { id, at, from, said: ProbeAnswer::Retransmitted { copies } });
            let number = if self.net.rehashes { probe.id + 1000 * copies } else { probe.id };
            if let Some(answer) = self.once(&Probe { id: number, ..*probe }, at - rtt) {
                answers.push(Answer { id, said: ProbeAnswer::Late, ..answer });
                break;
            }
            at += rto * (1 << (copies - 2));
        }
        answers
    }

    /// The same for one copy.
    fn once(&mut self, probe: &Probe, now: Time) -> Option<Answer> {
        let net = self.net;
        let each = net.rtt / 2 / u32::try_from(net.links.len()).unwrap_or(1);
        // A connection takes a round trip before its data leaves, and the kernel hears what routers say, not we.
        let stream = matches!(probe.kind, Kind::Stream | Kind::LastingStream);
        let connects = if stream { net.rtt } else { Duration::ZERO };
        let answer = |hops: u32, from, said| {
            let heard = !stream || !matches!(said, ProbeAnswer::TooBig { .. } | ProbeAnswer::Expired { .. });
            heard.then_some(Answer { id: probe.id, at: now + connects + each * hops * 2, from, said })
        };
        if stream && probe.ip_len > net.stream_limit {
            return answer(0, None, ProbeAnswer::LocalTooBig);
        }
        let (mut options, mut tos) = OFFERED;
        let links = net.later.as_ref().filter(|(at, _)| now >= *at).map_or(&net.links, |(_, links)| links);
        let branch = net
            .branch
            .as_ref()
            .filter(|(_, connection, others)| if stream { connection(probe.id, net.seed) } else { *others });
        let links = branch.map_or(links, |(links, ..)| links);
        let mut dont_fragment = probe.kind != Kind::LooseEcho;
        for (number, link) in links.iter().enumerate() {
            let hops = u32::try_from(number).unwrap_or(0);
            let router = Some(net.router(number));
            if number > 0 && probe.ttl.is_some_and(|ttl| usize::from(ttl) <= number) {
                let options = (probe.kind == Kind::Syn).then_some(options);
                let quote = Quote { tos: Some(tos), dont_fragment: (!net.v6).then_some(dont_fragment), options };
                return (net.expires && !link.mute).then(|| answer(hops, router, ProbeAnswer::Expired { quote }))?;
            }
            let [packets, bytes] = &mut self.policers[number];
            if !allowed(packets, link.police, now) || !allows(bytes, link.police_bytes, now, probe.ip_len.into()) {
                return None;
            }
            if probe.ip_len > link.mtu && (dont_fragment || number == 0) {
                if number == 0 {
                    return answer(0, None, ProbeAnswer::LocalTooBig);
                }
                let mtu = u32::from(link.says.unwrap_or(link.mtu));
                let heard = net.hush.is_none_or(|(from, until)| !(from..until).contains(&now));
                let says = link.icmp && allowed(&mut self.limits[number], link.limit, now) && heard;
                return says.then(|| answer(hops, router, ProbeAnswer::TooBig { mtu }))?;
            }
            if link.drop_above.is_some_and(|most| probe.ip_len > most) || self.lost(link, probe.ip_len, 0) {
                return None;
            }
            dont_fragment &= !link.clears_df;
            options.mss = options.mss.min(link.clamp).or(options.mss);
            if let Some(tamper) = link.tamper {
                tamper(&mut options, &mut tos);
            }
        }
        let (said, back) = match probe.kind {
            Kind::Echo | Kind::LooseEcho if net.echo && allowed(&mut self.echoes, net.echoes, now) => {
                (ProbeAnswer::Reached { ttl: Some(61) }, probe.ip_len)
            }
            Kind::OldSegment if net.tcp => (ProbeAnswer::Reached { ttl: Some(61) }, 52),
            Kind::Stream | Kind::LastingStream if net.tcp && probe.ip_len <= net.stream_limit => {
                (ProbeAnswer::Reached { ttl: None }, 52)
            }
            Kind::Syn if net.refuses => (ProbeAnswer::Refused, 40),
            Kind::RefusedSyn if net.refuses => (ProbeAnswer::Reached { ttl: None }, 40),
            Kind::Syn if net.tcp => {
                let heard = if net.clamps_one_way { None } else { options.mss };
                (ProbeAnswer::Open { mss: Some(net.mss.min(heard.unwrap_or(u16::MAX))), sack: true }, 44)
            }
            Kind::Udp if net.udp.is_some() && allowed(&mut self.limits[0], net.udp, now) => {
                (ProbeAnswer::Reached { ttl: Some(61) }, 56)
            }
            _ => return None,
        };
        for link in links.iter().rev() {
            if self.lost(link, back, 1) || link.back.is_some_and(|most| back > most) {
                return None;
            }
        }
        answer(u32::try_from(links.len()).unwrap_or(0), Some(net.target()), said)
    }
}

/// Runs a machine over a path that loses everything at first.
pub fn run_with_outage(net: &Net, machine: &mut impl Machine, outage: Duration) -> RunCost {
    run_over(net, machine, |_, _| Vec::new(), outage)
}

/// Runs a machine over a path until it is done; `forge` may add answers of its own to each probe.
pub fn run_with(net: &Net, machine: &mut impl Machine, forge: impl FnMut(&Probe, Time) -> Vec<Answer>) -> RunCost {
    run_over(net, machine, forge, Duration::ZERO)
}

fn run_over(
    net: &Net,
    machine: &mut impl Machine,
    mut forge: impl FnMut(&Probe, Time) -> Vec<Answer>,
    outage: Duration,
) -> RunCost {
    let limits = std::iter::once(net.udp).chain(net.links.iter().skip(1).map(|link| link.limit));
    let limits = limits.enumerate().map(|(number, limit)| {
        let full = limit.filter(|_| number == 0 || !net.spent).map_or(0.0, |(burst, _)| burst);
        Bucket { tokens: full, at: 0.0 }
    });
    let limits = limits.collect();
    let bucket = |limit: Option<(f64, f64)>| Bucket { tokens: limit.map_or(0.0, |(burst, _)| burst), at: 0.0 };
    let policers = net.links.iter().map(|link| [bucket(link.police), bucket(link.police_bytes)]).collect();
    let echoes = bucket(net.echoes);
    let mut world = World { net, rng: ChaCha8Rng::seed_from_u64(net.seed), limits, policers, echoes };
    let mut queues = Queues::default();
    let (mut now, mut pacer) = (Duration::ZERO, Pacer::new(net.pps, 64));
    let mut heap: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let (mut answers, mut sent): (Vec<Answer>, Vec<(Time, Probe)>) = (Vec::new(), Vec::new());
    while !machine.is_done() {
        assert!(now < Duration::from_secs(120), "still not done after two minutes");
        while pacer.next() <= now {
            let Some(probe) = machine.poll_probe(now) else { break };
            pacer.take(now);
            sent.push((now, probe));
            let heard = world.travel(&probe, now).into_iter().filter(|_| now >= outage);
            for mut answer in heard.chain(forge(&probe, now)) {
                if let Some(rate) = net.rate {
                    answer.at = queues.delay(rate, &probe, now, answer.at);
                }
                if let Some((_, until)) = net.stall.filter(|(from, until)| (*from..*until).contains(&answer.at)) {
                    answer.at = until;
                }
                heap.push(Reverse((answer.at, answers.len())));
                answers.push(answer);
            }
        }
        if machine.is_done() {
            break;
        }
        let arrival = heap.peek().map(|Reverse((at, _))| *at);
        let wakeup = machine.wakeup().map(|at| at.max(pacer.next()));
        let Some(next) = arrival.into_iter().chain(wakeup).min() else { break };
        now = next.max(now);
        while heap.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, index))) = heap.pop() {
                machine.handle(&answers[index]);
            }
        }
        if machine.wakeup().is_some_and(|at| at <= now) && heap.is_empty() && arrival.is_none() {
            // A machine that wants to be asked now and then gives nothing would stand still.
            now += Duration::from_nanos(1);
        }
    }
    assert!(machine.is_done(), "nothing more can happen, and it isn't done");
    RunCost { packets: u32::try_from(sent.len()).unwrap_or(u32::MAX), time: now, sent }
}

pub fn run(net: &Net, machine: &mut impl Machine) -> RunCost {
    run_with(net, machine, |_, _| Vec::new())
}

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed ^ 0x5eed)
}
