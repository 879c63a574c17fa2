//! How fast the emulator is, as a ratio to a bare veth pair in the same run: rounds of one transfer each, in turn.
//!
//! `cargo bench -p wt-lab --bench throughput [-- WORD]`, with a word only the cases that hold it, or the one of that name; needs no root. Medians of five
//! rounds of 1.5 s. Where another emulator, rattan, is in PATH (`cargo install rattan --locked`), the same transfer goes through it in each
//! round, between namespaces of its own making.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails loudly")]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_lab::{Backend, Lab, SERVER_V4, Scenario};
use wt_load::{Connection, Request, SenderOptions, Server, ServerConfig, download, upload};
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::NetNs;
use wt_testing::Goal;
use wt_trial::{Amount, Cancel, Direction};
use wt_units::Settings;

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_millis(1500);
const PORT: u16 = 7411;

/// A path that adds nothing but the emulator itself.
fn endless(rate: &str) -> Scenario {
    let text = format!(
        "title = \"bench\"\nsource = \"none\"\n[[link]]\nname = \"l\"\ndown = {{ rate = \"{rate}\", queue = \"64MiB\" }}\nup = {{ rate = \"{rate}\", queue = \"64MiB\" }}\n"
    );
    Scenario::parse("bench.toml", &text).unwrap()
}

/// Two namespaces joined by nothing but a veth pair.
fn bare() -> (NetNs, NetNs) {
    let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
    let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 2, last] };
    let far = std::os::fd::AsFd::as_fd(&server);
    client.run(|| Netlink::open().unwrap().create_veth(&end("b0", 1), &end("b0", 2), far)).unwrap().unwrap();
    for (ns, own) in [(&client, Ipv4Addr::new(198, 18, 0, 1)), (&server, SERVER_V4)] {
        ns.run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.add_address("b0", own.into(), 32).unwrap();
            netlink.start("b0", Some(1500), None, true).unwrap();
            netlink.set_route("b0", Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default()).unwrap();
        })
        .unwrap();
    }
    (client, server)
}

/// Lets connections of this namespace begin with Reno: what begins with the host's BBR stays paced when it gets another one.
fn reno() -> wt_sys::SysResult<()> {
    wt_sys::ns::write_net_sysctl("ipv4/tcp_congestion_control", "reno")
}

/// Goodput of one download, Gbit/s.
fn goodput(client: &NetNs, server: &NetNs) -> f64 {
    let address = SocketAddr::new(SERVER_V4.into(), PORT);
    let listener = server.run(|| reno().and_then(|()| wt_sys::tcp::listen(address))).unwrap().unwrap();
    let server = Server::start(listener, ServerConfig::default()).unwrap();
    let goodput = client.run(|| transfer(address, Direction::Down)).unwrap();
    drop(server);
    goodput
}

/// Goodput of a download beside an upload, Gbit/s: that of the slower one.
fn both_ways(client: &NetNs, server: &NetNs) -> f64 {
    let address = SocketAddr::new(SERVER_V4.into(), PORT);
    let listener = server.run(|| reno().and_then(|()| wt_sys::tcp::listen(address))).unwrap().unwrap();
    let server = Server::start(listener, ServerConfig::default()).unwrap();
    client.run(reno).unwrap().unwrap();
    let goodput = std::thread::scope(|scope| {
        let up = scope.spawn(|| client.run(|| transfer(address, Direction::Up)).unwrap());
        let down = client.run(|| transfer(address, Direction::Down)).unwrap();
        down.min(up.join().unwrap())
    });
    drop(server);
    goodput
}

/// The same in the namespace of this thread.
fn transfer(address: SocketAddr, direction: Direction) -> f64 {
    let sender = SenderOptions { congestion_control: Some("reno".to_owned()), ..SenderOptions::default() };
    let request = Request { direction, amount: Amount::Time(LENGTH), token: 1, sender, window: None };
    let connection = Connection::open(&address, &Settings::new(), LENGTH).unwrap();
    let run = if direction == Direction::Down { download } else { upload };
    let report = run(connection, &request, LENGTH * 2, &Cancel::new()).unwrap();
    report.bytes as f64 * 8e-9 / report.elapsed.as_secs_f64()
}

