//! Workloads over the event loop: bulk, exchanges, pages, relays.
//!
//! What this leaves out: programs that take time to compute an answer, and what browsers do between objects (a page is a list
//! that its connections take from in turn, once its first object has come). It matters where a server or a browser is slower than
//! a round trip.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `connect`, `write`, `read` of programs | – | [`Simulation::run`]: each program acts when its socket would wake it |

/// Two connections and what hands on between them.
mod relay;
/// Messages at a steady pace.
mod stream;

use crate::cc;
use crate::net::{Drops, EndId, Net};
use crate::report::{FinishedExchange, FlowReport, Report, sample};
use crate::segment::SynChange;
use crate::spec::{Exchange, FlowSpec, Job, MAX_FLOWS, SimError};
use crate::tcp::{Endpoint, StackConfig};
use relay::Relay;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;
use wt_link::{PathConfig, Side};
use wt_trial::{Amount, Direction, Repeat, Sample};

/// Bytes with which our own client asks for a transfer.
const REQUEST: u64 = 48;
/// Samples that one flow keeps at most; an even number. Of longer ones every second goes, so that the rest reaches their end.
const MAX_SAMPLES: usize = 2_000;
/// Exchanges of one flow at most; one that would have more ends the run.
const MAX_EXCHANGES: usize = 500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Connecting,
    Running,
    /// An upload of a size is there, and its sender doesn't know yet.
    Closing,
    Done,
}

struct Flow {
    spec: FlowSpec,
    client: EndId,
    server: EndId,
    stage: Stage,
    queue: VecDeque<Exchange>,
    /// Turns that were brought to their end.
    turns: u32,
    /// The exchange that is under way.
    current: FinishedExchange,
    /// Bytes of all requests and answers so far.
    asked: u64,
    answered: u64,
    /// What the server has answered to.
    served: u64,
    pending_answer: u64,
    pausing: Option<Exchange>,
    /// The server has the request and is about to answer.
    reacting: bool,
    begun_ns: u64,
    /// When the server had the request of an upload.
    heard_ns: Option<u64>,
    /// The relay that this flow belongs to, as its near (false) or far side.
    relay: Option<(usize, bool)>,
    /// How often a sample could be taken, and of how many such times one is.
    ticks: u64,
    ticks_a_sample: u64,
    report: FlowReport,
}

/// A page while it is loaded.
struct Page {
    /// What nobody has asked for yet.
    left: VecDeque<Exchange>,
    asked: u32,
    /// The connections that wait: for its first object, or for another one's end.
    waiting: VecDeque<usize>,
    /// Where each object has a connection of its own: how many there are at once.
    one_each: Option<usize>,
}

/// Flows, what they do, and the paths that they share.
pub struct Simulation {
    net: Net,
    flows: Vec<Flow>,
    pages: Vec<Page>,
    relays: Vec<Relay>,
    wake: BinaryHeap<Reverse<(u64, usize)>>,
    now_ns: u64,
    sample_every_ns: u64,
    next_sample_ns: u64,
    max_events: u64,
    running: usize,
    /// A flow has had as many exchanges as one may have, and would have more.
    is_full: bool,
    seed: u64,
}

