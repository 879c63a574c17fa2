use crate::backend::Secrets;
use crate::own::HostAddresses;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wt_bpf::{TrafficCounts, TrafficRecord, TrafficRecords};
use wt_problem::Problem;
use wt_sys::SysError;
use wt_sys::clock;
use wt_sys::diag::{DiagSocket, SocketEnds, tcp_sockets, tcp_sockets_with_figures};
use wt_sys::tcp::TcpInfo;
use wt_traffic::{ArmSettings, ClientPrefix, TrafficConfig, left_alone};

/// Between two looks at what has ended: an ordinary user's buffer has room for some 200 ends.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Between two looks at all sockets: this, or fifty times what one takes.
const LOOK_NS: u64 = 1_000_000_000;
/// A socket that no look finds any more and that wasn't told to have ended is given up after so long.
const FORGET_NS: u64 = 120_000_000_000;

/// Who connections belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Account {
    OtherPort,
    Private,
    Administrator,
    /// Came while nothing was assigned.
    Paused,
    Outside,
    Arm(usize),
}

/// A connection that was seen before its end.
#[derive(Debug)]
struct OpenConnection {
    account: Account,
    epoch: u64,
    since_ns: u64,
    last_ns: u64,
    /// It is a request still.
    request: bool,
    /// It has another congestion control than its arm says, or may not have got what its arm gives.
    changed: bool,
}

/// Which arm a connection from somebody has in the epoch that runs.
pub(crate) type ArmOf = Box<dyn Fn(SocketAddr) -> Option<usize>>;

/// The connections of this network namespace without BPF: by looks at all sockets, and by what the kernel tells of their ends.
///
/// # What this leaves out
/// A connection's beginning is known to the second. One that came between the last look of an epoch and the first of the
/// next isn't assigned, whichever arm it had.
pub(crate) struct Census {
    ends: SocketEnds,
    ports: Vec<u16>,
    private: bool,
    administrators: Vec<IpAddr>,
    /// Clients there are on this host; read at each look.
    own: HostAddresses,
    arms: Vec<ArmSettings>,
    tag: wt_traffic::DrawKey,
    /// Ports that have listeners: connections to others are our own to somebody.
    listening: HashSet<u16>,
    /// Connections that were there before.
    before: HashSet<u64>,
    seen: HashMap<u64, OpenConnection>,
    epoch: Option<(u64, ArmOf)>,
    counts: TrafficCounts,
    records: Vec<TrafficRecord>,
    /// Records of which it is known whether the connections got what their arms give, and since when it isn't.
    settled: Vec<TrafficRecord>,
    settled_ns: u64,
    last_look_ns: u64,
    next_look_ns: u64,
    /// How many connections were seen to begin.
    begun: u64,
}

