//! Those who flood a server of this host, each from an address of its own, and what the server takes meanwhile.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::TcpSocket;

/// What a server may have in memory of its own at any time beside a flood, kB; its file takes up to 20 MB more where it is optimised, and
/// twice that in tests.
pub(super) const MOST_KB: u64 = 80_000;

/// Connects from an address of loopback's; None where the server or this host has no room now.
pub(super) fn from(last: u8, to: &str) -> Option<TcpStream> {
    let to: SocketAddr = to.parse().unwrap();
    let socket = TcpSocket::new(&to).ok()?.bound_to(IpAddr::from([127, 0, 0, last])).ok()?;
    socket.connect(&to, Duration::from_secs(5)).ok()
}

/// Writes until the other end takes no more, or so many times; nobody reads what comes back.
pub(super) fn stuff(stream: &mut TcpStream, bytes: &[u8], most: usize) {
    stream.set_nonblocking(true).unwrap();
    for _ in 0..most {
        if stream.write(bytes).is_err() {
            return;
        }
    }
}

/// The most memory of its own that a process ever had, kB: without the pages of its file.
pub(super) fn most_memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    number("VmHWM").saturating_sub(number("RssFile"))
}

/// How long it took, milliseconds.
pub(super) fn took_ms(work: impl FnOnce()) -> u64 {
    let began = monotonic_ns();
    work();
    (monotonic_ns() - began) / 1_000_000
}

/// What was seen beside a flood.
pub(super) struct FloodReport {
    pub(super) flood: &'static str,
    pub(super) connections: usize,
    pub(super) served_ms: Vec<u64>,
    pub(super) memory_kb: u64,
}

impl FloodReport {
    /// That a client was served within a second, with room for a moment in which this machine had something else to do, and that
    /// the server kept within its memory.
    #[expect(clippy::print_stdout, reason = "what a test measured")]
    pub(super) fn check(mut self) -> usize {
        self.served_ms.sort_unstable();
        let (middle, longest) = (self.served_ms[self.served_ms.len() / 2], self.served_ms.last().copied().unwrap());
        let Self { flood, connections, memory_kb, .. } = self;
        println!("{flood}: {connections} connections; served in {middle} ms, at most {longest} ms; {memory_kb} kB");
        assert!(middle < 1_000 && longest < 4_000, "beside {flood} a client waits {middle} ms, at most {longest} ms");
        assert!(memory_kb < MOST_KB, "beside {flood} the server takes {memory_kb} kB");
        connections
    }
}
