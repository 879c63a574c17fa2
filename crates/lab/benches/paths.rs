//! How true the emulator is: set-up, idle CPU, hops, rate, delay, many paths at once. Wants a quiet machine; says how busy it was.
//!
//! `cargo bench -p wt-lab --bench paths [-- set-up idle hops rate delay many]`; needs no root; about two minutes.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails loudly")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use wt_lab::{Backend, CLIENT_V4, Lab, LabOptions, SERVER_V4, Scenario};
use wt_sys::clock::monotonic_ns;
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::NetNs;
use wt_testing::Goal;

const PORT: u16 = 9001;

/// So many links of this rate and delay each way.
fn scenario(links: usize, rate: &str, delay: &str, queue: &str) -> Scenario {
    let way = format!("{{ rate = \"{rate}\", delay = \"{delay}\", queue = \"{queue}\" }}");
    let mut text = "title = \"bench\"\nsource = \"none\"\n".to_owned();
    for number in 0..links {
        text += &format!("[[link]]\nname = \"l{number}\"\nmtu = 1500\ndown = {way}\nup = {way}\n");
    }
    Scenario::parse("bench.toml", &text).unwrap()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or(f64::NAN)
}

fn pause(time: Duration) {
    let until = monotonic_ns() + time.as_nanos() as u64;
    while let Some(left) = until.checked_sub(monotonic_ns()).filter(|left| *left > 0) {
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left)));
    }
}

fn bind(ns: &NetNs, address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = ns.run(|| UdpSocket::bind((address, port)).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    socket
}

fn set_up_and_tear_down() {
    for (name, backend) in [("TUN", Backend::Tun), ("AF_PACKET", Backend::Veth)] {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            let begun = monotonic_ns();
            let Ok(lab) = Lab::start(scenario(1, "1gbit", "0ms", "1MiB"), backend, 1) else { continue };
            let made = monotonic_ns();
            drop(lab);
            up.push((made - begun) as f64 / 1e6);
            down.push((monotonic_ns() - made) as f64 / 1e6);
        }
        println!("{}", Goal::AtMost(150.0).line(&format!("a lab's set-up over {name}"), median(up), "ms"));
        println!("  tear-down {:.1} ms", median(down));
    }
}

fn idle() {
    let lab = Lab::start(scenario(1, "8mbit", "15ms", "64KiB"), Backend::Best, 1).unwrap();
    pause(Duration::from_millis(300));
    let before = lab.stats();
    pause(Duration::from_secs(3));
    let spent = lab.stats().since(&before);
    let share = 100.0 * spent.cpu_ns as f64 / spent.at_ns as f64;
    println!("{}", Goal::AtMost(1.0).line("an idle path, of a processor", share, "%"));
}

/// The emulator's CPU for one schedule of datagrams, seconds.
fn cost(links: usize) -> f64 {
    let lab = Lab::start(scenario(links, "1gbit", "1ms", "4MiB"), Backend::Best, 1).unwrap();
    let (receiver, sender) = (bind(&lab.server.ns, SERVER_V4, PORT), bind(&lab.client.ns, CLIENT_V4, 0));
    let before = lab.stats();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while receiver.recv(&mut buffer).is_ok() {}
    });
    for _ in 0..600 {
        for _ in 0..20 {
            let _ = sender.send_to(&[0; 1400], (SERVER_V4, PORT));
        }
        pause(Duration::from_millis(1));
    }
    reader.join().unwrap();
    lab.stats().since(&before).cpu_ns as f64 * 1e-9
}

fn hops() {
    let pairs: Vec<(f64, f64)> = (0..5).map(|_| (cost(1), cost(8))).collect();
    let ratio = median(pairs.iter().map(|(one, eight)| eight / one).collect());
    println!("{}", Goal::AtMost(1.25).line("eight hops, CPU time over one's", ratio, "times"));
}

/// A lab, and whether its processors are kept awake, in words.
fn start(scenario: Scenario, sharp: bool) -> (Lab, &'static str) {
    let lab = Lab::with(scenario, LabOptions { sharp, ..LabOptions::seeded(Backend::Best, 1) }).unwrap();
    (lab, if sharp { ", --sharp" } else { "" })
}

