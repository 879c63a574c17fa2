//! Arms without BPF: nftables marks the packets of new connections by a hash of the client's prefix, and each mark has a table of routes.
//!
//! The table of nftables belongs to a process of nft that reads from us: it is gone when we are. Rules and routes are removed by
//! a guard.

use crate::assigner::Assigner;
use crate::backend::{Secrets, known_cc};
use crate::census::Census;
use crate::guard::RouteGuard;
use crate::jhash::jhash;
use crate::tables::{self, ArmTables, FIRST};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wt_bpf::{TrafficCounts, TrafficRecords};
use wt_problem::Problem;
use wt_setup::connections;
use wt_sys::{clock, poll};
use wt_traffic::{ArmThresholds, TrafficConfig, TrafficUnit, sip13};

/// The name of this way.
pub(crate) const ROUTES: &str = "routes";
/// Hashes are 0 to 65535, and their marks these and up.
const HASHES: u32 = 1 << 16;
const HASH_MARK: u32 = 0x5754_0000;
/// What is asked of nft is done within that.
const WITHIN_NS: u64 = 10_000_000_000;
const TABLE: &str = "inet windtunnel";

/// Why an experiment isn't for routes.
pub(crate) fn refusal(config: &TrafficConfig) -> Option<String> {
    config.arms.iter().find_map(|arm| tables::refusal(&arm.settings))
}

/// Marks, rules and routes, until dropped.
#[derive(Debug)]
pub(crate) struct RoutesBackend {
    census: Census,
    secrets: Secrets,
    config: TrafficConfig,
    nft: Child,
    tables: ArmTables,
    guard: Option<RouteGuard>,
    next_follow_ns: u64,
    is_paused: bool,
}

impl RoutesBackend {
    /// Makes tables, rules and the guard; nothing is marked yet.
    ///
    /// # Errors
    /// A [`Problem`] that says what is in the way.
    pub(crate) fn begin(config: &TrafficConfig, secrets: &Secrets) -> Result<Self, Problem> {
        for name in config.arms.iter().filter_map(|arm| arm.settings.cc()) {
            known_cc(name)?;
        }
        let failed = |error: wt_sys::SysError| Problem::environment(format!("routes for the arms: {error}"));
        let mut nft = start_nft()?;
        // Who has this table runs an experiment here, and may go on.
        let head = format!(
            "create table {TABLE} {{ flags owner; }}; add chain {TABLE} in {{ type filter hook prerouting priority mangle; \
             }}; add rule {TABLE} in accept comment \"begun {}\"",
            std::process::id()
        );
        tell(&mut nft, &head, &format!("begun {}", std::process::id())).inspect_err(|_| end(&mut nft))?;
        let guard = RouteGuard::start().inspect_err(|_| end(&mut nft))?;
        let arms = config.arms.iter().map(|arm| arm.settings.clone()).collect();
        let made = ArmTables::make(arms).and_then(|tables| connections::keep_marks().map(|()| tables));
        let tables = made.inspect_err(|_| end(&mut nft)).map_err(failed)?;
        let census = Census::begin(config, secrets).inspect_err(|_| end(&mut nft))?;
        let config = config.clone();
        Ok(Self {
            census,
            secrets: secrets.clone(),
            config,
            nft,
            tables,
            guard: Some(guard),
            next_follow_ns: 0,
            is_paused: false,
        })
    }

    /// Has the tables follow the main one, and lets out what was recorded: now it is known whether connections got what their arms give.
    fn settle(&mut self) -> Result<(), Problem> {
        self.next_follow_ns = clock::monotonic_ns() + 1_000_000_000;
        let failed = |error| Problem::environment(format!("the host's routes changed: {error}"));
        let is_sure = self.is_paused || self.tables.follow().map_err(failed)?;
        self.census.settle(is_sure)
    }

    /// The seed of an epoch's hash.
    fn seed(&self, epoch: u64) -> u32 {
        (sip13(self.secrets.draw.0, [0x6a68_6173_6800_0000, epoch, 0]) >> 32) as u32
    }
}

