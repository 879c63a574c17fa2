use crate::cli::probe::{Ip, read};
use crate::edge::Problem;
use std::path::PathBuf;
use wt_prober::IpVersion;
use wt_prober::first_window::{FirstWindowRequest, HistoryRequest, UrlRequest, is_contact, opt_out_of, urls_of};

/// Measures the initial congestion window of servers
///
/// Two connections with different MSS ask for the URL and acknowledge nothing. "Exactly N segments" is said when both
/// agree and the server had more to send; else it is "at least". HTTPS is completed without a single acknowledgement. With
/// CAP_NET_RAW connections of our own ask, without it the kernel's; nothing on this host is changed. One host a second of
/// each /24 is asked, and whoever refuses is never asked again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel first-window http://example.org/ https://example.org/
  windtunnel first-window --file hosts.txt --rate 50/s --json-stream
  windtunnel first-window --file cdns.txt --csv cdns.csv --svg cdns.svg
  windtunnel first-window --history example.org
  windtunnel lab run transatlantic -- windtunnel first-window http://server/bytes/1MB")]
pub(crate) struct FirstWindowArgs {
    /// URLs to request; larger objects give exact answers
    #[arg(required_unless_present_any = ["file", "history"], value_name = "URL")]
    urls: Vec<String>,
    /// Read URLs from a file, too, one per line, optionally followed by the provider's name
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Hosts begun a second, all together [default: 100; for private addresses as many as this host and the path carry]
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    /// Hosts begun a second of one /24 (IPv6: /48) [default: 1, without limit for private addresses]
    #[arg(long, value_name = "N/s", value_parser = rate)]
    per_network: Option<u32>,
    /// The MSS of the two probes, bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(48..=8960))]
    mss: Vec<u16>,
    /// Hosts, addresses and networks not to ask [default: ~/.config/windtunnel/first-window-opt-out.txt]
    #[arg(long, value_name = "FILE")]
    opt_out: Option<PathBuf>,
    /// How you can be reached: goes into the User-Agent
    #[arg(long, value_name = "TEXT", value_parser = contact)]
    contact: Option<String>,
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum)]
    ip: Option<Ip>,
    /// Ask as an ordinary user would: by the kernel's own connections, without raw sockets
    #[arg(long)]
    unprivileged: bool,
    /// Ask nobody; show what earlier runs have found, of these hosts or of all
    #[arg(long, conflicts_with_all = ["csv", "svg", "unprivileged"])]
    pub(super) history: bool,
    /// Where findings are kept [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Write a table into this file
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Draw a bar for each provider into this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Seed of everything random [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object
    #[arg(long, conflicts_with = "json_stream")]
    pub(super) json: bool,
    /// One JSON object a line, as they come
    #[arg(long)]
    pub(super) json_stream: bool,
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| (1..=100_000).contains(rate));
    rate.ok_or_else(|| "write a number of hosts a second from 1 to 100000, as in 50/s".to_owned())
}

fn contact(text: &str) -> Result<String, String> {
    if is_contact(text) {
        Ok(text.to_owned())
    } else {
        Err("must be plain text without parentheses, 200 bytes at most".to_owned())
    }
}

impl FirstWindowArgs {
    /// What the library takes.
    ///
    /// # Errors
    /// A usage problem where a file can't be read.
    pub(super) fn request(&self) -> Result<FirstWindowRequest, Problem> {
        let opt_out = self.opt_out.clone().or_else(usual_opt_out);
        let listed = |file: PathBuf| {
            let wrong = |problem: Problem| Problem { what: format!("{}, {}", file.display(), problem.what), ..problem };
            opt_out_of(&read(&file, "host, address or network")?).map_err(wrong)
        };
        Ok(FirstWindowRequest {
            targets: self.targets()?,
            rate: self.rate,
            per_network: self.per_network,
            mss: self.mss.clone(),
            opt_out: opt_out.map(listed).transpose()?.unwrap_or_default(),
            contact: self.contact.clone(),
            ip: self.ip.map(IpVersion::from),
            unprivileged: self.unprivileged,
            journal: self.journal.clone(),
            seed: self.seed,
            collect: self.json,
        })
    }

    /// The same for what earlier runs have found.
    ///
    /// # Errors
    /// A usage problem where the file of URLs can't be read.
    pub(super) fn history_request(&self) -> Result<HistoryRequest, Problem> {
        let targets = self.targets()?;
        if let (Some(file), true) = (&self.file, targets.is_empty()) {
            // Without any all hosts would be meant.
            return Err(Problem::usage(format!("there is no URL in {}", file.display()))
                .hint("windtunnel first-window --history shows all hosts"));
        }
        Ok(HistoryRequest { targets, journal: self.journal.clone() })
    }

    fn targets(&self) -> Result<Vec<UrlRequest>, Problem> {
        let named = self.urls.iter().map(|url| UrlRequest { url: url.clone(), ..UrlRequest::default() });
        let listed = self.file.as_deref().map(|file| read(file, "URL or host")).transpose()?.map(|list| urls_of(&list));
        Ok(named.chain(listed.into_iter().flatten()).collect())
    }
}

/// The list in the user's configuration, if there is one.
fn usual_opt_out() -> Option<PathBuf> {
    let base = wt_units::UserFolder::Config.path(|name| std::env::var_os(name))?;
    Some(base.join("windtunnel/first-window-opt-out.txt")).filter(|file| file.exists())
}
