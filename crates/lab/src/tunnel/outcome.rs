use crate::stats::EngineStats;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::{EndReport, Finish};
use wt_trial::{
    Amount, Direction, Limits, Observed, ObservedConnection, STOPPED, Sample, Status, TrialOutcome, TrialSpec, Workload,
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
    let stopped = client.finish == Finish::Cancelled;
    let Some(server) = server else {
        if stopped {
            return TrialOutcome::empty(Status::Aborted, client.elapsed, STOPPED);
        }
        // Our own server's silence is no property of the settings.
        let why = "the server's side of the transfer never ended";
        return TrialOutcome::empty(Status::Invalid, spec.deadline, why);
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
    let receiver = if status == Status::Completed { by_senders_clock(spec, receiver, &sender) } else { receiver };
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
        queue_drops: Some(stats.queue_drops()),
        aqm_drops: Some(stats.aqm),
        ce_marks: Some(stats.marked),
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

/// The receiver's view on the sender's clock, which an upload of a size has, as on real paths: from its request to the acknowledgement of the
/// last byte. Half of that round trip goes by before the receiver's clock begins.
fn by_senders_clock(spec: &TrialSpec, mut receiver: EndReport, sender: &EndReport) -> EndReport {
    let is_of_size = matches!(spec.workload, Workload::Bulk { direction: Direction::Up, amount: Amount::Size(_) });
    if !is_of_size || sender.finish != Finish::Done {
        return receiver;
    }
    let begun_us = (sender.elapsed.saturating_sub(receiver.elapsed) / 2).as_micros();
    for sample in &mut receiver.samples {
        sample.t_us = sample.t_us.saturating_add(u64::try_from(begun_us).unwrap_or(u64::MAX));
    }
    EndReport { elapsed: sender.elapsed, ..receiver }
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

#[cfg(test)]
mod tests {
    use super::*;
    use wt_trial::Phase;
    use wt_units::Bytes;

    fn end(elapsed_ms: u64) -> EndReport {
        let samples = vec![Sample { t_us: 1_000, bytes: 9, ..Sample::default() }];
        let elapsed = Duration::from_millis(elapsed_ms);
        EndReport { samples, ..EndReport::of_several(Finish::Done, 20_000, elapsed) }
    }

    fn spec(direction: Direction, amount: Amount) -> TrialSpec {
        TrialSpec {
            experiment: "test".to_owned(),
            phase: Phase::Round,
            round: 1,
            order: 1,
            arm: 0,
            settings: Settings::new(),
            workload: Workload::Bulk { direction, amount },
            deadline: Duration::from_secs(9),
            seed: 1,
        }
    }

    #[test]
    fn a_trial_that_is_stopped_lasted_until_then_and_not_until_its_deadline() {
        let client = EndReport { finish: Finish::Cancelled, ..end(243) };
        let spec = spec(Direction::Down, Amount::Time(Duration::from_secs(5)));
        let outcome = of(&spec, Direction::Down, client, None, &EngineStats::default());
        assert_eq!((outcome.status, outcome.elapsed_us), (Status::Aborted, 243_000));
    }

    #[test]
    fn an_upload_of_a_size_is_timed_by_its_sender_and_one_by_time_by_its_receiver() {
        let (size, time) = (Amount::Size(Bytes(20_000)), Amount::Time(Duration::from_millis(123)));
        let (up, down) = (Direction::Up, Direction::Down);
        // The client has heard 243 ms after its request, the server 123 ms after it had come, and 60 ms lie between.
        for (direction, amount, elapsed_us, first_us) in
            [(up, size, 243_000, 61_000), (up, time, 123_000, 1_000), (down, size, 243_000, 1_000)]
        {
            let spec = spec(direction, amount);
            let outcome = of(&spec, direction, end(243), Some(end(123)), &EngineStats::default());
            assert_eq!((outcome.status, outcome.bytes), (Status::Completed, 20_000));
            assert_eq!(
                (outcome.elapsed_us, outcome.receiver[0].t_us),
                (elapsed_us, first_us),
                "{direction:?}, {amount:?}"
            );
            assert_eq!(outcome.sender[0].t_us, 1_000);
        }
    }
}