impl Flow {
    /// How long it has taken until `now`: by the client's clock, or the server's that receives an upload.
    fn receivers_time(&self, now: u64) -> Duration {
        // Where all came at the moment of its request, as on a path with jitter, the receiver's clock tells nothing.
        let begun_ns = self.heard_ns.filter(|heard| *heard < now).unwrap_or_else(|| match self.heard_ns {
            Some(_) => nanos(self.report.begun + self.report.connect.unwrap_or_default()),
            None => self.begun_ns,
        });
        Duration::from_nanos(now.saturating_sub(begun_ns))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Simulation {
    /// A simulation over one path; `icmp` says of each link whether the router in front of it tells of packets that are too
    /// big (missing ones do). The same seed gives the same result, byte by byte.
    ///
    /// # Errors
    /// [`SimError::Path`].
    pub fn new(path: &PathConfig, icmp: Vec<bool>, seed: u64) -> Result<Self, SimError> {
        let mut net = Net::new();
        net.add_line(path, icmp, seed)?;
        Ok(Self {
            net,
            flows: Vec::new(),
            pages: Vec::new(),
            relays: Vec::new(),
            wake: BinaryHeap::new(),
            now_ns: 0,
            sample_every_ns: u64::MAX,
            next_sample_ns: u64::MAX,
            max_events: u64::MAX,
            running: 0,
            is_full: false,
            seed,
        })
    }

    /// Lets the hops of the first path do so to the SYNs of all connections: to the client's, then to the server's, each in the order
    /// on its way.
    pub fn change_syns(&mut self, syns: [Vec<SynChange>; 2]) {
        self.net.change_syns(0, syns);
    }

    /// Ends after so many events, with what was done until then.
    pub fn bound_events(&mut self, events: u64) {
        self.max_events = events;
    }

    /// Takes samples of every flow this often.
    pub fn sample_every(&mut self, interval: Duration) {
        self.sample_every_ns = nanos(interval).max(1);
        self.next_sample_ns = self.sample_every_ns;
    }

    /// Adds a connection over the first path; returns its number.
    ///
    /// # Errors
    /// [`SimError`] when the model can't run it.
    pub fn add_flow(&mut self, spec: FlowSpec) -> Result<usize, SimError> {
        self.add_flow_on(0, spec)
    }

    fn add_flow_on(&mut self, line: usize, spec: FlowSpec) -> Result<usize, SimError> {
        if self.flows.len() >= MAX_FLOWS {
            return Err(SimError::TooManyFlows { asked: self.flows.len() + 1 });
        }
        let number = self.flows.len();
        let client = self.net.ends();
        for (stack, peer, side) in [(&spec.client, client + 1, Side::AToB), (&spec.server, client, Side::BToA)] {
            if stack.mtu < 68 {
                return Err(SimError::MtuTooSmall { mtu: stack.mtu });
            }
            let name = &stack.congestion_control;
            let seed = self.seed ^ (u64::from(peer) << 32);
            let cc =
                cc::by_name(name, seed).ok_or_else(|| SimError::UnknownCongestionControl { name: name.clone() })?;
            self.net.add_end(Endpoint::new(stack.clone(), peer, number as u32 + 1, cc), line, side);
        }
        let start = nanos(spec.start);
        self.flows.push(Flow {
            client,
            server: client + 1,
            stage: Stage::Waiting,
            queue: VecDeque::new(),
            turns: 0,
            current: FinishedExchange::default(),
            asked: 0,
            answered: 0,
            served: 0,
            pending_answer: 0,
            pausing: None,
            reacting: false,
            begun_ns: 0,
            heard_ns: None,
            relay: None,
            ticks: 0,
            ticks_a_sample: 1,
            report: FlowReport::default(),
            spec,
        });
        self.running += 1;
        if start < u64::MAX {
            self.wake.push(Reverse((start, number)));
        }
        Ok(number)
    }

    /// Adds a page: the first connection asks for its first object alone, since that names the others; then the other
    /// connections are made, and all take requests in turn. With `one_each` a connection asks for one object only, and the next
    /// one takes its place; there are as many at once. Returns the numbers of the flows.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn add_page(
        &mut self,
        ends: (&StackConfig, &StackConfig),
        at_once: usize,
        requests: Vec<Exchange>,
        one_each: bool,
    ) -> Result<Vec<usize>, SimError> {
        let connections = if one_each { requests.len() } else { at_once };
        if self.flows.len() + connections > MAX_FLOWS {
            return Err(SimError::TooManyFlows { asked: connections });
        }
        let page = self.pages.len();
        let one_each = one_each.then_some(at_once);
        self.pages.push(Page { left: requests.into(), asked: 0, waiting: VecDeque::new(), one_each });
        let spec = |start| FlowSpec { client: ends.0.clone(), server: ends.1.clone(), job: Job::Page(page), start };
        let flows: Vec<usize> = (0..connections)
            .map(|number| self.add_flow(spec(if number == 0 { Duration::ZERO } else { Duration::MAX })))
            .collect::<Result<_, _>>()?;
        self.pages[page].waiting = flows.iter().skip(1).copied().collect();
        Ok(flows)
    }

    /// Runs until every flow is done, or until `limit`.
    pub fn run(&mut self, limit: Duration) -> Report {
        let limit = nanos(limit);
        let mut cut_short = false;
        while self.running > 0 {
            if self.is_full || self.net.events() >= self.max_events {
                cut_short = true;
                break;
            }
            let wake = self.wake.peek().map_or(u64::MAX, |first| first.0.0);
            let due = self.net.next_due().min(wake).min(self.next_sample_ns);
            if due > limit || due == u64::MAX {
                break;
            }
            self.now_ns = self.now_ns.max(due);
            if self.next_sample_ns <= self.now_ns {
                self.take_samples();
            } else if wake <= self.now_ns {
                if let Some(Reverse((_, flow))) = self.wake.pop() {
                    self.on_wake(flow);
                }
            } else if let Some(end) = self.net.step(self.now_ns) {
                self.on_progress(end as usize / 2);
            }
        }
        if self.running > 0 && !cut_short {
            self.now_ns = self.now_ns.max(limit);
        }
        self.report(cut_short)
    }

    /// The flow with this number has something to do by itself: connect, ask, or stop.
    fn on_wake(&mut self, number: usize) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        match flow.stage {
            Stage::Waiting => {
                flow.stage = Stage::Connecting;
                flow.begun_ns = now;
                flow.report.begun = Duration::from_nanos(now);
                let client = flow.client;
                self.net.act(client, now, |end, out| end.connect(now, out));
            }
            Stage::Running if flow.is_pacing() => self.send_message(number),
            Stage::Running if flow.reacting => {
                flow.reacting = false;
                let (server, to) = (flow.server, flow.answered);
                self.net.act(server, now, |end, out| end.write_to(now, to, out));
            }
            Stage::Running => match flow.pausing.take() {
                Some(exchange) => self.ask(number, exchange),
                None => self.finish(number),
            },
            Stage::Connecting | Stage::Closing | Stage::Done => {}
        }
    }

