//! `windtunnel analyse`: is there a difference in a table that somebody measured? What do the connections in a capture
//! suffer from?

use crate::cli::forms::{give, write_whole};
use crate::edge::{Exit, Outcome, Problem, note, say};
use clap::Args;
use std::path::{Path, PathBuf};
use wt_experiment::classic::Better;
use wt_experiment::means::SummaryMean;
use wt_flow::Filter;
use wt_report::Chart;
use wt_setup::analyse::{AnalyseRequest, analyse};

/// Analyses a table of measurements, or a capture of packets
///
/// Of a table it says whether there is a difference, of a capture which end is to blame.
///
/// A capture (pcap or pcapng, as tcpdump and Wireshark write it) is told by its content: for each TCP connection RTT, ACK
/// delay and its trend, windows, losses on which side, black holes, where the time went, and who is to blame.
///
/// Of a table it reads one row for each level with one column for each series, or one row for each measurement; lines that begin with #
/// are comments. Says first what the table allows one to say, then what that rests on. Ends with code 1 if no difference
/// is shown. Takes seconds at most.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel analyse studies/dialup-ttl.csv
  windtunnel analyse mine.csv --value goodput_mbps --factor mtu --block day --svg plots
  windtunnel analyse --means 1602±100 1548±89
  windtunnel analyse slow.pcapng
  windtunnel analyse slow.pcap --filter 'host 192.0.2.1 and port 443' --json
The file holds at most 5000000 cells, a factor at most 64 levels.")]
pub(crate) struct AnalyseArgs {
    /// The table, CSV with a header, or the capture, pcap or pcapng; - is standard input
    #[arg(required_unless_present = "means")]
    file: Option<PathBuf>,
    /// The column of outcomes; several, joined by commas, if the series stand side by side
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    value: Vec<String>,
    /// The column of settings that are compared
    #[arg(long, value_name = "COLUMN")]
    factor: Option<String>,
    /// The column of blocks (series, days, rounds) within which settings are compared
    #[arg(long, value_name = "COLUMN")]
    block: Option<String>,
    /// Small outcomes are good [default: if the column is called a time]
    #[arg(long, conflicts_with = "higher_is_better")]
    lower_is_better: bool,
    /// Large outcomes are good
    #[arg(long)]
    higher_is_better: bool,
    /// Compare two means with the standard deviations of the means instead: 1602±100 1548±89
    #[arg(long, num_args = 2, value_names = ["A±SD", "B±SD"], value_parser = mean, conflicts_with = "file")]
    means: Option<Vec<SummaryMean>>,
    #[command(flatten)]
    capture: CaptureArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Write the plots as SVG into this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Seeds what is sampled where there are too many relabellings to try all
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What only captures have.
#[derive(Debug, Clone, Args)]
pub(crate) struct CaptureArgs {
    /// Only these packets, in tcpdump's words: host, net, port, portrange, src, dst, tcp, ip6, and, or, not
    #[arg(long, value_name = "EXPRESSION", value_parser = filter)]
    filter: Option<String>,
    /// Report at most N connections: those with the most payload [default: 10, with --json 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: Option<u32>,
}

impl CaptureArgs {
    /// Only these packets.
    pub(crate) fn filter(&self) -> Option<String> {
        self.filter.clone()
    }

    /// How many connections are reported; who reads text reads few.
    pub(crate) fn connections(&self, json: bool) -> usize {
        self.connections.map_or(if json { 10_000 } else { 10 }, |most| most as usize)
    }
}

/// Checks a filter.
fn filter(text: &str) -> Result<String, wt_flow::FilterError> {
    text.parse::<Filter>().map(|_| text.to_owned())
}

/// Reads `1602±100`, `1602+-100` or `1602:100`.
fn mean(text: &str) -> Result<SummaryMean, String> {
    let parts = ["±", "+-", ":"].iter().find_map(|separator| text.split_once(separator));
    let (mean, sd) = parts.ok_or("write mean±standard deviation of the mean: 1602±100")?;
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("'{}' is not a number", part.trim()));
    Ok(SummaryMean { mean: number(mean)?, sd_of_mean: number(sd)? })
}

impl AnalyseArgs {
    fn request(&self) -> AnalyseRequest {
        let better = match (self.lower_is_better, self.higher_is_better) {
            (true, _) => Some(Better::Lower),
            (_, true) => Some(Better::Higher),
            _ => None,
        };
        AnalyseRequest {
            file: self.file.clone(),
            means: self.means.as_deref().and_then(|means| means.try_into().ok()),
            values: self.value.clone(),
            factor: self.factor.clone(),
            block: self.block.clone(),
            better,
            seed: self.seed,
            filter: self.capture.filter.clone(),
            connections: self.capture.connections(self.json),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that names line and column of what is wrong with the table.
pub(crate) fn run(args: &AnalyseArgs) -> Outcome {
    let answer = analyse(&args.request())?;
    let charts = args.svg.as_ref().map_or_else(Vec::new, |_| answer.charts());
    if let Some(directory) = args.svg.as_ref().filter(|_| !charts.is_empty()) {
        write_plots(directory, &charts)?;
    }
    give(&answer, args.json, |answer| say!("{}", answer.to_text()))?;
    if args.svg.is_some() && charts.is_empty() {
        note("nothing was drawn: there are no plots of this, only of tables of series");
    }
    Ok(if answer.is_yes() { Exit::Done } else { Exit::No })
}

fn write_plots(directory: &Path, charts: &[(&'static str, Chart)]) -> Result<(), Problem> {
    std::fs::create_dir_all(directory).map_err(|error| {
        Problem::environment(format!("can't write {}", directory.display())).because(error.to_string())
    })?;
    charts.iter().try_for_each(|(name, chart)| {
        let written = write_whole(&directory.join(format!("{name}.svg")), &chart.to_svg(760, 420));
        written.map_err(|problem| problem.hint("name another folder"))
    })
}
