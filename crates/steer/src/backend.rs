use crate::assigner::Assigner;
use std::collections::BTreeMap;
use wt_bpf::{
    ArmOptions, LoadError, TrafficCounts, TrafficProgram, TrafficRecord, TrafficRules, missing_traffic_capabilities,
};
use wt_problem::Problem;
use wt_sys::ns::read_net_sysctl;
use wt_traffic::{
    ArmSettings, ArmTally, ArmThresholds, ConnectionFate, ConnectionOutcome, DrawKey, SocketSetting, TrafficConfig,
    TrafficUnit,
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

/// The keys of one run, in memory only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) draw: DrawKey,
    pub(crate) tag: DrawKey,
}

impl Keys {
    /// From the operating system.
    ///
    /// # Errors
    /// A [`Problem`] where it has no random numbers.
    pub(crate) fn drawn() -> Result<Self, Problem> {
        use std::io::Read as _;
        let mut bytes = [0_u8; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut bytes))
            .map_err(|error| Problem::environment(format!("/dev/urandom can't be read: {error}")))?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
        Ok(Self { draw: DrawKey([words[0], words[1]]), tag: DrawKey([words[2], words[3]]) })
    }
}

/// The BPF program.
#[derive(Debug)]
pub(crate) struct SockopsBackend(TrafficProgram);

impl SockopsBackend {
    /// Attaches the program; nothing is assigned yet.
    ///
    /// # Errors
    /// A [`Problem`] that says why it doesn't work here.
    pub(crate) fn begin(config: &TrafficConfig, keys: Keys) -> Result<Self, Problem> {
        for name in config.arms.iter().filter_map(|arm| arm.settings.cc()) {
            known_cc(name)?;
        }
        attach(config, keys).map(Self)
    }
}

impl Assigner for SockopsBackend {
    fn name(&self) -> &'static str {
        SOCKOPS
    }

    fn beat(&mut self) -> Result<(), Problem> {
        self.0.beat();
        Ok(())
    }

    fn begin(&mut self, epoch: u64, shares: &[f64]) -> Result<(), Problem> {
        self.0.set_epoch(epoch, &ArmThresholds::new(shares).cumulative);
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Problem> {
        self.0.pause();
        Ok(())
    }

    fn records(&mut self) -> Result<Vec<TrafficRecord>, Problem> {
        Ok(self.0.records())
    }

    fn counts(&mut self) -> Result<TrafficCounts, Problem> {
        Ok(self.0.counts())
    }
}

fn attach(config: &TrafficConfig, keys: Keys) -> Result<TrafficProgram, Problem> {
    TrafficProgram::attach(&TrafficRules {
        ports: config.ports.clone(),
        arms: config.arms.iter().map(|arm| options(&arm.settings)).collect(),
        by_connection: config.unit == TrafficUnit::Connection,
        skip_private: !config.private,
        skip_loopback: true,
        key: keys.draw.0,
        tag_key: keys.tag.0,
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

/// What became of connections, with what is counted of each arm.
#[derive(Debug)]
pub(crate) struct Outcomes {
    arms: Vec<ArmSettings>,
    age_us: u64,
    /// When each epoch began, ns of the monotonic clock.
    began: BTreeMap<u64, u64>,
    pub(crate) tallies: Vec<ArmTally>,
}

impl Outcomes {
    pub(crate) fn new(config: &TrafficConfig) -> Self {
        Self {
            arms: config.arms.iter().map(|arm| arm.settings.clone()).collect(),
            age_us: config.age.as_micros() as u64,
            began: BTreeMap::new(),
            tallies: vec![ArmTally::default(); config.arms.len()],
        }
    }

    /// An epoch begins.
    pub(crate) fn begin(&mut self, epoch: u64, now_ns: u64) {
        while self.began.len() >= EPOCHS {
            self.began.pop_first();
        }
        self.began.insert(epoch, now_ns);
    }

    /// One record in the experiment's words.
    pub(crate) fn of(&mut self, record: &TrafficRecord) -> Option<ConnectionOutcome> {
        let arm = record.arm;
        let settings = self.arms.get(arm)?;
        let tally = &mut self.tallies[arm];
        let kept_initcwnd = settings.initcwnd().is_none_or(|asked| record.initcwnd == asked);
        let compliant = !record.changed_cc && kept_initcwnd;
        tally.recorded += 1;
        tally.set_errors += u64::from(record.refused != 0);
        tally.not_compliant += u64::from(!compliant);
        let lasted_us = record.lasted_ns / 1_000;
        let began = self.began.get(&record.epoch).copied().unwrap_or(record.since_ns);
        let fate = match () {
            () if lasted_us > self.age_us => ConnectionFate::Open,
            () if record.ended_in_order() => ConnectionFate::Closed,
            () if record.unacked > 0 && record.rtos > 0 => ConnectionFate::TimedOut,
            () => ConnectionFate::Reset,
        };
        Some(ConnectionOutcome {
            arm,
            epoch: record.epoch,
            offset_us: record.since_ns.saturating_sub(began) / 1_000,
            tag: record.tag,
            bytes_acked: record.bytes_acked.saturating_sub(u64::from(record.unacked == 0)),
            duration_us: lasted_us.min(self.age_us),
            busy_us: busy_us(record, self.age_us),
            min_rtt_us: if record.min_rtt_us == u32::MAX { 0 } else { record.min_rtt_us },
            sent_segments: record.data_segments_out,
            retransmitted_segments: record.retransmitted,
            rtos: Some(record.rtos),
            fate,
            set_errors: record.refused,
            compliant,
        })
    }
}

/// How long data was outstanding, µs; none where all wasn't acknowledged by the cohort's age.
///
/// Without the time between responses in which a client only keeps its connection open. The kernel counts that in jiffies, so that
/// what is shorter than one would be 0: a round trip is the least that data can be outstanding.
fn busy_us(record: &TrafficRecord, age_us: u64) -> Option<u64> {
    let finished_us = record.finished_ns.map(|ns| ns / 1_000).filter(|us| *us <= age_us)?;
    let least = u64::from(record.srtt_us).min(finished_us);
    Some(finished_us.saturating_sub(record.idle_ns / 1_000).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
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
            changed_cc: false,
            ecn: false,
        }
    }

    fn outcomes() -> Outcomes {
        let arm = |text: &str| TrafficArm { name: text.to_owned(), settings: text.parse().unwrap() };
        let arms = vec![arm("initcwnd=10"), arm("initcwnd=32")];
        let mut outcomes =
            Outcomes::new(&TrafficConfig { arms, age: Duration::from_secs(3), ..TrafficConfig::default() });
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
        assert_eq!((all.tallies[0].recorded, all.tallies[0].not_compliant, all.tallies[1].not_compliant), (1, 0, 1));
        assert_eq!(all.of(&record(2)), None);
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
