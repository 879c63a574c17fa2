//! Workloads beyond a single transfer: exchanges, bursts, streams, several flows at once, latency under load. They run
//! against any [`RemoteHost`] that speaks our protocol: the lab's server, or one that was reached with its key.
//!
//! The first connection stands for the whole: others are opened only once it is served.

/// Both ends' views as one.
mod join;
/// Two ways to the same peer, in turn.
mod pairs;
/// What a client asks for on a connection on which both take turns.
mod record;
/// The server's end.
mod serve;
/// Several flows at once.
mod several;
/// One connection on which both take turns.
mod talk;

pub use crate::job::{Leg, OpenedConnection, RemoteEnd};
pub use join::join;
pub use pairs::{PairedTimes, Turns, in_pairs};
pub(crate) use record::Record;
pub(crate) use serve::answer;
pub(crate) use talk::Talk;

use crate::allowance::Allowance;
use crate::error::{FetchError, LoadError};
use crate::sample::{End, Sampler, interval};
use crate::transfer::{EndReport, Finish, Job, receive, send};
use crate::wire::pause;
use record::MOST_MESSAGES;
use std::io::Read as _;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_readable;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Amount, Cancel, Direction, Exchanges, Lateness, Measures, Repeat, Spread, Workload};
use wt_units::{Bytes, Settings};

/// Exchanges of which the time is remembered.
const MOST_EXCHANGES: usize = 2_000_000;
/// For so long the peer may take to close after us.
const CLOSING: Duration = Duration::from_secs(2);

/// What this end saw of a workload; the peer's views are under the tokens.
#[derive(Debug)]
pub struct WorkOutcome {
    /// Of the connection that is judged.
    pub report: EndReport,
    /// From the first SYN until that connection stood.
    pub connect_time: Duration,
    /// What the kernel says it set on its socket.
    pub granted: Settings,
    /// Of that connection, then of the others.
    pub tokens: Vec<u64>,
    /// What this end saw of the others, in the same order.
    pub others: Vec<EndReport>,
    /// How long the others had run when the judged one began.
    pub lead: Duration,
}

/// Runs a workload.
///
/// # Errors
/// [`FetchError`] when a connection can't be had; what broke off later is a report.
pub fn work(
    workload: &Workload,
    far: &dyn RemoteEnd,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    match workload {
        Workload::Bulk { direction, amount } => single(far, *direction, *amount, deadline, cancel),
        Workload::Soak { direction, time } => single(far, *direction, Amount::Time(*time), deadline, cancel),
        Workload::Duplex { time } => several::duplex(far, *time, deadline, cancel),
        Workload::Competing { direction, rivals, time } => {
            several::competing(far, *direction, *rivals, *time, deadline, cancel)
        }
        Workload::Load { direction, time } => several::under_load(far, *direction, *time, deadline, cancel),
        Workload::Transactions { .. } | Workload::Bursts { .. } | Workload::Stream { .. } => {
            talked(workload, far, deadline, cancel)
        }
        Workload::Page { .. } => Err(FetchError::Never("a page is loaded over HTTP".to_owned())),
    }
}

/// One transfer.
fn single(
    far: &dyn RemoteEnd,
    direction: Direction,
    amount: Amount,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    let opened = far.open(0, &Leg::Transfer { direction, amount, tried: true })?;
    let (connect_time, granted, token) = (opened.connect_time, opened.granted.clone(), opened.token);
    let report = transfer(opened, direction, amount, deadline, cancel)?;
    Ok(WorkOutcome { report, connect_time, granted, tokens: vec![token], others: Vec::new(), lead: Duration::ZERO })
}