/// The same of iperf3's download; `None` where it isn't installed.
fn of_iperf(client: &NetNs, server: &NetNs) -> Option<f64> {
    let port = (PORT + 1).to_string();
    let started = server
        .run(|| Command::new("iperf3").args(["-s", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null()).spawn());
    let mut theirs = started.ok()?.ok()?;
    let address = SocketAddr::new(SERVER_V4.into(), PORT + 1);
    let (time, host) = (LENGTH.as_secs_f64().to_string(), SERVER_V4.to_string());
    let out = client.run(|| {
        while std::net::TcpStream::connect(address).is_err() {
            std::thread::yield_now();
        }
        Command::new("iperf3").args(["-c", &host, "-p", &port, "-R", "-J", "-t", &time]).output()
    });
    theirs.kill().ok()?;
    theirs.wait().ok()?;
    let json: serde_json::Value = serde_json::from_slice(&out.ok()?.ok()?.stdout).ok()?;
    json["end"]["sum_received"]["bits_per_second"].as_f64().map(|rate| rate * 1e-9)
}

/// Goodput through the emulator of iperf3's download, Gbit/s.
fn iperf_through(backend: Backend, rate: &str) -> Option<f64> {
    let lab = Lab::start(endless(rate), backend, 1).ok()?;
    lab.server.ns.run(reno).ok()?.ok()?;
    of_iperf(&lab.client.ns, &lab.server.ns)
}

/// What is carried in a case.
#[derive(Clone, Copy, PartialEq)]
enum Flows {
    Down,
    /// A download and an upload at once.
    Both,
}

/// Goodput of each direction through the emulator, Gbit/s, and its CPU seconds per Gbit.
fn through(backend: Backend, rate: &str, flows: Flows) -> Option<(f64, f64)> {
    let lab = Lab::start(endless(rate), backend, 1).ok()?;
    let before = lab.stats();
    let (goodput, directions) = match flows {
        Flows::Down => (goodput(&lab.client.ns, &lab.server.ns), 1.0),
        Flows::Both => (both_ways(&lab.client.ns, &lab.server.ns), 2.0),
    };
    let spent = lab.stats().since(&before);
    Some((goodput, spent.cpu_ns as f64 * 1e-9 / (directions * goodput * LENGTH.as_secs_f64())))
}

/// The word that makes this program the client behind another emulator.
const BEHIND: &str = "--behind-rattan";
/// What stands before its figures.
const FIGURES: &str = "figures: ";

/// Goodput through rattan without any cell, Gbit/s, and its CPU seconds per Gbit; `None` where it isn't there, or doesn't run.
fn through_rattan() -> Option<(f64, f64)> {
    let server = NetNs::create().ok()?;
    let listener = server.run(|| {
        Netlink::open()?.start("lo", None, None, true)?;
        wt_sys::tcp::listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT))
    });
    let _server = Server::start(listener.ok()?.ok()?, ServerConfig::default()).ok()?;
    // It keeps its namespaces by name under /run/netns: in mounts of its own they go with it.
    let script = "mount -t tmpfs tmpfs /run && exec rattan link -- \"$0\" \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(std::env::current_exe().ok()?).arg(BEHIND).stderr(Stdio::null());
    let namespace = std::os::fd::AsFd::as_fd(&server).try_clone_to_owned().ok()?;
    wt_sys::process::in_network(&mut command, std::fs::File::from(namespace));
    let out = String::from_utf8(command.output().ok()?.stdout).ok()?;
    // Between its own warnings.
    let mut figures = out.lines().find_map(|line| line.strip_prefix(FIGURES))?.split_whitespace();
    Some((figures.next()?.parse().ok()?, figures.next()?.parse().ok()?))
}

