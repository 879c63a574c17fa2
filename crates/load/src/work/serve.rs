//! The server's end of a connection.

use super::record::Record;
use super::talk::Talk;
use crate::proto::Request;
use crate::sample::{End, Sampler, interval};
use crate::transfer::{EndReport, Finish, Job, receive, send};
use std::io;
use std::net::TcpStream;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::{self, TcpInfo};
use wt_trial::{Cancel, Direction, Measures, MessageTimes, floor_of_stall};

/// What a server does on a request: it sets what it is asked to set, and sends or receives. What the system refuses to set
/// stands in the report.
///
/// `takes_turns`: both take turns, rather than one transfer.
pub(crate) fn answer(
    stream: &mut TcpStream,
    request: &Request,
    takes_turns: bool,
    job: &Job,
    cancel: &Cancel,
) -> io::Result<EndReport> {
    if takes_turns {
        let refused = request.sender.apply(stream);
        if let Some(bytes) = request.window {
            tcp::fix_window(stream, bytes).map_err(|error| error.source)?;
        }
        return Ok(EndReport { refused, ..talk(stream, job, cancel)? });
    }
    if request.direction == Direction::Up {
        if let Some(bytes) = request.window {
            tcp::fix_window(stream, bytes).map_err(|error| error.source)?;
        }
        return receive(stream, job, cancel);
    }
    let refused = request.sender.apply(stream);
    let mut report = send(stream, job, request.sender.write_size, cancel)?;
    report.refused = refused;
    Ok(report)
}

/// Does as the client asks until it leaves, or has had all that it may.
///
/// # Errors
/// The kernel's.
fn talk(stream: &mut TcpStream, job: &Job, cancel: &Cancel) -> io::Result<EndReport> {
    let Job { start_ns, deadline, window, .. } = *job;
    let limit_ns = start_ns.saturating_add(deadline.as_nanos() as u64);
    let start = TcpInfo::read(stream).ok();
    let sampler =
        Sampler::start(stream.try_clone()?, End::Sender, start_ns, interval(deadline)).map_err(|error| error.source)?;
    let mut talk = Talk::new(stream.try_clone()?, limit_ns, window, job.most.clone(), cancel)?;
    let mut info = TcpInfo::default();
    let mut measures = Measures::default();
    let finish = loop {
        info = TcpInfo::read(talk.stream()).unwrap_or(info);
        match turn(&mut talk, &mut measures) {
            Ok(true) => {}
            Ok(false) => break Finish::Done,
            Err(finish) => break finish,
        }
    };
    // A connection that was reset answers no more questions.
    let last = TcpInfo::read(talk.stream()).ok().filter(|last| last.bytes_acked >= info.bytes_acked);
    let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(start_ns));
    let (sent, received) = (talk.sent, talk.received);
    let congestion_control = tcp::congestion_control(stream).unwrap_or_default();
    Ok(EndReport {
        samples: sampler.finish(),
        info: last.unwrap_or(info),
        congestion_control,
        start,
        measures,
        ..EndReport::of_several(finish, sent + received, elapsed)
    })
}

/// One thing that the client wants; false when it wants nothing more.
fn turn(talk: &mut Talk<'_>, measures: &mut Measures) -> Result<bool, Finish> {
    match talk.record()? {
        None => return Ok(false),
        Some(Record::Exchange { request, answer }) => {
            talk.take(request.into(), &"a request")?;
            talk.send(answer.into())?;
        }
        Some(Record::Messages { size, count, interval }) => {
            measures.lateness = pace(talk, size, count, interval)?.lateness();
        }
        Some(Record::Taking { size, count, interval }) => {
            let heard = hear(talk, size, count, interval)?;
            measures.lateness = heard.lateness();
            // So that the client knows that all has come.
            talk.send(8)?;
        }
    }
    Ok(true)
}

/// Sends messages at a steady pace. What the connection doesn't take at its time goes as soon as it does. Says how late
/// each was handed to the kernel.
pub(super) fn pace(talk: &mut Talk<'_>, size: u32, count: u32, interval: Duration) -> Result<MessageTimes, Finish> {
    let (start_ns, first) = (monotonic_ns(), talk.sent);
    let step = interval.as_nanos().max(1) as u64;
    let mut sent = MessageTimes::new(count, interval, floor_of_stall(interval));
    loop {
        talk.still()?;
        let now = monotonic_ns();
        let due = ((now - start_ns) / step + 1).min(count.into());
        let all = talk.send_up_to(first + due * u64::from(size))?;
        sent.note(monotonic_ns(), (talk.sent - first) / u64::from(size));
        if sent.is_complete() {
            return Ok(sent);
        }
        let next = next_due(start_ns, step, due, count).min(talk.limit_ns());
        if all {
            pause_until(talk, next)?;
        } else {
            talk.wait(true, next)?;
        }
    }
}

/// When the next message is due, of which so many were already, in ns of the monotonic clock; never, once all were: then only
/// what the connection hasn't taken is left.
fn next_due(start_ns: u64, step: u64, due: u64, count: u32) -> u64 {
    if due >= count.into() { u64::MAX } else { start_ns.saturating_add(due.saturating_mul(step)) }
}

/// Waits for nothing but time.
fn pause_until(talk: &Talk<'_>, until_ns: u64) -> Result<(), Finish> {
    let left = until_ns.saturating_sub(monotonic_ns()).min(50_000_000);
    let waited = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left)));
    waited.map_err(|error| Finish::PeerLeft(error.to_string()))?;
    talk.still()
}

/// Takes messages, and notes when each had come. Messages that don't come in time are missing, which is no error.
pub(super) fn hear(talk: &mut Talk<'_>, size: u32, count: u32, interval: Duration) -> Result<MessageTimes, Finish> {
    let first = talk.received;
    let end = first + u64::from(size) * u64::from(count);
    let mut heard = MessageTimes::new(count, interval, floor_of_stall(interval));
    while !heard.is_complete() {
        if talk.cancel().is_cancelled() {
            return Err(Finish::Cancelled);
        }
        if monotonic_ns() >= talk.limit_ns() {
            break;
        }
        let Some(so_far) = talk.take_what_is_there(end, talk.limit_ns())? else { break };
        heard.note(monotonic_ns(), (so_far - first) / u64::from(size));
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_every_message_is_due_there_is_no_time_to_wake_up_at() {
        assert_eq!(next_due(1000, 10, 3, 5), 1030);
        assert_eq!(next_due(1000, 10, 5, 5), u64::MAX);
        assert_eq!(next_due(1000, u64::MAX, 2, 5), u64::MAX);
    }
}