    /// Something happened to an end of this flow.
    fn on_progress(&mut self, number: usize) {
        let Flow { stage, client, server, .. } = self.flows[number];
        match stage {
            Stage::Connecting if self.net.end(client).is_established() => self.begin(number),
            Stage::Running => self.advance(number),
            Stage::Closing if self.net.end(client).is_acknowledged() => self.finish(number),
            Stage::Closing | Stage::Waiting | Stage::Connecting | Stage::Done => {}
        }
        if self.flows[number].stage != Stage::Done
            && (self.net.end(client).has_failed() || self.net.end(server).has_failed())
        {
            self.flows[number].report.failed = true;
            self.finish(number);
        }
    }

    /// The connection stands at the client.
    fn begin(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        flow.stage = Stage::Running;
        flow.report.connect = Some(Duration::from_nanos(self.now_ns - flow.begun_ns));
        flow.begun_ns = self.now_ns;
        let exchange = |ask, answer| Exchange { ask, answer, pause: Duration::ZERO };
        match &flow.spec.job {
            Job::Exchanges(list) => flow.queue = list.iter().copied().collect(),
            Job::Page(_) | Job::Repeated { .. } => {}
            Job::Stream { .. } => return self.begin_stream(number),
            Job::Bulk { direction, amount } => {
                let bytes = match *amount {
                    Amount::Size(size) => size.get(),
                    Amount::Time(time) => {
                        self.wake.push(Reverse((self.now_ns.saturating_add(nanos(time)), number)));
                        1 << 50
                    }
                };
                let whole = match direction {
                    Direction::Down => exchange(REQUEST, bytes),
                    Direction::Up => exchange(REQUEST + bytes, 0),
                };
                flow.queue.push_back(whole);
                let sender = if *direction == Direction::Down { flow.server } else { flow.client };
                self.net.end_mut(sender).end_writing();
            }
        }
        self.next_exchange(number);
    }

