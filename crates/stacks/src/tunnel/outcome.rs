use crate::catalogue::Choice;
use crate::protocol::Ready;
use crate::seen::StackObservation;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::work::WorkOutcome;
use wt_load::{EndReport, FetchError, Finish};
use wt_sys::process::Usage;
use wt_sys::tcp::TcpInfo;
use wt_trial::{Direction, Limits, Observed, Status, TrialOutcome, TrialSpec, say_none};

/// Outcome of one trial, before the server's view is known.
#[derive(Debug)]
pub(super) struct TrialRun {
    pub(super) worked: Result<WorkOutcome, FetchError>,
    /// The server's views, in the order of the connections.
    pub(super) servers: Vec<Option<EndReport>>,
    pub(super) took: Duration,
    pub(super) seen: StackObservation,
    pub(super) ready: Option<Ready>,
    pub(super) used: Option<(Usage, Usage)>,
    pub(super) trouble: Option<String>,
}

/// Whether every byte came as it was sent.
fn integrity(end: &EndReport, server: Option<&EndReport>) -> &'static str {
    match &end.finish {
        // What came is as it was sent, but not all of it.
        Finish::Corrupt(_) if end.measures.missing_bytes.is_some() => "lost",
        Finish::Corrupt(_) | Finish::Garbage(_) => "corrupt",
        Finish::Lost(_) => "lost",
        // The stack has acknowledged what its program never got.
        Finish::Deadline if server.is_some_and(|server| server.info.bytes_acked > end.bytes + 1) => "lost",
        _ => "ok",
    }
}

/// How it ended, in words where that needs some.
fn status(finish: &Finish) -> (Status, Option<String>) {
    match finish {
        Finish::Done => (Status::Completed, None),
        Finish::Cancelled => (Status::Aborted, None),
        Finish::Deadline => (Status::Incomplete, Some("it wasn't done when the time was up".to_owned())),
        Finish::Corrupt(at) => (Status::Failed, Some(format!("byte {at} isn't the one that was sent"))),
        Finish::PeerLeft(why) | Finish::Garbage(why) | Finish::Lost(why) => (Status::Failed, Some(why.clone())),
    }
}

/// Joins what the engine, the server, the listener and the operating system saw.
pub(super) fn of(spec: &TrialSpec, choice: &Choice, ran: TrialRun, server: Option<EndReport>) -> TrialOutcome {
    let TrialRun { worked, took, seen, ready, used, trouble, .. } = ran;
    let name = ready.as_ref().map_or(choice.stack.name, |ready| ready.name.as_str());
    let mut observed = Observed {
        stack: Some(name.to_owned()),
        version: ready.as_ref().map(|ready| ready.version.clone()),
        took_us: Some(took.as_micros() as u64),
        seen: Some(json!(seen)),
        cpu_ns: used.as_ref().map(|(start, end)| end.cpu_ns.saturating_sub(start.cpu_ns)),
        peak_bytes: used.as_ref().map(|(_, end)| end.peak_bytes),
        granted: ready.as_ref().map(|ready| json!(ready.granted)),
        refused: ready.as_ref().map(|ready| ready.refused.clone()),
        ..Observed::default()
    };
    say_none!(observed; version);
    let mut notes: Vec<String> = observed.refused.clone().unwrap_or_default();
    let crashed = trouble.is_some();
    notes.extend(trouble);
    let worked = match worked {
        Ok(worked) => worked,
        Err(error) => {
            // What kept the adapter from its start is told once.
            if !notes.contains(&error.to_string()) {
                notes.push(error.to_string());
            }
            observed.integrity = Some("ok".to_owned());
            let status = if matches!(error, FetchError::Cancelled) { Status::Aborted } else { Status::Failed };
            return TrialOutcome { observed, notes, ..TrialOutcome::empty(status, spec.deadline, "") };
        }
    };
    let WorkOutcome { report, connect_time, granted, .. } = worked;
    // Where the server receives, it has the clock, and knows whether all came whole.
    let up = spec.workload.direction() == Direction::Up && !spec.workload.is_talk();
    let judged = if up { server.as_ref().unwrap_or(&report) } else { &report };
    let whole = integrity(&report, server.as_ref().filter(|_| !up && !spec.workload.is_talk()));
    let whole = if up && whole == "ok" { integrity(judged, None) } else { whole };
    // What a stack had taken that broke is gone with it: that it crashed or hangs is what is told.
    let whole = if crashed && whole == "lost" { "ok" } else { whole };
    observed.integrity = Some(whole.to_owned());
    observed.connect_us = Some(connect_time.as_micros() as u64);
    // Where the server's kernel has seen the path.
    if let Some(server) = server.as_ref().filter(|server| server.info != TcpInfo::default()) {
        observed.server_retransmits = Some(u64::from(server.info.total_retrans));
    }
    let own_finish = if up && report.finish == Finish::Done { &judged.finish } else { &report.finish };
    let (mut status, why) = status(own_finish);
    notes.extend(match (&report.finish, report.measures.missing_bytes) {
        (Finish::Corrupt(at), Some(bytes)) => Some(format!("{bytes} bytes are missing from byte {at} on")),
        _ => why,
    });
    if crashed && status == Status::Completed {
        status = Status::Failed;
    }
    // Samples of this end's kernel where it is the sender aren't the stack's.
    let (bytes, elapsed) = (judged.bytes, judged.elapsed);
    let far = server.map(|server| server.samples).unwrap_or_default();
    let (sender, receiver) = if up { (Vec::new(), far) } else { (far, report.samples) };
    TrialOutcome {
        status,
        bytes,
        elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
        granted,
        scopes: BTreeMap::new(),
        observed,
        sender,
        receiver,
        limits: Limits::default(),
        notes,
        measures: report.measures,
    }
}

/// Adds the upload that ran beside the download: its bytes, and what went wrong with it.
pub(super) fn add_upload(outcome: &mut TrialOutcome, client: &EndReport, server: Option<&EndReport>) {
    let received = server.unwrap_or(client);
    outcome.bytes += received.bytes;
    let whole = [integrity(client, None), integrity(received, None)].into_iter().find(|whole| *whole != "ok");
    if let Some(whole) = whole.filter(|_| outcome.observed.integrity.as_deref().is_none_or(|told| told == "ok")) {
        outcome.observed.integrity = Some(whole.to_owned());
    }
    let finish = if client.finish == Finish::Done { &received.finish } else { &client.finish };
    let (status, why) = status(finish);
    if outcome.status == Status::Completed {
        outcome.status = status;
    }
    outcome.notes.extend(why.map(|why| format!("upload: {why}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(finish: Finish, bytes: u64) -> EndReport {
        EndReport::of_several(finish, bytes, Duration::from_secs(1))
    }

    #[test]
    fn an_upload_beside_a_download_adds_its_bytes_and_what_went_wrong() {
        let done = || TrialOutcome { bytes: 100, ..TrialOutcome::empty(Status::Completed, Duration::from_secs(1), "") };
        let mut well = done();
        add_upload(&mut well, &end(Finish::Done, 70), Some(&end(Finish::Done, 60)));
        assert_eq!((well.bytes, well.status), (160, Status::Completed));
        let mut corrupt = done();
        add_upload(&mut corrupt, &end(Finish::Done, 70), Some(&end(Finish::Corrupt(5), 60)));
        assert_eq!((corrupt.status, corrupt.observed.integrity.as_deref()), (Status::Failed, Some("corrupt")));
        assert!(corrupt.notes.iter().any(|note| note.starts_with("upload: byte 5")), "{:?}", corrupt.notes);
    }
}