/// What the client behind rattan does: tells goodput, and the CPU that its parent took meanwhile.
fn behind_rattan() {
    let base: Ipv4Addr = std::env::var("RATTAN_BASE").unwrap().parse().unwrap();
    let cpu = || wt_sys::process::usage(std::os::unix::process::parent_id()).map_or(0, |usage| usage.cpu_ns);
    let before = cpu();
    let goodput = transfer(SocketAddr::new(base.into(), PORT), Direction::Down);
    println!("{FIGURES}{goodput} {}", (cpu() - before) as f64 * 1e-9 / (goodput * LENGTH.as_secs_f64()));
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> std::process::ExitCode {
    wt_testing::bench(all_figures)
}

fn all_figures() {
    if std::env::args().any(|word| word == BEHIND) {
        return behind_rattan();
    }
    wt_lab::enter().unwrap();
    let mut bares = Vec::new();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut cases = vec![
        ("TUN", Backend::Tun, "400gbit", Flows::Down),
        ("AF_PACKET", Backend::Veth, "400gbit", Flows::Down),
        ("TUN at 10 Gbit/s", Backend::Tun, "10gbit", Flows::Down),
        ("TUN at 10 Gbit/s both ways", Backend::Tun, "10gbit", Flows::Both),
        ("AF_PACKET at 10 Gbit/s both ways", Backend::Veth, "10gbit", Flows::Both),
        ("TUN at 1 Gbit/s", Backend::Tun, "1gbit", Flows::Down),
    ];
    let asked = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    // A whole name means this case alone, though others hold it.
    let exact = |name: &str| words.iter().any(|word| name == word);
    let alone = cases.iter().any(|(name, ..)| exact(name));
    cases.retain(|(name, ..)| if alone { exact(name) } else { asked(name) });
    let mut figures = vec![(Vec::new(), Vec::new()); cases.len()];
    let (mut bare_iperf, mut iperf) = (Vec::new(), vec![Vec::new(); cases.len()]);
    let mut rattan = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (client, server) = bare();
        bares.push(goodput(&client, &server));
        bare_iperf.extend(of_iperf(&client, &server));
        for ((_, backend, rate, _), theirs) in
            cases.iter().zip(&mut iperf).filter(|((_, _, rate, _), _)| *rate == "400gbit")
        {
            theirs.extend(iperf_through(*backend, rate));
        }
        for ((_, backend, rate, flows), (goodputs, costs)) in cases.iter().zip(&mut figures) {
            if let Some((goodput, cost)) = through(*backend, rate, *flows) {
                goodputs.push(goodput);
                costs.push(cost);
            }
        }
        if let Some((goodput, cost)) = through_rattan() {
            rattan.0.push(goodput);
            rattan.1.push(cost);
        }
    }
    let bare = median(bares);
    let their_bare = median(bare_iperf);
    println!("bare veth {bare:.2} Gbit/s, iperf3's transfer {their_bare:.2} Gbit/s");
    let theirs = Peers::of(bare, rattan);
    for (((name, _, rate, flows), (goodputs, costs)), iperf) in cases.iter().zip(figures).zip(iperf) {
        let (middle, cost) = (median(goodputs), median(costs));
        // 1448 of every 1500 bytes are payload.
        let ideal = |gbit: f64| middle / (gbit * 1448.0 / 1500.0);
        let (share, of, goal) = match (*name, *rate) {
            ("TUN", _) => (middle / bare, "a bare veth pair", 0.8),
            (_, "400gbit") => (middle / bare, "a bare veth pair", 0.65),
            (_, "10gbit") if *flows == Flows::Both => (ideal(10.0), "the ideal, of the slower direction", 0.95),
            (_, "10gbit") => (ideal(10.0), "the ideal", 0.97),
            _ => (ideal(1.0), "the ideal", 0.99),
        };
        println!("{}", Goal::AtLeast(goal).line(&format!("{name}: share of {of}"), share, "times"));
        println!("  {middle:.2} Gbit/s, emulator {:.1} CPU-ms per Gbit", cost * 1e3);
        if *rate == "400gbit" {
            let (share, what) = (median(iperf) / their_bare, format!("{name}: the same of iperf3's transfer"));
            println!("{}", Goal::AtLeast(goal).line(&what, share, "times"));
            theirs.compare(middle / bare, share, cost);
        }
    }
}

/// What other emulators come to, as shares of a bare veth pair.
struct Peers {
    /// Share of the bare pair, and CPU seconds per Gbit.
    rattan: (f64, f64),
    /// Whether rattan was measured in this run.
    here: bool,
}

/// mahimahi's share of a bare veth pair and its CPU seconds per Gbit: docs/guide/emulators.md tells where they were measured.
const MAHIMAHI: (f64, f64) = (0.046, 0.863);
/// The same of rattan, for runs without it.
const RATTAN: (f64, f64) = (0.026, 1.17);

impl Peers {
    fn of(bare: f64, (goodputs, costs): (Vec<f64>, Vec<f64>)) -> Self {
        if goodputs.is_empty() {
            println!("rattan             not run: it isn't in PATH, or doesn't run here");
            return Self { rattan: RATTAN, here: false };
        }
        let (middle, cost) = (median(goodputs), median(costs));
        let share = middle / bare;
        println!(
            "rattan, no cells   {middle:>7.2} Gbit/s   {share:.3} of the bare pair   {:.1} CPU-ms per Gbit",
            cost * 1e3
        );
        Self { rattan: (share, cost), here: true }
    }

    /// Rattan in this run carries our transfer; what was measured elsewhere carried iperf3's.
    fn compare(&self, own: f64, iperf: f64, cost: f64) {
        let times = |name: &str, share: f64, (theirs, their_cost): (f64, f64), wanted: &str| {
            let (speed, cpu) = (share / theirs, cost / their_cost);
            println!("{:18} {speed:>7.1} × {name}{wanted}; CPU per Gbit 1/{:.0} of its", "", 1.0 / cpu);
        };
        let (share, place) = if self.here { (own, "in this run") } else { (iperf, "measured elsewhere") };
        times(&format!("rattan, {place}"), share, self.rattan, " (wanted: 20)");
        times("mahimahi, measured elsewhere", iperf, MAHIMAHI, " (wanted: 12; CPU 1/20)");
    }
}
