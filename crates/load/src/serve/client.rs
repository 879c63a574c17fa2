//! A client of `serve`: shows the key, waits for its turn, runs the test, asks for the server's side of it.

use super::key::{HELLO, Hello, Secure, SharedKey, TAG};
use super::message::{ANSWER, Answer, Ask, LONGEST_REPORT, PIECE, report_from_json};
use crate::allowance::is_enough;
use crate::client::Connection;
use crate::control::read_some;
use crate::error::{FetchError, LoadError, lost, refused_or_not};
use crate::job::{CONNECT, Fetch, FetchOutcome, PeerReport};
use crate::proto::{Request, SenderOptions};
use crate::transfer::{EndReport, Finish, receive, send};
use crate::wire::Wire;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::{Knob, Level, Settings};

/// Why a server closes the connection before it has greeted: it doesn't say which it is.
pub const NO_GREETING: &str = "it closed the connection: the key is wrong, it is full, or it is no windtunnel server";
/// Nobody waits for a turn for longer.
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
/// The server's word on a test, or on who we are, is waited for so long.
const REPLY: Duration = Duration::from_secs(10);

/// Runs one test.
///
/// # Errors
/// [`FetchError`]; a transfer that was cut short is a report, not an error.
pub(crate) fn test(job: &Fetch<'_>, direction: Direction, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let key = job.url.login.as_ref().and_then(|login| login.user.parse::<SharedKey>().ok());
    let key = key.ok_or_else(|| FetchError::Never("the address holds no key: wt://KEY@HOST".to_owned()))?;
    let (own, request) = split(job, direction);
    let connection = Connection::open_with_all(&job.peer, &own, CONNECT.min(job.deadline)).map_err(refused_or_not)?;
    let (window, connect_time, mut granted) = (connection.window, connection.connect_time, connection.granted);
    let socket = connection.stream.try_clone().map_err(LoadError::Broken)?;
    let mut session = Session::open(connection.stream, &key, cancel)?;
    let ask = Ask::Test(request.clone(), false).to_bytes();
    session.ask(&ask.ok_or_else(|| FetchError::Never("the request can't be written".to_owned()))?)?;
    session.wait_for_turn()?;
    let mut socket = {
        drop(session);
        socket
    };
    let transfer = job.transfer(monotonic_ns(), window);
    let report = match direction {
        Direction::Down => receive(&mut socket, &transfer, cancel),
        Direction::Up => send(&mut socket, &transfer, None, cancel),
    };
    let mut report = report.map_err(LoadError::Broken)?;
    let _ = tcp::reset_on_close(&socket);
    drop(socket);
    let mut notes = Vec::new();
    let other = match ask_for_report(job, &key, request.token, cancel) {
        Ok(other) => other,
        Err(FetchError::Cancelled) => None,
        Err(error) => {
            notes.push(format!("the server's side of the test is missing: {error}"));
            None
        }
    };
    match direction {
        Direction::Up => settle(&mut report, other.as_ref(), job.amount),
        Direction::Down => explain(&mut report, other.as_ref()),
    }
    let far = other.as_ref().map(|other| far(other, &request, direction, &mut granted, &mut notes));
    Ok(FetchOutcome { report, connect_time, granted, length: None, surplus: false, notes, far, other })
}

/// The receiver of an upload knows how much came, and has the clock of one that is ended by time: of a size the sender has it, to the
/// acknowledgement of the last byte. But it can't have received more than was sent, nor in half the time; and if it says nothing, what
/// was acknowledged is all that is known.
pub(super) fn settle(report: &mut EndReport, other: Option<&EndReport>, amount: Amount) {
    let may_be_done = matches!(report.finish, Finish::Done | Finish::PeerLeft(_));
    let Some(other) = other else {
        report.bytes = report.bytes.min(report.info.bytes_acked);
        if may_be_done {
            report.finish = Finish::Lost("the server doesn't say what it received".to_owned());
        }
        return;
    };
    report.bytes = other.bytes.min(report.bytes);
    let has_clock = matches!(amount, Amount::Time(_)) || report.finish != Finish::Done;
    if has_clock && other.elapsed >= report.elapsed / 2 {
        report.elapsed = other.elapsed;
        report.last = other.last.or(report.last);
    }
    if may_be_done {
        report.finish = other.finish.clone();
    }
}

