//! What came of a trial on the real path, put together from what both ends saw.

use crate::lost::SILENCE;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::{EndReport, FetchOutcome, Finish};
use wt_sys::tcp::TcpInfo;
use wt_trial::{
    Direction, Limits, Observed, ObservedConnection, Status, TrialOutcome, TrialSpec, Workload, say_none, thirds,
};
use wt_units::{Knob, Level};

/// Bytes after which the kernel knows how large the peer's segments are.
const TELLING: u64 = 32 * 1024;

/// Joins what is known of a transfer.
pub(crate) fn outcome(fetched: FetchOutcome, direction: Direction, headers: u64) -> TrialOutcome {
    let FetchOutcome { report, connect_time, granted, length, surplus: _, mut notes, far, other } = fetched;
    let status = status(&report, direction, &mut notes);
    // Where the sender is ours, its word counts.
    let sender = other.as_ref().filter(|_| direction == Direction::Down);
    let own = observed(&report, direction, headers);
    let seen = sender.map_or(own.clone(), |sender| seen_by_sender(sender, own, headers));
    let (retransmits, cc) = far.map_or((None, None), |far| (far.retransmits, far.congestion_control));
    let mut observed = Observed {
        connect_us: Some(connect_time.as_micros() as u64),
        length,
        retransmits: retransmits.or(seen.retransmits),
        cc: cc.or(seen.cc),
        ..seen
    };
    say_none!(observed; length);
    let limits_of = |info: &TcpInfo| Limits {
        busy_us: info.busy_time,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.sndbuf_limited,
    };
    let limits = match (direction, &other) {
        (Direction::Up, _) => limits_of(&report.info),
        (Direction::Down, Some(sender)) => limits_of(&sender.info),
        (Direction::Down, None) => Limits::default(),
    };
    let theirs = other.map(|other| other.samples).unwrap_or_default();
    let (sender, receiver) = match direction {
        Direction::Up => (report.samples, theirs),
        Direction::Down => (theirs, report.samples),
    };
    TrialOutcome {
        status,
        bytes: report.bytes,
        elapsed_us: u64::try_from(report.elapsed.as_micros()).unwrap_or(u64::MAX),
        granted,
        scopes: BTreeMap::new(),
        observed,
        sender,
        receiver,
        limits,
        notes,
        measures: report.measures,
    }
}

/// Looks at a soak by its thirds where that wasn't done at both ends; no other transfer is.
pub(crate) fn by_thirds(outcome: &mut TrialOutcome, spec: &TrialSpec) {
    let seen = &mut outcome.measures.thirds;
    let whole = seen.iter().any(|third| third.goodput_bps > 0.0);
    match spec.workload {
        Workload::Soak { .. } if !whole => {
            let elapsed = Duration::from_micros(outcome.elapsed_us);
            *seen = thirds(&outcome.sender, &outcome.receiver, elapsed, seen);
        }
        Workload::Soak { .. } => {}
        _ => seen.clear(),
    }
}

/// What the sender's kernel saw, if the sender is ours, beside what this end's did.
fn seen_by_sender(sender: &EndReport, own: Observed, headers: u64) -> Observed {
    // Of the handshake this end knows as much, and of its own window more.
    let (window_scale, sack, timestamps, ecn) = (own.window_scale, own.sack, own.timestamps, own.ecn);
    let out_of_order = own.out_of_order;
    let seen = observed(sender, Direction::Up, headers);
    let mut seen = Observed { window_scale, sack, timestamps, ecn, out_of_order, ..seen };
    say_none!(seen; window_scale);
    seen
}

/// What this end's kernel saw.
fn observed(report: &EndReport, direction: Direction, headers: u64) -> Observed {
    let info = &report.info;
    let options = if info.timestamps() { 12 } else { 0 };
    let known = |us: u32| (us != u32::MAX && us > 0).then_some(u64::from(us));
    let mss = match direction {
        Direction::Up => Some(u64::from(info.snd_mss)),
        Direction::Down => (info.bytes_received >= TELLING).then_some(u64::from(info.rcv_mss)),
    };
    let widest = match direction {
        Direction::Up => report.samples.iter().map(|s| s.snd_wnd).max().unwrap_or(u64::from(info.snd_wnd)),
        Direction::Down => u64::from(info.rcv_wnd),
    };
    let rtt = match direction {
        Direction::Up => known(info.rtt),
        Direction::Down => known(info.rcv_rtt).or(known(info.rtt)),
    };
    let scale = info.window_scale().map(|(peers, own)| if direction == Direction::Up { peers } else { own });
    let connection = ObservedConnection {
        mss,
        pmtu: mss.map(|mss| mss + options + headers),
        rwin_max: (widest > 0).then_some(widest),
        window_scale: scale,
        sack: info.sack(),
        timestamps: info.timestamps(),
        ecn: info.ecn(),
        min_rtt_us: known(info.min_rtt).or(known(info.rtt)),
        rtt_us: rtt,
    };
    match direction {
        Direction::Up => Observed {
            cc: Some(report.congestion_control.clone()),
            retransmits: Some(u64::from(info.total_retrans)),
            segments: Some(u64::from(info.data_segs_out)),
            ..connection.into()
        },
        Direction::Down => Observed {
            out_of_order: Some(u64::from(info.rcv_ooopack)),
            segments: Some(u64::from(info.data_segs_in)),
            ..connection.into()
        },
    }
}