/// Moves the payload on a connection that was opened for it.
fn transfer(
    opened: OpenedConnection,
    direction: Direction,
    amount: Amount,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<EndReport, FetchError> {
    let OpenedConnection { mut stream, window, .. } = opened;
    let job = Job::alone(amount, monotonic_ns(), deadline, window);
    let report = match direction {
        Direction::Down => receive(&mut stream, &job, cancel),
        Direction::Up => send(&mut stream, &job, None, cancel),
    };
    let report = report.map_err(LoadError::Broken)?;
    let _ = tcp::reset_on_close(&stream);
    Ok(report)
}

/// What was done on a connection on which both take turns.
struct TurnsDone {
    finish: Finish,
    /// Payload both ways.
    bytes: u64,
    /// Without pauses.
    busy: Duration,
    measures: Measures,
}

/// Exchanges, bursts and streams.
fn talked(
    workload: &Workload,
    far: &dyn RemoteEnd,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    let time = workload.time().unwrap_or(deadline);
    let OpenedConnection { mut stream, window, connect_time, granted, token } = far.open(0, &Leg::Talk { time })?;
    let start_ns = monotonic_ns();
    let limit_ns = start_ns.saturating_add(deadline.as_nanos() as u64);
    let broken = |error| FetchError::Load(LoadError::Broken(error));
    let socket = stream.try_clone().map_err(broken)?;
    let sampler = Sampler::start(socket, End::Receiver, start_ns, interval(time)).map_err(|e| broken(e.source))?;
    let mut talk = Talk::new(stream.try_clone().map_err(broken)?, limit_ns, window, Allowance::endless(), cancel)
        .map_err(broken)?;
    let done = match workload {
        Workload::Transactions { request, response, think, amount } => {
            let exchange = (small(*request), small(*response));
            exchanges(&mut talk, &[exchange], Rhythm { pause: *think, amount: *amount })
        }
        Workload::Bursts { request, blocks, pause, amount } => {
            let blocks: Vec<_> = blocks.iter().map(|block| (small(*request), small(*block))).collect();
            exchanges(&mut talk, &blocks, Rhythm { pause: *pause, amount: *amount })
        }
        Workload::Stream { direction, message, interval, time } => {
            let count = time.as_nanos() / interval.as_nanos().max(1);
            let count = u32::try_from(count).unwrap_or(u32::MAX).clamp(1, MOST_MESSAGES);
            stream_of(&mut talk, *direction, (small(*message), count, *interval), deadline)
        }
        _ => TurnsDone::nothing(),
    };
    let info = TcpInfo::read(&stream).unwrap_or_default();
    let congestion_control = tcp::congestion_control(&stream).unwrap_or_default();
    if matches!(done.finish, Finish::Done) {
        close(&mut stream, cancel);
    }
    let _ = tcp::reset_on_close(&stream);
    // What isn't whole took all the time there was, however early it broke off.
    let whole = matches!(done.finish, Finish::Done | Finish::Cancelled);
    let report = EndReport {
        samples: sampler.finish(),
        info,
        congestion_control,
        measures: Measures { missing_bytes: talk.missing, ..done.measures },
        ..EndReport::of_several(done.finish, done.bytes, if whole { done.busy } else { deadline })
    };
    Ok(WorkOutcome { report, connect_time, granted, tokens: vec![token], others: Vec::new(), lead: Duration::ZERO })
}

fn small(size: Bytes) -> u32 {
    u32::try_from(size.get()).unwrap_or(u32::MAX)
}

impl TurnsDone {
    fn nothing() -> Self {
        Self { finish: Finish::Done, bytes: 0, busy: Duration::ZERO, measures: Measures::default() }
    }
}

/// Says that nothing more will be asked, so that the peer can take down what its kernel saw; then resets.
pub(crate) fn close(stream: &mut TcpStream, cancel: &Cancel) {
    if stream.shutdown(std::net::Shutdown::Write).is_err() {
        return;
    }
    let limit = monotonic_ns() + CLOSING.as_nanos() as u64;
    let mut ignored = [0; 512];
    while monotonic_ns() < limit && !cancel.is_cancelled() {
        match stream.read(&mut ignored) {
            Ok(n) if n > 0 => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let _ = wait_readable(&[stream.as_fd()], Some(Duration::from_millis(20)));
            }
            _ => break,
        }
    }
    let _ = tcp::reset_on_close(stream);
}