/// Times at which datagrams of 1500 bytes leave a link of 10 Mbit/s that gets 12 Mbit/s, s.
fn rate(sharp: bool) {
    let (lab, how) = start(scenario(1, "10mbit", "0ms", "150kB"), sharp);
    let (receiver, sender) = (bind(&lab.server.ns, SERVER_V4, PORT), bind(&lab.client.ns, CLIENT_V4, 0));
    let length = Duration::from_secs(10);
    let feeder = std::thread::spawn(move || {
        let begun = monotonic_ns();
        while monotonic_ns() - begun < length.as_nanos() as u64 {
            let _ = sender.send_to(&[0; 1472], (SERVER_V4, PORT));
            pause(Duration::from_millis(1));
        }
    });
    let (mut buffer, mut times) = ([0; 2000], Vec::new());
    while receiver.recv(&mut buffer).is_ok() {
        times.push(monotonic_ns() as f64 * 1e-9);
    }
    feeder.join().unwrap();
    // The queue fills at first and empties at the end: what lies between is the line's own.
    let steady = &times[..times.len() - times.len() / 20];
    let span = steady[steady.len() - 1] - steady[0];
    let bits = (steady.len() - 1) as f64 * 12_000.0;
    let gaps: Vec<f64> = steady.windows(2).map(|pair| (pair[1] - pair[0]) * 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    let mut bins = vec![0_u32; (span / 0.1) as usize];
    for time in steady {
        if let Some(bin) = bins.get_mut(((time - steady[0]) / 0.1) as usize) {
            *bin += 1;
        }
    }
    let worst = bins.iter().map(|count| (f64::from(*count) * 12_000.0 / 1e6 - 1.0).abs() * 100.0).fold(0.0, f64::max);
    let off = (bits / span / 1e7 - 1.0).abs() * 100.0;
    println!("{}", Goal::AtMost(0.01).line(&format!("10 Mbit/s over 10 s, off by{how}"), off, "%"));
    // mahimahi's least, measured elsewhere, is 430.
    println!("{}", Goal::AtMost(150.0).line(&format!("departures' deviation, of 1200 us{how}"), deviation, "us"));
    println!("{}", Goal::AtMost(1.0).line(&format!("worst 100 ms at 10 Mbit/s, off by{how}"), worst, "%"));
}

/// Round trips of small datagrams between two namespaces, µs, sorted.
fn round_trips(client: &NetNs, server: &NetNs, count: usize) -> Vec<f64> {
    let (echo, probe) = (bind(server, SERVER_V4, PORT), bind(client, CLIENT_V4, 0));
    let answering = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((len, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], from);
        }
    });
    let mut times = Vec::new();
    for number in 0..count {
        let begun = monotonic_ns();
        probe.send_to(&number.to_be_bytes(), SocketAddr::from((SERVER_V4, PORT))).unwrap();
        if probe.recv(&mut [0; 100]).is_ok() {
            times.push((monotonic_ns() - begun) as f64 / 1e3);
        }
        pause(Duration::from_millis(2));
    }
    answering.join().unwrap();
    times.sort_by(f64::total_cmp);
    times
}

fn delay(sharp: bool) {
    let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 2, last] };
    let far = std::os::fd::AsFd::as_fd(&server);
    client.run(|| Netlink::open().unwrap().create_veth(&end("b0", 1), &end("b0", 2), far)).unwrap().unwrap();
    for (ns, own) in [(&client, CLIENT_V4), (&server, SERVER_V4)] {
        ns.run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.add_address("b0", own.into(), 32).unwrap();
            netlink.start("b0", Some(1500), None, true).unwrap();
            netlink.set_route("b0", Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default()).unwrap();
        })
        .unwrap();
    }
    let bare = round_trips(&client, &server, 200);
    let (lab, how) = start(scenario(1, "10gbit", "32ms", "4MiB"), sharp);
    let through = round_trips(&lab.client.ns, &lab.server.ns, 200);
    let error = percentile(&through, 0.5) - 64_000.0 - percentile(&bare, 0.5);
    let spread = percentile(&through, 0.9) - percentile(&through, 0.01);
    println!("{}", Goal::AtMost(100.0).line(&format!("RTT of 64 ms, off a bare pair's by{how}"), error.abs(), "us"));
    // mahimahi's least, measured elsewhere, is 1393.
    println!("{}", Goal::AtMost(279.0).line(&format!("RTTs' p90 less p1{how}"), spread, "us"));
}

fn many(count: usize) {
    let labs: Vec<Lab> = (0..count)
        .map_while(|seed| Lab::start(scenario(1, "1mbit", "10ms", "30kB"), Backend::Best, seed as u64).ok())
        .collect();
    if labs.len() < count {
        println!("{count} paths at once: only {} could be made (limits of open files or memory)", labs.len());
    }
    let sockets: Vec<_> =
        labs.iter().map(|lab| (bind(&lab.server.ns, SERVER_V4, PORT), bind(&lab.client.ns, CLIENT_V4, 0))).collect();
    let length = 5.0;
    let (begun, mut turn) = (monotonic_ns(), 0_u64);
    // Each path gets 1.2 Mbit/s in datagrams of 1000 bytes: 150 a second.
    while (monotonic_ns() - begun) as f64 * 1e-9 < length + 1.0 {
        for (_, sender) in &sockets {
            let _ = sender.send_to(&[0; 972], (SERVER_V4, PORT));
        }
        turn += 1;
        let due = begun + turn * 1_000_000_000 / 150;
        pause(Duration::from_nanos(due.saturating_sub(monotonic_ns())));
    }
    // The counters say what left each path, whoever reads it.
    let spent: Vec<f64> = labs.iter().map(|lab| lab.stats().delivered as f64).collect();
    let elapsed = (monotonic_ns() - begun) as f64 * 1e-9 - 0.010;
    let mut off: Vec<f64> = spent.iter().map(|count| (count * 8_000.0 / elapsed / 1e6 - 1.0).abs() * 100.0).collect();
    off.sort_by(f64::total_cmp);
    let what = format!("{} paths of 1 Mbit/s, worst off by", labs.len());
    println!("{}", Goal::AtMost(2.0).line(&what, percentile(&off, 0.9999), "%"));
    println!("  {:.2} % in the median", percentile(&off, 0.5));
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    wt_lab::enter().unwrap();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let parts: [(&str, fn()); 6] = [
        ("set-up", set_up_and_tear_down),
        ("idle", idle),
        ("hops", hops),
        ("rate", || [false, true].into_iter().for_each(rate)),
        ("delay", || [false, true].into_iter().for_each(delay)),
        ("many", || many(200)),
    ];
    parts.iter().filter(|(name, _)| wanted(name)).for_each(|(_, measure)| measure());
}
