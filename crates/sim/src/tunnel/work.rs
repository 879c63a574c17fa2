//! The workloads of trials, as jobs of flows; and what was measured.
//!
//! What this leaves out: TLS, and names that must be resolved first: a page begins with the first SYN; pages over HTTP/2. In a
//! page head and body of an answer are written at once, where our server's kernel may make two segments of them; it matters for objects that fill a window to the byte.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | our own clients and servers | – | [`set_up`], [`judge`]: the same amounts in the same order as in the lab |

use super::SimTunnel;
use crate::report::{FlowReport, Report};
use crate::run::Simulation;
use crate::spec::{Exchange, FlowSpec, Job, SimError};
use crate::tcp::StackConfig;
use std::time::Duration;
use wt_trial::bulk::Arrivals;
use wt_trial::{
    Amount, Direction, Exchanges, Lateness, Measures, MessageTimes, ObjectTime, Repeat, Spread, TrialSpec, Tunnel as _,
    UnderLoad, Workload, floor_of_stall, thirds,
};
use wt_units::{Bytes, Settings};

/// What our client says before each request of a conversation, bytes.
const RECORD: u64 = 24;
/// A request of HTTP, and the head of its answer, as ours are, bytes.
const HTTP_REQUEST: u64 = 250;
const HTTP_HEAD: u64 = 175;

/// Bytes of a small request and of its answer, and the time from one such round trip to the next.
const PROBE: u64 = 64;
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// Messages of one stream at most: of a longer one the model runs the beginning.
const MOST_MESSAGES: u32 = 100_000;

/// How long others fill the path before the flow begins that is judged, as in the lab.
fn lead(time: Duration) -> Duration {
    (time / 3).clamp(Duration::from_millis(200), Duration::from_secs(10))
}

