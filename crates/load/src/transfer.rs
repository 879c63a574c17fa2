use crate::allowance::{Allowance, out_of_bytes, out_of_time};
use crate::pattern;
use crate::sample::{End, Sampler, interval};
use crate::strain::{ReceiverState, waited_for_processor};
use crate::turns::{Turn, Turns};
use std::io::{self, Read as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{wait_readable, wait_writable};
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Amount, Cancel, Measures, Sample};

/// How one end of a transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// All that was asked for.
    Done,
    /// The deadline came first.
    Deadline,
    /// The user wanted to stop.
    Cancelled,
    /// The peer closed or reset before all was there.
    PeerLeft(String),
    /// What came breaks the rules of the protocol.
    Garbage(String),
    /// A byte isn't what was sent, at this offset.
    Corrupt(u64),
    /// What should have come never did, though the connection stood.
    Lost(String),
}

/// What one end saw of a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct EndReport {
    /// How it ended.
    pub finish: Finish,
    /// Payload received, or handed to the kernel by the sender.
    pub bytes: u64,
    /// From the start until the time was up or the last byte came; where this end sent, until the last byte's acknowledgement came.
    pub elapsed: Duration,
    /// From the start until the last payload came, or was acknowledged where this end sent; `None` where nobody looked.
    pub last: Option<Duration>,
    /// The kernel's view over time.
    pub samples: Vec<Sample>,
    /// The kernel's view at the end.
    pub info: TcpInfo,
    /// The congestion control that was in use at this end.
    pub congestion_control: String,
    /// What a setting was refused with.
    pub refused: Vec<String>,
    /// The kernel's view before the first byte of payload, where it was asked.
    pub start: Option<TcpInfo>,
    /// What the workload measured beyond bytes and time.
    pub measures: Measures,
    /// How long this end was ready to receive and had no processor, where it looked.
    pub waited: Option<Duration>,
}

impl From<&EndReport> for ReceiverState {
    fn from(end: &EndReport) -> Self {
        Self { waited: end.waited, window: end.info.rcv_wnd }
    }
}

impl EndReport {
    /// What one end saw of something that isn't a single transfer.
    #[must_use]
    pub fn of_several(finish: Finish, bytes: u64, elapsed: Duration) -> Self {
        Self {
            finish,
            bytes,
            elapsed,
            last: None,
            samples: Vec::new(),
            info: TcpInfo::default(),
            congestion_control: String::new(),
            refused: Vec::new(),
            start: None,
            measures: Measures::default(),
            waited: None,
        }
    }

    /// For how long nothing had come, or been acknowledged, when it ended; zero where nobody looked.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| self.elapsed.saturating_sub(last))
    }
}

/// When a sender last heard that something new had come.
#[derive(Debug)]
pub(crate) struct LastAck {
    acked: u64,
    at_ns: u64,
}

impl LastAck {
    /// Of a connection on which so much was acknowledged before.
    pub(crate) fn begin(acked: u64, start_ns: u64) -> Self {
        Self { acked, at_ns: start_ns }
    }

    /// Takes the kernel's word, as it is now.
    pub(crate) fn look(&mut self, info: &TcpInfo, now: u64) {
        if info.bytes_acked > self.acked {
            *self = Self { acked: info.bytes_acked, at_ns: now };
        }
    }

    /// How long after the start that was.
    pub(crate) fn since(&self, start_ns: u64) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(start_ns))
    }
}

/// The latest that a wait returns to look whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// A sender asks the kernel about its connection as often as this, ns.
const ASKED: u64 = 5_000_000;

/// Bytes that are read at once where many transfers take turns: a thousand shall not take a quarter of a GiB for that. Whoever has a core to
/// itself reads [`pattern::CHUNK`], which over a veth pair takes an eighth less time of the CPU.
const AT_ONCE: usize = 64 * 1024;

/// What one end has to do.
pub(crate) struct Job {
    /// How much.
    pub(crate) amount: Amount,
    /// The zero of the clock.
    pub(crate) start_ns: u64,
    /// After this long it is given up.
    pub(crate) deadline: Duration,
    /// The window that the receiver holds, bytes, if it was set.
    pub(crate) window: Option<u32>,
    /// What may be moved and until when, whatever was asked for.
    pub(crate) most: Allowance,
    /// Those with whom it takes turns.
    pub(crate) turns: Option<Arc<Turns>>,
}

impl Job {
    /// A transfer that shares neither turns nor an allowance with others.
    pub(crate) fn alone(amount: Amount, start_ns: u64, deadline: Duration, window: Option<u32>) -> Self {
        Self { amount, start_ns, deadline, window, most: Allowance::endless(), turns: None }
    }
}

