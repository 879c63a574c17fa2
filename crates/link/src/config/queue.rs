use crate::{Trace, WireLen};
use std::time::Duration;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// A queue in front of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueConfig {
    /// What a packet occupies on the line.
    pub framing: WireLen,
    /// How fast the line is.
    pub rate: RateConfig,
    /// How much may wait.
    pub bound: QueueBound,
    /// What happens to arriving and waiting packets.
    pub discipline: Discipline,
}

impl QueueConfig {
    /// A drop-tail queue of so many packets in front of a line of constant rate without framing.
    #[must_use]
    pub const fn drop_tail(rate: BitsPerSecond, packets: u32) -> Self {
        Self {
            framing: WireLen::IP,
            rate: RateConfig::Constant(rate),
            bound: QueueBound { packets: Some(packets), bytes: None, counted: QueueLayer::IpLen },
            discipline: Discipline::DropTail,
        }
    }
}

/// How fast a line is, in bytes on the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum RateConfig {
    /// Always the same.
    Constant(BitsPerSecond),
    /// Different rates at different times.
    Steps(StepsConfig),
    /// Moments at which so many bytes may leave.
    Trace(TraceConfig),
    /// A rate with credit for bursts.
    TokenBucket(TokenBucketConfig),
    /// A modem on a telephone line.
    Modem(ModemConfig),
}

/// A rate that changes at given times.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsConfig {
    /// From when on which rate; the first from zero on. A rate of zero is a pause.
    pub steps: Vec<(Duration, BitsPerSecond)>,
    /// After this long it begins anew; `None`: the last rate stays.
    pub period: Option<Duration>,
}

/// A rate from a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceConfig {
    /// When something may leave.
    pub trace: Trace,
    /// How much each time. mahimahi's is 1504 bytes, of which each packet costs its IP length and 4 bytes of TUN header.
    pub bytes: Bytes,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucketConfig {
    /// How fast the bucket fills: the rate in the long run.
    pub rate: BitsPerSecond,
    /// How much it holds; it is full at the beginning.
    pub burst: Bytes,
    /// The rate of a burst; `None`: at once.
    pub peak: Option<BitsPerSecond>,
}

/// A modem, with PPP in asynchronous framing over it.
///
/// Compression and escapes are averages that hold for every packet alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModemConfig {
    /// Bits per second between the modems.
    pub rate: BitsPerSecond,
    /// Bits that a byte takes: 8 with error correction (ITU-T V.42 sends no start and stop bits), 10 without.
    pub bits_per_byte: u8,
    /// The share of bytes that PPP must escape, each of which costs one byte more (RFC 1662, octet stuffing): of random
    /// bytes 34 in 256 with the default character map, 2 in 256 with an empty one.
    pub escapes: Ratio,
    /// By how much the modem's compression (ITU-T V.42bis) shortens what it sends: 1 is off, text comes to 2 to 4.
    pub compression: f64,
    /// Pauses in which the modems train again.
    pub retrain: Option<RetrainConfig>,
}

impl ModemConfig {
    /// How fast it takes the bytes that it is given, in bits per second; pauses are left out.
    #[must_use]
    pub fn byte_rate(&self) -> BitsPerSecond {
        let bits = self.rate.get() as f64 * 8.0 / f64::from(self.bits_per_byte.max(1));
        BitsPerSecond((bits * self.compression / (1.0 + self.escapes.get())) as u64)
    }
}

/// Pauses at random times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrainConfig {
    /// The mean time from one to the next (exponential).
    pub every: Duration,
    /// How long each lasts.
    pub lasts: Duration,
}

/// How much a queue holds. A packet counts until its last bit is on the line, so the one being sent is in it; this is
/// how netem counts, and one packet more than a driver's ring counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBound {
    /// At most so many packets.
    pub packets: Option<u32>,
    /// At most so many bytes; a longer packet never fits.
    pub bytes: Option<Bytes>,
    /// Which bytes.
    pub counted: QueueLayer,
}

/// The layer at which a queue counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueLayer {
    /// The bytes of IP packets.
    #[default]
    IpLen,
    /// The bytes on the wire, with the framing.
    WireLen,
}

/// How a queue decides whom to drop or mark.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Discipline {
    /// Who arrives at a full queue.
    #[default]
    DropTail,
    /// At random, more often the longer the queue was lately.
    Red(RedConfig),
    /// Who waited too long for too long.
    CoDel(CoDelConfig),
    /// A queue for each flow, each with CoDel, served in turn.
    FqCoDel(FqCoDelConfig),
    /// At random, so that the delay comes to a target.
    Pie(PieConfig),
}

/// Random early detection.
///
/// # Source
/// S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Trans. Networking 1(4),
/// 1993.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Below this average nobody is dropped, packets.
    pub min: u32,
    /// Above this average everybody is (or, with `gentle`, ever more), packets. The paper's advice: at least twice `min`.
    pub max: u32,
    /// The share of drops at `max`. The paper's: 2 %.
    pub max_probability: Ratio,
    /// The weight of each arrival in the average. The paper's: 0.002.
    pub weight: f64,
    /// Whether drops rise from `max_probability` at `max` to all at twice `max`, instead of at once.
    pub gentle: bool,
    /// Whether packets that are capable of ECN are marked below `max`.
    pub ecn: bool,
}

impl RedConfig {
    /// With the paper's constants, and these thresholds in packets.
    #[must_use]
    pub const fn between(min: u32, max: u32) -> Self {
        Self { min, max, max_probability: Ratio(0.02), weight: 0.002, gentle: false, ecn: false }
    }
}

/// Controlled delay.
///
/// # Source
/// RFC 8289; its annotated pseudocode for the procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelConfig {
    /// The delay that may stand.
    pub target: Duration,
    /// For how long it may be exceeded: a worst-case round trip.
    pub interval: Duration,
    /// Whether packets that are capable of ECN are marked.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// 5 ms and 100 ms, dropping.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// Flow queues with CoDel.
///
/// # Source
/// RFC 8290; the constants are Linux's, tc-fq_codel(8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel in each queue.
    pub codel: CoDelConfig,
    /// How many queues; flows are hashed into them.
    pub flows: u32,
    /// How many bytes a queue sends before it is the next one's turn.
    pub quantum: Bytes,
}

impl Default for FqCoDelConfig {
    /// 1024 queues, 1514 bytes, marking: Linux's defaults.
    fn default() -> Self {
        let codel = CoDelConfig { ecn: true, ..CoDelConfig::default() };
        Self { codel, flows: 1_024, quantum: Bytes(1_514) }
    }
}

/// Proportional integral controller, enhanced.
///
/// # Source
/// RFC 8033, with its options for ECN and for a cap on the growth of the probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieConfig {
    /// The delay to aim at.
    pub target: Duration,
    /// How often the probability is computed.
    pub update: Duration,
    /// The weight of the deviation from the target, per second.
    pub alpha: f64,
    /// The weight of the trend, per second.
    pub beta: f64,
    /// For how long after quiet a burst is let through.
    pub max_burst: Duration,
    /// Whether packets that are capable of ECN are marked while the probability is below a tenth.
    pub ecn: bool,
}

impl Default for PieConfig {
    /// 15 ms, every 15 ms, α = 1/8 Hz, β = 1 1/4 Hz, 150 ms, dropping.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            ecn: false,
        }
    }
}