impl std::fmt::Debug for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Census").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Census {
    /// From now on; what is there already is left alone.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell.
    pub(crate) fn begin(config: &TrafficConfig, secrets: &Secrets) -> Result<Self, Problem> {
        let ends = SocketEnds::watch().map_err(failed)?;
        let now = clock::monotonic_ns();
        let mut census = Self {
            ends,
            ports: config.ports.clone(),
            private: config.private,
            administrators: secrets.administrators.clone(),
            own: HostAddresses::read(),
            arms: config.arms.iter().map(|arm| arm.settings.clone()).collect(),
            tag: secrets.tag,
            listening: config.ports.iter().copied().collect(),
            before: HashSet::new(),
            seen: HashMap::new(),
            epoch: None,
            counts: TrafficCounts::default(),
            records: Vec::new(),
            settled: Vec::new(),
            settled_ns: now,
            last_look_ns: now,
            next_look_ns: now + LOOK_NS,
            begun: 0,
        };
        let all = tcp_sockets().map_err(failed)?;
        census.listening.extend(all.iter().filter(|one| one.is_listener()).map(|one| one.local.port()));
        census.before.extend(all.iter().filter(|one| !one.is_listener() && !one.is_request()).map(|one| one.cookie));
        Ok(census)
    }

    /// Whoever is there now belongs to what was; who comes now, to this epoch.
    pub(crate) fn set_epoch(&mut self, epoch: Option<(u64, ArmOf)>) {
        self.epoch = epoch;
    }

    /// Takes what has ended, and now and then looks at all sockets.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    pub(crate) fn beat(&mut self) -> Result<(), Problem> {
        if clock::monotonic_ns() >= self.next_look_ns { self.look() } else { self.take() }
    }

    fn take(&mut self) -> Result<(), Problem> {
        // What found no room is missing in the kernel's own count, and is said there.
        let (ended, _) = self.ends.take().map_err(failed)?;
        let now = clock::monotonic_ns();
        for socket in ended {
            self.end(&socket, now);
        }
        Ok(())
    }

    /// Looks at all sockets of the namespace.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    pub(crate) fn look(&mut self) -> Result<(), Problem> {
        let began = clock::monotonic_ns();
        self.own = HostAddresses::read();
        let all = tcp_sockets().map_err(failed)?;
        self.listening.extend(all.iter().filter(|one| one.is_listener()).map(|one| one.local.port()));
        let now = clock::monotonic_ns();
        for socket in all.iter().filter(|one| !one.is_listener()) {
            self.see(socket, now);
        }
        // After the look: who ended during it was seen, or is told now.
        self.take()?;
        self.seen.retain(|_, seen| now.saturating_sub(seen.last_ns) < FORGET_NS);
        self.last_look_ns = began;
        let took = clock::monotonic_ns().saturating_sub(began);
        self.next_look_ns = clock::monotonic_ns() + LOOK_NS.max(took * 50);
        Ok(())
    }

    fn see(&mut self, socket: &DiagSocket, now: u64) {
        if !self.listening.contains(&socket.local.port()) || self.before.contains(&socket.cookie) {
            return;
        }
        if let Some(seen) = self.seen.get_mut(&socket.cookie) {
            seen.last_ns = now;
            if seen.request && !socket.is_request() {
                seen.request = false;
                count(&mut self.counts, seen.account);
            }
            if let Account::Arm(arm) = seen.account {
                seen.changed |= differs(&self.arms[arm], socket);
            }
            return;
        }
        let (account, epoch) = self.account(socket);
        if !socket.is_request() {
            count(&mut self.counts, account);
        }
        let changed = matches!(account, Account::Arm(arm) if differs(&self.arms[arm], socket));
        let since_ns = self.begins(now);
        let request = socket.is_request();
        self.seen.insert(socket.cookie, OpenConnection { account, epoch, since_ns, last_ns: now, request, changed });
    }

    /// When a connection began that was first seen now: each a nanosecond later, since it is known by that.
    fn begins(&mut self, now: u64) -> u64 {
        self.begun += 1;
        u64::midpoint(self.last_look_ns, now) + self.begun % 1_000_000
    }

    fn account(&self, socket: &DiagSocket) -> (Account, u64) {
        let epoch = self.epoch.as_ref().map_or(0, |(epoch, _)| *epoch);
        let account = match &self.epoch {
            _ if !self.ports.contains(&socket.local.port()) => Account::OtherPort,
            _ if socket.local.ip() == socket.remote.ip() || self.own.contain(socket.remote.ip()) => Account::Private,
            _ if self.administrators.contains(&socket.remote.ip().to_canonical()) => Account::Administrator,
            _ if left_alone(socket.remote.ip(), self.private).is_some() => Account::Private,
            None => Account::Paused,
            Some((_, arm)) => arm(socket.remote).map_or(Account::Outside, Account::Arm),
        };
        (account, epoch)
    }

    fn end(&mut self, socket: &DiagSocket, now: u64) {
        if self.before.remove(&socket.cookie) || !self.listening.contains(&socket.local.port()) {
            return;
        }
        let seen = match self.seen.remove(&socket.cookie) {
            Some(seen) => {
                if seen.request {
                    count(&mut self.counts, seen.account);
                }
                seen
            }
            None => {
                let (account, epoch) = self.account(socket);
                count(&mut self.counts, account);
                let since_ns = self.begins(now);
                OpenConnection { account, epoch, since_ns, last_ns: now, request: false, changed: false }
            }
        };
        let Account::Arm(arm) = seen.account else { return };
        let Some(info) = socket.info else {
            self.counts.lost[arm] += 1;
            return;
        };
        self.counts.recorded += 1;
        let tag = self.tag.tag(ClientPrefix::of(socket.remote.ip()));
        self.records.push(record(&seen, &info, RecordContext { arm, tag, now, initcwnd: self.arms[arm].initcwnd() }));
    }

    /// Lets out what was recorded. Unless it is sure that connections have got what their arms give since the last call, those that may
    /// have begun since then are told as changed.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    pub(crate) fn settle(&mut self, is_sure: bool) -> Result<(), Problem> {
        if !is_sure {
            // Who began until now is known then.
            self.look()?;
            doubt(&mut self.seen, &mut self.records, self.settled_ns);
        }
        self.settled_ns = clock::monotonic_ns();
        self.settled.append(&mut self.records);
        Ok(())
    }

    /// What was let out of what has become of connections, since the last call.
    pub(crate) fn records(&mut self) -> TrafficRecords {
        TrafficRecords { connections: std::mem::take(&mut self.settled), ..TrafficRecords::default() }
    }

    /// The assigned connections that are still open.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    pub(crate) fn still_open(&mut self) -> Result<TrafficRecords, Problem> {
        let all = tcp_sockets_with_figures().map_err(failed)?;
        let now = clock::monotonic_ns();
        let of = |socket: &DiagSocket| {
            let seen = self.seen.get(&socket.cookie).filter(|seen| !seen.request)?;
            let Account::Arm(arm) = seen.account else { return None };
            let tag = self.tag.tag(ClientPrefix::of(socket.remote.ip()));
            Some(record(
                seen,
                socket.info.as_ref()?,
                RecordContext { arm, tag, now, initcwnd: self.arms[arm].initcwnd() },
            ))
        };
        Ok(TrafficRecords { connections: all.iter().filter_map(of).collect(), ..TrafficRecords::default() })
    }

    /// How many connections there were, by a look.
    ///
    /// # Errors
    /// A [`Problem`] where the kernel doesn't tell any more.
    pub(crate) fn counts(&mut self) -> Result<TrafficCounts, Problem> {
        self.look()?;
        Ok(self.counts.clone())
    }
}

