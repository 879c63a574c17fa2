//! `windtunnel analyse`: is there a difference in a table that somebody measured? What do the connections in a capture
//! suffer from?

/// The connections of a capture.
pub(crate) mod capture;
/// What stands behind the answer as plots.
mod charts;
/// What a sheet is.
mod design;
/// What is read of two factors of two levels.
mod factorial;
/// Many paths together.
mod paths;
/// What a person and a program read.
mod render;
/// A CSV file.
mod sheet;

use crate::edge::{Exit, Failure, Outcome, say};
use design::{Kind, Named};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use render::Answer;
use std::io::Read;
use std::path::{Path, PathBuf};
use wt_experiment::classic::{Better, Square, two_by_two_in_blocks};
use wt_experiment::means::{SummaryMean, compare_means};
use wt_report::Chart;

/// Is there a difference? The analysis of a table of measurements; or, of captured packets: which end is to blame?
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
    capture: capture::CaptureArgs,
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

/// Reads `1602±100`, `1602+-100` or `1602:100`.
fn mean(text: &str) -> Result<SummaryMean, String> {
    let parts = ["±", "+-", ":"].iter().find_map(|separator| text.split_once(separator));
    let (mean, sd) = parts.ok_or("write mean±standard deviation of the mean: 1602±100")?;
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("'{}' is not a number", part.trim()));
    Ok(SummaryMean { mean: number(mean)?, sd_of_mean: number(sd)? })
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that names line and column of what is wrong with the table.
pub(crate) fn run(args: &AnalyseArgs) -> Outcome {
    let mut input = match (&args.means, &args.file) {
        (None, Some(file)) => Some(Input::open(file)?),
        _ => None,
    };
    if let Some(input) = input.take_if(|input| wt_wire::is_capture(&input.head)) {
        return capture::run(&args.capture, input, args.json);
    }
    if args.capture.filter.is_some() {
        return Err(Failure::usage("--filter is for captures, and this is none").hint("leave it away for a table"));
    }
    let answer = match (&args.means, input) {
        (Some(means), _) => of_means(means)?,
        (None, Some(input)) => of_table(args, input)?,
        (None, None) => return Err(Failure::usage("there is no file to analyse")),
    };
    if let Some(directory) = &args.svg {
        write_plots(directory, &answer.charts)?;
    }
    if args.json {
        say!("{}", answer.json);
    } else {
        say!("{}", answer.text);
    }
    Ok(if answer.difference_shown { Exit::Done } else { Exit::No })
}

fn of_means(means: &[SummaryMean]) -> Result<Answer, Failure> {
    let [a, b] = means else { return Err(Failure::usage("--means takes two means")) };
    let comparison = compare_means(*a, *b).ok_or_else(|| {
        Failure::usage("the two means cannot be compared")
            .because("means must be above zero, standard deviations at least zero and not both zero")
    })?;
    Ok(render::means(*a, *b, &comparison))
}

/// A file, or standard input, of which the first bytes were read.
pub(crate) struct Input {
    /// What it is called in messages.
    name: String,
    head: Vec<u8>,
    rest: Box<dyn Read>,
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        let stdin = path.as_os_str() == "-";
        let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
        let failed = |error: std::io::Error| {
            Failure::usage(format!("cannot read {name}")).because(error.to_string()).hint("windtunnel analyse FILE.csv")
        };
        let mut rest: Box<dyn Read> =
            if stdin { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(path).map_err(failed)?) };
        let mut head = Vec::new();
        rest.by_ref().take(8).read_to_end(&mut head).map_err(failed)?;
        Ok(Self { name, head, rest })
    }

    fn whole(self) -> impl Read {
        std::io::Cursor::new(self.head).chain(self.rest)
    }
}

fn of_table(args: &AnalyseArgs, input: Input) -> Result<Answer, Failure> {
    let better = match (args.lower_is_better, args.higher_is_better) {
        (true, _) => Some(Better::Lower),
        (_, true) => Some(Better::Higher),
        _ => None,
    };
    let named = Named { values: args.value.clone(), factor: args.factor.clone(), block: args.block.clone(), better };
    let name = input.name.clone();
    let sheet = sheet::Sheet::read(input.whole(), &name)?;
    if let Some(answer) = paths::answer(&sheet).filter(|_| args.value.is_empty()) {
        return answer;
    }
    let design = design::recognise(&sheet, &named)?;
    let mut rng = ChaCha12Rng::seed_from_u64(args.seed);
    Ok(match &design.kind {
        Kind::Blocked { factor, block, table } => {
            let analysis = wt_experiment::classic::analyse(table, design.better, factor, block, &mut rng)
                .ok_or_else(|| Failure::ours("an outcome is not above zero"))?;
            render::blocked(&design, factor, block, table, &analysis)
        }
        Kind::Grouped { factor, groups } => render::grouped(&design, factor, groups),
        Kind::TwoByTwo { factors, block, blocks } => {
            let squares: Vec<Square> = blocks.iter().map(|(_, square)| *square).collect();
            match (block, two_by_two_in_blocks(&squares, &mut rng)) {
                (Some(block), Some(analysis)) => factorial::in_blocks(&design, factors, block, blocks, &analysis),
                _ => factorial::single(&design, factors, &squares[0]),
            }
        }
        Kind::Listing { label, rows, figures } => render::listing(&design, label, rows, figures, &mut rng),
    })
}

fn write_plots(directory: &Path, charts: &[(&'static str, Chart)]) -> Result<(), Failure> {
    let failed = |path: &Path, e: std::io::Error| {
        Failure::environment(format!("cannot write {}", path.display())).because(e.to_string())
    };
    std::fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
    for (name, chart) in charts {
        let path = directory.join(format!("{name}.svg"));
        std::fs::write(&path, chart.to_svg(760, 420)).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