    /// Takes up the next exchange, at once or after its pause; without one the flow is done.
    fn next_exchange(&mut self, number: usize) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        let next = match &flow.spec.job {
            Job::Page(page) => {
                let page = &mut self.pages[*page];
                if page.one_each.is_some() && !flow.report.exchanges.is_empty() {
                    return self.finish(number);
                }
                flow.current.number = page.asked;
                page.asked += 1;
                page.left.pop_front()
            }
            Job::Repeated { turn, pause, amount } => {
                if flow.queue.is_empty() {
                    let enough = match *amount {
                        Repeat::Count(count) => flow.turns >= count,
                        Repeat::Time(time) => flow.turns > 0 && now >= flow.begun_ns.saturating_add(nanos(time)),
                    };
                    if !enough {
                        flow.queue = turn.iter().copied().collect();
                        if let Some(first) = flow.queue.front_mut().filter(|_| flow.turns > 0) {
                            first.pause = *pause;
                        }
                        flow.turns += 1;
                    }
                }
                flow.queue.pop_front()
            }
            Job::Exchanges(_) | Job::Bulk { .. } | Job::Stream { .. } => flow.queue.pop_front(),
        };
        match next {
            None => self.finish(number),
            Some(_) if flow.report.exchanges.len() >= MAX_EXCHANGES => self.is_full = true,
            Some(exchange) if exchange.pause.is_zero() => self.ask(number, exchange),
            Some(exchange) => {
                flow.pausing = Some(exchange);
                self.wake.push(Reverse((self.now_ns.saturating_add(nanos(exchange.pause)), number)));
            }
        }
    }

    fn ask(&mut self, number: usize, exchange: Exchange) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        flow.asked += exchange.ask;
        flow.pending_answer = exchange.answer;
        flow.current.asked = Duration::from_nanos(now);
        flow.current.first_byte = Duration::ZERO;
        flow.current.bytes = exchange.answer;
        let (client, asked, is_far) = (flow.client, flow.asked, matches!(flow.relay, Some((_, true))));
        if self.is_upload(number) {
            // Our client writes the request by itself: no payload shares its segment, which begins the receiver's clock.
            self.net.act(client, now, |end, out| end.write_to(now, REQUEST, out));
        }
        if !is_far {
            self.net.act(client, now, |end, out| end.write_to(now, asked, out));
        }
        self.relay(number);
        self.advance(number);
    }

    /// Lets server and client go on as far as what has arrived allows.
    fn advance(&mut self, number: usize) {
        let now = self.now_ns;
        let Flow { client, server, relay, .. } = self.flows[number];
        let flow = &mut self.flows[number];
        let heard = self.net.end(server).received();
        if heard >= flow.asked && flow.served < flow.asked {
            flow.served = flow.asked;
            flow.answered += flow.pending_answer;
            if flow.pending_answer > 0 && !matches!(relay, Some((_, false))) {
                flow.reacting = true;
                let at = now.saturating_add(nanos(flow.spec.server.reaction));
                self.wake.push(Reverse((at, number)));
            }
        }
        if relay.is_some() {
            self.relay(number);
        }
        if self.is_upload(number) && heard >= REQUEST && self.flows[number].served == 0 {
            let by_time = !self.is_upload_of_size(number);
            let flow = &mut self.flows[number];
            if flow.heard_ns.is_none() {
                flow.heard_ns = Some(now);
                // The receiver of an upload by time has the clock: it begins with the request.
                flow.begun_ns = if by_time { now } else { flow.begun_ns };
            }
        }
        self.note_messages(number);
        let flow = &mut self.flows[number];
        let got = self.net.end(client).received();
        let here = Duration::from_nanos(now);
        if flow.served == flow.asked && flow.current.first_byte.is_zero() && got + flow.pending_answer > flow.answered {
            flow.current.first_byte = here;
        }
        if flow.served == flow.asked && flow.pausing.is_none() && got >= flow.answered && flow.asked > 0 {
            let done = FinishedExchange { done: here, ..flow.current };
            flow.report.exchanges.push(done);
            flow.current.number += 1;
            if let Job::Page(page) = flow.spec.job {
                let page = &mut self.pages[page];
                let many = match page.one_each {
                    // The first object names the others; after that each connection has one successor.
                    Some(at_once) if flow.current.number == 1 => at_once,
                    Some(_) => 1,
                    None => usize::MAX,
                };
                let many = many.min(page.waiting.len());
                for waiting in page.waiting.drain(..many) {
                    self.wake.push(Reverse((now, waiting)));
                }
            }
            if self.is_upload_of_size(number) {
                return self.close_upload(number);
            }
            self.next_exchange(number);
        }
    }

    /// The receiver of an upload has all that it wanted and leaves, which its sender is about to hear.
    fn close_upload(&mut self, number: usize) {
        let now = self.now_ns;
        let flow = &mut self.flows[number];
        flow.stage = Stage::Closing;
        flow.report.elapsed = Some(flow.receivers_time(now));
        let server = flow.server;
        self.note_result(number);
        self.net.act(server, now, |end, out| end.acknowledge_all(now, out));
    }

    fn is_upload_of_size(&self, number: usize) -> bool {
        matches!(self.flows[number].spec.job, Job::Bulk { direction: Direction::Up, amount: Amount::Size(_) })
    }

    fn is_upload(&self, number: usize) -> bool {
        matches!(self.flows[number].spec.job, Job::Bulk { direction: Direction::Up, .. })
    }

    /// Where the payload goes from the client to the server: bytes of the request before it.
    fn before_payload(&self, number: usize) -> Option<u64> {
        self.flows[number].before_messages().or(self.is_upload(number).then_some(REQUEST))
    }

    fn finish(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        if flow.stage == Stage::Done {
            return;
        }
        let was_noted = flow.stage == Stage::Closing;
        flow.report.elapsed = match flow.stage {
            Stage::Running if !flow.report.failed => Some(flow.receivers_time(self.now_ns)),
            Stage::Closing if !flow.report.failed => {
                flow.report.acknowledged = Some(Duration::from_nanos(self.now_ns - flow.begun_ns));
                flow.report.elapsed
            }
            _ => None,
        };
        flow.stage = Stage::Done;
        self.running -= 1;
        if was_noted {
            self.note_busy(number);
        } else {
            self.note_result(number);
        }
        // Without its first object a page has no others; nor is one whole that lacks any.
        if let Job::Page(page) = self.flows[number].spec.job
            && self.flows[number].report.exchanges.is_empty()
        {
            for waiting in std::mem::take(&mut self.pages[page].waiting) {
                self.finish(waiting);
            }
        }
    }

    /// Takes down what the ends have counted.
    fn note_result(&mut self, number: usize) {
        let before = self.before_payload(number);
        self.note_busy(number);
        let flow = &mut self.flows[number];
        let (sender, receiver) = if before.is_some() { (flow.client, flow.server) } else { (flow.server, flow.client) };
        let (from, to) = (self.net.end(sender), self.net.end(receiver));
        let (counters, tcb) = (from.counters(), from.tcb());
        let report = &mut flow.report;
        report.bytes = to.received().saturating_sub(before.unwrap_or(0));
        (report.retransmits, report.timeouts) = (counters.retransmits, counters.timeouts);
        (report.data_segments, report.undos) = (counters.data_segs_out, counters.undos);
        report.acks = to.counters().acks_out;
        report.srtt_us = u64::from(tcb.srtt_us >> 3);
        report.min_rtt_us = if tcb.min_rtt_us == u32::MAX { 0 } else { u64::from(tcb.min_rtt_us) };
        (report.mss, report.pmtu) = (tcb.mss, from.path_mtu());
        report.widest_window = from.widest_window();
        (report.agreed, report.window_scale) = (from.agreed(), to.window_scale());
    }

    /// What the sender of the payload waited for until now.
    fn note_busy(&mut self, number: usize) {
        let before = self.before_payload(number);
        let flow = &mut self.flows[number];
        let sender = if before.is_some() { flow.client } else { flow.server };
        self.net.end_mut(sender).settle_at(self.now_ns);
        let counters = self.net.end(sender).counters();
        let times = [counters.busy_ns, counters.rwnd_limited_ns, counters.sndbuf_limited_ns];
        flow.report.busy = times.map(Duration::from_nanos);
    }

    fn take_samples(&mut self) {
        self.next_sample_ns = self.next_sample_ns.saturating_add(self.sample_every_ns);
        for number in 0..self.flows.len() {
            let upload = self.before_payload(number).is_some();
            let flow = &mut self.flows[number];
            if !matches!(flow.stage, Stage::Running | Stage::Closing) {
                continue;
            }
            flow.ticks += 1;
            if flow.report.sender.len() >= MAX_SAMPLES {
                flow.report.thin_out();
                flow.ticks_a_sample *= 2;
            }
            if !flow.ticks.is_multiple_of(flow.ticks_a_sample) {
                continue;
            }
            let (sender, receiver) = if upload { (flow.client, flow.server) } else { (flow.server, flow.client) };
            let t_us = (self.now_ns - flow.begun_ns) / 1_000;
            flow.report.sender.push(sample(self.net.end(sender), t_us));
            let bytes = self.net.end(receiver).received();
            flow.report.receiver.push(Sample { t_us, bytes, ..Sample::default() });
        }
    }

    fn report(&mut self, cut_short: bool) -> Report {
        for number in 0..self.flows.len() {
            if self.flows[number].stage != Stage::Done {
                self.flows[number].report.elapsed = None;
                self.note_result(number);
            }
        }
        let Drops { queue_full, lost, too_big } = self.net.drops();
        Report {
            flows: self.flows.iter_mut().map(|flow| std::mem::take(&mut flow.report)).collect(),
            ended: Duration::from_nanos(self.now_ns),
            cut_short,
            events: self.net.events(),
            queue_drops: queue_full,
            losses: lost,
            too_big,
            paths: (0..=self.relays.len()).map(|line| self.net.line_stats(line)).collect(),
        }
    }
}