/// What to say of a transfer that had been silent for long when its time was up: for a quarter of it, and for longer than a path
/// that loses packets is. A sender that hears nothing sends again after the RTT and 200 ms (Linux's smallest `RTO - SRTT`), then
/// after twice that (RFC 6298 section 5.5): one packet that is lost twice is silence for three times as long.
fn silent(report: &EndReport, direction: Direction) -> Option<String> {
    let rtt = Some(report.info.min_rtt).filter(|us| *us != u32::MAX && *us > 0).unwrap_or(report.info.rtt);
    let of_losses = 3 * (Duration::from_micros(rtt.into()) + Duration::from_millis(200));
    let silence = report.silence();
    let what = if direction == Direction::Up { "nothing was acknowledged" } else { "nothing came" };
    (silence >= SILENCE.max(of_losses) && silence >= report.elapsed / 4).then(|| {
        let (silence, whole) = (silence.as_secs_f64(), report.elapsed.as_secs_f64());
        format!("{what} in the last {silence:.1} s of {whole:.1} s, though the connection stood")
    })
}

fn status(report: &EndReport, direction: Direction, notes: &mut Vec<String>) -> Status {
    notes.extend(report.refused.iter().cloned());
    match &report.finish {
        Finish::Cancelled => Status::Aborted,
        Finish::Corrupt(at) => {
            notes.push(format!("the bytes from {at} on aren't those that the server sent before"));
            Status::Failed
        }
        Finish::Garbage(why) => {
            notes.push(why.clone());
            Status::Failed
        }
        _ if report.bytes == 0 => {
            notes.push("the connection stood, but no byte of the payload arrived".to_owned());
            Status::Failed
        }
        // Its time was up, too, but what it did in that time isn't what it was to do. It counts: a setting can be to blame.
        Finish::Done | Finish::Deadline => match silent(report, direction) {
            Some(note) => {
                notes.push(note);
                Status::Incomplete
            }
            None if report.finish == Finish::Done => Status::Completed,
            None => Status::Incomplete,
        },
        Finish::PeerLeft(why) | Finish::Lost(why) => {
            notes.push(why.clone());
            Status::Incomplete
        }
    }
}

/// Says what was granted under the names of what was asked for, and where it was set.
pub(crate) fn tell_granted(outcome: &mut TrialOutcome, spec: &TrialSpec, headers: u64, theirs: &dyn Fn(Knob) -> bool) {
    let socket = std::mem::take(&mut outcome.granted);
    for (knob, asked) in spec.settings.iter() {
        let (level, scope) = match knob {
            _ if theirs(knob) => (socket.get(knob).cloned(), "socket (of the far end)"),
            Knob::Mtu => {
                let mss = socket.number(Knob::Mss).map(|mss| Level::Number(mss + headers));
                (mss, "socket (as the MSS of that MTU)")
            }
            Knob::Rwin => (socket.get(knob).cloned(), "socket (receive buffer fixed, autotuning off)"),
            _ => (socket.get(knob).cloned(), "socket"),
        };
        if *asked == Level::Auto {
            continue;
        }
        if let Some(level) = level {
            outcome.granted.set(knob, level);
            outcome.scopes.insert(knob.name().to_owned(), scope.to_owned());
        }
    }
}

/// A trial in which the kernel skipped one of our programs took garbage for its window: it says nothing.
pub(crate) fn mark_skipped(outcome: &mut TrialOutcome, hits: u64) {
    outcome.observed.guard_hits = Some(hits);
    if hits > 0 {
        outcome.mark_invalid(format!(
            "this kernel skipped a program of the congestion control and took garbage for its window ({hits} repaired): a \
             trap of some virtual machines' kernels"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(finish: Finish, bytes: u64, last_ms: Option<u64>, rtt_ms: u32) -> EndReport {
        let mut report = EndReport::of_several(finish, bytes, Duration::from_secs(5));
        report.last = last_ms.map(Duration::from_millis);
        report.info.min_rtt = rtt_ms * 1000;
        report
    }

    fn told(report: &EndReport, direction: Direction) -> (Status, String) {
        let mut notes = Vec::new();
        (status(report, direction, &mut notes), notes.join("; "))
    }

    #[test]
    fn a_transfer_that_fell_silent_for_longer_than_losses_take_isnt_done_when_its_time_is_up() {
        use Direction::{Down, Up};
        let note = |way| format!("{way} in the last 3.2 s of 5.0 s, though the connection stood");
        let stopped = report(Finish::Done, 9000, Some(1800), 20);
        assert_eq!(told(&stopped, Down), (Status::Incomplete, note("nothing came")));
        assert_eq!(told(&stopped, Up), (Status::Incomplete, note("nothing was acknowledged")));
        let late = report(Finish::Deadline, 9000, Some(1800), 20);
        assert_eq!(told(&late, Down), (Status::Incomplete, note("nothing came")));
        // A quarter of the time, on a path as short as that; on a satellite's a packet lost twice takes 2.4 s and more.
        for (last_ms, rtt_ms, done) in [(3749, 20, false), (3751, 20, true), (2700, 600, true), (2500, 600, false)] {
            let (status, note) = told(&report(Finish::Done, 9000, Some(last_ms), rtt_ms), Down);
            assert_eq!((status == Status::Completed, note.is_empty()), (done, done), "{last_ms} {rtt_ms}: {note}");
        }
        // Where nobody looked, nothing is said; without a byte something else is.
        assert_eq!(told(&report(Finish::Done, 9000, None, 20), Down), (Status::Completed, String::new()));
        assert_eq!(told(&report(Finish::Done, 0, Some(0), 20), Down).0, Status::Failed);
    }
}
