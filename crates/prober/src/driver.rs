//! Runs state machines over sockets.

use crate::ProbeOptions;
use crate::clock::now;
use crate::reverse::ReverseSearch;
use crate::target::Target;
use crate::wire::{Connection, Mark, Reply, SendOutcome, Wire};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use wt_probe::codec::{TcpHeard, Token};
use wt_probe::{Answer, Kind, Machine, Pacer, ProbeAnswer, Search, Time};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Packets a second for each host, if nothing else is said.
pub(crate) const DEFAULT_PPS: u32 = 2000;

/// So many leave at once, if no rate was asked for; what follows keeps to the rate.
const BURST: u32 = 64;

/// A machine and its target.
struct Job<'a> {
    target: &'a Target,
    machine: &'a mut dyn Machine,
    connection: Connection,
    /// Which probe opened the connection.
    opener: Option<u32>,
    /// Why this host can't send to the target. The others' machines go on.
    failed: Option<Problem>,
}

impl Job<'_> {
    fn is_over(&self) -> bool {
        self.failed.is_some() || self.machine.is_done()
    }
}

/// What a search of one target cost there and back.
pub(crate) struct SearchPass {
    /// The cost of finding what gets there.
    pub(crate) cost: Cost,
    /// The largest packet that comes back, bytes, where that shows.
    pub(crate) reverse_pmtu: Option<u16>,
    /// Whether longer ones vanish there, and nobody says so.
    pub(crate) reverse_hole: bool,
    /// What the latter cost on top.
    pub(crate) on_top: Cost,
    /// Why this host couldn't send to the target.
    pub(crate) failed: Option<Problem>,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Packets that left this host for the targets.
    pub packets: u32,
    /// How long it took.
    pub time: Duration,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, time: self.time + other.time }
    }
}

/// Runs machines over this host's sockets, all targets of one version of IP.
pub(crate) struct Driver {
    wire: Wire,
    pacer: Pacer,
    seed: u64,
    cancel: Cancel,
}

impl Driver {
    /// Opens the sockets that this user may have.
    ///
    /// # Errors
    /// An environment failure.
    pub(crate) fn open(v6: bool, hosts: usize, options: &ProbeOptions, cancel: &Cancel) -> Result<Self, Problem> {
        let seed = options.seed();
        let pps = options.pps.unwrap_or(DEFAULT_PPS * u32::try_from(hosts.clamp(1, 10)).unwrap_or(1));
        let wire = Wire::open(v6, options.unprivileged, hosts, seed)?;
        Ok(Self { wire, pacer: Pacer::new(pps, burst(options.pps)), seed, cancel: cancel.clone() })
    }

    /// The same, for probes of which no more than `burst` leave at once.
    ///
    /// # Errors
    /// An environment failure.
    pub(crate) fn open_with_burst(
        v6: bool,
        options: &ProbeOptions,
        burst: u32,
        cancel: &Cancel,
    ) -> Result<Self, Problem> {
        let mut driver = Self::open(v6, 1, options, cancel)?;
        driver.pacer = Pacer::new(options.pps.unwrap_or(DEFAULT_PPS), burst);
        Ok(driver)
    }

