use crate::edge::{Problem, note};
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

/// The hosts of a command line and those of a file. A line that is no host is said, and the others go on.
///
/// # Errors
/// A usage problem where the file can't be read, or where it and the command line have no host.
pub(crate) fn hosts(named: &[String], file: Option<&Path>) -> Result<Vec<String>, Problem> {
    let Some(file) = file else { return Ok(named.to_vec()) };
    let (listed, wrong) = wt_prober::listed_hosts(&read(file, "host")?);
    let mut wrong = wrong.into_iter().map(|(line, problem)| {
        let what = format!("{}, line {line}: {}", file.display(), problem.what);
        Problem { what, ..problem }
    });
    if named.is_empty() && listed.is_empty() {
        let empty = || Problem::usage(format!("there is no host in {}", file.display()));
        return Err(wrong.next().unwrap_or_else(|| empty().hint("write one host per line: HOST or HOST:PORT")));
    }
    wrong.for_each(|problem| note(&format!("{problem}; the other lines go on")));
    Ok(named.iter().cloned().chain(listed).collect())
}

/// A file that the user named, or standard input as `-`, with one `each` per line.
///
/// # Errors
/// A usage problem where it can't be read.
pub(crate) fn read(file: &Path, each: &str) -> Result<String, Problem> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin().lock())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| {
        let problem = Problem::usage(format!("can't read {}", file.display())).because(error.to_string());
        problem.hint(format!("name a file with one {each} per line"))
    })
}
