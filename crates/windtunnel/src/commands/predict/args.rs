use crate::cli::values::{RateUnit, Way, rate_with_unit, trial_time};
use crate::edge::Problem;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use wt_forecast::{LinkRequest, PathRequest, PredictRequest, Shard, SweepRequest};
use wt_setup::{Levels, WorkloadRequest};
use wt_trial::Direction;
use wt_units::{Assignment, BitsPerSecond, Bytes, Knob, Ratio, format_duration, parse_duration};

/// Predicts what other settings would do, by a model of Linux TCP
///
/// The model runs the stages of the lab's path and Linux' procedures in virtual time. It is no evidence: beside each answer
/// stands how far it was from a real kernel on paths like this one, and a gain within that error is no gain. Use it to choose
/// what is worth measuring with `windtunnel tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel predict adsl
  windtunnel predict transatlantic --knobs cc,initcwnd --size 1MB
  windtunnel predict --link-rate 8mbit --rtt 40ms --loss 0.1% --queue 64KiB --encap pppoe-llcsnap
  windtunnel predict transatlantic --set cc=bbr,initcwnd=20 --size 3MB
  windtunnel predict adsl --this-host
  windtunnel predict lte --workload page --knobs initcwnd
  windtunnel predict dialup --levels rwin=1x..16x --units B --svg rwin.svg
  windtunnel predict --table paths.csv --out answers.csv
  windtunnel predict --table paths.csv --set cc=bbr --shard 3/100 --out part-3.csv

A table is CSV whose columns are called as these options are (link_rate, rtt, loss, queue, encap, mtu; or path; knobs, levels, set,
workload, size, trial, direction, seeds, seed). Other columns are kept as they are. An option on the command line holds for rows
whose cell is empty. The answer has a line for each setting of each row. In a Slurm array the shard is the task's; in a
Kubernetes Indexed Job say of how many: --shard /100.")]
pub(crate) struct PredictArgs {
    /// A preset's name or a TOML file; or describe the path with --link-rate and its companions
    path: Option<String>,
    /// Asks about every row of this CSV file, instead of one path; - is standard input. About 1,000 rows a second
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "svg", "samples"])]
    pub(super) table: Option<PathBuf>,
    /// Writes the table's answer here, as a whole or not at all; as Parquet if the name ends so [default: standard output]
    #[arg(long, value_name = "FILE", requires = "table")]
    pub(super) out: Option<PathBuf>,
    /// Answers only every N-th row, beginning with row I: 3/100; /100 takes I from Slurm or Kubernetes
    #[arg(long, value_name = "I/N", requires = "table", value_parser = shard)]
    shard: Option<ShardFlag>,
    /// On how many processors [default: all]
    #[arg(long, value_name = "N", requires = "table", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    link: LinkFlags,
    /// What to vary [default: rwin,mtu,cc,initcwnd, and sndbuf where the sender waits for it]
    #[arg(long, value_delimiter = ',', value_parser = knob)]
    knobs: Option<Vec<Knob>>,
    /// Levels of a knob, instead of those chosen from the path: rwin=4x,33xmtu,64KiB or rwin=1x..16x; may be repeated
    #[arg(long, value_name = "KNOB=LEVELS")]
    levels: Vec<Levels>,
    /// Settings to compare with the current ones, all of them together; then nothing else is varied
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',', conflicts_with_all = ["knobs", "levels"])]
    set: Vec<Assignment>,
    /// Takes this host's congestion control and buffers for the current settings [default: those of Linux 6.18, so that the answer
    /// is the same everywhere]
    #[arg(long, conflicts_with = "table")]
    this_host: bool,
    /// What is done, in the words of `tune`: bulk, soak, transactions, bursts, stream, page, competing, load, with their parameters;
    /// --workload help lists all
    #[arg(long, value_name = "WORKLOAD[:KEY=VALUE,…]", default_value = "bulk")]
    workload: WorkloadRequest,
    /// A transfer of this size [default: as much as goes in 75 RTTs, 3 s to 60 s]
    #[arg(long, value_name = "SIZE", conflicts_with = "trial")]
    size: Option<Bytes>,
    /// As much as goes in so long
    #[arg(long, alias = "time", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    #[command(flatten)]
    way: Way,
    /// Random seeds per setting (only for paths with randomness)
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// In which unit rates are written
    #[arg(long, value_enum, default_value_t, conflicts_with = "table")]
    pub(super) units: RateUnit,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Also tell each setting's first run over time, in the JSON
    #[arg(long, requires = "json")]
    samples: bool,
    /// Writes the chart as SVG into this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// A path of one link, described on the command line.
#[derive(Debug, Args, Clone)]
struct LinkFlags {
    /// Rate of the link towards the client, of bits on the wire
    #[arg(long = "link-rate", alias = "rate", value_name = "RATE", conflicts_with = "path", value_parser = rate_with_unit::<BitsPerSecond>)]
    rate: Option<BitsPerSecond>,
    /// Rate the other way, if it is another
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit::<BitsPerSecond>)]
    up_rate: Option<BitsPerSecond>,
    /// Round-trip time of the idle path, without serialisation [default: 40ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Share of the packets to the client that is lost at random [default: 0%]
    #[arg(long, value_name = "SHARE")]
    loss: Option<Ratio>,
    /// What the queue in front of the link holds [default: each way its bandwidth-delay product, at least ten packets]
    #[arg(long, value_name = "SIZE")]
    queue: Option<Bytes>,
    /// What a packet occupies on the link: `windtunnel overhead --list` names them [default: raw]
    #[arg(long = "encap", alias = "framing", value_name = "STACK")]
    framing: Option<String>,
    /// The largest packet that the link takes [default: 1500; in a tunnel or PPPoE what that leaves, but 1500 for
    /// PPPoE in ATM cells: 1492 if the modem takes no more]
    #[arg(long, value_name = "SIZE")]
    mtu: Option<Bytes>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn knob(text: &str) -> Result<Knob, String> {
    text.parse().map_err(|error: wt_units::ParseError| error.to_string())
}