    /// What can be sent, the best first.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.wire.kinds()
    }

    /// Whether the kernel may make connections for us, each of which takes its own way past load balancers.
    pub(crate) const fn streams(&self) -> bool {
        self.wire.streams()
    }

    /// Runs a search until it is done or the time is up, and finds the largest packet that comes back, too.
    ///
    /// # Errors
    /// A stopped one after a cancel.
    pub(crate) fn search_both_ways(
        &mut self,
        target: &Target,
        search: &mut Search,
        limit: Duration,
    ) -> Result<SearchPass, Problem> {
        let ends = target.endpoints();
        let raw = self.kinds().contains(&Kind::OldSegment);
        let mut run = Run { reverse_search: ReverseSearch::new(target, ends).filter(|_| raw), ..Run::default() };
        let begin = now();
        run.add(target, search, self.seed);
        let outcome = run.drive(&mut self.wire, &mut self.pacer, begin + limit, (&self.cancel, &mut |_| {}));
        let Run { reverse_search, packets, jobs, .. } = run;
        let (connections, failed): (Vec<Connection>, Vec<Option<Problem>>) =
            jobs.into_iter().map(|job| (job.connection, job.failed)).unzip();
        let failed = failed.into_iter().flatten().next();
        let (forward, searched) = (search.report().pmtu, now());
        // Where somebody lowers the MSS, nothing longer ever comes.
        let unclamped = search.report().clamp.is_none();
        let mut reverse_search = reverse_search.filter(|_| outcome.is_ok() && failed.is_none() && unclamped);
        let reverse =
            reverse_search.as_mut().and_then(|reverse_search| reverse_search.finish(&self.wire, forward, &self.cancel));
        connections.iter().for_each(|connection| self.wire.reset(&ends, connection));
        outcome?;
        // What comes back is shorter than what gets there: it may be that somebody lowers our MSS, which the target doesn't show.
        let asks = reverse < forward && reverse.is_some() && search.ask_for_quotes();
        let quotes = if asks { self.run(target, search, limit)?.packets } else { 0 };
        let reverse_pmtu = reverse.filter(|_| !(asks && search.sees_lowered_mss()));
        let reverse_hole = reverse_pmtu.is_some() && reverse_search.as_ref().is_some_and(|back| back.is_hole(forward));
        let time = |from: Time, to: Time| to.saturating_sub(from);
        let on_top = Cost { packets: quotes + reverse_search.map_or(0, |b| b.packets), time: time(searched, now()) };
        Ok(SearchPass {
            cost: Cost { packets, time: time(begin, searched) },
            reverse_pmtu,
            reverse_hole,
            on_top,
            failed,
        })
    }

    /// Runs a target's machine until it is done or the time is up.
    ///
    /// # Errors
    /// A failure when this host can't send, and a stopped one after a cancel.
    pub(crate) fn run(&mut self, target: &Target, machine: &mut dyn Machine, limit: Duration) -> Result<Cost, Problem> {
        self.run_watched(target, machine, limit, &mut |_| {})
    }

    /// The same; `watch` hears how many packets have left, several times a second.
    pub(crate) fn run_watched(
        &mut self,
        target: &Target,
        machine: &mut dyn Machine,
        limit: Duration,
        watch: &mut dyn FnMut(u32),
    ) -> Result<Cost, Problem> {
        let (cost, failed) = self.run_jobs(vec![(target, machine)], limit, watch)?;
        failed.into_iter().flatten().next().map_or(Ok(cost), Err)
    }

    /// Runs the machines of several targets until all are done or the time is up; tells of each target why this host couldn't
    /// send to it, if it couldn't.
    ///
    /// # Errors
    /// A stopped one after a cancel.
    pub(crate) fn run_all(
        &mut self,
        pairs: Vec<(&Target, &mut dyn Machine)>,
        limit: Duration,
    ) -> Result<(Cost, Vec<Option<Problem>>), Problem> {
        self.run_jobs(pairs, limit, &mut |_| {})
    }

    fn run_jobs(
        &mut self,
        pairs: Vec<(&Target, &mut dyn Machine)>,
        limit: Duration,
        watch: &mut dyn FnMut(u32),
    ) -> Result<(Cost, Vec<Option<Problem>>), Problem> {
        let mut run = Run::default();
        for (target, machine) in pairs {
            run.add(target, machine, self.seed);
        }
        let begin = now();
        let outcome = run.drive(&mut self.wire, &mut self.pacer, begin + limit, (&self.cancel, watch));
        for job in &run.jobs {
            self.wire.reset(&job.target.endpoints(), &job.connection);
        }
        outcome?;
        let cost = Cost { packets: run.packets, time: now().saturating_sub(begin) };
        Ok((cost, run.jobs.into_iter().map(|job| job.failed).collect()))
    }
}

/// How many probes may leave at once: as many as a first burst of ours has, and where a rate was asked for, no more than it lets leave in a
/// twentieth of a second.
fn burst(asked: Option<u32>) -> u32 {
    asked.map_or(BURST, |pps| (pps / 20).clamp(1, BURST))
}

/// What a search or trace may take where a rate was asked for: so much more than else as so many packets to each host take at that rate.
pub(crate) fn limit_at_rate(limit: Duration, hosts: usize, packets: u32, options: &ProbeOptions) -> Duration {
    let all = u32::try_from(hosts).unwrap_or(u32::MAX).saturating_mul(packets);
    options.pps.map_or(limit, |pps| limit + Duration::from_secs(u64::from(all / pps.max(1))))
}

/// Between two looks at whether somebody asked to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How often connections of the kernel's are looked at.
const STREAM_STEP: Duration = Duration::from_millis(1);
/// The number of no probe.
const AMBIGUOUS: u32 = u32::MAX;

#[derive(Default)]
struct Run<'a> {
    jobs: Vec<Job<'a>>,
    by_ip: HashMap<IpAddr, usize>,
    marks: HashMap<(IpAddr, Mark), u32>,
    packets: u32,
    /// What comes back is asked for, too; of a single target only.
    reverse_search: Option<ReverseSearch>,
    /// When the single target's connection was asked for.
    opened: Time,
}

