use crate::cli::probe::ProbeArgs;
use wt_prober::path::PathRequest;

/// Summarises the path to a host on one screen
///
/// MTU, hops, round-trip times, loss, reordering, what middleboxes change, the rate of the narrowest link, the
/// bandwidth-delay product and the windows that follow.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel path example.org
  windtunnel path --pings 1000 --json example.org:443")]
pub(crate) struct PathArgs {
    /// The host, with the TCP port that TCP probes go to [default port: 80]
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Packets to count round-trip times with
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pings: u32,
    #[command(flatten)]
    probe: ProbeArgs,
}

impl PathArgs {
    /// What the library takes.
    pub(super) fn request(&self) -> PathRequest {
        PathRequest { host: self.host.clone(), pings: self.pings, options: self.probe.options() }
    }

    /// Whether the answer is printed as JSON.
    pub(super) const fn json(&self) -> bool {
        self.probe.json
    }
}
