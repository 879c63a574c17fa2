use crate::assigner::Assigner;
use crate::own::HostAddresses;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wt_bpf::{
    ArmOptions, LoadError, ResponseRecord, TrafficCounts, TrafficKnowledge, TrafficProgram, TrafficRecord,
    TrafficRecords, TrafficRules, missing_traffic_capabilities,
};
use wt_problem::Problem;
use wt_sys::clock;
use wt_sys::ns::read_net_sysctl;
use wt_traffic::{
    ArmSettings, ArmTally, ArmThresholds, ConnectionFate, ConnectionOutcome, DrawKey, ResponseOutcome, ShortTransfers,
    SocketSetting, TrafficConfig, TrafficUnit,
};

/// The name of the BPF program's way.
pub(crate) const SOCKOPS: &str = "sockops";
/// A hung controller assigns nothing after so long.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Why a BPF program can't assign connections here; `None` where it can.
pub(crate) fn unavailable() -> Option<String> {
    let missing = missing_traffic_capabilities();
    TrafficProgram::unavailable()
        .or_else(|| (!missing.is_empty()).then(|| format!("it needs {}, as root has", missing.join(" and "))))
}

/// The beginnings of so many epochs are remembered: of the last hours, however long an experiment runs.
const EPOCHS: usize = 10_000;

/// What one run has in memory only: its keys, and whom it leaves alone by name.
#[derive(Clone)]
pub(crate) struct Secrets {
    pub(crate) draw: DrawKey,
    pub(crate) tag: DrawKey,
    /// From where somebody is logged in who runs the experiment.
    pub(crate) administrators: Vec<IpAddr>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Keys from the operating system.
    ///
    /// # Errors
    /// A [`Problem`] where it has no random numbers.
    pub(crate) fn drawn(config: &TrafficConfig) -> Result<Self, Problem> {
        use std::io::Read as _;
        let mut bytes = [0_u8; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut bytes))
            .map_err(|error| Problem::environment(format!("/dev/urandom can't be read: {error}")))?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
        let administrators = if config.administrator { Vec::new() } else { crate::login::administrators() };
        Ok(Self { draw: DrawKey([words[0], words[1]]), tag: DrawKey([words[2], words[3]]), administrators })
    }
}

/// The BPF program.
#[derive(Debug)]
pub(crate) struct SockopsBackend {
    program: TrafficProgram,
    private: bool,
    own: Vec<IpAddr>,
    next_look_ns: u64,
}

impl SockopsBackend {
    /// Attaches the program; nothing is assigned yet.
    ///
    /// # Errors
    /// A [`Problem`] that says why it doesn't work here.
    pub(crate) fn begin(config: &TrafficConfig, secrets: &Secrets) -> Result<Self, Problem> {
        for name in config.arms.iter().filter_map(|arm| arm.settings.cc()) {
            known_cc(name)?;
        }
        let program = attach(config, secrets)?;
        let mut begun = Self { program, private: config.private, own: Vec::new(), next_look_ns: 0 };
        begun.look_at_host();
        Ok(begun)
    }

    /// Addresses come and go, and somebody may change the host's congestion control, which no socket has of its own then: once a
    /// second both are read anew.
    fn look_at_host(&mut self) {
        let now = clock::monotonic_ns();
        if now < self.next_look_ns {
            return;
        }
        self.next_look_ns = now + 1_000_000_000;
        let own = HostAddresses::read().that_matter(self.private);
        if own != self.own {
            self.program.leave_own_alone(&own);
            self.own = own;
        }
        if let Ok(usual) = read_net_sysctl("ipv4/tcp_congestion_control") {
            self.program.expect_host_cc(&usual);
        }
    }
}