impl Assigner for RoutesBackend {
    fn name(&self) -> &'static str {
        ROUTES
    }

    fn shortest_us(&self) -> u64 {
        crate::backend::shortest_by_jiffies_us()
    }

    fn pause_between_looks(&self) -> Duration {
        crate::census::BETWEEN_LOOKS
    }

    fn beat(&mut self) -> Result<(), Problem> {
        if !matches!(self.nft.try_wait(), Ok(None)) {
            return Err(Problem::environment("the process of nft has ended, and its table with it")
                .because("somebody ended it")
                .hint("start the experiment again"));
        }
        if !self.guard.as_mut().is_some_and(RouteGuard::is_alive) {
            return Err(Problem::environment("the guard of the routes has ended: the experiment ends, too")
                .because("somebody ended it")
                .hint("start the experiment again"));
        }
        if clock::monotonic_ns() >= self.next_follow_ns {
            self.settle()?;
        }
        self.census.beat()
    }

    fn begin(&mut self, epoch: u64, shares: &[f64]) -> Result<(), Problem> {
        let thresholds = Thresholds::new(shares);
        let (seed, unit) = (self.seed(epoch), self.config.unit);
        // Who is there belongs to the epoch before; who comes until the second look belongs to none.
        self.census.look()?;
        self.census.set_epoch(None);
        let text = rules(&self.config, &self.secrets.administrators, epoch, seed, &thresholds);
        tell(&mut self.nft, &text, &format!("epoch {epoch}"))?;
        self.census.look()?;
        let arm = move |client: SocketAddr| thresholds.arm(hash(client, unit, seed));
        self.census.set_epoch(Some((epoch, Box::new(arm))));
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Problem> {
        self.census.look()?;
        self.census.set_epoch(None);
        tell(
            &mut self.nft,
            &format!("flush chain {TABLE} in; add rule {TABLE} in accept comment \"paused\""),
            "paused",
        )?;
        self.settle()?;
        self.is_paused = true;
        Ok(())
    }

    fn records(&mut self) -> Result<TrafficRecords, Problem> {
        Ok(self.census.records())
    }

    fn still_open(&mut self) -> Result<TrafficRecords, Problem> {
        self.settle()?;
        self.census.still_open()
    }

    fn counts(&mut self) -> Result<TrafficCounts, Problem> {
        let counts = self.census.counts()?;
        self.settle()?;
        Ok(counts)
    }
}

impl Drop for RoutesBackend {
    fn drop(&mut self) {
        end(&mut self.nft);
        // Also where the guard was ended by somebody.
        let _ = connections::clear_routes();
        drop(self.guard.take());
    }
}

/// nft, reading from us; what it made with `flags owner` is gone when it ends.
///
/// # Source
/// `init_histfile()` in src/cli.c of nftables: it has a history also where it doesn't read from a terminal.
fn start_nft() -> Result<Child, Problem> {
    let mut command = Command::new("nft");
    command.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // It adds what it reads to `.nft.history` in there, or in `/` where there is none; seeds and addresses are kept nowhere.
    command.env("HOME", "/dev/null");
    // Ctrl-C is for us; who doesn't read is told to end by the pipe's end.
    wt_sys::guard::detach(&mut command);
    command.spawn().map_err(|error| {
        Problem::environment(format!("nft can't be run: {error}")).hint("Debian: apt-get install nftables")
    })
}

fn end(nft: &mut Child) {
    drop(nft.stdin.take());
    let _ = nft.wait();
}

/// Has nft do something, and waits until what it is known by is there.
fn tell(nft: &mut Child, line: &str, sign: &str) -> Result<(), Problem> {
    let refused = |said: String| {
        Problem::environment(format!("nftables doesn't mark connections: {said}"))
            .because("another experiment with routes is under way here, or the kernel lacks nft_hash or nft_fib")
            .hint("windtunnel traffic status; --backend sockops or slots")
    };
    let written = nft.stdin.as_mut().map(|input| writeln!(input, "{line}").and_then(|()| input.flush()));
    if !matches!(written, Some(Ok(()))) {
        return Err(refused("its process has ended".to_owned()));
    }
    let wanted = format!("comment \"{sign}\"");
    let until = clock::monotonic_ns() + WITHIN_NS;
    while clock::monotonic_ns() < until {
        let mut list = Command::new("nft");
        let list = list.args(["list", "table", "inet", "windtunnel"]).stdin(Stdio::null()).output();
        if list.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains(&wanted)) {
            return Ok(());
        }
        let Some(errors) = nft.stderr.as_mut() else { break };
        if matches!(poll::wait_readable(&[errors.as_fd()], Some(Duration::from_millis(5))), Ok(1)) {
            let mut said = [0; 4096];
            let length = errors.read(&mut said).unwrap_or(0);
            let text = String::from_utf8_lossy(&said[..length]);
            return Err(refused(text.lines().next().unwrap_or("its process has ended").to_owned()));
        }
    }
    Err(refused("it doesn't answer".to_owned()))
}