/// When a rival begins: in the first quarter of the lead, by the trial's seed. Which flow loses a packet depends on a microsecond, and
/// nobody's connections all begin at the same one.
fn rival_start(seed: u64, number: u32, lead: Duration) -> Duration {
    // SplitMix64.
    let mut z = (seed << 8 ^ u64::from(number)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (lead / 4).mul_f64(((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Adds the flows of a trial, the one first that is judged; says when to stop at the latest.
pub(crate) fn set_up(tunnel: &SimTunnel, spec: &TrialSpec, simulation: &mut Simulation) -> Result<Duration, SimError> {
    let mut flow = |settings: &Settings, direction, job, start| {
        let (client, server) = tunnel.stacks(settings, direction);
        simulation.add_flow(FlowSpec { client, server, job, start })
    };
    let now = Duration::ZERO;
    let bulk = |direction, amount| Job::Bulk { direction, amount };
    match &spec.workload {
        Workload::Bulk { direction, amount } => flow(&spec.settings, *direction, bulk(*direction, *amount), now)?,
        Workload::Soak { direction, time } => {
            flow(&spec.settings, *direction, bulk(*direction, Amount::Time(*time)), now)?
        }
        Workload::Duplex { time } => {
            for direction in [Direction::Down, Direction::Up] {
                flow(&spec.settings, direction, bulk(direction, Amount::Time(*time)), now)?;
            }
            0
        }
        Workload::Competing { direction, rivals, time } => {
            let lead = lead(*time);
            flow(&spec.settings, *direction, bulk(*direction, Amount::Time(*time)), lead)?;
            for number in 0..*rivals {
                let start = rival_start(spec.seed, number, lead);
                flow(&Settings::new(), *direction, bulk(*direction, Amount::Time(lead + *time - start)), start)?;
            }
            return Ok(spec.deadline.saturating_add(lead));
        }
        Workload::Transactions { request, response, think, amount } => {
            let job = talk(&[(*request, *response)], *think, *amount);
            conversation(tunnel, spec, job, simulation)?
        }
        Workload::Bursts { request, blocks, pause, amount } => {
            let turn: Vec<_> = blocks.iter().map(|block| (*request, *block)).collect();
            conversation(tunnel, spec, talk(&turn, *pause, *amount), simulation)?
        }
        Workload::Page { page } if page.tls && !page.http2 => {
            return Err(SimError::Workload { name: "page through TLS" });
        }
        Workload::Page { page } if page.http2 => return Err(SimError::Workload { name: "page over HTTP/2" }),
        Workload::Page { page } => {
            let ends = at_once(tunnel.stacks(&spec.settings, Direction::Down));
            let ask = |object: &wt_trial::PageObject| Exchange {
                ask: HTTP_REQUEST,
                answer: HTTP_HEAD + object.size.get(),
                pause: Duration::ZERO,
            };
            let connections = (page.connections as usize).clamp(1, page.objects.len().max(1));
            let requests = page.objects.iter().map(ask).collect();
            simulation.add_page((&ends.0, &ends.1), connections, requests, page.close_each)?;
            0
        }
        Workload::Stream { direction, message, interval, .. } => {
            let (message, interval, count) = (message.get(), *interval, messages_of(&spec.workload));
            let job = Job::Stream { direction: *direction, ask: RECORD, message, interval, count };
            conversation(tunnel, spec, job, simulation)?
        }
        Workload::Load { direction, time } => {
            let (idle, rtt) = (idle(*time), Duration::from_micros(tunnel.path(*direction).rtt_us));
            // The small round trips come first, but it is the transfer that is looked at.
            flow(&spec.settings, *direction, bulk(*direction, Amount::Time(*time)), idle + rtt)?;
            let trips = Job::Repeated {
                turn: vec![Exchange { ask: RECORD + PROBE, answer: PROBE, pause: Duration::ZERO }],
                pause: PROBE_EVERY,
                amount: Repeat::Time(idle + *time + rtt * 4),
            };
            conversation(tunnel, spec, trips, simulation)?;
            return Ok(spec.deadline.saturating_add(idle + rtt));
        }
    };
    Ok(spec.deadline)
}

/// How long round trips on the idle path are looked at, as in the lab.
fn idle(time: Duration) -> Duration {
    (time / 3).clamp(Duration::from_millis(500), Duration::from_secs(5))
}

/// How many messages a stream has, as far as the model runs it.
fn messages_of(workload: &Workload) -> u32 {
    all_messages_of(workload).clamp(1, MOST_MESSAGES)
}

fn all_messages_of(workload: &Workload) -> u32 {
    let Workload::Stream { interval, time, .. } = workload else { return 0 };
    u32::try_from(time.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
}

/// One turn again and again.
fn talk(turn: &[(Bytes, Bytes)], pause: Duration, amount: Repeat) -> Job {
    let exchange = |(request, answer): &(Bytes, Bytes)| Exchange {
        ask: RECORD + request.get(),
        answer: answer.get(),
        pause: Duration::ZERO,
    };
    Job::Repeated { turn: turn.iter().map(exchange).collect(), pause, amount }
}

/// Ends that let small segments go at once, as programs that take turns ask for.
fn at_once((client, server): (StackConfig, StackConfig)) -> (StackConfig, StackConfig) {
    (StackConfig { nagle: false, ..client }, StackConfig { nagle: false, ..server })
}

fn conversation(
    tunnel: &SimTunnel,
    spec: &TrialSpec,
    job: Job,
    simulation: &mut Simulation,
) -> Result<usize, SimError> {
    let (client, server) = at_once(tunnel.stacks(&spec.settings, spec.workload.direction()));
    simulation.add_flow(FlowSpec { client, server, job, start: Duration::ZERO })
}

/// Outcome of a trial.
#[derive(Debug, Default)]
pub(crate) struct WorkOutcome {
    /// Of all that was to be moved, what has come.
    pub(crate) bytes: u64,
    /// How long that took; `None` if not all was done in time.
    pub(crate) elapsed: Option<Duration>,
    pub(crate) measures: Measures,
    /// Whether there was more to do than the model takes up, however long it runs.
    pub(crate) is_part: bool,
    /// Which flow's ends are looked at.
    pub(crate) flow: usize,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Payload over time, bit/s.
fn rate(flow: &FlowReport) -> f64 {
    flow.elapsed.filter(|time| !time.is_zero()).map_or(0.0, |time| flow.bytes as f64 * 8.0 / time.as_secs_f64())
}

/// The same between two times of its own clock, from samples.
fn rate_between(flow: &FlowReport, from: Duration, until: Duration) -> f64 {
    let end = micros(flow.elapsed.unwrap_or(until));
    let arrivals = Arrivals::new(&flow.receiver, end, flow.bytes);
    arrivals.mean(micros(from), micros(until).min(arrivals.end_us())).map_or(0.0, |bytes| bytes * 8.0)
}

/// Results of the flows of a trial, by the lab's rules.
pub(crate) fn judge(spec: &TrialSpec, report: &Report) -> WorkOutcome {
    let Some(first) = report.flows.first() else { return WorkOutcome::default() };
    let judged = WorkOutcome { bytes: first.bytes, elapsed: first.elapsed, ..WorkOutcome::default() };
    let measures = match &spec.workload {
        Workload::Soak { .. } => Measures {
            thirds: thirds(&first.sender, &first.receiver, first.elapsed.unwrap_or(report.ended), &[]),
            ..Measures::default()
        },
        Workload::Duplex { .. } => {
            let flows_bps: Vec<f64> = report.flows.iter().map(rate).collect();
            // Nothing at all counts as one byte a second: a logarithm is taken of it.
            let score = flows_bps.iter().map(|bps| (bps / 8.0).max(1.0).sqrt()).product();
            Measures { flows_bps, score: Some(score), ..Measures::default() }
        }
        Workload::Competing { time, .. } => {
            let lead = lead(*time);
            let others = report.flows.iter().skip(1).map(|flow| rate_between(flow, lead, lead + *time));
            Measures { flows_bps: std::iter::once(rate(first)).chain(others).collect(), ..Measures::default() }
        }
        Workload::Transactions { .. } | Workload::Bursts { .. } => return judge_talk(spec, first),
        Workload::Page { page } => return judge_page(page.objects.len(), report),
        Workload::Stream { direction, interval, .. } => {
            let all = judged.elapsed.is_some() || *direction == Direction::Down;
            let lateness = if all { lateness(spec, *interval, first) } else { None };
            Measures { score: lateness.as_ref().map(Lateness::score), lateness, ..Measures::default() }
        }
        Workload::Load { time, .. } => {
            let under_load = report.flows.get(1).and_then(|trips| under_load(*time, first, trips));
            Measures { score: under_load.map(|load| load.rpm), under_load, ..Measures::default() }
        }
        Workload::Bulk { direction: Direction::Up, amount: Amount::Size(_) } => {
            // The sender has the clock, as in the lab and on real paths.
            return WorkOutcome { elapsed: first.acknowledged, ..judged };
        }
        Workload::Bulk { .. } => Measures::default(),
    };
    let is_part = all_messages_of(&spec.workload) > MOST_MESSAGES;
    WorkOutcome { measures, is_part, elapsed: judged.elapsed.filter(|_| !is_part), ..judged }
}

/// How late messages came; those that never did count as late as the deadline allowed.
fn lateness(spec: &TrialSpec, interval: Duration, flow: &FlowReport) -> Option<Lateness> {
    let mut times = MessageTimes::new(messages_of(&spec.workload), interval, floor_of_stall(interval));
    for (at, so_far) in flow.messages.iter().zip(1..) {
        times.note(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX), so_far);
    }
    times.lateness_with_missing(spec.deadline)
}

/// Round trips before the transfer began, and once it had got going.
fn under_load(time: Duration, transfer: &FlowReport, trips: &FlowReport) -> Option<UnderLoad> {
    let begun = transfer.begun;
    let stood = begun + transfer.connect?;
    let between = |from: Duration, until: Duration| {
        let asked = trips.exchanges.iter().filter(|trip| (from..until).contains(&trip.asked));
        Spread::of(asked.map(|trip| micros(trip.done - trip.asked)).collect())
    };
    let (idle, loaded) = (between(Duration::ZERO, begun)?, between(stood + time / 4, stood + time)?);
    Some(UnderLoad { idle, loaded, rpm: 60e6 / loaded.mean_us.max(1) as f64 })
}

/// Exchanges: the client has the clock, and only while it waits.
fn judge_talk(spec: &TrialSpec, flow: &FlowReport) -> WorkOutcome {
    let times: Vec<u64> = flow.exchanges.iter().map(|one| micros(one.done - one.asked)).collect();
    let busy = flow.exchanges.iter().map(|one| one.done - one.asked).sum();
    let whole = match (flow.exchanges.first(), flow.exchanges.last()) {
        (Some(first), Some(last)) => last.done - first.asked,
        _ => Duration::ZERO,
    };
    let per_second = if whole.is_zero() { 0.0 } else { times.len() as f64 / whole.as_secs_f64() };
    let request = match &spec.workload {
        Workload::Transactions { request, .. } | Workload::Bursts { request, .. } => request.get(),
        _ => 0,
    };
    let bytes = flow.exchanges.iter().map(|one| one.bytes + request).sum();
    let exchanges = Spread::of(times).map(|latency| Exchanges { latency, per_second });
    let measures = Measures { exchanges, ..Measures::default() };
    WorkOutcome { bytes, elapsed: flow.elapsed.map(|_| busy), measures, ..WorkOutcome::default() }
}

/// A page is there when its last object is.
fn judge_page(wanted: usize, report: &Report) -> WorkOutcome {
    let mut objects = Vec::new();
    for (connection, flow) in report.flows.iter().enumerate() {
        objects.extend(flow.exchanges.iter().map(|one| ObjectTime {
            object: one.number,
            connection: u32::try_from(connection).unwrap_or(u32::MAX),
            asked_us: micros(one.asked),
            sent_us: None,
            first_byte_us: micros(one.first_byte),
            done_us: micros(one.done),
            bytes: one.bytes - HTTP_HEAD,
        }));
    }
    objects.sort_by_key(|object| object.object);
    let last = report.flows.iter().flat_map(|flow| &flow.exchanges).map(|one| one.done).max();
    let flow = (0..report.flows.len()).max_by_key(|flow| report.flows[*flow].bytes).unwrap_or(0);
    WorkOutcome {
        bytes: objects.iter().map(|object| object.bytes).sum(),
        elapsed: last.filter(|_| objects.len() == wanted),
        measures: Measures { objects, ..Measures::default() },
        flow,
        ..WorkOutcome::default()
    }
}
