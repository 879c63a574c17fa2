use crate::stats::EngineStats;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::{EndReport, Finish};
use wt_trial::{Direction, Limits, STOPPED, Status, TrialOutcome, TrialSpec, Workload};
use wt_units::{Knob, Level, Settings};

/// Joins what both ends saw.
pub(super) fn of(
    spec: &TrialSpec,
    direction: Direction,
    client: EndReport,
    server: Option<EndReport>,
    stats: &EngineStats,
) -> TrialOutcome {
    let deadline = spec.deadline;
    let stopped = client.finish == Finish::Cancelled;
    let Some(server) = server else {
        if stopped {
            return TrialOutcome::empty(Status::Aborted, deadline, STOPPED);
        }
        // Our own server's silence is no property of the settings.
        let why = "the server's side of the transfer never ended";
        return TrialOutcome::empty(Status::Invalid, deadline, why);
    };
    let measures = client.measures.clone();
    // Where both take turns the client has the clock, whichever way most of the payload goes.
    let own = spec.workload.is_talk().then(|| EndReport { samples: Vec::new(), ..client.clone() });
    let late = server.measures.lateness.map(|late| late.spread.p99_us);
    let (receiver, sender) = if direction == Direction::Down { (client, server) } else { (server, client) };
    let receiver = match own {
        Some(own) => EndReport { samples: receiver.samples, ..own },
        None => receiver,
    };
    let mut notes = sender.refused.clone();
    // Of an upload that was stopped here the server only knows that somebody left.
    let status = if stopped { Status::Aborted } else { status(&receiver, &mut notes) };
    let info = &sender.info;
    let mut observed = BTreeMap::new();
    let widest = sender.samples.iter().map(|sample| sample.snd_wnd).max().unwrap_or(u64::from(info.snd_wnd));
    for (name, value) in [
        ("mss", json!(info.snd_mss)),
        ("pmtu", json!(largest_packet(info))),
        ("cc", json!(sender.congestion_control)),
        ("rwin_max", json!(widest)),
        ("window_scale", json!(receiver.info.window_scale().map(|(_, own)| own))),
        ("sack", json!(info.sack())),
        ("timestamps", json!(info.timestamps())),
        ("ecn", json!(info.ecn())),
        ("min_rtt_us", json!(info.min_rtt)),
        ("rtt_us", json!(mean_rtt(&sender))),
        ("retransmits", json!(info.total_retrans)),
        ("segments", json!(info.data_segs_out)),
        ("queue_drops", json!(stats.queue_full)),
        ("losses", json!(stats.lost)),
        ("too_big", json!(stats.too_big)),
        ("late_max_us", json!(stats.latest_ns / 1000)),
        ("lab", stats.to_json()),
    ] {
        observed.insert(name.to_owned(), value);
    }
    observed.extend(first_windows(&sender));
    if let (Workload::Stream { direction: Direction::Down, .. }, Some(us)) = (&spec.workload, late) {
        // What the sender's own clock was late: no property of the path.
        observed.insert("sender_late_us".to_owned(), json!(us));
    }
    let mut granted = Settings::new();
    let mut scopes = BTreeMap::new();
    if spec.settings.name(Knob::Cc).is_some() {
        granted.set(Knob::Cc, Level::Name(sender.congestion_control.clone()));
        scopes.insert("cc".to_owned(), "socket (of the sender)".to_owned());
    }
    TrialOutcome {
        status,
        bytes: receiver.bytes,
        elapsed_us: u64::try_from(receiver.elapsed.as_micros()).unwrap_or(u64::MAX),
        granted,
        scopes,
        observed,
        limits: Limits {
            busy_us: info.busy_time,
            rwnd_limited_us: info.rwnd_limited,
            sndbuf_limited_us: info.sndbuf_limited,
        },
        sender: sender.samples,
        receiver: receiver.samples,
        notes,
        measures,
    }
}

/// What the sender could send before anything was acknowledged: its initial congestion window and the receiver's window.
fn first_windows(sender: &EndReport) -> BTreeMap<String, serde_json::Value> {
    let Some(start) = &sender.start else { return BTreeMap::new() };
    let windows = [("initial_cwnd", json!(start.snd_cwnd)), ("initial_rwnd_bytes", json!(start.snd_wnd))];
    windows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The largest IP packet that the sender makes of its MSS, bytes: IPv4, TCP, and timestamps if they were agreed to.
fn largest_packet(info: &wt_sys::tcp::TcpInfo) -> u32 {
    info.snd_mss + 40 + if info.timestamps() { 12 } else { 0 }
}

/// The mean of the smoothed RTT over the trial's second half, µs: the RTT that the transfer lived with.
fn mean_rtt(sender: &EndReport) -> u64 {
    let half = &sender.samples[sender.samples.len() / 2..];
    if half.is_empty() {
        u64::from(sender.info.rtt)
    } else {
        half.iter().map(|s| s.rtt).sum::<u64>() / half.len() as u64
    }
}

fn status(receiver: &EndReport, notes: &mut Vec<String>) -> Status {
    match &receiver.finish {
        Finish::Cancelled => Status::Aborted,
        Finish::Corrupt(at) => {
            notes.push(format!("byte {at} isn't the one that was sent"));
            Status::Failed
        }
        _ if receiver.bytes == 0 => {
            notes.push("the connection stood, but no byte arrived".to_owned());
            Status::Failed
        }
        Finish::Done => Status::Completed,
        Finish::Deadline => Status::Incomplete,
        Finish::PeerLeft(why) | Finish::Garbage(why) | Finish::Lost(why) => {
            notes.push(why.clone());
            Status::Incomplete
        }
    }
}

/// Marks a trial in which the lab itself misbehaved.
pub(super) fn judge(outcome: &mut TrialOutcome, stats: &EngineStats, rtt_us: u64) {
    if outcome.status == Status::Completed
        && let Some(complaint) = stats.complaint(Duration::from_micros(rtt_us))
    {
        outcome.status = Status::Invalid;
        outcome.notes.push(complaint);
    }
}