/// A server that has left a download says why where the quota is used up; here it only closed the connection, or reset it.
pub(super) fn explain(report: &mut EndReport, other: Option<&EndReport>) {
    if matches!(report.finish, Finish::PeerLeft(_))
        && let Some(Finish::PeerLeft(why)) = other.map(|other| &other.finish)
        && is_enough(why)
    {
        report.finish = Finish::PeerLeft(why.clone());
    }
}

/// What is set here, and what the server is asked to set.
pub(super) fn split(job: &Fetch<'_>, direction: Direction) -> (Settings, Request) {
    let small = |knob| job.settings.number(knob).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    let mut own = job.settings.clone();
    let (mut sender, mut window) = (SenderOptions::default(), None);
    let theirs: &[Knob] = match direction {
        Direction::Down => {
            sender.congestion_control = job.settings.name(Knob::Cc).map(str::to_owned);
            sender.send_buffer = small(Knob::Sndbuf);
            &[Knob::Cc, Knob::Sndbuf]
        }
        Direction::Up => {
            window = small(Knob::Rwin);
            &[Knob::Rwin]
        }
    };
    for knob in theirs {
        own.set(*knob, Level::Auto);
    }
    let token = monotonic_ns() ^ u64::from(std::process::id()).rotate_left(40);
    (own, Request { direction, amount: job.amount, token, sender, window })
}

/// What the server says of itself.
pub(super) fn far(
    other: &EndReport,
    request: &Request,
    direction: Direction,
    granted: &mut Settings,
    notes: &mut Vec<String>,
) -> PeerReport {
    notes.extend(other.refused.iter().cloned());
    match direction {
        Direction::Down => {
            if request.sender.congestion_control.is_some() {
                granted.set(Knob::Cc, Level::Name(other.congestion_control.clone()));
            }
            if let Some(size) = request.sender.send_buffer.filter(|_| other.refused.is_empty()) {
                granted.set(Knob::Sndbuf, Level::Number(size.into()));
            }
            PeerReport {
                retransmits: Some(other.info.total_retrans.into()),
                congestion_control: Some(other.congestion_control.clone()),
            }
        }
        Direction::Up => {
            if let Some(window) = request.window {
                granted.set(Knob::Rwin, Level::Number(window.into()));
            }
            PeerReport::default()
        }
    }
}

/// A connection on which the key was shown.
pub(super) struct Session<'a> {
    wire: Wire<'a>,
    secure: Secure,
}

impl<'a> Session<'a> {
    pub(super) fn open(stream: std::net::TcpStream, key: &SharedKey, cancel: &'a Cancel) -> Result<Self, FetchError> {
        let broken = |error: snow::Error| FetchError::Never(format!("the key exchange failed: {error}"));
        let give_up = monotonic_ns() + (LONGEST_WAIT + REPLY).as_nanos() as u64;
        let mut wire = Wire::new(stream, give_up, cancel).map_err(LoadError::Broken)?;
        let (hello, first) = Hello::begin(key).map_err(broken)?;
        wire.write_all(&first).map_err(|error| lost(error, REPLY, false))?;
        let mut answer = [0; HELLO];
        if !read_exactly(&mut wire, &mut answer, monotonic_ns() + REPLY.as_nanos() as u64)? {
            return Err(FetchError::Refused { why: NO_GREETING.to_owned(), pause: None });
        }
        let other = |error| {
            let why = "the server has another key, or it is no windtunnel server";
            FetchError::Never(format!("the key exchange failed ({error}): {why}"))
        };
        Ok(Self { wire, secure: hello.finish(&answer).map_err(other)? })
    }

    pub(super) fn ask(&mut self, ask: &[u8]) -> Result<(), FetchError> {
        let sealed = self.secure.seal(ask).map_err(|error| FetchError::Protocol(error.to_string()))?;
        self.wire.write_all(&sealed).map_err(|error| lost(error, REPLY, false))
    }

    fn sealed(&mut self, length: usize, limit_ns: u64) -> Result<Vec<u8>, FetchError> {
        let mut sealed = vec![0; length + TAG];
        if !read_exactly(&mut self.wire, &mut sealed, limit_ns)? {
            return Err(FetchError::Refused { why: "it closed the connection".to_owned(), pause: None });
        }
        self.secure.open(&sealed).map_err(|error| FetchError::Protocol(format!("the server's answer: {error}")))
    }

    pub(super) fn answer(&mut self, limit_ns: u64) -> Result<Answer, FetchError> {
        let text = self.sealed(ANSWER, limit_ns)?;
        Answer::from_bytes(&text).ok_or_else(|| FetchError::Protocol("the server's answer is invalid".to_owned()))
    }

