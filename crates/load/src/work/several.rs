//! Several flows at once.

use super::record::Record;
use super::talk::Talk;
use super::{Leg, OpenedConnection, RemoteEnd, WorkOutcome, close, transfer};
use crate::allowance::Allowance;
use crate::error::{FetchError, LoadError};
use crate::transfer::EndReport;
use crate::wire::pause;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;
use wt_trial::{Amount, Cancel, Direction, Measures, Spread, UnderLoad};

/// Bytes of a small request and of its answer.
const PROBE: u32 = 64;
/// From one small request to the next.
const PROBE_EVERY: Duration = Duration::from_millis(20);

/// What came of a thread.
type ThreadResult = Result<EndReport, FetchError>;

fn joined(thread: std::thread::ScopedJoinHandle<'_, ThreadResult>) -> ThreadResult {
    thread.join().unwrap_or_else(|_| Err(FetchError::Never("a transfer died".to_owned())))
}

/// A download and an upload at once.
pub(super) fn duplex(
    far: &dyn RemoteEnd,
    time: Duration,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    let amount = Amount::Time(time);
    let leg = |direction| Leg::Transfer { direction, amount, tried: true };
    let down = far.open(0, &leg(Direction::Down))?;
    let (connect_time, granted) = (down.connect_time, down.granted.clone());
    let down_token = down.token;
    std::thread::scope(|scope| {
        let down = scope.spawn(|| transfer(down, Direction::Down, amount, deadline, cancel));
        let up = far.open(1, &leg(Direction::Up)).and_then(|opened| {
            let token = opened.token;
            transfer(opened, Direction::Up, amount, deadline, cancel).map(|report| (report, token))
        });
        let report = joined(down)?;
        let (up, up_token) = up?;
        let tokens = vec![down_token, up_token];
        Ok(WorkOutcome { report, connect_time, granted, tokens, others: vec![up], lead: Duration::ZERO })
    })
}

/// One flow beside others that began before it.
pub(super) fn competing(
    far: &dyn RemoteEnd,
    direction: Direction,
    rivals: u32,
    time: Duration,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    // Until the others fill the path.
    let lead = (time / 3).clamp(Duration::from_millis(200), Duration::from_secs(10));
    let longer = lead + time;
    let rival = Leg::Transfer { direction, amount: Amount::Time(longer), tried: false };
    let opened: Vec<OpenedConnection> = (0..rivals).map(|number| far.open(number, &rival)).collect::<Result<_, _>>()?;
    let tokens: Vec<u64> = opened.iter().map(|opened| opened.token).collect();
    std::thread::scope(|scope| {
        let amount = Amount::Time(longer);
        let patience = deadline + lead;
        let running: Vec<_> = opened
            .into_iter()
            .map(|opened| scope.spawn(move || transfer(opened, direction, amount, patience, cancel)))
            .collect();
        let begun_ns = monotonic_ns();
        pause(lead, cancel);
        let leg = Leg::Transfer { direction, amount: Amount::Time(time), tried: true };
        let judged = far.open(rivals, &leg).and_then(|opened| {
            let known = (opened.connect_time, opened.granted.clone(), opened.token);
            let lead = Duration::from_nanos(monotonic_ns() - begun_ns);
            transfer(opened, direction, Amount::Time(time), deadline, cancel).map(|report| (report, known, lead))
        });
        let others: Result<Vec<EndReport>, FetchError> = running.into_iter().map(joined).collect();
        let (report, (connect_time, granted, token), lead) = judged?;
        let tokens = [token].into_iter().chain(tokens).collect();
        Ok(WorkOutcome { report, connect_time, granted, tokens, others: others?, lead })
    })
}

/// Small round trips: on the idle path, then beside a transfer.
pub(super) fn under_load(
    far: &dyn RemoteEnd,
    direction: Direction,
    time: Duration,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<WorkOutcome, FetchError> {
    let idle_time = (time / 3).clamp(Duration::from_millis(500), Duration::from_secs(5));
    // What comes while the transfer still gets going says neither.
    let ramp = time / 4;
    let probes = far.open(0, &Leg::Talk { time: idle_time + time })?;
    let probe_token = probes.token;
    let mut stream = probes.stream;
    let limit_ns = monotonic_ns().saturating_add((deadline + idle_time).as_nanos() as u64);
    let broken = |error| FetchError::Load(LoadError::Broken(error));
    let mut talk =
        Talk::new(stream.try_clone().map_err(broken)?, limit_ns, probes.window, Allowance::endless(), cancel)
            .map_err(broken)?;
    let never = AtomicBool::new(false);
    let idle = trips(&mut talk, monotonic_ns() + idle_time.as_nanos() as u64, &never);
    let amount = Amount::Time(time);
    let opened = far.open(1, &Leg::Transfer { direction, amount, tried: true })?;
    let (connect_time, granted, token) = (opened.connect_time, opened.granted.clone(), opened.token);
    let over = AtomicBool::new(false);
    let (report, loaded) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let report = transfer(opened, direction, amount, deadline, cancel);
            over.store(true, Ordering::Release);
            report
        });
        pause(ramp, cancel);
        let end = monotonic_ns() + (time - ramp).as_nanos() as u64;
        let loaded = trips(&mut talk, end, &over);
        (joined(running), loaded)
    });
    close(&mut stream, cancel);
    let _ = tcp::reset_on_close(&stream);
    let mut report = report?;
    if let (Some(idle), Some(loaded)) = (idle, loaded) {
        let rpm = 60e6 / loaded.mean_us.max(1) as f64;
        let under_load = Some(UnderLoad { idle, loaded, rpm });
        report.measures = Measures { score: Some(rpm), under_load, ..std::mem::take(&mut report.measures) };
    }
    let tokens = vec![token, probe_token];
    Ok(WorkOutcome { report, connect_time, granted, tokens, others: Vec::new(), lead: Duration::ZERO })
}

/// Round trips until a time, or until it is over. One that never comes back counts as what it has waited.
fn trips(talk: &mut Talk<'_>, until_ns: u64, over: &AtomicBool) -> Option<Spread> {
    let mut times = Vec::new();
    while monotonic_ns() < until_ns && !over.load(Ordering::Acquire) {
        let asked_ns = monotonic_ns();
        let record = Record::Exchange { request: PROBE, answer: PROBE };
        let come = talk.ask(record).and_then(|()| talk.take(u64::from(PROBE), &"a small answer"));
        times.push((monotonic_ns() - asked_ns) / 1000);
        if come.is_err() {
            break;
        }
        pause(PROBE_EVERY, talk.cancel());
    }
    Spread::of(times)
}
