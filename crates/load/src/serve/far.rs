//! A server with a key as the peer of workloads of several connections.

use super::client::{Session, ask_for_report, explain, far, settle, split};
use super::key::SharedKey;
use super::message::Ask;
use crate::client::Connection;
use crate::error::{FetchError, LoadError, refused_or_not};
use crate::job::{CONNECT, Fetch, FetchOutcome};
use crate::page::{PageLoad, load_page_from};
use crate::proto::SenderOptions;
use crate::transfer::{EndReport, Finish};
use crate::work::{Leg, OpenedConnection, RemoteEnd, WorkOutcome, join, work};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel, Direction, Measures, Page, Workload};
use wt_units::Settings;

/// The server, for one trial.
struct ServedTrial<'a> {
    job: &'a Fetch<'a>,
    key: SharedKey,
    direction: Direction,
    token: u64,
    cancel: &'a Cancel,
}

impl RemoteEnd for ServedTrial<'_> {
    fn open(&self, number: u32, leg: &Leg) -> Result<OpenedConnection, FetchError> {
        let (direction, amount, tried, talk) = match *leg {
            Leg::Transfer { direction, amount, tried } => (direction, amount, tried, false),
            Leg::Talk { time } => (self.direction, Amount::Time(time), true, true),
        };
        let (mut own, mut request) = split(self.job, direction);
        if !tried {
            own = Settings::new();
            (request.sender, request.window) = (SenderOptions::default(), None);
        }
        request.amount = amount;
        request.token = self.token.wrapping_add(number.into());
        let connection = Connection::open_with_all(&self.job.peer, &own, CONNECT.min(self.job.deadline));
        let connection = connection.map_err(refused_or_not)?;
        let (window, connect_time, granted) = (connection.window, connection.connect_time, connection.granted);
        let stream = connection.stream.try_clone().map_err(LoadError::Broken)?;
        let mut session = Session::open(connection.stream, &self.key, self.cancel)?;
        let token = request.token;
        let ask = if number == 0 { Ask::Test(request, talk) } else { Ask::Side(request, talk) };
        let ask = ask.to_bytes().ok_or_else(|| FetchError::Never("the request can't be written".to_owned()))?;
        session.ask(&ask)?;
        session.wait_for_turn()?;
        Ok(OpenedConnection { stream, window, connect_time, granted, token })
    }
}

/// Runs a workload at a server with a key.
///
/// # Errors
/// [`FetchError`]; what broke off later is a report.
pub(crate) fn run(job: &Fetch<'_>, workload: &Workload, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let key = job.url.login.as_ref().and_then(|login| login.user.parse::<SharedKey>().ok());
    let key = key.ok_or_else(|| FetchError::Never("the address holds no key: wt://KEY@HOST".to_owned()))?;
    // Numbers of the connections of one test follow each other: room for them.
    let token = (monotonic_ns() ^ u64::from(std::process::id()).rotate_left(40)) & !0xFF;
    let direction = workload.direction();
    let served = ServedTrial { job, key: key.clone(), direction, token, cancel };
    let (mut worked, wanted) = match workload {
        Workload::Page { page } => page_over(&served, page, cancel)?,
        other => {
            let worked = work(other, &served, job.deadline, cancel)?;
            let tokens = worked.tokens.clone();
            (worked, tokens)
        }
    };
    let mut notes = Vec::new();
    let mut servers: Vec<Option<EndReport>> = Vec::new();
    for token in wanted {
        servers.push(match ask_for_report(job, &key, token, cancel) {
            Ok(report) => report,
            Err(FetchError::Cancelled) => None,
            Err(error) => {
                notes.push(format!("the server's side of the test is missing: {error}"));
                None
            }
        });
    }
    join(workload, &mut worked, &servers);
    let WorkOutcome { mut report, connect_time, mut granted, .. } = worked;
    let other = EndReport::joined(servers, matches!(workload, Workload::Page { .. }));
    if direction == Direction::Up && !workload.is_talk() {
        settle(&mut report, other.as_ref(), workload.time().map_or(job.amount, Amount::Time));
    } else {
        explain(&mut report, other.as_ref());
    }
    let (_, request) = split(job, direction);
    let far = other.as_ref().map(|other| far(other, &request, direction, &mut granted, &mut notes));
    Ok(FetchOutcome { report, connect_time, granted, length: None, surplus: false, notes, far, other })
}

