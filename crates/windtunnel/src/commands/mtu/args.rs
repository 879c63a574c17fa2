use crate::cli::probe::{ProbeArgs, hosts};
use crate::cli::values::rate_with_unit;
use crate::edge::Problem;
use std::path::PathBuf;
use wt_prober::mtu::{MtuRequest, ScanRequest};
use wt_units::BitsPerSecond;

/// Finds the path MTU to a host, and what drops larger packets
///
/// Many sizes are probed at once, by ICMP echo, TCP and UDP, whichever the path answers; what routers say is verified and
/// never believed. With CAP_NET_RAW (as root, or setcap cap_net_raw+ep) all kinds of probes are there, and without it UDP
/// and, where net.ipv4.ping_group_range allows, ICMP echo.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel mtu example.org
  windtunnel mtu --ip 6 example.org:443 --json
  windtunnel mtu --flows 32 example.org  # is a load balancer's branch narrower than others?
  windtunnel mtu --scan --from 1200 --to 1500 --step 12 example.org
  windtunnel lab run black-hole -- windtunnel mtu server")]
pub(crate) struct MtuArgs {
    /// The hosts, with the TCP port that TCP probes go to [default port: 80]
    #[arg(required_unless_present = "file", value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// Read hosts from a file, too, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Count losses size by size, too, and find the size that brings most data per second
    #[arg(long)]
    scan: bool,
    /// The smallest size to scan, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 576, value_parser = clap::value_parser!(u16).range(68..), requires = "scan")]
    from: u16,
    /// The largest size to scan, bytes [default: the interface's MTU]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..), requires = "scan")]
    to: Option<u16>,
    /// From one size to the next, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..), requires = "scan")]
    step: u16,
    /// Packets at most; a scan ends sooner when the answer is clear [default: 6000, and 20000 to split a large loss by
    /// direction]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(50..=1_000_000), requires = "scan")]
    most: Option<u32>,
    /// TCP connections that carry one packet of the path MTU each, over whichever branch a load balancer sends them; 1: none
    /// [default: 12 to at most four hosts whose port is open]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    flows: Option<u8>,
    /// Draw loss by size, with its intervals, into a file
    #[arg(long, value_name = "FILE", requires = "scan")]
    pub(super) svg: Option<PathBuf>,
    /// The path's rate, from which gains are computed
    #[arg(long, value_name = "RATE", default_value = "100mbit", requires = "scan", value_parser = rate_with_unit::<BitsPerSecond>)]
    rate: BitsPerSecond,
    #[command(flatten)]
    probe: ProbeArgs,
}

impl MtuArgs {
    /// What the library takes.
    ///
    /// # Errors
    /// A usage problem where the file of hosts can't be read.
    pub(super) fn request(&self) -> Result<MtuRequest, Problem> {
        let Self { from, to, step, most, rate, flows, .. } = *self;
        Ok(MtuRequest {
            hosts: hosts(&self.hosts, self.file.as_deref())?,
            scan: self.scan.then_some(ScanRequest { from, to, step, most, rate }),
            flows,
            options: self.probe.options(),
        })
    }

    /// Whether the answer is printed as JSON.
    pub(super) const fn json(&self) -> bool {
        self.probe.json
    }
}