/// What a read or a write gave, with its bytes.
fn moved(result: io::Result<usize>) -> (io::Result<usize>, u64) {
    let bytes = result.as_ref().map_or(0, |bytes| *bytes as u64);
    (result, bytes)
}

/// How a socket waits: in the kernel's own read or write, which takes one call and no timer for each piece, or beside it, where others
/// want their turn too or the end is so near that a wait of the kernel's could miss it.
struct WaitMode {
    blocks: bool,
}

impl WaitMode {
    /// Not in reads and writes, for now.
    fn beside(stream: &TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(GLANCE))?;
        stream.set_nonblocking(true)?;
        Ok(Self { blocks: false })
    }

    /// As it suits a transfer that has so long to go; whether reads and writes block now, for [`GLANCE`] at most.
    fn choose(&mut self, stream: &TcpStream, turn: &Turn, left_ns: u64) -> io::Result<bool> {
        let blocks = turn.is_free() && u128::from(left_ns) > 2 * GLANCE.as_nanos();
        if blocks != self.blocks {
            stream.set_nonblocking(!blocks)?;
            self.blocks = blocks;
        }
        Ok(blocks)
    }

    /// As it began.
    fn end(&mut self, stream: &TcpStream) -> io::Result<()> {
        if std::mem::take(&mut self.blocks) { stream.set_nonblocking(true) } else { Ok(()) }
    }
}

