use super::body::{Body, BodyError};
use crate::intact::Check;
use crate::pattern;
use crate::sample::{End, Sampler, interval};
use crate::strain::waited_for_processor;
use crate::transfer::{EndReport, Finish, Job, LastAck};
use crate::wire::{Wire, WireError, pause};
use std::io;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Amount, Measures};

/// Takes payload from a server that isn't ours, until the time is up, all is there, or as much as was wanted.
///
/// `begun` are bytes that came along with what stood before the payload.
///
/// # Errors
/// The kernel's, for what isn't the peer's fault.
pub(crate) fn intake(
    wire: &mut Wire<'_>,
    mut body: Body,
    begun: &[u8],
    job: &Job,
    check: &mut dyn Check,
) -> io::Result<EndReport> {
    let Job { amount, start_ns, deadline, window, .. } = *job;
    let (limit, wanted) = match amount {
        Amount::Time(time) => (time.min(deadline), u64::MAX),
        Amount::Size(size) => (deadline, size.get()),
    };
    let expected = if let Amount::Time(time) = amount { time } else { Duration::from_secs(10) };
    let timed = matches!(amount, Amount::Time(time) if time <= deadline);
    let sampler = Sampler::start(wire.socket().try_clone()?, End::Receiver, start_ns, interval(expected))
        .map_err(|error| error.source)?;
    let mut buffer = vec![0; pattern::CHUNK];
    let limit_ns = start_ns.saturating_add(limit.as_nanos() as u64);
    let waited_before = waited_for_processor();
    let mut taken = IntakeProgress { bytes: 0, wanted, last_ns: start_ns };
    buffer[..begun.len().min(pattern::CHUNK)].copy_from_slice(&begun[..begun.len().min(pattern::CHUNK)]);
    let mut finish = taken.add(&mut buffer[..begun.len().min(pattern::CHUNK)], &mut body, check);
    while finish.is_none() {
        let now = monotonic_ns();
        if now >= limit_ns {
            finish = Some(if timed { Finish::Done } else { Finish::Deadline });
            break;
        }
        if wire.cancel().is_cancelled() {
            finish = Some(Finish::Cancelled);
            break;
        }
        finish = match wire.read_now(&mut buffer) {
            Ok(0) if body.may_end() => Some(Finish::Done),
            Ok(0) => Some(Finish::PeerLeft(format!("the server closed the connection after {} bytes", taken.bytes))),
            Ok(n) => {
                if let Some(window) = window {
                    tcp::hold_window(wire.socket(), window).map_err(|error| error.source)?;
                }
                taken.add(&mut buffer[..n], &mut body, check)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wire.wait_until(false, limit_ns)?;
                None
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => Some(Finish::PeerLeft(error.to_string())),
        };
    }
    let finish = finish.unwrap_or(Finish::Cancelled);
    let finish = match check.end() {
        Some(at) if finish == Finish::Done => Finish::Corrupt(at),
        _ => finish,
    };
    let all_there = taken.bytes >= wanted || body.may_end() && body.is_done();
    let end_ns = match &finish {
        // A file that is over before the time is up was as fast as it was.
        Finish::Done if all_there || monotonic_ns() < limit_ns => taken.last_ns,
        Finish::Done | Finish::Deadline => limit_ns,
        _ => monotonic_ns(),
    };
    let socket = wire.socket();
    Ok(EndReport {
        finish,
        bytes: taken.bytes,
        elapsed: Duration::from_nanos(end_ns.saturating_sub(start_ns)),
        last: Some(Duration::from_nanos(taken.last_ns.saturating_sub(start_ns))),
        info: TcpInfo::read(socket).unwrap_or_default(),
        congestion_control: tcp::congestion_control(socket).unwrap_or_default(),
        samples: sampler.finish(),
        refused: Vec::new(),
        start: None,
        measures: Measures::default(),
        waited: waited_for_processor().zip(waited_before).map(|(now, before)| now.saturating_sub(before)),
    })
}

/// What has come so far.
struct IntakeProgress {
    bytes: u64,
    wanted: u64,
    last_ns: u64,
}

impl IntakeProgress {
    fn add(&mut self, bytes: &mut [u8], body: &mut Body, check: &mut dyn Check) -> Option<Finish> {
        let kept = match body.take(bytes) {
            Ok(kept) => kept,
            Err(error @ (BodyError::Chunk | BodyError::TooLong)) => return Some(Finish::Garbage(error.to_string())),
        };
        let left = usize::try_from(self.wanted - self.bytes).unwrap_or(usize::MAX);
        let payload = &bytes[..kept.min(left)];
        if !payload.is_empty() {
            if let Some(at) = check.take(payload) {
                return Some(Finish::Corrupt(at));
            }
            self.bytes += payload.len() as u64;
            self.last_ns = monotonic_ns();
        }
        (self.bytes >= self.wanted || body.is_done()).then_some(Finish::Done)
    }
}

/// Sends the pattern to a server that isn't ours, until the time is up or all is sent; the clock ends when the kernel at
/// the other end has acknowledged everything that counts.
///
/// `frame` says whether each piece goes as a chunk of HTTP.
///
/// # Errors
/// The kernel's, for what isn't the peer's fault.
pub(crate) fn outflow(
    wire: &mut Wire<'_>,
    job: &Job,
    payload: &dyn Fn(u64, usize) -> &'static [u8],
) -> io::Result<EndReport> {
    let Job { amount, start_ns, deadline, .. } = *job;
    let (limit, wanted) = match amount {
        Amount::Time(time) => (time.min(deadline), u64::MAX),
        Amount::Size(size) => (deadline, size.get()),
    };
    let timed = matches!(amount, Amount::Time(_));
    let expected = if let Amount::Time(time) = amount { time } else { Duration::from_secs(10) };
    let sampler = Sampler::start(wire.socket().try_clone()?, End::Sender, start_ns, interval(expected))
        .map_err(|error| error.source)?;
    let limit_ns = start_ns.saturating_add(limit.as_nanos() as u64);
    let acked_before = TcpInfo::read(wire.socket()).map_or(0, |info| info.bytes_acked);
    let mut bytes = 0;
    let mut info = TcpInfo::default();
    let mut taker = Taker::at(start_ns);
    let mut heard = LastAck::begin(acked_before, start_ns);
    let finish = loop {
        if wire.cancel().is_cancelled() {
            break Finish::Cancelled;
        }
        let now = monotonic_ns();
        if now >= limit_ns {
            break if timed { Finish::Done } else { Finish::Deadline };
        }
        info = TcpInfo::read(wire.socket()).unwrap_or(info);
        heard.look(&info, now);
        if bytes >= wanted {
            break settle(wire, limit_ns, &mut info, (&mut taker, &mut heard))?;
        }
        if let Some(finish) = taker.refuses(&info, now) {
            break finish;
        }
        let left = usize::try_from(wanted - bytes).unwrap_or(usize::MAX).min(pattern::PIECE);
        match wire.write_now(payload(bytes, left)) {
            Ok(n) => bytes += n as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wire.wait_until(true, limit_ns)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Finish::PeerLeft(error.to_string()),
        }
    };
    let end_ns = if timed && finish == Finish::Done { limit_ns } else { monotonic_ns() };
    let acked = info.bytes_acked.saturating_sub(acked_before);
    let elapsed = Duration::from_nanos(end_ns.saturating_sub(start_ns));
    let (samples, thirds) = sampler.finish_with_gaps(amount, elapsed);
    Ok(EndReport {
        // Payload in a buffer has reached nobody.
        bytes: if bytes >= wanted && finish == Finish::Done { bytes } else { bytes.min(acked) },
        finish,
        elapsed,
        last: Some(heard.since(start_ns)),
        samples,
        info,
        congestion_control: tcp::congestion_control(wire.socket()).unwrap_or_default(),
        refused: Vec::new(),
        start: None,
        measures: Measures { thirds, ..Measures::default() },
        waited: None,
    })
}

/// A receiver that takes nothing for so long doesn't want it. A busy disk keeps a window closed for less.
const CLOSED: Duration = Duration::from_secs(5);

/// Whether the receiver still takes what it is sent.
///
/// A closed window is told from a path that drops everything by what waits: with a closed one nothing is under way, and nothing
/// goes.
struct Taker {
    acked: u64,
    since_ns: u64,
}

impl Taker {
    fn at(now: u64) -> Self {
        Self { acked: 0, since_ns: now }
    }

    /// What the transfer has come to, if the window was closed for too long.
    fn refuses(&mut self, info: &TcpInfo, now: u64) -> Option<Finish> {
        let waits = info.notsent_bytes > 0 && info.unacked == 0;
        if !waits || info.bytes_acked != self.acked {
            *self = Self { acked: info.bytes_acked, since_ns: now };
            return None;
        }
        let closed = Duration::from_nanos(now.saturating_sub(self.since_ns));
        (closed >= CLOSED).then(|| {
            let closed = closed.as_secs_f64();
            Finish::Lost(format!("its receive window was closed for {closed:.0} s: its program takes no more"))
        })
    }
}

/// What a transfer has come to whose last bytes TLS couldn't hand over.
fn finish_of(error: WireError) -> Finish {
    match error {
        WireError::Deadline => Finish::Deadline,
        WireError::Cancelled => Finish::Cancelled,
        WireError::Broken(error) => Finish::PeerLeft(error.to_string()),
    }
}

/// Waits until everything is acknowledged.
fn settle(
    wire: &mut Wire<'_>,
    limit_ns: u64,
    info: &mut TcpInfo,
    (taker, heard): (&mut Taker, &mut LastAck),
) -> io::Result<Finish> {
    /// As often as that matters: an hundredth of the shortest trial.
    const STEP: Duration = Duration::from_millis(1);
    if let Err(error) = wire.flush() {
        return Ok(finish_of(error));
    }
    loop {
        *info = TcpInfo::read(wire.socket()).unwrap_or(*info);
        if info.notsent_bytes == 0 && info.unacked == 0 {
            return Ok(Finish::Done);
        }
        let now = monotonic_ns();
        heard.look(info, now);
        if now >= limit_ns {
            return Ok(Finish::Deadline);
        }
        if let Some(finish) = taker.refuses(info, now) {
            return Ok(finish);
        }
        if wire.cancel().is_cancelled() {
            return Ok(Finish::Cancelled);
        }
        pause(STEP, wire.cancel());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_window_is_told_from_a_path_that_drops_and_from_a_slow_receiver() {
        const S: u64 = 1_000_000_000;
        let seen = |acked: u64, unacked: u32, notsent: u32| TcpInfo {
            bytes_acked: acked,
            unacked,
            notsent_bytes: notsent,
            ..TcpInfo::default()
        };
        // What is under way and never acknowledged: that is the path's.
        let mut taker = Taker::at(0);
        assert!((0..60).all(|s| taker.refuses(&seen(1000, 10, 5000), s * S).is_none()));
        // A little is taken every four seconds.
        let mut taker = Taker::at(0);
        assert!((0..60).all(|s| taker.refuses(&seen(1000 * (s / 4), 0, 5000), s * S).is_none()));
        // Nothing is left to send.
        let mut taker = Taker::at(0);
        assert!((0..60).all(|s| taker.refuses(&seen(1000, 0, 0), s * S).is_none()));
        let mut taker = Taker::at(0);
        assert!((0..5).all(|s| taker.refuses(&seen(1000, 0, 5000), s * S).is_none()));
        let told = taker.refuses(&seen(1000, 0, 5000), 5 * S);
        assert!(matches!(&told, Some(Finish::Lost(why)) if why.contains("window was closed for 5 s")), "{told:?}");
    }

    #[test]
    fn what_tls_holds_back_at_the_end_is_an_outcome() {
        assert_eq!(finish_of(WireError::Deadline), Finish::Deadline);
        assert_eq!(finish_of(WireError::Cancelled), Finish::Cancelled);
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(matches!(finish_of(WireError::Broken(reset)), Finish::PeerLeft(why) if why.contains("reset")));
    }
}