impl Assigner for SockopsBackend {
    fn name(&self) -> &'static str {
        SOCKOPS
    }

    fn beat(&mut self) -> Result<(), Problem> {
        self.program.beat();
        self.look_at_host();
        Ok(())
    }

    fn begin(&mut self, epoch: u64, shares: &[f64]) -> Result<(), Problem> {
        self.program.set_epoch(epoch, &ArmThresholds::new(shares).cumulative);
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Problem> {
        self.program.pause();
        Ok(())
    }

    fn times_responses(&self) -> bool {
        self.program.knows() == TrafficKnowledge::Responses
    }

    fn records(&mut self) -> Result<TrafficRecords, Problem> {
        Ok(self.program.records())
    }

    fn still_open(&mut self) -> Result<TrafficRecords, Problem> {
        self.program.still_open().map_err(|error| Problem::environment(error.to_string()))
    }

    fn counts(&mut self) -> Result<TrafficCounts, Problem> {
        Ok(self.program.counts())
    }
}

fn attach(config: &TrafficConfig, secrets: &Secrets) -> Result<TrafficProgram, Problem> {
    TrafficProgram::attach(&TrafficRules {
        ports: config.ports.clone(),
        arms: config.arms.iter().map(|arm| options(&arm.settings)).collect(),
        by_connection: config.unit == TrafficUnit::Connection,
        skip_private: !config.private,
        skip_loopback: true,
        skip_own_cc: !config.own_cc,
        administrators: secrets.administrators.clone(),
        key: secrets.draw.0,
        tag_key: secrets.tag.0,
        patience_ns: PATIENCE_NS,
    })
    .map_err(|error| match error {
        LoadError::Capabilities { missing } => Problem::environment(format!(
            "assigning connections needs {}, in the first user namespace",
            missing.join(" and ")
        ))
        .hint("run it as root"),
        other => Problem::environment(other.to_string()).hint("windtunnel doctor says what works here"),
    })
}

/// Whether the kernel has a congestion control; the program loads no module.
pub(crate) fn known_cc(name: &str) -> Result<(), Problem> {
    let available = read_net_sysctl("ipv4/tcp_available_congestion_control").unwrap_or_default();
    if available.split(' ').any(|known| known == name) {
        return Ok(());
    }
    Err(Problem::usage(format!("cc={name}: the kernel hasn't loaded it, it has {available}"))
        .hint(format!("modprobe tcp_{name}")))
}

fn options(settings: &ArmSettings) -> ArmOptions {
    let number = |setting| settings.socket(setting).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    ArmOptions {
        congestion_control: settings.cc().map(str::to_owned),
        initcwnd: settings.initcwnd(),
        initrwnd: settings.initrwnd(),
        cwnd_clamp: number(SocketSetting::CwndClamp),
        rto_min_us: number(SocketSetting::RtoMin),
        delack_max_us: number(SocketSetting::DelackMax),
        notsent_lowat: number(SocketSetting::NotsentLowat),
        window_clamp: number(SocketSetting::WindowClamp),
        pacing_rate: settings.socket(SocketSetting::Pacing).map(|bits| u32::try_from(bits / 8).unwrap_or(u32::MAX - 1)),
        accepts_ecn: settings.ecn() == Some(true),
    }
}

/// Below which time transfers can't be told apart where the kernel's counters say how long data was outstanding, µs: of less than two
/// jiffies they say one, or two, or none, by when the transfer began.
pub(crate) fn shortest_by_jiffies_us() -> u64 {
    2 * clock::jiffy_ns() / 1_000
}

/// What became of connections, with what is counted of each arm.
#[derive(Debug)]
pub(crate) struct Outcomes {
    arms: Vec<ArmSettings>,
    age_us: u64,
    /// Whether responses are told one by one.
    by_response: bool,
    /// When each epoch began, ns of the monotonic clock.
    began: BTreeMap<u64, u64>,
    pub(crate) tallies: Vec<ArmTally>,
    /// Those that were too short to be told apart; none where all are timed to the microsecond.
    pub(crate) short: Option<ShortTransfers>,
}

impl Outcomes {
    pub(crate) fn new(config: &TrafficConfig, by_response: bool) -> Self {
        Self {
            arms: config.arms.iter().map(|arm| arm.settings.clone()).collect(),
            age_us: config.age.as_micros() as u64,
            by_response,
            began: BTreeMap::new(),
            tallies: vec![ArmTally::default(); config.arms.len()],
            short: None,
        }
    }