impl<'a> Run<'a> {
    fn add(&mut self, target: &'a Target, machine: &'a mut dyn Machine, seed: u64) {
        let number = self.jobs.len();
        self.by_ip.insert(target.ip, number);
        let isn = (seed >> 16) as u32 ^ (number as u32).wrapping_mul(0x9E37_79B9);
        self.jobs.push(Job { target, machine, connection: Connection::new(isn), opener: None, failed: None });
    }

    fn drive(
        &mut self,
        wire: &mut Wire,
        pacer: &mut Pacer,
        end: Time,
        (cancel, watch): (&Cancel, &mut dyn FnMut(u32)),
    ) -> Result<(), Problem> {
        wt_sys::poll::sharpen_timers();
        let mut told = Time::ZERO;
        loop {
            if cancel.is_cancelled() {
                return Err(Problem::stopped("stopped before there was an answer"));
            }
            let blocked = self.send(wire, pacer);
            let at = now();
            if at >= told + LOOK {
                told = at;
                watch(self.packets);
            }
            let waiting = || self.jobs.iter().filter(|job| !job.is_over());
            if at >= end || waiting().next().is_none() {
                return Ok(());
            }
            let next =
                if blocked { Some(pacer.next()) } else { waiting().filter_map(|job| job.machine.wakeup()).min() };
            // A machine that wants to be asked in the past has been asked: no spinning.
            let next = if wire.has_streams() { Some(at + STREAM_STEP).into_iter().chain(next).min() } else { next };
            let next = self.reverse_search.as_ref().and_then(ReverseSearch::wakeup).into_iter().chain(next).min();
            let wait = next.unwrap_or(end).min(end).saturating_sub(at).clamp(Duration::from_micros(20), LOOK);
            let mut descriptors = wire.descriptors();
            descriptors.extend(self.reverse_search.as_ref().map(ReverseSearch::descriptor));
            wt_sys::poll::wait_readable(&descriptors, Some(wait))
                .map_err(|error| Problem::internal(error.to_string()))?;
            self.hear_streams(wire);
            self.hear(wire);
            if let Some(reverse_search) = &mut self.reverse_search {
                reverse_search.tick(wire);
            }
        }
    }

    /// Sends what may leave now; tells whether the rate holds more back.
    ///
    /// Where it does, the first targets come first: when the time is up, some are known to the end, not all of them in part.
    fn send(&mut self, wire: &mut Wire, pacer: &mut Pacer) -> bool {
        loop {
            let mut any = false;
            for number in 0..self.jobs.len() {
                let at = now();
                if pacer.next() > at {
                    return true;
                }
                let job = &mut self.jobs[number];
                if job.failed.is_some() {
                    continue;
                }
                let Some(probe) = job.machine.poll_probe(at) else { continue };
                any = true;
                pacer.take(at);
                if probe.kind == Kind::OldSegment && job.connection.wants_completion(at) {
                    wire.complete(&job.target.endpoints(), &job.connection);
                    job.connection.completed = at;
                    self.packets += 1;
                }
                match wire.send(&job.target.endpoints(), &probe, &mut job.connection) {
                    Ok(SendOutcome::Gone(mark)) => {
                        self.packets += 1;
                        // Of a SYN that is repeated, whose answer it is can't be told: no round trip is taken for a shorter one.
                        if let (Mark::Handshake(_), None) = (mark, job.opener) {
                            job.opener = Some(probe.id);
                            self.opened = at;
                        }
                        if let Mark::Token(Token::Number(_)) = mark {
                            let token =
                                Token::Udp { port: wire.udp_port(), len: udp_payload(&job.target.ip, probe.ip_len) };
                            // Where routers quote no payload, the length must tell; several of one length it can't.
                            let same = self.marks.entry((job.target.ip, Mark::Token(token)));
                            same.and_modify(|id| *id = AMBIGUOUS).or_insert(probe.id);
                        }
                        self.marks.insert((job.target.ip, mark), probe.id);
                    }
                    Ok(SendOutcome::TooBig) => {
                        job.machine.handle(&Answer { id: probe.id, at, from: None, said: ProbeAnswer::LocalTooBig });
                    }
                    Ok(SendOutcome::Never) => {}
                    Err(problem) => job.failed = Some(problem),
                }
            }
            if !any {
                return false;
            }
        }
    }

    fn hear_streams(&mut self, wire: &mut Wire) {
        let Self { jobs, by_ip, marks, .. } = self;
        wire.advance_streams(|heard| {
            let (number, id) = (by_ip.get(&heard.target), marks.get(&(heard.target, heard.mark)));
            if let (Some(number), Some(id)) = (number, id) {
                let answer = Answer { id: *id, at: heard.at, from: heard.from, said: heard.said };
                jobs[*number].machine.handle(&answer);
            }
        });
    }

