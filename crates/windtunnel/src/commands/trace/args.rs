use crate::cli::probe::{ProbeArgs, hosts};
use crate::edge::Problem;
use std::path::PathBuf;
use wt_prober::trace::TraceRequest;

/// Shows each hop to a host: loss, RTT, MTU and what it changes
///
/// All hops are asked at once, so that a trace takes two round trips. Every flow keeps one way past load balancers; ask
/// for several to see the others. What hops change is read from the SYNs that they quote, which takes CAP_NET_RAW.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel trace example.org
  windtunnel trace --flows 4 --probes 5 example.org:443
  windtunnel trace --file hosts.txt --summary")]
pub(crate) struct TraceArgs {
    /// The hosts, with the TCP port that SYNs go to [default port: 80]
    #[arg(required_unless_present = "file", value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// Read hosts from a file, too, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// One line for each host: how many hops, and the TTL of its answers
    #[arg(long)]
    pub(super) summary: bool,
    /// Flows: load balancers may send each another way
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    flows: u8,
    /// Probes of each flow to each hop
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    probes: u8,
    /// Length of the probes, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(52..=9000))]
    size: u16,
    /// Don't look up names
    #[arg(short = 'n', long)]
    numeric: bool,
    #[command(flatten)]
    probe: ProbeArgs,
}

impl TraceArgs {
    /// What the library takes.
    ///
    /// # Errors
    /// A usage problem where the file of hosts can't be read.
    pub(super) fn request(&self) -> Result<TraceRequest, Problem> {
        Ok(TraceRequest {
            hosts: hosts(&self.hosts, self.file.as_deref())?,
            flows: self.flows,
            probes: if self.summary { 1 } else { self.probes },
            size: self.size,
            names: !self.numeric && !self.summary,
            options: self.probe.options(),
        })
    }

    /// Whether the answer is printed as JSON.
    pub(super) const fn json(&self) -> bool {
        self.probe.json
    }
}