    pub(super) fn wait_for_turn(&mut self) -> Result<(), FetchError> {
        let end = monotonic_ns() + LONGEST_WAIT.as_nanos() as u64;
        loop {
            // Those who wait are told so every second.
            match self.answer(end.min(monotonic_ns() + REPLY.as_nanos() as u64))? {
                Answer::Go => return Ok(()),
                Answer::Queued(_) => {}
                Answer::Refused { why, pause: None } => {
                    return Err(FetchError::Never(format!("the server refuses: {why}")));
                }
                Answer::Refused { why, pause } => return Err(FetchError::Refused { why, pause }),
                Answer::Report(_) => return Err(FetchError::Protocol("a report that nobody asked for".to_owned())),
            }
        }
    }
}

/// Fills the buffer; false if the server closes before.
fn read_exactly(wire: &mut Wire<'_>, buffer: &mut [u8], limit_ns: u64) -> Result<bool, FetchError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(wire, &mut buffer[filled..], limit_ns, REPLY)? {
            0 => return Ok(false),
            read => filled += read,
        }
    }
    Ok(true)
}

/// Asks for the server's side of a test, over a connection of its own; `None` if the server has none.
pub(super) fn ask_for_report(
    job: &Fetch<'_>,
    key: &SharedKey,
    token: u64,
    cancel: &Cancel,
) -> Result<Option<EndReport>, FetchError> {
    let connection = Connection::open(&job.peer, &Settings::new(), CONNECT).map_err(refused_or_not)?;
    let mut session = Session::open(connection.stream, key, cancel)?;
    let Some(ask) = Ask::Report(token).to_bytes() else { return Ok(None) };
    session.ask(&ask)?;
    let limit = monotonic_ns() + REPLY.as_nanos() as u64;
    let length = match session.answer(limit)? {
        Answer::Report(length) => length as usize,
        _ => return Err(FetchError::Protocol("the server has no report".to_owned())),
    };
    if length > LONGEST_REPORT {
        return Err(FetchError::Protocol(format!("the server's report would take {length} bytes")));
    }
    let mut json = Vec::new();
    while json.len() < length {
        json.extend(session.sealed(PIECE.min(length - json.len()), limit)?);
    }
    Ok(report_from_json(&json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowance::out_of_time;

    fn end(finish: Finish, bytes: u64, millis: u64) -> EndReport {
        EndReport::of_several(finish, bytes, Duration::from_millis(millis))
    }

    #[test]
    fn a_download_that_broke_off_tells_of_the_quota_where_the_server_says_so() {
        let left = |why: &str| Finish::PeerLeft(why.to_owned());
        let told = |own: Finish, other: Option<Finish>| {
            let mut report = end(own, 1000, 10);
            explain(&mut report, other.map(|finish| end(finish, 1000, 10)).as_ref());
            report.finish
        };
        let (reset, quota) = (left("Connection reset by peer"), left(&out_of_time()));
        assert_eq!(told(reset.clone(), Some(quota.clone())), quota);
        // Neither what the server saw of us, nor anything where all came.
        assert_eq!(told(reset.clone(), Some(left("Broken pipe"))), reset);
        assert_eq!(told(reset.clone(), Some(Finish::Deadline)), reset);
        assert_eq!(told(reset.clone(), None), reset);
        assert_eq!(told(Finish::Done, Some(quota)), Finish::Done);
    }

    #[test]
    fn a_server_that_lies_about_an_upload_or_says_nothing_gains_nothing() {
        let told = |other: Option<EndReport>, amount| {
            let mut report = end(Finish::Done, 1_000_000, 1000);
            report.info.bytes_acked = 400_000;
            settle(&mut report, other.as_ref(), amount);
            (report.bytes, report.elapsed.as_millis(), report.finish == Finish::Done)
        };
        let (time, size) = (Amount::Time(Duration::from_secs(1)), Amount::Size(wt_units::Bytes(1_000_000)));
        // Of a size the sender has the clock.
        for (amount, elapsed) in [(time, [990, 900]), (size, [1000, 1000])] {
            assert_eq!(told(Some(end(Finish::Done, 900_000, 990)), amount), (900_000, elapsed[0], true));
            assert_eq!(told(Some(end(Finish::Done, u64::MAX, 1)), amount), (1_000_000, 1000, true));
            assert_eq!(told(Some(end(Finish::Corrupt(7), 7, 900)), amount), (7, elapsed[1], false));
            assert_eq!(told(None, amount), (400_000, 1000, false));
        }
    }
}