/// When what is repeated is done, and what is between.
struct Rhythm {
    pause: Duration,
    amount: Repeat,
}

/// Exchanges one after the other, again and again.
fn exchanges(talk: &mut Talk<'_>, blocks: &[(u32, u32)], rhythm: Rhythm) -> TurnsDone {
    let start_ns = monotonic_ns();
    let end_ns = match rhythm.amount {
        Repeat::Time(time) => start_ns.saturating_add(time.as_nanos() as u64),
        Repeat::Count(_) => u64::MAX,
    };
    let (mut times, mut busy_ns, mut finish) = (Vec::new(), 0, Finish::Done);
    let mut turns = 0;
    'all: loop {
        let enough = matches!(rhythm.amount, Repeat::Count(count) if turns >= count);
        // A turn that has begun is brought to its end; one is always done.
        if enough || (turns > 0 && monotonic_ns() >= end_ns) || times.len() >= MOST_EXCHANGES {
            break;
        }
        if turns > 0 && !rhythm.pause.is_zero() {
            pause(rhythm.pause, talk.cancel());
        }
        for (request, answer) in blocks {
            let asked_ns = monotonic_ns();
            let number = times.len() + 1;
            let what = format!("the answer to request {number}");
            let record = Record::Exchange { request: *request, answer: *answer };
            let come = talk.ask(record).and_then(|()| talk.take(u64::from(*answer), &what));
            match come {
                Ok((_, last_ns)) => {
                    times.push((last_ns - asked_ns) / 1000);
                    busy_ns += last_ns - asked_ns;
                }
                Err(trouble) => {
                    finish = trouble;
                    break 'all;
                }
            }
            if let Err(trouble) = talk.still() {
                finish = trouble;
                break 'all;
            }
        }
        turns += 1;
    }
    let whole = Duration::from_nanos(monotonic_ns() - start_ns);
    let done = times.len() as f64;
    let latency = Spread::of(times);
    let per_second = if whole.is_zero() { 0.0 } else { done / whole.as_secs_f64() };
    TurnsDone {
        finish,
        bytes: talk.sent + talk.received,
        busy: Duration::from_nanos(busy_ns),
        measures: Measures {
            exchanges: latency.map(|latency| Exchanges { latency, per_second }),
            ..Measures::default()
        },
    }
}

/// Messages at a steady pace.
fn stream_of(
    talk: &mut Talk<'_>,
    direction: Direction,
    (size, count, interval): (u32, u32, Duration),
    deadline: Duration,
) -> TurnsDone {
    let start_ns = monotonic_ns();
    let (finish, arrivals) = match direction {
        Direction::Down => {
            let asked = talk.ask(Record::Messages { size, count, interval });
            match asked.and_then(|()| serve::hear(talk, size, count, interval)) {
                Ok(heard) if heard.is_complete() => (Finish::Done, Some(heard)),
                Ok(heard) => {
                    let why = format!("{} of {count} messages never came", u64::from(count) - heard.count());
                    (Finish::Lost(why), Some(heard))
                }
                Err(finish) => (finish, None),
            }
        }
        Direction::Up => {
            let asked = talk.ask(Record::Taking { size, count, interval });
            let sent = asked.and_then(|()| serve::pace(talk, size, count, interval));
            // The peer knows when each came; here only whether all has.
            let all = sent.and_then(|_| talk.take(8, &"the peer's word that all messages have come"));
            (all.map_or_else(|finish| finish, |_| Finish::Done), None)
        }
    };
    let lateness = arrivals.as_ref().and_then(|arrivals| arrivals.lateness_with_missing(deadline));
    TurnsDone {
        finish,
        bytes: if direction == Direction::Down { talk.received } else { talk.sent },
        busy: Duration::from_nanos(monotonic_ns() - start_ns),
        measures: Measures { score: lateness.as_ref().map(Lateness::score), lateness, ..Measures::default() },
    }
}

/// Reads bytes as everything that a client may want.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    if let Some(Ok(record)) = bytes.first_chunk().map(Record::from_bytes) {
        assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
    }
}
