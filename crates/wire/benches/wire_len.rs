//! Nanoseconds per call of what an emulator does for every packet.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark reads the clock and prints")]
#![expect(clippy::unwrap_used, reason = "fixed inputs")]

use std::hint::black_box;
use std::time::{Duration, Instant};
use wt_units::Bytes;
use wt_wire::{Checksum, Framing, IpView, TcpOption, TcpView, decrement_ttl};

/// The best of several runs, each of so many calls.
fn bench(name: &str, calls: u32, mut call: impl FnMut(u32)) {
    let run = |call: &mut dyn FnMut(u32)| {
        let start = Instant::now();
        (0..calls).for_each(&mut *call);
        start.elapsed()
    };
    let best = (0..7).map(|_| run(&mut call)).min().unwrap_or(Duration::ZERO);
    println!("{name:<44} {:8.2} ns", best.as_nanos() as f64 / f64::from(calls));
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    for stack in ["raw", "ethernet", "pppoe-ptm", "pppoe-llc-bridged-fcs-atm", "wireguard+ip6+pppoe-ptm"] {
        let framing = Framing::parse(stack).unwrap();
        bench(&format!("wire_len {stack}"), 1 << 22, |n| {
            black_box(framing.wire_len(black_box(Bytes(u64::from(n & 0x7ff)))));
        });
    }
    bench("Framing::parse pppoe-llc-bridged-fcs-atm", 1 << 14, |_| {
        black_box(Framing::parse(black_box("pppoe-llc-bridged-fcs-atm")).unwrap());
    });
    let mut packet = vec![0u8; 1500];
    packet[..4].copy_from_slice(&[0x45, 2, 0x05, 0xdc]);
    (packet[8], packet[9], packet[32]) = (64, 6, 0x80);
    packet[40..52].copy_from_slice(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    bench("views: IPv4, TCP, timestamps", 1 << 22, |_| {
        let (_, segment) = IpView::new(black_box(&packet)).unwrap().transport().unwrap();
        let stamp = |option| if let TcpOption::Timestamps { value, .. } = option { Some(value) } else { None };
        black_box(TcpView::new(segment).unwrap().options().find(stamp));
    });
    bench("checksum of 1500 bytes", 1 << 18, |_| {
        black_box(Checksum::new().with(black_box(&packet)).finish());
    });
    bench("decrement_ttl", 1 << 22, |_| {
        black_box(decrement_ttl(black_box(&mut packet)).unwrap());
    });
}
