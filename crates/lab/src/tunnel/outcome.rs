use crate::stats::EngineStats;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::{EndReport, Finish};
use wt_trial::{
    Direction, Limits, Observed, ObservedConnection, STOPPED, Sample, Status, TrialOutcome, TrialSpec, Workload,
};
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
    let widest = sender.samples.iter().map(|sample| sample.snd_wnd).max().unwrap_or(u64::from(info.snd_wnd));
    let connection = ObservedConnection {
        mss: Some(u64::from(info.snd_mss)),
        pmtu: Some(u64::from(largest_packet(info))),
        rwin_max: Some(widest),
        window_scale: receiver.info.window_scale().map(|(_, own)| own),
        sack: info.sack(),
        timestamps: info.timestamps(),
        ecn: info.ecn(),
        min_rtt_us: Some(u64::from(info.min_rtt)),
        rtt_us: Some(Sample::mean_rtt_us(&sender.samples, u64::from(info.rtt))),
    };
    // What the sender's own clock was late is no property of the path.
    let is_streamed_down = matches!(spec.workload, Workload::Stream { direction: Direction::Down, .. });
    let observed = Observed {
        cc: Some(sender.congestion_control.clone()),
        retransmits: Some(u64::from(info.total_retrans)),
        segments: Some(u64::from(info.data_segs_out)),
        queue_drops: Some(stats.queue_full),
        losses: Some(stats.lost),
        too_big: Some(stats.too_big),
        late_max_us: Some(stats.latest_ns / 1000),
        lab: Some(stats.to_json()),
        // What could be sent before anything was acknowledged.
        initial_cwnd: sender.start.as_ref().map(|start| u64::from(start.snd_cwnd)),
        initial_rwnd_bytes: sender.start.as_ref().map(|start| u64::from(start.snd_wnd)),
        sender_late_us: late.filter(|_| is_streamed_down),
        ..connection.into()
    };
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

/// The largest IP packet that the sender makes of its MSS, bytes: IPv4, TCP, and timestamps if they were agreed to.
fn largest_packet(info: &wt_sys::tcp::TcpInfo) -> u32 {
    info.snd_mss + 40 + if info.timestamps() { 12 } else { 0 }
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
        outcome.mark_invalid(complaint);
    }
}