/// The rules of one epoch, as one transaction.
fn rules(config: &TrafficConfig, administrators: &[IpAddr], epoch: u64, seed: u32, thresholds: &Thresholds) -> String {
    let ports: Vec<String> = config.ports.iter().map(u16::to_string).collect();
    let mut text = format!("flush chain {TABLE} in");
    let mut add = |rule: &str| {
        let _ = write!(text, "; add rule {TABLE} in {rule}");
    };
    add("meta l4proto != tcp return");
    add(&format!("tcp dport != {{ {} }} return", ports.join(", ")));
    add("meta mark != 0 return");
    add("iif lo return");
    add("fib daddr type != local return");
    if !config.private {
        add("ip saddr { 10.0.0.0/8, 100.64.0.0/10, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16 } return");
        add("ip6 saddr { fc00::/7, fe80::/10 } return");
    }
    for address in administrators {
        let family = if address.is_ipv4() { "ip" } else { "ip6" };
        add(&format!("{family} saddr {address} return"));
    }
    let by_connection = config.unit == TrafficUnit::Connection;
    let keys = if by_connection {
        ["ip saddr . tcp sport", "ip6 saddr . tcp sport"]
    } else {
        ["ip saddr & 255.255.255.0", "ip6 saddr & ffff:ffff:ffff::"]
    };
    for key in keys {
        add(&format!(
            "meta mark set jhash {key} mod {HASHES} seed {seed:#x} offset {HASH_MARK} comment \"epoch {epoch}\""
        ));
    }
    let mut from = 0;
    for (mark, below) in (FIRST..).zip(&thresholds.0) {
        if *below > from {
            let (low, high) = (HASH_MARK + from, HASH_MARK + below - 1);
            add(&format!("meta mark {low:#x}-{high:#x} meta mark set {mark:#x} return"));
            from = *below;
        }
    }
    add(&format!("meta mark {HASH_MARK:#x}-{:#x} meta mark set 0", HASH_MARK + HASHES - 1));
    text
}

/// Where each arm's hashes end.
#[derive(Debug, Clone)]
struct Thresholds(Vec<u32>);

impl Thresholds {
    fn new(shares: &[f64]) -> Self {
        let all = ArmThresholds::new(shares).cumulative;
        Self(all.into_iter().map(|end| (end >> 16) as u32).collect())
    }

    fn arm(&self, hash: u32) -> Option<usize> {
        self.0.iter().position(|below| hash < *below)
    }
}

/// The hash that nftables computes of a client.
///
/// # Source
/// `nft_jhash_eval()` in net/netfilter/nft_hash.c: `reciprocal_scale()` of the hash; a port fills a register of four bytes.
fn hash(client: SocketAddr, unit: TrafficUnit, seed: u32) -> u32 {
    let mut key = match client.ip() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    if unit == TrafficUnit::Connection {
        key.extend(client.port().to_be_bytes());
        key.extend([0, 0]);
    } else {
        let kept = if client.is_ipv4() { 3 } else { 6 };
        key[kept..].fill(0);
    }
    jhash(&key, seed) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_prefix_have_one_hash_and_their_connections_each_their_own() {
        let of = |text: &str, unit| hash(text.parse().unwrap(), unit, 7);
        let (prefix, connection) = (TrafficUnit::Prefix, TrafficUnit::Connection);
        assert_eq!(of("192.0.2.1:80", prefix), of("192.0.2.9:81", prefix));
        assert_ne!(of("192.0.2.1:80", prefix), of("192.0.3.1:80", prefix));
        assert_ne!(of("192.0.2.1:80", connection), of("192.0.2.1:81", connection));
        assert_eq!(of("[2001:db8:1:2::3]:80", prefix), of("[2001:db8:1:ffff::]:9", prefix));
    }

    #[test]
    fn the_marks_of_an_epoch_follow_the_shares_and_what_is_left_over_has_none() {
        let config = TrafficConfig { ports: vec![80, 443], ..TrafficConfig::default() };
        let thresholds = Thresholds::new(&[0.75, 0.0, 0.125]);
        let administrators = ["192.0.2.9".parse().unwrap(), "2001:db8::9".parse().unwrap()];
        let text = rules(&config, &administrators, 3, 0x1234, &thresholds);
        assert!(text.contains("ip saddr 192.0.2.9 return") && text.contains("ip6 saddr 2001:db8::9 return"), "{text}");
        assert!(text.contains("tcp dport != { 80, 443 } return") && text.contains("10.0.0.0/8"), "{text}");
        assert!(text.contains("meta mark 0x57540000-0x5754bfff meta mark set 0x57550001 return"), "{text}");
        assert!(text.contains("meta mark 0x5754c000-0x5754dfff meta mark set 0x57550003 return"), "{text}");
        assert!(!text.contains("set 0x57550002"), "{text}");
        assert_eq!([0, 0xbfff, 0xc000, 0xe000].map(|hash| thresholds.arm(hash)), [Some(0), Some(0), Some(2), None]);
    }
}
