use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{Waker, wait_readable};
use wt_sys::tcp::TcpInfo;
use wt_trial::{Amount, SHORTEST_SOAK, Sample, Third, ack_gaps};

/// Which of the two byte counters of `tcp_info` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// The most samples that one end of one trial keeps.
const MOST: usize = 2_000;

/// Connections of this process that are sampled now.
static SAMPLED: AtomicUsize = AtomicUsize::new(0);
/// So many are sampled as often as they ask for; with more of them each is sampled less often, so that a thousand clients
/// don't spend the machine on questions.
const OFTEN: usize = 16;

/// Who wants to know of every sample as it is taken, on the thread that takes it; true for the receiver's end.
pub type Listener = fn(receiver: bool, sample: &Sample);

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Tells somebody of every sample from now on. The first one who asks is told, and nobody else.
pub fn listen(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Asks the kernel about a connection at fixed times on a thread of its own, until it is stopped.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Arc<Waker>,
    thread: Option<JoinHandle<SamplerRecord>>,
}

/// What a sampler saw.
#[derive(Debug, Default)]
struct SamplerRecord {
    samples: Vec<Sample>,
    /// When data was under way: the time and for how long no ACK had come, both in µs.
    silences: Vec<(u64, u64)>,
}

/// How often to ask: every 10 to 50 ms, so that one sees slow start and recovery, and no more than [`MOST`] times.
pub(crate) fn interval(length: Duration) -> Duration {
    (length / 1200).clamp(Duration::from_millis(10), Duration::from_millis(50)).max(length / (MOST as u32 - 100))
}

impl Sampler {
    /// Begins; `start_ns` of the monotonic clock is the trial's zero.
    pub(crate) fn start(stream: TcpStream, end: End, start_ns: u64, every: Duration) -> Result<Self, wt_sys::SysError> {
        let stop = Arc::new(Waker::new()?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut seen = SamplerRecord::default();
            let every = |alive: usize| every.as_nanos() as u64 * (alive / OFTEN).max(1) as u64;
            let mut due = start_ns + every(SAMPLED.fetch_add(1, Ordering::Relaxed) + 1);
            while seen.samples.len() < MOST {
                let now = monotonic_ns();
                let wait = Duration::from_nanos(due.saturating_sub(now));
                if wait_readable(&[stopped.as_fd()], Some(wait)).unwrap_or(1) != 0 {
                    break;
                }
                due += every(SAMPLED.load(Ordering::Relaxed));
                match TcpInfo::read(&stream) {
                    Ok(info) => {
                        let sample = sample(&info, end, monotonic_ns().saturating_sub(start_ns) / 1000);
                        if let Some(listener) = LISTENER.get() {
                            listener(end == End::Receiver, &sample);
                        }
                        if end == End::Sender && info.unacked > 0 {
                            seen.silences.push((sample.t_us, u64::from(info.last_ack_recv) * 1000));
                        }
                        seen.samples.push(sample);
                    }
                    Err(_) => break,
                }
            }
            SAMPLED.fetch_sub(1, Ordering::Relaxed);
            seen
        });
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops and hands over the samples.
    pub(crate) fn finish(mut self) -> Vec<Sample> {
        self.stop().samples
    }

    /// Stops and hands over the samples, and of a transfer of a time that is long enough the gaps between ACKs by its thirds.
    pub(crate) fn finish_with_gaps(mut self, amount: Amount, elapsed: Duration) -> (Vec<Sample>, Vec<Third>) {
        let SamplerRecord { samples, silences } = self.stop();
        let gaps = match amount {
            Amount::Time(time) if time >= SHORTEST_SOAK => ack_gaps(&silences, time.min(elapsed)),
            Amount::Time(_) | Amount::Size(_) => Vec::new(),
        };
        (samples, gaps)
    }

    fn stop(&mut self) -> SamplerRecord {
        self.stop.wake();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    /// Stops also where a transfer failed before it asked for samples, so that nothing holds its socket.
    fn drop(&mut self) {
        self.stop();
    }
}

/// The kernel's fields in the journal's names and units.
pub(crate) fn sample(info: &TcpInfo, end: End, t_us: u64) -> Sample {
    /// The kernel's "no threshold yet".
    const INFINITE: u32 = 0x7FFF_FFFF;
    let mss = u64::from(info.snd_mss);
    let ssthresh = if info.snd_ssthresh >= INFINITE { 0 } else { u64::from(info.snd_ssthresh) * mss };
    let known = |us: u32| if us == u32::MAX { 0 } else { u64::from(us) };
    Sample {
        t_us,
        bytes: if end == End::Sender { info.bytes_acked.saturating_sub(1) } else { info.bytes_received },
        snd_cwnd: u64::from(info.snd_cwnd) * mss,
        ssthresh,
        rtt: if end == End::Sender { u64::from(info.rtt) } else { u64::from(info.rcv_rtt) },
        min_rtt: known(info.min_rtt),
        retransmits: u64::from(info.total_retrans),
        snd_wnd: u64::from(info.snd_wnd),
        delivery_rate_bps: info.delivery_rate.saturating_mul(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;

    #[test]
    fn a_sampler_that_is_dropped_holds_no_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut peer = listener.accept().unwrap().0;
        let every = Duration::from_secs(60);
        let sampler = Sampler::start(stream.try_clone().unwrap(), End::Sender, monotonic_ns(), every).unwrap();
        drop((sampler, stream));
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    }
}
