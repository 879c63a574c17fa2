//! `windtunnel cc compare`: several congestion controls over one emulated path, in rounds.

use crate::cli::forms::{self, REPORT, write_measured};
use crate::cli::signals::cancel_on_signals;
use crate::cli::values::trial_time;
use crate::commands::comparison::{ComparisonArgs, ends, progress};
use crate::edge::{Outcome, Problem, say, say_table};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_compare::controls::{
    self, ControlResult, ControlsAnswer, ControlsRequest, DisturbanceKind, goodput_figure, goodput_of_run, goodput_unit,
};

/// How large the pictures are, pixels.
const SIZE: (u32, u32) = (900, 420);

/// Compares congestion controls on an emulated path
///
/// Runs a bulk transfer with each in every round, in random order. All trials of a round see the same random losses.
/// Discarded trials are reported with the reason. Every trial is kept: windtunnel report shows the comparison again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc compare --lab freebsd-scp --algorithms reno,cubic,hd@freebsd-hz100,chd@freebsd-hz100,chd@freebsd-hz1000
  windtunnel cc compare --lab adsl --algorithms reno,cubic --disturb outage --html outage.html
  windtunnel cc compare --lab adsl --algorithms reno,cubic,bbr --disturb flow
  windtunnel cc compare --lab freebsd-scp --units Mbit")]
pub(super) struct CompareArgs {
    /// The path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH", default_value = "freebsd-scp")]
    lab: String,
    /// Which, the first one being the yardstick; with variants: chd@freebsd-hz100
    #[arg(long, value_delimiter = ',', default_value = controls::DEFAULT_CONTROLS)]
    algorithms: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long each trial transfers [default: about 300 RTTs, 10 s to 60 s]
    #[arg(long, value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    /// Let this happen once in every trial, after four tenths of it, and time the recovery from it
    #[arg(long, value_enum)]
    disturb: Option<DisturbanceName>,
    /// Draw the results as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    common: ComparisonArgs,
}

/// Disturbances by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DisturbanceName {
    /// One packet is lost
    Loss,
    /// Ten packets in a row are lost
    Burst,
    /// Nothing passes for a second
    Outage,
    /// Half the rate for a fifth of the trial
    HalfRate,
    /// The RTT grows by half, for good
    RttStep,
    /// A newreno flow beside it for 10 s, or 3 tenths of a short trial
    Flow,
}

impl From<DisturbanceName> for DisturbanceKind {
    fn from(name: DisturbanceName) -> Self {
        match name {
            DisturbanceName::Loss => Self::Loss,
            DisturbanceName::Burst => Self::Burst,
            DisturbanceName::Outage => Self::Outage,
            DisturbanceName::HalfRate => Self::HalfRate,
            DisturbanceName::RttStep => Self::RttStep,
            DisturbanceName::Flow => Self::Flow,
        }
    }
}

impl CompareArgs {
    /// What is asked for.
    fn request(&self) -> ControlsRequest {
        ControlsRequest {
            lab: self.common.lab(&self.lab),
            algorithms: self.algorithms.clone(),
            rounds: self.rounds,
            trial: self.trial,
            disturb: self.disturb.map(Into::into),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(super) fn run(args: &CompareArgs) -> Outcome {
    args.common.units.choose();
    let cancel = cancel_on_signals()?;
    let answer = controls::run(&args.request(), &cancel, &mut progress(args.common.quiet))?;
    let ends = give(&answer, args.common.html.as_deref(), args.common.json)?;
    if let Some(folder) = &args.svg {
        draw(folder, &answer)?;
    }
    Ok(ends)
}

/// Draws all pictures into a folder.
fn draw(folder: &Path, answer: &ControlsAnswer) -> Result<(), Problem> {
    let failed = |path: &Path, error: std::io::Error| {
        Problem::environment(format!("can't write {}: {error}", path.display())).hint("a folder that one may write to")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for picture in &answer.pictures {
        let path = folder.join(format!("{}.svg", picture.name));
        std::fs::write(&path, picture.chart.to_svg(SIZE.0, SIZE.1)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Prints the answer, writes the page that was asked for, and says with the exit code whether a difference is shown.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give(answer: &ControlsAnswer, html: Option<&Path>, json: bool) -> Outcome {
    forms::give(answer, json, |answer| {
        print(answer);
        say!("In the journal: {}", answer.id);
    })?;
    // Last, so that a file that can't be written costs nothing.
    if let Some(file) = html {
        write_measured(file, &answer.html(), REPORT)?;
    }
    Ok(ends(answer.is_no()))
}

fn print(answer: &ControlsAnswer) {
    let rounds = answer.rounds();
    say!(
        "{}: {} of {:.0} s each; medians but for the goodput\n",
        answer.lab,
        wt_units::counted(rounds, "round"),
        answer.trial_s
    );
    let head = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let with = |first: Vec<String>, row: fn(&ControlResult) -> Vec<String>| -> Vec<Vec<String>> {
        std::iter::once(first).chain(answer.algorithms.iter().map(row)).collect()
    };
    let rates = head(&[
        "congestion control",
        &format!("goodput, {}", goodput_unit().0),
        "against the first",
        "p95 queue",
        "retransmitted",
    ]);
    say_table(&with(rates, row), &[1, 2, 3, 4]);
    say!("");
    let until = head(&["seconds until", "100 kB", "1 MB", "90 % of the path", "T90", "back in"]);
    say_table(&with(until, times), &[1, 2, 3, 4, 5]);
    for line in answer.thrown_away() {
        say!("\n{line}");
    }
    let lines = answer.disturbance_lines();
    if let Some((first, others)) = lines.split_first() {
        say!("\n{first}");
        others.iter().for_each(|line| say!("  {line}"));
    }
    say!("\n{}", answer.verdict.text);
    if !answer.verdict.start.is_empty() {
        say!("{}", answer.verdict.start);
    }
}

fn row(one: &ControlResult) -> Vec<String> {
    let runs = one.goodput.runs.iter().copied();
    let spread = runs.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
    let against = one.against_first.map_or_else(String::new, |against| against.to_string());
    let ends = (goodput_of_run(spread.0), goodput_of_run(spread.1));
    let goodput = format!("{} ({}–{})", goodput_figure(one.goodput.mean), ends.0, ends.1);
    let queue = format!("{} ms", number(one.p95_queue_ms));
    let again = format!("{} %", number(one.retransmit_share.map(|share| share * 100.0)));
    vec![one.label.clone(), goodput, against, queue, again]
}

/// How fast one starts and comes back.
fn times(one: &ControlResult) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let all = [one.first_100kb_s, one.first_1mb_s, one.t90_path_s, one.t90_s, one.recovery_s];
    std::iter::once(one.label.clone()).chain(all.map(number)).collect()
}
