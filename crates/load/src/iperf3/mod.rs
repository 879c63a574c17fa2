//! Every iperf3 server as a peer: its control protocol, one stream, both directions.

/// What the control connection carries.
mod message;

use crate::client::Connection;
use crate::control::ControlConnection;
use crate::error::{FetchError, LoadError, lost, refused_or_not};
use crate::fetch::{Body, Framing, intake, outflow};
use crate::job::{CONNECT, Fetch, FetchOutcome, PeerReport};
use crate::pattern;
use crate::transfer::{EndReport, Finish, Job};
use crate::wire::Wire;
use message::{COOKIE, Digits, LONGEST, Parameters, Results, State, framed, own_results};
use std::io::ErrorKind;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::{Bytes, Knob, Level};

/// Bytes of a write where a time is wanted, as iperf3 has them.
const BLOCK: u64 = 128 * 1024;
/// Bytes of a write where a number of bytes is wanted, so that little more than that is sent.
const SMALL_BLOCK: u64 = 8 * 1024;
/// For so long the server's word on a test is waited for.
const RESULTS: Duration = Duration::from_secs(5);

/// Runs one test: the server sends or receives, over one stream with the settings that are tried.
///
/// # Errors
/// [`FetchError`].
pub(crate) fn test(job: &Fetch<'_>, direction: Direction, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let reverse = direction == Direction::Down;
    let mut own = job.settings.clone();
    let far_cc = job.settings.name(Knob::Cc).filter(|_| reverse).map(str::to_owned);
    if reverse {
        own.set(Knob::Cc, Level::Auto);
    }
    let parameters = parameters(job.amount, reverse, far_cc);
    let mut control = Control::open(job, cancel)?;
    control.expect(State::ParamExchange)?;
    control.connection.send(&framed(&parameters.to_json()))?;
    control.expect(State::CreateStreams)?;
    let connection = Connection::open_with_all(&job.peer, &own, CONNECT.min(job.deadline)).map_err(refused_or_not)?;
    let (window, connect_time, granted) = (connection.window, connection.connect_time, connection.granted);
    let mut data = Wire::new(connection.stream, control.connection.give_up_ns(), cancel).map_err(LoadError::Broken)?;
    data.write_all(&control.cookie).map_err(|error| lost(error, job.deadline, false))?;
    control.expect(State::TestStart)?;
    let amount = if parameters.bytes > 0 { Amount::Size(Bytes(parameters.bytes)) } else { job.amount };
    let transfer = Job::alone(amount, monotonic_ns(), job.deadline, window);
    let mut digits = Digits::default();
    let report = if reverse {
        intake(&mut data, Body::new(Framing::Close), &[], &transfer, &mut digits)
    } else {
        control.expect(State::TestRunning)?;
        outflow(&mut data, &transfer, &pattern::at)
    };
    let report = report.map_err(LoadError::Broken)?;
    if reverse {
        // It was sent while the payload began to flow.
        control.expect(State::TestRunning)?;
    }
    let mut notes = Vec::new();
    if digits.foreign {
        notes.push("the server sends no pattern that can be checked (iperf3 before 3.10)".to_owned());
    }
    let results = if matches!(report.finish, Finish::Done) { control.end(&report, &mut data)? } else { None };
    let _ = tcp::reset_on_close(data.socket());
    let mut fetched =
        FetchOutcome { report, connect_time, granted, length: None, surplus: false, notes, far: None, other: None };
    if let Some(results) = results {
        settle(&mut fetched, &results, reverse);
    }
    Ok(fetched)
}

fn parameters(amount: Amount, reverse: bool, congestion_control: Option<String>) -> Parameters {
    let (seconds, bytes, block) = match amount {
        // A second more, so that it is we who end it.
        Amount::Time(time) => (time.as_secs() + 2, 0, BLOCK),
        Amount::Size(Bytes(size)) => (0, (size / SMALL_BLOCK).max(1) * SMALL_BLOCK, SMALL_BLOCK),
    };
    Parameters { reverse, seconds, bytes, block, congestion_control }
}

/// The receiver's word counts.
fn settle(fetched: &mut FetchOutcome, results: &Results, reverse: bool) {
    if let (true, Some(name)) = (reverse, &results.congestion_control) {
        fetched.granted.set(Knob::Cc, Level::Name(name.clone()));
    }
    if !reverse {
        // It can't have received more than was sent.
        fetched.report.bytes = results.bytes.min(fetched.report.info.bytes_sent.max(fetched.report.bytes));
        if let Some(seconds) = results.seconds.filter(|seconds| *seconds >= fetched.report.elapsed.as_secs_f64() / 2.0)
        {
            fetched.report.elapsed = Duration::from_secs_f64(seconds);
        }
    }
    fetched.far = Some(PeerReport {
        retransmits: results.retransmits.filter(|_| reverse),
        congestion_control: results.congestion_control.clone().filter(|_| reverse),
    });
}