/// Reads the pattern until the time is up or the last byte came.
pub(crate) fn receive(stream: &mut TcpStream, job: &Job, cancel: &Cancel) -> io::Result<EndReport> {
    let Job { amount, start_ns, deadline, window, .. } = *job;
    let limit = match amount {
        Amount::Time(time) => time.min(deadline),
        Amount::Size(_) => deadline,
    };
    let wanted = if let Amount::Size(size) = amount { size.get() } else { u64::MAX };
    let expected = if let Amount::Time(time) = amount { time } else { Duration::from_secs(10) };
    let sampler = Sampler::start(stream.try_clone()?, End::Receiver, start_ns, interval(expected))
        .map_err(|error| error.source)?;
    let mut waiting = WaitMode::beside(stream)?;
    // The system gives it memory as far as it is used.
    let mut buffer = vec![0; pattern::CHUNK];
    let mut turn = Turn::among(job.turns.as_ref());
    let waited_before = waited_for_processor();
    let (mut bytes, mut missing) = (0, None);
    let mut last_ns = start_ns;
    let asked_ns = start_ns.saturating_add(limit.as_nanos() as u64);
    let finish = loop {
        let now = monotonic_ns();
        let limit_ns = asked_ns.min(job.most.until_ns());
        if now >= limit_ns {
            break if limit_ns < asked_ns {
                Finish::PeerLeft(out_of_time())
            } else if limit == deadline && !matches!(amount, Amount::Time(time) if time <= deadline) {
                Finish::Deadline
            } else {
                Finish::Done
            };
        }
        if cancel.is_cancelled() {
            break Finish::Cancelled;
        }
        let blocks = waiting.choose(stream, &turn, limit_ns - now)?;
        let read =
            if blocks { stream.read(&mut buffer) } else { turn.take(|| moved(stream.read(&mut buffer[..AT_ONCE]))) };
        match read {
            Ok(0) if bytes >= wanted => break Finish::Done,
            Ok(0) => break Finish::PeerLeft("the peer closed the connection early".to_owned()),
            Ok(n) => {
                if let Some(at) = pattern::first_difference(bytes, &buffer[..n]) {
                    missing = pattern::missing(at, &buffer[usize::try_from(at - bytes).unwrap_or(0)..n]);
                    break Finish::Corrupt(at);
                }
                bytes += n as u64;
                let allowed = job.most.take(n as u64);
                last_ns = monotonic_ns();
                if let Some(window) = window {
                    tcp::hold_window(stream, window).map_err(|error| error.source)?;
                }
                if bytes >= wanted {
                    break if bytes == wanted { Finish::Done } else { Finish::Corrupt(wanted) };
                }
                if !allowed {
                    break Finish::PeerLeft(out_of_bytes());
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && blocks => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let wait = GLANCE.min(Duration::from_nanos(limit_ns - now));
                wait_readable(&[stream.as_fd()], Some(wait)).map_err(|error| error.source)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => break Finish::PeerLeft(e.to_string()),
        }
    };
    waiting.end(stream)?;
    let end_ns = match (&finish, amount) {
        (Finish::Done, Amount::Size(_)) => last_ns,
        (Finish::Done | Finish::Deadline, _) => asked_ns,
        _ => monotonic_ns(),
    };
    let info = TcpInfo::read(stream).unwrap_or_default();
    Ok(EndReport {
        finish,
        bytes,
        elapsed: Duration::from_nanos(end_ns.saturating_sub(start_ns)),
        last: Some(Duration::from_nanos(last_ns.saturating_sub(start_ns))),
        samples: sampler.finish(),
        info,
        congestion_control: tcp::congestion_control(stream).unwrap_or_default(),
        refused: Vec::new(),
        start: None,
        measures: Measures { missing_bytes: missing, ..Measures::default() },
        waited: waited_for_processor().zip(waited_before).map(|(now, before)| now.saturating_sub(before)),
    })
}

/// Writes the pattern until all is sent, or until the receiver, which has the clock, leaves; in writes of a given size, or of as much as
/// goes in.
pub(crate) fn send(
    stream: &mut TcpStream,
    job: &Job,
    write_size: Option<u16>,
    cancel: &Cancel,
) -> io::Result<EndReport> {
    let Job { amount, start_ns, deadline, .. } = *job;
    let wanted = if let Amount::Size(size) = amount { size.get() } else { u64::MAX };
    let expected = if let Amount::Time(time) = amount { time } else { Duration::from_secs(10) };
    // The receiver leaves first; this only ends a sender whose peer has vanished.
    let patience_ns = start_ns.saturating_add(deadline.as_nanos() as u64).saturating_add(2_000_000_000);
    let sampler =
        Sampler::start(stream.try_clone()?, End::Sender, start_ns, interval(expected)).map_err(|error| error.source)?;
    let mut waiting = WaitMode::beside(stream)?;
    let mut turn = Turn::among(job.turns.as_ref());
    let (mut sender, mut bytes, mut longest) = (pattern::Sender::default(), 0, pattern::PIECE);
    let (mut info, mut asked_ns) = (TcpInfo::default(), 0);
    let mut heard = LastAck::begin(0, start_ns);
    let mut whole_ns = None;
    let finish = loop {
        if cancel.is_cancelled() {
            break Finish::Cancelled;
        }
        let now = monotonic_ns();
        let limit_ns = patience_ns.min(job.most.until_ns());
        if now >= limit_ns {
            break if limit_ns < patience_ns { Finish::PeerLeft(out_of_time()) } else { Finish::Deadline };
        }
        if now - asked_ns >= ASKED {
            // A reset connection answers no more questions, so the last answer before it is kept.
            (info, asked_ns) = (TcpInfo::read(stream).unwrap_or(info), now);
            heard.look(&info, now);
            longest = tcp::send_buffer(stream).map_or(longest, |bytes| pattern::piece(bytes as usize));
        }
        let allowed = job.most.left();
        if bytes >= wanted || allowed == 0 {
            waiting.end(stream)?;
            // Many that take turns don't look so often.
            let exact = job.turns.is_none();
            let drained = drain(stream, (patience_ns, exact), job, cancel, (&mut info, &mut heard))?;
            whole_ns = drained.1;
            break match drained.0 {
                Finish::Done if bytes < wanted => Finish::PeerLeft(out_of_bytes()),
                other => other,
            };
        }
        let blocks = waiting.choose(stream, &turn, limit_ns - now)?;
        let most = if blocks { longest } else { pattern::PIECE };
        let left = usize::try_from((wanted - bytes).min(allowed)).unwrap_or(usize::MAX).min(most);
        let mut piece = || match write_size {
            Some(size) => pattern::write(stream, bytes, left, size),
            None => sender.send(stream, bytes, left, blocks),
        };
        let written = if blocks { piece() } else { turn.take(|| moved(piece())) };
        match written {
            Ok(n) => {
                bytes += n as u64;
                job.most.take(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && blocks => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let wait = GLANCE.min(Duration::from_nanos(limit_ns - now));
                wait_writable(&[stream.as_fd()], Some(wait)).map_err(|error| error.source)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if is_time_up(amount, start_ns) && e.kind() != io::ErrorKind::TimedOut => break Finish::Done,
            Err(e) => break Finish::PeerLeft(e.to_string()),
        }
    };
    waiting.end(stream)?;
    let closed = TcpInfo::read(stream).ok().filter(|last| last.bytes_acked >= info.bytes_acked);
    // What was acknowledged stays known when a receiver has left.
    let bytes_acked = closed.as_ref().map_or(info.bytes_acked, |last| last.bytes_acked);
    let last = closed.filter(|last| last.state == 1).unwrap_or(info);
    let end_ns = whole_ns.filter(|_| finish == Finish::Done).unwrap_or_else(monotonic_ns);
    let elapsed = Duration::from_nanos(end_ns.saturating_sub(start_ns));
    let (samples, thirds) = sampler.finish_with_gaps(amount, elapsed);
    Ok(EndReport {
        finish,
        bytes,
        elapsed,
        last: Some(heard.since(start_ns)),
        samples,
        info: TcpInfo { bytes_acked, ..last },
        congestion_control: tcp::congestion_control(stream).unwrap_or_default(),
        refused: Vec::new(),
        start: None,
        measures: Measures { thirds, ..Measures::default() },
        waited: None,
    })
}

/// Whether a receiver that leaves now has had its time. Its clock began up to a round trip earlier or later.
fn is_time_up(amount: Amount, start_ns: u64) -> bool {
    let run = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
    matches!(amount, Amount::Time(time) if run >= time / 2)
}

/// Says that this was all, and waits until the receiver has it and leaves; and when all was acknowledged, ns of the monotonic clock, where
/// that was heard before. To know that exactly it looks often, of a short transfer more often than of a long one.
///
/// # Source
/// include/net/tcp_states.h: in `TCP_FIN_WAIT2`, 5, the FIN is acknowledged, and so is all before it.
fn drain(
    stream: &mut TcpStream,
    (patience_ns, exact): (u64, bool),
    job: &Job,
    cancel: &Cancel,
    (info, heard): (&mut TcpInfo, &mut LastAck),
) -> io::Result<(Finish, Option<u64>)> {
    const FIN_ACKNOWLEDGED: u8 = 5;
    const SOON: u64 = 50_000;
    let mut whole_ns = None;
    if stream.shutdown(std::net::Shutdown::Write).is_err() {
        // The receiver had counted all it wanted and was gone before we could say so.
        return Ok((Finish::Done, whole_ns));
    }
    let (mut ignored, begun_ns) = ([0; 512], monotonic_ns());
    loop {
        *info = TcpInfo::read(stream).unwrap_or(*info);
        heard.look(info, monotonic_ns());
        if info.state == FIN_ACKNOWLEDGED {
            whole_ns = whole_ns.or_else(|| Some(monotonic_ns()));
        }
        match stream.read(&mut ignored) {
            Ok(0) => return Ok((Finish::Done, whole_ns)),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let now = monotonic_ns();
                let limit_ns = patience_ns.min(job.most.until_ns());
                if now >= limit_ns {
                    let is_last = limit_ns == patience_ns;
                    let finish = if is_last { Finish::Deadline } else { Finish::PeerLeft(out_of_time()) };
                    return Ok((finish, whole_ns));
                }
                if cancel.is_cancelled() {
                    return Ok((Finish::Cancelled, whole_ns));
                }
                let soon = Duration::from_nanos(((now - begun_ns) / 16).clamp(SOON, ASKED));
                let wait = if exact { soon } else { GLANCE };
                wait_readable(&[stream.as_fd()], Some(wait.min(Duration::from_nanos(limit_ns - now))))
                    .map_err(|error| error.source)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // The receiver has counted all it wanted and resets, so that nothing lingers.
            Err(_) => return Ok((Finish::Done, whole_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_sender_whose_receiver_stops_reading_knows_since_when_nothing_was_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut held = listener.accept().unwrap().0;
        let reader = std::thread::spawn(move || {
            held.read_exact(&mut vec![0; 100_000]).unwrap();
            held
        });
        let start_ns = monotonic_ns();
        let (time, deadline) = (Duration::from_millis(100), Duration::from_millis(100));
        let most = Allowance::endless();
        let job = Job { amount: Amount::Time(time), start_ns, deadline, window: None, most, turns: None };
        let report = send(&mut stream, &job, None, &Cancel::new()).unwrap();
        drop(reader.join().unwrap());
        // Two seconds more are given to a receiver that has the clock; the buffers are full after a few milliseconds.
        assert_eq!(report.finish, Finish::Deadline);
        assert!(report.bytes >= 100_000 && report.last > Some(Duration::ZERO), "{report:?}");
        assert!(report.silence() >= Duration::from_secs(1), "{:?} of {:?}", report.silence(), report.elapsed);
        assert_eq!(EndReport { last: None, ..report }.silence(), Duration::ZERO);
    }
}