/// Which part of a table, as the flag says it.
#[derive(Debug, Clone, Copy)]
enum ShardFlag {
    /// This one.
    Named(Shard),
    /// One of so many; the environment says which.
    OfEnvironment(u64),
}

fn shard(text: &str) -> Result<ShardFlag, String> {
    match text.strip_prefix('/') {
        Some(of) => of.parse().map(ShardFlag::OfEnvironment).map_err(|_| format!("{text:?}: write /100")),
        None => text.parse().map(ShardFlag::Named).map_err(|problem: Problem| problem.to_string()),
    }
}

impl PredictArgs {
    /// What a table is asked, and which variable named the shard.
    ///
    /// # Errors
    /// A usage problem where the environment doesn't say which shard, or says nonsense.
    pub(super) fn sweep(&self) -> Result<(SweepRequest, Option<&'static str>), Problem> {
        let variable = |name: &str| std::env::var(name).ok();
        let (shard, by) = match self.shard {
            Some(ShardFlag::Named(shard)) => (shard, None),
            flag => {
                let of = if let Some(ShardFlag::OfEnvironment(of)) = flag { Some(of) } else { None };
                match (Shard::of_environment(&variable, of)?, of) {
                    (Some((shard, by)), _) => (shard, Some(by)),
                    (None, None) => (Shard::WHOLE, None),
                    (None, Some(of)) => {
                        let problem =
                            Problem::usage(format!("which of {of} shards? Nothing in the environment says it"));
                        return Err(problem.hint(format!("name it: --shard 1/{of}")));
                    }
                }
            }
        };
        let has_path = self.path.is_some() || self.link.rate.is_some();
        let threads = self.threads.or_else(|| Shard::processors_of_environment(&variable)).map_or(0, usize::from);
        Ok((SweepRequest { usual: self.request(), has_path, shard, threads }, by))
    }

    /// Refuses what says nothing here: a link's properties beside a path that has its own.
    ///
    /// # Errors
    /// A usage problem that names the option.
    pub(super) fn check(&self) -> Result<(), Problem> {
        match (&self.path, self.link.given()) {
            (None, _) if self.link.rate.is_none() && self.table.is_none() => Err(Problem::usage("no path is named")
                .hint("name a preset or a TOML file, as windtunnel predict adsl, or describe a link: --link-rate 8mbit --rtt 40ms")),
            (Some(path), Some(option)) => Err(Problem::usage(format!("a path, {path}, and {option} exclude each other"))
                .because("the path has its own")
                .hint("describe a link with --link-rate instead, or name a TOML file of your own")),
            _ => Ok(()),
        }
    }

    /// The path as `tune --lab` takes it; of a link that was described there is no file yet.
    pub(super) fn path_for_tune(&self) -> String {
        self.path.as_ref().map_or_else(|| "PATH.toml".to_owned(), |path| wt_units::shell_word(path).to_string())
    }

    /// What `tune` must be told beside the settings to measure what was predicted: the workload, how much of it, and which way.
    pub(super) fn same_for_tune(&self) -> Vec<String> {
        let mut words = Vec::new();
        let workload = self.workload.to_string();
        match self.size {
            Some(size) if workload == "bulk" => words.push(format!("--workload bulk:size={size}")),
            _ if self.workload != WorkloadRequest::default() => {
                words.push(format!("--workload {}", wt_units::shell_word(&workload)));
            }
            _ => {}
        }
        words.extend(self.trial.map(|time| format!("--trial {}", format_duration(time))));
        if self.way.direction() == Direction::Up {
            words.push("--direction up".to_owned());
        }
        words
    }

    /// What the model is asked.
    pub(super) fn request(&self) -> PredictRequest {
        PredictRequest {
            path: self.path.clone().map_or_else(|| PathRequest::Link(self.link.request()), PathRequest::Scenario),
            knobs: self.knobs.clone(),
            levels: self.levels.clone(),
            set: self.set.clone(),
            this_host: self.this_host,
            workload: self.workload.clone(),
            size: self.size,
            time: self.trial,
            direction: self.way.direction(),
            seeds: self.seeds,
            seed: self.seed,
            samples: self.samples,
        }
    }
}

impl LinkFlags {
    fn request(&self) -> LinkRequest {
        let usual = LinkRequest::of(self.rate.unwrap_or(BitsPerSecond(0)));
        let Self { rate: _, up_rate, rtt, loss, queue, framing, mtu } = self.clone();
        let framing = framing.unwrap_or(usual.framing);
        LinkRequest {
            up_rate,
            rtt: rtt.unwrap_or(usual.rtt),
            loss: loss.unwrap_or(usual.loss),
            queue,
            mtu: mtu.unwrap_or_else(|| LinkRequest::usual_mtu(&framing)),
            framing,
            rate: usual.rate,
        }
    }

    /// An option that says something of a link.
    fn given(&self) -> Option<&'static str> {
        let all = [
            ("--up-rate", self.up_rate.is_some()),
            ("--rtt", self.rtt.is_some()),
            ("--loss", self.loss.is_some()),
            ("--queue", self.queue.is_some()),
            ("--encap", self.framing.is_some()),
            ("--mtu", self.mtu.is_some()),
        ];
        all.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}
