use crate::edge::Problem;
use clap::{Args, ValueEnum};
use std::path::Path;
use wt_prober::{IpVersion, ProbeOptions};

/// What every command that probes paths takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProbeArgs {
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum)]
    ip: Option<Ip>,
    /// Send as an ordinary user would: no raw sockets
    #[arg(long)]
    unprivileged: bool,
    /// Packets a second at most [default: 2000 for each host, 20000 for all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pps: Option<u32>,
    /// Seed of everything random [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ProbeArgs {
    /// What the library takes.
    pub(crate) fn options(&self) -> ProbeOptions {
        let Self { unprivileged, pps, seed, .. } = *self;
        ProbeOptions { ip: self.ip.map(IpVersion::from), unprivileged, pps, seed }
    }
}

/// Versions of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ip {
    /// IPv4
    #[value(name = "4", aliases = ["v4", "ipv4"])]
    V4,
    /// IPv6
    #[value(name = "6", aliases = ["v6", "ipv6"])]
    V6,
}

impl From<Ip> for IpVersion {
    fn from(ip: Ip) -> Self {
        match ip {
            Ip::V4 => Self::V4,
            Ip::V6 => Self::V6,
        }
    }
}

/// The hosts of a command line and those of a file.
///
/// # Errors
/// A usage problem where the file can't be read.
pub(crate) fn hosts(named: &[String], file: Option<&Path>) -> Result<Vec<String>, Problem> {
    let listed = file.map(|file| read(file, "host")).transpose()?.map(|text| wt_prober::hosts_of(&text));
    Ok(named.iter().cloned().chain(listed.into_iter().flatten()).collect())
}

/// A file that the user named, with one `each` per line.
///
/// # Errors
/// A usage problem where it can't be read.
pub(crate) fn read(file: &Path, each: &str) -> Result<String, Problem> {
    std::fs::read_to_string(file).map_err(|error| {
        let problem = Problem::usage(format!("can't read {}", file.display())).because(error.to_string());
        problem.hint(format!("name a file with one {each} per line"))
    })
}