/// The control connection.
struct Control<'a> {
    connection: ControlConnection<'a>,
    cookie: [u8; COOKIE],
}

impl<'a> Control<'a> {
    fn open(job: &Fetch<'_>, cancel: &'a Cancel) -> Result<Self, FetchError> {
        let mut connection = ControlConnection::open(job, cancel)?;
        let cookie = cookie();
        connection.send(&cookie)?;
        Ok(Self { connection, cookie })
    }

    /// Reads exactly so many bytes.
    fn read(&mut self, buffer: &mut [u8], limit_ns: u64) -> Result<(), FetchError> {
        let mut filled = 0;
        while filled < buffer.len() {
            filled += self.connection.read(&mut buffer[filled..], limit_ns)?;
        }
        Ok(())
    }

    /// Reads a state, and wants this one.
    fn expect(&mut self, wanted: State) -> Result<(), FetchError> {
        let mut byte = [0];
        self.read(&mut byte, self.connection.give_up_ns())?;
        match State::of(byte[0]) {
            Some(state) if state == wanted => Ok(()),
            Some(State::AccessDenied) => {
                Err(FetchError::Refused { why: "it is busy with another test".to_owned(), pause: None })
            }
            Some(State::ServerTerminate) => {
                Err(FetchError::Refused { why: "it was told to stop".to_owned(), pause: None })
            }
            Some(State::ServerError) => {
                let mut numbers = [0; 8];
                self.read(&mut numbers, self.connection.give_up_ns())?;
                let number = |at: usize| i32::from_be_bytes(std::array::from_fn(|i| numbers[at + i]));
                let cause = std::io::Error::from_raw_os_error(number(4));
                let cause = if number(4) > 0 { format!(" ({cause})") } else { String::new() };
                Err(FetchError::Never(format!(
                    "the server answers error {}{cause}: it can't do such a test, or wants a login",
                    number(0)
                )))
            }
            Some(state) => Err(FetchError::Protocol(format!("the server says {state:?} where {wanted:?} is due"))),
            None => Err(FetchError::Protocol(format!("the server says {}, which means nothing in iperf3", byte[0]))),
        }
    }

    /// Ends the test, and exchanges what both sides saw. What still comes meanwhile is thrown away.
    fn end(&mut self, report: &EndReport, data: &mut Wire<'_>) -> Result<Option<Results>, FetchError> {
        let limit = self.connection.give_up_ns().min(monotonic_ns() + RESULTS.as_nanos() as u64);
        self.connection.send(&[State::TestEnd.byte()])?;
        let mut waste = vec![0; pattern::CHUNK];
        let mut state = [0];
        loop {
            // Whatever it says, and however fast.
            let control = &self.connection.wire;
            let over = || monotonic_ns() >= limit || control.cancel().is_cancelled();
            if over() {
                return Ok(None);
            }
            // A server that is still sending hears nothing until it can send on.
            while matches!(data.read_now(&mut waste), Ok(n) if n > 0) && !over() {}
            match self.connection.wire.read_now(&mut state) {
                Ok(0) => return Ok(None),
                Ok(_) if State::of(state[0]) == Some(State::ExchangeResults) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let soon = monotonic_ns() + 2_000_000;
                    self.connection.wire.wait_until(false, soon.min(limit)).map_err(LoadError::Broken)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(None),
            }
        }
        let sender = report.info.bytes_sent > 4096;
        let seconds = report.elapsed.as_secs_f64();
        let retransmits = sender.then_some(report.info.total_retrans);
        self.connection.send(&framed(&own_results(report.bytes, seconds, &report.congestion_control, retransmits)))?;
        let mut length = [0; 4];
        self.read(&mut length, limit)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST {
            return Err(FetchError::Protocol(format!("the server's results would take {length} bytes")));
        }
        let mut text = vec![0; length];
        self.read(&mut text, limit)?;
        let results = Results::parse(&text)
            .ok_or_else(|| FetchError::Protocol("the server's results make no sense".to_owned()))?;
        if self.expect(State::DisplayResults).is_ok() {
            let _ = self.connection.send(&[State::Done.byte()]);
        }
        Ok(Some(results))
    }
}

/// Tells the two connections of a test apart from others'. It is no secret.
fn cookie() -> [u8; COOKIE] {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut state = monotonic_ns() ^ u64::from(std::process::id()) << 40 | 1;
    let mut cookie = [0; COOKIE];
    for byte in &mut cookie[..COOKIE - 1] {
        // xorshift64* (Vigna 2016).
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        *byte = LETTERS[(state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 59) as usize];
    }
    cookie
}

/// Reads bytes as everything that a server may say.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    let _ = Results::parse(bytes);
    if let Some(first) = bytes.first() {
        let _ = State::of(*first).map(State::byte);
    }
}