/// Marks the connections that may have begun since a time: when one did is known to the time between two looks.
fn doubt(seen: &mut HashMap<u64, OpenConnection>, records: &mut [TrafficRecord], since_ns: u64) {
    let since_ns = since_ns.saturating_sub(LOOK_NS);
    seen.values_mut().filter(|seen| seen.since_ns >= since_ns).for_each(|seen| seen.changed = true);
    records.iter_mut().filter(|record| record.since_ns >= since_ns).for_each(|record| record.changed = 1);
}

fn failed(error: SysError) -> Problem {
    Problem::environment(format!("the kernel doesn't tell of connections: {error}"))
        .because("CONFIG_INET_DIAG is missing, or its module can't be loaded")
        .hint("modprobe tcp_diag")
}

fn count(counts: &mut TrafficCounts, account: Account) {
    counts.passive += 1;
    match account {
        Account::OtherPort => counts.other_port += 1,
        Account::Private => counts.private += 1,
        Account::Administrator => counts.administrator += 1,
        Account::Paused => counts.paused += 1,
        Account::Outside => counts.outside += 1,
        Account::Arm(arm) => counts.assigned[arm] += 1,
    }
}

/// Whether a connection has another congestion control than its arm says.
fn differs(arm: &ArmSettings, socket: &DiagSocket) -> bool {
    arm.cc().zip(socket.congestion_control.as_deref()).is_some_and(|(asked, has)| asked != has)
}

struct RecordContext {
    arm: usize,
    tag: u64,
    now: u64,
    initcwnd: Option<u32>,
}