    /// What takes less than so long, µs, counts as if it took so long.
    pub(crate) fn not_below(self, shortest_us: u64) -> Self {
        Self { short: (shortest_us > 0).then_some(ShortTransfers { connections: 0, below_us: shortest_us }), ..self }
    }

    /// An epoch begins.
    pub(crate) fn begin(&mut self, epoch: u64, now_ns: u64) {
        while self.began.len() >= EPOCHS {
            self.began.pop_first();
        }
        self.began.insert(epoch, now_ns);
    }

    /// Counts a connection that has ended.
    pub(crate) fn count(&mut self, outcome: &ConnectionOutcome) {
        let tally = &mut self.tallies[outcome.arm];
        tally.recorded += 1;
        tally.set_errors += u64::from(outcome.set_errors != 0);
        tally.not_compliant += u64::from(!outcome.compliant);
        if let Some(short) = &mut self.short {
            let is_short = outcome.bytes_acked > 0 && outcome.busy_us.is_some_and(|busy| busy <= short.below_us);
            short.connections += u64::from(is_short);
        }
    }

    /// How long after the beginning of its epoch a connection was established, µs.
    fn offset_us(&self, epoch: u64, since_ns: u64) -> u64 {
        let began = self.began.get(&epoch).copied().unwrap_or(since_ns);
        since_ns.saturating_sub(began) / 1_000
    }

    /// One record in the experiment's words.
    pub(crate) fn of(&self, record: &TrafficRecord) -> Option<ConnectionOutcome> {
        let arm = record.arm;
        let settings = self.arms.get(arm)?;
        let kept_initcwnd = settings.initcwnd().is_none_or(|asked| record.initcwnd == asked);
        let lasted_us = record.lasted_ns / 1_000;
        let fate = match () {
            () if lasted_us > self.age_us => ConnectionFate::Open,
            () if record.ended_in_order() => ConnectionFate::Closed,
            () if record.unacked > 0 && record.rtos > 0 => ConnectionFate::TimedOut,
            () => ConnectionFate::Reset,
        };
        Some(ConnectionOutcome {
            arm,
            epoch: record.epoch,
            offset_us: self.offset_us(record.epoch, record.since_ns),
            tag: record.tag,
            connection: record.since_ns,
            by_response: self.by_response,
            bytes_acked: record.bytes_acked.saturating_sub(u64::from(record.unacked == 0)),
            duration_us: lasted_us.min(self.age_us),
            busy_us: busy_us(record, self.age_us).map(|busy| busy.max(self.short.map_or(0, |short| short.below_us))),
            min_rtt_us: if record.min_rtt_us == u32::MAX { 0 } else { record.min_rtt_us },
            sent_segments: record.data_segments_out,
            retransmitted_segments: record.retransmitted,
            rtos: Some(record.rtos),
            fate,
            set_errors: record.refused,
            compliant: record.changed == 0 && kept_initcwnd,
        })
    }

    /// The last response of a connection, as [`Self::response`].
    pub(crate) fn last_response(&self, record: &TrafficRecord, fate: ConnectionFate) -> Option<ResponseOutcome> {
        let last = record.last_response?;
        let response = self.response(&ResponseRecord {
            tag: record.tag,
            epoch: record.epoch,
            arm: record.arm,
            since_ns: record.since_ns,
            ended_ns: last.ended_ns,
            took_ns: last.took_ns,
            bytes: last.bytes,
        })?;
        let aborted = last.cut && matches!(fate, ConnectionFate::Reset | ConnectionFate::TimedOut);
        Some(ResponseOutcome { aborted, ..response })
    }

    /// A response in the experiment's words, if it began before its connection had the cohort's age.
    pub(crate) fn response(&self, record: &ResponseRecord) -> Option<ResponseOutcome> {
        let begins_us = record.ended_ns.saturating_sub(record.took_ns) / 1_000;
        (record.arm < self.arms.len() && begins_us <= self.age_us).then(|| ResponseOutcome {
            arm: record.arm,
            epoch: record.epoch,
            offset_us: self.offset_us(record.epoch, record.since_ns),
            tag: record.tag,
            connection: record.since_ns,
            bytes: u64::from(record.bytes),
            time_us: record.took_ns / 1_000,
            aborted: false,
        })
    }
}

