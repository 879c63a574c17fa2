//! The C sources called from here: the only place outside of `crates/sys` with `unsafe`, and only for that.
#![expect(
    unsafe_code,
    reason = "the C sources are called through their table of functions; docs/decisions says why here"
)]

use crate::choice::Choice;

/// `WT_MAX_PARAMS` of the C header.
const MOST_PARAMETERS: usize = 12;

/// The fields of the kernel's connection that the sources touch: `struct tcp_sock` of the C header, field by field.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct TcpFields {
    /// 104 bytes for the algorithm.
    icsk_ca_priv: [u64; 13],
    /// Five bits: the [`CaState`].
    icsk_ca_state: u8,
    /// Timeouts in a row, before this one.
    pub retransmits: u8,
    /// The time of the latest packet, µs.
    pub mstamp_us: u64,
    /// Congestion window, packets.
    pub snd_cwnd: u32,
    /// Packets acknowledged towards the next step of the window.
    pub snd_cwnd_cnt: u32,
    /// The most that the window may become, packets.
    pub snd_cwnd_clamp: u32,
    /// Slow start threshold, packets.
    pub snd_ssthresh: u32,
    /// The window before the last reduction, packets.
    pub prior_cwnd: u32,
    /// The oldest sequence number that isn't acknowledged.
    pub snd_una: u32,
    /// The next sequence number to send.
    pub snd_nxt: u32,
    /// The peer's window, bytes.
    pub snd_wnd: u32,
    /// Bytes of payload in a full packet.
    pub mss: u32,
    /// Smoothed RTT, eighths of a µs.
    pub srtt_us_8: u32,
    /// The most packets in flight in the last window.
    pub max_packets_out: u32,
    /// Packets in flight.
    pub packets_out: u32,
    /// Packets that were acknowledged selectively.
    pub sacked_out: u32,
    /// Packets delivered so far.
    pub delivered: u32,
    /// Bit 0: whether the window held the sender back.
    cwnd_limited: u8,
}

/// What lies outside of the connection, `struct wt_shared` of the C header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SharedState {
    /// For the generators of the connections.
    pub seed: u64,
    /// Connections begun.
    pub connections: u64,
    /// Impossible values that were repaired.
    pub guard_hits: u64,
    /// Back-offs because of delay.
    pub delay_cuts: u64,
    /// Loss events reacted to.
    pub losses: u64,
    /// Loss events that left the window as it was.
    pub tolerated: u64,
}

impl SharedState {
    /// How many words of 64 bits it has.
    pub const WORDS: usize = 6;
    /// Which of them is the seed.
    pub const SEED: usize = 0;

    /// From the words of the kernel's map.
    #[must_use]
    pub fn from_words(word: impl Fn(usize) -> u64) -> Self {
        Self {
            seed: word(0),
            connections: word(1),
            guard_hits: word(2),
            delay_cuts: word(3),
            losses: word(4),
            tolerated: word(5),
        }
    }
}

/// What one ACK tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Ack {
    /// Packets that it acknowledges for the first time.
    pub packets: u32,
    /// The RTT of the last of them, µs; −1 if none of them gives one.
    pub rtt_us: i32,
    /// Packets in flight before it.
    pub in_flight: u32,
}

/// The sender's state, `enum tcp_ca_state` of linux/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the kernel's names")]
pub enum CaState {
    Open = 0,
    Disorder = 1,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// Events that an algorithm hears of, `enum tcp_ca_event` of net/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CwndEvent {
    /// First transmission after idling.
    TxStart = 0,
    /// The window was reduced after idling.
    CwndRestart = 1,
    /// Recovery or a reduction is over.
    CompleteCwr = 2,
    /// A timeout; `ssthresh` has just been asked.
    Loss = 3,
}

/// `struct wt_native` of the C header: what the sources see.
#[derive(Debug, Clone)]
#[repr(C)]
struct Sock {
    fields: TcpFields,
    shared: SharedState,
    parameters: [u32; MOST_PARAMETERS],
}

/// `struct wt_native_ops` of the C header.
#[repr(C)]
struct Operations {
    names: *const std::ffi::c_char,
    size: u32,
    defaults: [u32; MOST_PARAMETERS],
    init: unsafe extern "C" fn(*mut Sock),
    ssthresh: unsafe extern "C" fn(*mut Sock) -> u32,
    cong_avoid: unsafe extern "C" fn(*mut Sock, u32, u32),
    pkts_acked: unsafe extern "C" fn(*mut Sock, *const Ack),
    cwnd_event: unsafe extern "C" fn(*mut Sock, u32),
    set_state: unsafe extern "C" fn(*mut Sock, u32),
    undo_cwnd: unsafe extern "C" fn(*mut Sock) -> u32,
}

// SAFETY: the tables are constants of the C sources.
unsafe impl Sync for Operations {}

unsafe extern "C" {
    safe static wt_native_newreno: Operations;
    safe static wt_native_hd: Operations;
    safe static wt_native_chd: Operations;
    safe static wt_native_cdg: Operations;
    safe static wt_native_vegas: Operations;
    safe static wt_native_htcp: Operations;
    safe static wt_native_illinois: Operations;
    safe static wt_native_westwood: Operations;
}

fn operations(name: &str) -> &'static Operations {
    match name {
        "newreno" => &wt_native_newreno,
        "hd" => &wt_native_hd,
        "chd" => &wt_native_chd,
        "cdg" => &wt_native_cdg,
        "vegas" => &wt_native_vegas,
        "htcp" => &wt_native_htcp,
        "illinois" => &wt_native_illinois,
        _ => &wt_native_westwood,
    }
}