/// A page over connections of our own protocol; with it the tokens of those that were used.
fn page_over(served: &ServedTrial<'_>, page: &Page, cancel: &Cancel) -> Result<(WorkOutcome, Vec<u64>), FetchError> {
    let deadline = served.job.deadline;
    let (loaded, used) = load_page_from(served, page, deadline, cancel)?;
    let tokens: Vec<u64> = used.into_iter().map(|number| served.token.wrapping_add(number.into())).collect();
    Ok((of_page(loaded, deadline), tokens))
}

/// A page as a workload's end.
fn of_page(loaded: PageLoad, deadline: Duration) -> WorkOutcome {
    let first = loaded.connections.first();
    let connect_time = first.map_or(Duration::ZERO, |end| end.connect_time);
    let granted = first.map_or_else(Settings::new, |end| end.granted.clone());
    let report = EndReport::of_page(loaded, deadline);
    WorkOutcome { report, connect_time, granted, tokens: Vec::new(), others: Vec::new(), lead: Duration::ZERO }
}

impl EndReport {
    /// How long the peer's view of this is worth waiting for: `usual`, but not at all where the user has stopped it. What a slow path
    /// still carries would take its time, and nobody counts a trial that was stopped.
    #[must_use]
    pub fn patience(&self, usual: Duration) -> Duration {
        if self.finish == Finish::Cancelled { Duration::ZERO } else { usual }
    }

    /// What the client saw of a page. One that isn't whole took all the time there was, however early it broke off.
    #[must_use]
    pub fn of_page(loaded: PageLoad, deadline: Duration) -> Self {
        let PageLoad { finish, missing_bytes, elapsed, bytes, objects, connections } = loaded;
        let info = connections.into_iter().map(|end| end.info).max_by_key(|info| info.bytes_received);
        let elapsed = if matches!(finish, Finish::Done | Finish::Cancelled) { elapsed } else { deadline };
        let measures = Measures { objects, missing_bytes, ..Measures::default() };
        Self { info: info.unwrap_or_default(), measures, ..Self::of_several(finish, bytes, elapsed) }
    }

    /// Several connections as one, in the order of their tokens: where they are of one page, that with the most payload, with the
    /// sums of what can be added; else the first, which is judged. If that one's report is missing, no other stands for it.
    #[must_use]
    pub fn joined(reports: Vec<Option<Self>>, of_page: bool) -> Option<Self> {
        if !of_page {
            return reports.into_iter().next().flatten();
        }
        let reports: Vec<Self> = reports.into_iter().flatten().collect();
        let sum = |of: fn(&Self) -> u64| reports.iter().map(of).sum::<u64>();
        let total_retrans = u32::try_from(sum(|report| report.info.total_retrans.into())).unwrap_or(u32::MAX);
        let data_segs_out = u32::try_from(sum(|report| report.info.data_segs_out.into())).unwrap_or(u32::MAX);
        let busy_time = sum(|report| report.info.busy_time);
        let rwnd_limited = sum(|report| report.info.rwnd_limited);
        let sndbuf_limited = sum(|report| report.info.sndbuf_limited);
        let bytes = sum(|report| report.bytes);
        let most = reports.into_iter().max_by_key(|report| report.bytes)?;
        let info =
            wt_sys::tcp::TcpInfo { total_retrans, data_segs_out, busy_time, rwnd_limited, sndbuf_limited, ..most.info };
        Some(Self { info, bytes, ..most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_report_of_the_judged_connection_is_replaced_by_nobodys() {
        let of = |bytes| Some(EndReport::of_several(Finish::Done, bytes, Duration::from_secs(1)));
        let bytes = |reports, of_page| EndReport::joined(reports, of_page).map(|report| report.bytes);
        assert_eq!(bytes(vec![None, of(5)], false), None);
        assert_eq!(bytes(vec![of(3), of(5)], false), Some(3));
        assert_eq!(bytes(vec![of(3), None], false), Some(3));
        assert_eq!(bytes(vec![None, of(5), of(3)], true), Some(8), "a page is all of its connections");
        assert_eq!(bytes(Vec::new(), true), None);
    }
}