/// How long data was outstanding, µs; none where all wasn't acknowledged by the cohort's age.
///
/// Without the time between responses in which a client only keeps its connection open. The kernel counts that in jiffies, so that
/// what is shorter than one would be 0: a round trip is the least that data can be outstanding.
fn busy_us(record: &TrafficRecord, age_us: u64) -> Option<u64> {
    // Of one that is still open, what was idle so far is known.
    let whole = record.finished_ns.or_else(|| (record.idle_ns > 0).then_some(record.lasted_ns));
    let finished_us = whole.map(|ns| ns / 1_000).filter(|us| *us <= age_us || record.finished_ns.is_none())?;
    let least = u64::from(record.srtt_us).min(finished_us);
    Some(finished_us.saturating_sub(record.idle_ns / 1_000).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wt_bpf::LastResponse;
    use wt_traffic::TrafficArm;

    fn record(arm: usize) -> TrafficRecord {
        TrafficRecord {
            tag: 1,
            epoch: 3,
            arm,
            since_ns: 5_000_000_000,
            lasted_ns: 2_000_000_000,
            finished_ns: Some(1_500_000_000),
            idle_ns: 0,
            bytes_acked: 10_001,
            bytes_received: 100,
            refused: 0,
            rtos: 0,
            initcwnd: 10,
            last_state: 5,
            unacked: 0,
            srtt_us: 40_000,
            min_rtt_us: 39_000,
            retransmitted: 1,
            segments_out: 12,
            data_segments_out: 8,
            segments_in: 9,
            cwnd: 20,
            mss: 1448,
            changed: 0,
            ecn: false,
            responses: 0,
            last_response: None,
        }
    }

    fn outcomes() -> Outcomes {
        let arm = |text: &str| TrafficArm { name: text.to_owned(), settings: text.parse().unwrap() };
        let arms = vec![arm("initcwnd=10"), arm("initcwnd=32")];
        let mut outcomes =
            Outcomes::new(&TrafficConfig { arms, age: Duration::from_secs(3), ..TrafficConfig::default() }, false);
        outcomes.begin(3, 4_000_000_000);
        outcomes
    }

    #[test]
    fn an_outcome_has_the_times_since_its_epoch_and_its_establishment_and_no_byte_of_the_fin() {
        let mut all = outcomes();
        let outcome = all.of(&record(0)).unwrap();
        assert_eq!((outcome.offset_us, outcome.duration_us, outcome.busy_us), (1_000_000, 2_000_000, Some(1_500_000)));
        assert_eq!((outcome.bytes_acked, outcome.fate, outcome.compliant), (10_000, ConnectionFate::Closed, true));
        assert_eq!(all.of(&record(1)).map(|outcome| outcome.compliant), Some(false), "asked for 32, and has 10");
        for arm in [0, 1] {
            let outcome = all.of(&record(arm)).unwrap();
            all.count(&outcome);
        }
        assert_eq!((all.tallies[0].recorded, all.tallies[0].not_compliant, all.tallies[1].not_compliant), (1, 0, 1));
        assert_eq!(all.of(&record(2)), None);
        let changed = TrafficRecord { changed: 1 << 9, ..record(0) };
        assert_eq!(all.of(&changed).map(|outcome| outcome.compliant), Some(false), "somebody changed its pacing");
    }

    #[test]
    fn responses_that_began_before_the_age_count_and_only_what_was_cut_by_a_reset_is_broken_off() {
        let all = outcomes();
        let response = |ended_ms: u64, took_ms: u64| ResponseRecord {
            tag: 1,
            epoch: 3,
            arm: 1,
            since_ns: 5_000_000_000,
            ended_ns: ended_ms * 1_000_000,
            took_ns: took_ms * 1_000_000,
            bytes: 5_000,
        };
        let found = all.response(&response(2_000, 80)).unwrap();
        assert_eq!((found.offset_us, found.bytes, found.time_us), (1_000_000, 5_000, 80_000));
        assert_eq!(found.connection, all.of(&record(1)).unwrap().connection);
        assert!(all.response(&response(4_000, 1_200)).is_some() && all.response(&response(4_000, 900)).is_none());
        let last = |cut, fate| {
            let last_response = Some(LastResponse { took_ns: 1_000, ended_ns: 9_000, bytes: 7, cut });
            all.last_response(&TrafficRecord { last_response, ..record(0) }, fate).unwrap().aborted
        };
        let (reset, open) = (ConnectionFate::Reset, ConnectionFate::Open);
        assert_eq!([last(true, reset), last(false, reset), last(true, open)], [true, false, false]);
    }

    #[test]
    fn time_in_which_a_client_only_keeps_its_connection_open_isnt_busy_and_a_round_trip_is_the_least() {
        let busy = |idle_ms: u64, srtt_us| {
            let kept_open = TrafficRecord { idle_ns: idle_ms * 1_000_000, srtt_us, ..record(0) };
            outcomes().of(&kept_open).unwrap().busy_us
        };
        assert_eq!(busy(1_400, 40_000), Some(100_000));
        assert_eq!(busy(1_480, 40_000), Some(40_000));
        assert_eq!(busy(1_600, 40_000), Some(40_000));
        assert_eq!(busy(0, 2_000_000), Some(1_500_000), "no longer than it took");
    }

    #[test]
    fn what_is_shorter_than_two_jiffies_counts_as_alike_and_is_counted() {
        let mut by_jiffies = outcomes().not_below(8_000);
        // Counters say 0 or a jiffy for them, and the smoothed round trip takes its place: longer with a larger first window.
        let busy = [(300, 200), (700, 650), (4_000, 700), (8_000, 700), (20_000, 700)].map(|(busy_us, srtt_us)| {
            let counted = TrafficRecord { finished_ns: Some(busy_us * 1_000), srtt_us, ..record(0) };
            let outcome = by_jiffies.of(&counted).unwrap();
            by_jiffies.count(&outcome);
            outcome.busy_us
        });
        assert_eq!(busy, [8_000, 8_000, 8_000, 8_000, 20_000].map(Some));
        assert_eq!(by_jiffies.short, Some(ShortTransfers { connections: 4, below_us: 8_000 }));
        assert_eq!(outcomes().not_below(0).short, None);
        assert!((1_800..=20_200).contains(&shortest_by_jiffies_us()));
    }

    #[test]
    fn how_it_ended_is_told_by_the_last_state_the_age_and_the_timeouts() {
        let fate = |change: fn(&mut TrafficRecord)| {
            let mut changed = record(0);
            change(&mut changed);
            outcomes().of(&changed).unwrap().fate
        };
        assert_eq!(fate(|record| record.last_state = 1), ConnectionFate::Reset);
        assert_eq!(
            fate(|record| (record.last_state, record.unacked, record.rtos) = (1, 5, 9)),
            ConnectionFate::TimedOut
        );
        assert_eq!(fate(|record| record.lasted_ns = 3_000_001_000), ConnectionFate::Open);
    }

    #[test]
    fn the_options_of_an_arm_are_those_of_its_settings() {
        let settings =
            "cc=reno initcwnd=32 initrwnd=40 ecn=on cwnd-clamp=100 rto-min=50ms notsent-lowat=16KiB pacing=8mbit";
        let options = options(&settings.parse().unwrap());
        assert_eq!((options.congestion_control.as_deref(), options.initcwnd), (Some("reno"), Some(32)));
        assert_eq!((options.initrwnd, options.accepts_ecn, options.cwnd_clamp), (Some(40), true, Some(100)));
        assert_eq!((options.rto_min_us, options.delack_max_us), (Some(50_000), None));
        assert_eq!((options.notsent_lowat, options.pacing_rate), (Some(16_384), Some(1_000_000)));
    }
}