/// The kernel's last figures as a record. They don't say how it ended: in order is what had its FIN acknowledged.
fn record(seen: &OpenConnection, info: &TcpInfo, told: RecordContext) -> TrafficRecord {
    /// `TCP_LAST_ACK` and `TCP_ESTABLISHED`: in order, and not.
    const LAST_ACK: u32 = 9;
    const ESTABLISHED: u32 = 1;
    let sent = info.bytes_sent.saturating_sub(info.bytes_retrans);
    let whole = info.bytes_acked > sent;
    TrafficRecord {
        tag: told.tag,
        epoch: seen.epoch,
        arm: told.arm,
        since_ns: seen.since_ns,
        lasted_ns: told.now.saturating_sub(seen.since_ns),
        // Time in which data was outstanding; the FIN's round trip is part of it.
        // A kernel that counts in jiffies says 0 for less than one.
        finished_ns: Some(info.busy_time.max(u64::from(info.rtt)) * 1_000).filter(|ns| *ns > 0),
        idle_ns: 0,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        refused: 0,
        rtos: u32::from(info.total_rto),
        initcwnd: told.initcwnd.unwrap_or(0),
        last_state: if whole { LAST_ACK } else { ESTABLISHED },
        unacked: u32::try_from(sent.saturating_sub(info.bytes_acked)).unwrap_or(u32::MAX).max(u32::from(!whole)),
        srtt_us: info.rtt,
        min_rtt_us: info.min_rtt,
        retransmitted: info.total_retrans,
        segments_out: info.segs_out,
        data_segments_out: info.data_segs_out,
        segments_in: info.segs_in,
        cwnd: info.snd_cwnd,
        mss: info.snd_mss,
        changed: u32::from(seen.changed),
        ecn: info.ecn(),
        responses: 0,
        last_response: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> RecordContext {
        RecordContext { arm: 1, tag: 7, now: 3_000_000_000, initcwnd: Some(32) }
    }

    fn seen() -> OpenConnection {
        let (since_ns, last_ns) = (1_000_000_000, 2_000_000_000);
        OpenConnection { account: Account::Arm(1), epoch: 4, since_ns, last_ns, request: false, changed: false }
    }

    #[test]
    fn what_had_its_fin_acknowledged_ended_in_order_and_what_lacks_bytes_did_not() {
        let whole = TcpInfo { bytes_sent: 6000, bytes_retrans: 1000, bytes_acked: 5001, ..TcpInfo::default() };
        let ended = record(&seen(), &whole, told());
        assert!(ended.ended_in_order() && ended.unacked == 0, "{ended:?}");
        assert_eq!((ended.arm, ended.epoch, ended.tag, ended.lasted_ns), (1, 4, 7, 2_000_000_000));
        let cut = record(&seen(), &TcpInfo { bytes_acked: 3000, ..whole }, told());
        assert!(!cut.ended_in_order() && cut.unacked == 2000, "{cut:?}");
        let reset = record(&seen(), &TcpInfo { bytes_acked: 5000, ..whole }, told());
        assert!(!reset.ended_in_order(), "all of it arrived, and no FIN");
    }

    #[test]
    fn what_may_have_begun_while_its_arm_gave_nothing_is_told_as_changed() {
        let begun = |since_ns| OpenConnection { since_ns, ..seen() };
        let mut open: HashMap<u64, OpenConnection> = [(1, begun(2_000_000_000)), (2, begun(7_500_000_000))].into();
        let mut records: Vec<TrafficRecord> =
            [begun(3_000_000_000), begun(8_000_000_000)].map(|seen| record(&seen, &TcpInfo::default(), told())).into();
        doubt(&mut open, &mut records, 8_000_000_000);
        assert_eq!((open[&1].changed, open[&2].changed), (false, true));
        assert_eq!([records[0].changed, records[1].changed], [0, 1]);
        assert_eq!(record(&open[&2], &TcpInfo::default(), told()).changed, 1);
    }

    #[test]
    fn each_connection_is_in_one_account() {
        let mut counts = TrafficCounts::default();
        let all = [Account::OtherPort, Account::Private, Account::Paused, Account::Outside, Account::Arm(2)];
        all.into_iter().chain([Account::Administrator]).for_each(|account| count(&mut counts, account));
        assert_eq!((counts.passive, counts.administrator, counts.is_whole()), (6, 1, true));
        assert_eq!(
            (counts.other_port, counts.private, counts.paused, counts.outside, counts.assigned[2]),
            (1, 1, 1, 1, 1)
        );
    }
}