    fn hear(&mut self, wire: &Wire) {
        let Self { jobs, by_ip, marks, packets, reverse_search, opened } = self;
        let jobs = std::cell::RefCell::new(jobs);
        let each = |heard: Reply| {
            let Some(number) = by_ip.get(&heard.target) else { return };
            let Some(id) = marks.get(&(heard.target, heard.mark)) else { return };
            let answer = Answer { id: *id, at: heard.at, from: heard.from, said: heard.said };
            let job = &mut jobs.borrow_mut()[*number];
            let answered = matches!(heard.said, ProbeAnswer::Reached { .. });
            job.connection.stands |= answered && matches!(heard.mark, Mark::Token(Token::Tcp { .. }));
            job.machine.handle(&answer);
        };
        let handshake = |from: IpAddr, port: u16, heard: TcpHeard, at: Time| {
            let Some(number) = by_ip.get(&from) else { return };
            let job = &mut jobs.borrow_mut()[*number];
            if let TcpHeard::Reset { ack } = heard {
                let token = Token::Tcp { port, seq: job.connection.refused_by(ack) };
                if let Some(id) = marks.get(&(from, Mark::Token(token))) {
                    let said = ProbeAnswer::Reached { ttl: None };
                    return job.machine.handle(&Answer { id: *id, at, from: Some(from), said });
                }
            }
            if let (TcpHeard::SynAck { ack, .. } | TcpHeard::Reset { ack }, Some(id)) =
                (heard, side(marks, from, port, heard))
            {
                if let TcpHeard::SynAck { .. } = heard {
                    wire.refuse(&job.target.endpoints(), port, ack);
                }
                return job.machine.handle(&Answer { id, at, from: Some(from), said: ProbeAnswer::Refused });
            }
            let Some(id) = job.opener.filter(|_| marks.contains_key(&(from, Mark::Handshake(port)))) else { return };
            let expected = job.connection.isn.wrapping_add(1);
            let said = match heard {
                TcpHeard::SynAck { isn, ack, options } if ack == expected => {
                    job.connection.ack = Some(isn.wrapping_add(1));
                    job.connection.completed = at;
                    if let Some(reverse_search) = reverse_search.as_mut().filter(|_| job.connection.sent == 0) {
                        job.connection.sent = reverse_search.ask_first(wire, &job.connection, port, (*opened, at));
                    } else {
                        wire.complete(&job.target.endpoints(), &job.connection);
                        *packets += 1;
                    }
                    ProbeAnswer::Open { mss: options.mss, sack: options.sack }
                }
                TcpHeard::Reset { ack } if ack == expected => ProbeAnswer::Refused,
                TcpHeard::Other { len, .. } => {
                    job.connection.stands |= len > 0;
                    return;
                }
                _ => return,
            };
            job.machine.handle(&Answer { id, at, from: Some(from), said });
        };
        wire.hear(each, handshake);
    }
}

/// Which SYN that shouldn't have arrived this answers.
fn side(marks: &HashMap<(IpAddr, Mark), u32>, from: IpAddr, port: u16, heard: TcpHeard) -> Option<u32> {
    let (TcpHeard::SynAck { ack, .. } | TcpHeard::Reset { ack }) = heard else { return None };
    marks.get(&(from, Mark::Token(Token::Tcp { port, seq: ack.wrapping_sub(1) }))).copied()
}

fn udp_payload(ip: &IpAddr, ip_len: u16) -> u16 {
    ip_len.saturating_sub(if ip.is_ipv6() { 48 } else { 28 }).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_asked_for_holds_from_the_first_packet_on() {
        for (asked, at_once) in
            [(None, 64), (Some(1), 1), (Some(10), 1), (Some(100), 5), (Some(1280), 64), (Some(100_000), 64)]
        {
            assert_eq!(burst(asked), at_once, "{asked:?}");
        }
    }

    #[test]
    fn who_asks_for_a_packet_a_second_gets_the_time_that_a_search_takes_so() {
        let at = |pps| ProbeOptions { pps, ..ProbeOptions::default() };
        let minute = Duration::from_secs(60);
        assert_eq!(limit_at_rate(minute, 2, 200, &at(None)), minute);
        assert_eq!(limit_at_rate(minute, 2, 200, &at(Some(1))), minute + Duration::from_secs(400));
        assert_eq!(limit_at_rate(minute, 2, 200, &at(Some(2000))), minute);
    }
}