/// One connection's congestion control, run natively from the same source as in the kernel.
///
/// The caller is TCP: it keeps the [`TcpFields`] as the kernel would and calls the operations when the kernel would.
/// In `tcp_ack()` of Linux that is [`Native::pkts_acked`] first, then loss detection with [`Native::ssthresh`] and
/// [`Native::set_state`], then, outside of recovery and where the window may grow, [`Native::cong_avoid`]. At a timeout
/// it is `ssthresh`, [`Native::cwnd_event`] with [`CwndEvent::Loss`], then `set_state`.
///
/// # Example
/// ```
/// let mut chd = wt_cc::Native::new(&"chd@freebsd-hz100".parse().unwrap(), 1);
/// chd.fields().snd_cwnd = 10;
/// chd.init();
/// assert_eq!(chd.ssthresh(), 10, "a loss without a queue is tolerated");
/// ```
pub struct Native {
    sock: Box<Sock>,
    operations: &'static Operations,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").field("sock", &self.sock).finish_non_exhaustive()
    }
}

impl Clone for Native {
    fn clone(&self) -> Self {
        Self { sock: self.sock.clone(), operations: self.operations }
    }
}

impl Native {
    /// A connection that hasn't begun: ten packets, no threshold, room for everything. The seed fixes its random choices.
    #[must_use]
    pub fn new(choice: &Choice, seed: u64) -> Self {
        let operations = operations(choice.algorithm.name);
        debug_assert_eq!(operations.size as usize, size_of::<Sock>());
        let mut parameters = [0; MOST_PARAMETERS];
        parameters[..choice.values.len()].copy_from_slice(&choice.values);
        let fields = TcpFields {
            snd_cwnd: 10,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: 0x7fff_ffff,
            snd_wnd: u32::MAX,
            mss: 1448,
            cwnd_limited: 1,
            ..TcpFields::default()
        };
        Self {
            sock: Box::new(Sock { fields, shared: SharedState { seed, ..SharedState::default() }, parameters }),
            operations,
        }
    }

    /// The fields that TCP keeps.
    pub fn fields(&mut self) -> &mut TcpFields {
        &mut self.sock.fields
    }

    /// The fields that TCP keeps.
    #[must_use]
    pub fn read(&self) -> &TcpFields {
        &self.sock.fields
    }

    /// What it has counted.
    #[must_use]
    pub fn counted(&self) -> SharedState {
        self.sock.shared
    }

    /// Says whether the window, and not the program, held the sender back.
    pub fn set_cwnd_limited(&mut self, limited: bool) {
        self.sock.fields.cwnd_limited = u8::from(limited);
    }

    /// The connection begins.
    pub fn init(&mut self) {
        // SAFETY: the C sources read and write within the struct that they get, whose layout a test compares, and keep no
        // pointer to it. This holds for every call below.
        unsafe { (self.operations.init)(&raw mut *self.sock) }
    }

    /// A loss: the new threshold, packets.
    #[must_use = "the threshold is what the caller has to set"]
    pub fn ssthresh(&mut self) -> u32 {
        // SAFETY: as in `init`.
        unsafe { (self.operations.ssthresh)(&raw mut *self.sock) }
    }

    /// The window may grow: `ack` is the acknowledgement number, `acked` the packets delivered by it.
    pub fn cong_avoid(&mut self, ack: u32, acked: u32) {
        // SAFETY: as in `init`.
        unsafe { (self.operations.cong_avoid)(&raw mut *self.sock, ack, acked) }
    }

    /// An ACK came that acknowledges something new.
    pub fn pkts_acked(&mut self, ack: Ack) {
        // SAFETY: as in `init`; the sample lives through the call.
        unsafe { (self.operations.pkts_acked)(&raw mut *self.sock, &raw const ack) }
    }

    /// Something happened.
    pub fn cwnd_event(&mut self, event: CwndEvent) {
        // SAFETY: as in `init`.
        unsafe { (self.operations.cwnd_event)(&raw mut *self.sock, event as u32) }
    }

    /// The sender is about to enter a state: the algorithm hears of it, then the field changes.
    pub fn set_state(&mut self, state: CaState) {
        // SAFETY: as in `init`.
        unsafe { (self.operations.set_state)(&raw mut *self.sock, state as u32) }
        self.sock.fields.icsk_ca_state = state as u8;
    }

    /// A reduction was a mistake: the window to go back to.
    #[must_use = "the window is what the caller has to set"]
    pub fn undo_cwnd(&mut self) -> u32 {
        // SAFETY: as in `init`.
        unsafe { (self.operations.undo_cwnd)(&raw mut *self.sock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ALGORITHMS;

    #[test]
    fn the_table_and_the_sources_agree_on_parameters_and_layout() {
        for algorithm in &ALGORITHMS {
            let source = operations(algorithm.name);
            // SAFETY: a constant C string of the source.
            let names = unsafe { std::ffi::CStr::from_ptr(source.names) }.to_str().unwrap();
            let fields: Vec<_> = algorithm.parameters.iter().map(|parameter| parameter.field).collect();
            assert_eq!(names.split_whitespace().collect::<Vec<_>>(), fields, "{}", algorithm.name);
            let defaults: Vec<_> = algorithm.parameters.iter().map(|parameter| parameter.default).collect();
            assert_eq!(source.defaults[..defaults.len()], defaults, "{}", algorithm.name);
            assert_eq!(source.size as usize, size_of::<Sock>(), "{}", algorithm.name);
        }
    }
}
