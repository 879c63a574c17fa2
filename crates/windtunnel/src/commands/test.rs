//! `windtunnel test`: one transfer, one line of the log.

use super::tune::find_key;
use crate::cli::forms::say_json;
use crate::cli::probe::Ip;
use crate::cli::signals::cancel_on_signals;
use crate::cli::typed;
use crate::cli::values::{RateUnit, trial_time};
use crate::edge::{Exit, Outcome, Problem, note, say};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_api::{Answer, Event, Request, Services};
use wt_experiment::classic::CovariateEffect;
use wt_prober::IpVersion;
use wt_report::date;
use wt_tune::{
    Covariate, HostTests, LiveRequest, LoggedTest, LoggedTests, SummaryRequest, TestGroup, TestGrouping, TestRequest,
    TuneEvent,
};
use wt_units::three_digits;

/// Downloads once with the settings as they are, and logs it
///
/// One line for each download, with its number in the journal, the time, the server, bytes, seconds and rate; the journal
/// keeps all settings that were in force. Of a profile every server is asked in turn, and you get a table: hops, TTL,
/// time to connect, rate. Nothing is compared and nothing is claimed: that is what `windtunnel tune` does. A download takes `--time` at most; for the
/// answer of a silent server it waits up to 30 s longer.
/// `--summary` puts the log's tests together: mean ± SE by comment, server or setting, and how far each group lies above the first, with a
/// covariate such as the rate at which a modem connected taken out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel test http://example.org/file.iso --comment 'new modem'
  windtunnel test servers.toml --each 3 --units kB
  windtunnel test ftp://192.0.2.1/290k.bin --json
  windtunnel test servers.toml --comment 'mtu 576' --covariate connect-rate=31200
  windtunnel test --summary --by comment --units B
  windtunnel journal list")]
pub(crate) struct TestArgs {
    /// The file: http(s)://HOST/FILE, ftp(s)://HOST/FILE, wt://HOST; or a profile, a TOML file that names several
    #[arg(value_name = "TARGET", required_unless_present = "summary")]
    target: Option<String>,
    /// Note stored with it
    #[arg(long, conflicts_with = "summary")]
    comment: Option<String>,
    /// What else is known of the moment, a number: connect-rate=31200; may be repeated
    #[arg(long, value_name = "NAME=NUMBER", conflicts_with = "summary")]
    covariate: Vec<Covariate>,
    /// Put the log's tests together instead; with a TARGET, only those of it
    #[arg(long)]
    summary: bool,
    /// By what tests are put together: comment, server, or a setting such as net.ipv4.ip_default_ttl
    #[arg(long, value_name = "WHAT", default_value = "comment", requires = "summary")]
    by: TestGrouping,
    /// The covariate that is taken out [default: the one that there is]
    #[arg(long, value_name = "NAME", requires = "summary")]
    adjust_for: Option<String>,
    /// Downloads from each server; servers take turns
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "summary")]
    each: usize,
    /// A download ends after this time, if the file hasn't before
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = trial_time, conflicts_with = "summary")]
    time: Duration,
    /// In which unit rates are written
    #[arg(long, value_enum, default_value_t)]
    units: RateUnit,
    /// Don't ask how many hops away the servers are
    #[arg(long, conflicts_with = "summary")]
    no_hops: bool,
    /// The key of `windtunnel serve`, in a file
    #[arg(long, value_name = "FILE", conflicts_with = "summary")]
    key_file: Option<PathBuf>,
    /// Believe the certificate authorities in this file, too (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "summary")]
    ca: Option<PathBuf>,
    /// The version of IP [default: what the name resolves to first]
    #[arg(long, value_enum, conflicts_with = "summary")]
    ip: Option<Ip>,
    /// The journal [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl TestArgs {
    fn request(&self) -> Result<TestRequest, Problem> {
        let target = self.target.clone().unwrap_or_default();
        Ok(TestRequest {
            key: find_key(Some(&target), self.key_file.as_deref())?,
            target,
            covariates: self.covariate.clone(),
            each: self.each,
            time: self.time,
            no_hops: self.no_hops,
            live: LiveRequest { ca: self.ca.clone(), ip: self.ip.map(IpVersion::from), ..LiveRequest::default() },
            comment: self.comment.clone().unwrap_or_default(),
            journal: self.journal.clone(),
            command: typed::command(),
        })
    }
}

/// Runs the command; ends with code 1 if nothing was completed.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &TestArgs) -> Outcome {
    if args.summary {
        return summary(args);
    }
    let cancel = cancel_on_signals()?;
    let mut sink = |event: Event| {
        if let (Event::Tune(TuneEvent::Note { text }), false) = (&event, args.json) {
            note(text);
        }
    };
    let request = Request::Test(Box::new(args.request()?));
    let Answer::Tests(answer) = wt_api::run(request, &Services::default(), &mut sink, &cancel)? else {
        return Err(Problem::internal("another answer than was asked for"));
    };
    if args.json {
        say_json(&*answer)?;
    } else {
        print(&answer, args.units, args.journal.as_deref());
    }
    Ok(if answer.mean_bps.is_some() { Exit::Done } else { Exit::No })
}

fn summary(args: &TestArgs) -> Outcome {
    let found = wt_tune::summary(&SummaryRequest {
        target: args.target.clone(),
        by: args.by.clone(),
        covariate: args.adjust_for.clone(),
        journal: args.journal.clone(),
    })?;
    if args.json {
        say_json(&found)?;
        return Ok(Exit::Done);
    }
    let units = args.units;
    let at = |effect: &CovariateEffect, name: &str| format!("at {name}={}", three_digits(effect.at, effect.at));
    let adjusted = found.effect.as_ref().zip(found.covariate.as_deref()).map(|(effect, name)| at(effect, name));
    let head = adjusted.as_deref().unwrap_or_default();
    let wide = adjusted.as_ref().map_or(0, |head| head.chars().count().max(24));
    let by = format!("by {}", found.by);
    let longest = found.groups.iter().map(|group| group.label.chars().count()).max().unwrap_or(0);
    let side = longest.max(by.chars().count());
    say!("{by:<side$} {:>6}  {:<22} {head:<wide$}  above the first", "tests", "mean ± SE");
    for TestGroup { label, completed, tests, mean } in &found.groups {
        let size = mean.own.map_or(0.0, |own| own.mean);
        let own = units.show_mean(mean.own.map(|own| own.mean), mean.own.and_then(|own| own.sd_of_mean));
        let there = adjusted.as_ref().map(|_| units.show_mean(mean.adjusted, mean.adjusted_error)).unwrap_or_default();
        let above = units.show_above(mean.above_first, mean.low.zip(mean.high), size);
        let name: String = if label.is_empty() { "–".to_owned() } else { label.clone() };
        let line = format!("{name:<side$} {:>6}  {own:<22} {there:<wide$}  {above}", format!("{completed}/{tests}"));
        say!("{}", line.trim_end());
    }
    found.notes().iter().for_each(|note| say!("{note}"));
    Ok(Exit::Done)
}

fn print(answer: &LoggedTests, units: RateUnit, journal: Option<&Path>) {
    log_lines(&answer.tests, units);
    if answer.hosts.len() > 1 {
        table(answer, units);
    }
    if answer.tests.len() == 1 {
        in_force(answer);
    }
    let kept = format!("Kept: windtunnel journal show {}", answer.id);
    say!("{}", typed::naming_journal(&kept, &answer.id, journal));
}

/// Each test of the log: number, moment, server, what came, and the way to it.
pub(crate) fn log_lines(tests: &[LoggedTest], units: RateUnit) {
    for test in tests {
        let rate = units.show(test.goodput_bps);
        let status = if test.status == "completed" { String::new() } else { format!("  {}", test.status) };
        say!("{:>5}  {}  {}", test.number, date(test.started_unix_us), test.server);
        say!("       {} bytes in {:.2} s: {rate}{status}", test.bytes, test.seconds);
        test.way().into_iter().for_each(|way| say!("       over {way}"));
        test.notes.iter().for_each(|note| say!("       {note}"));
    }
}

/// The settings, in lines that fit.
fn in_force(answer: &LoggedTests) {
    const WIDTH: usize = 79;
    let mut line = "       with".to_owned();
    let known = answer.covariates.iter().map(|(name, value)| format!(" {name}={value}"));
    let plain = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let set =
        answer.settings.iter().map(|(name, value)| format!(" {}={}", name.trim_start_matches("net."), plain(value)));
    for word in known.chain(set) {
        if line.len() + word.len() > WIDTH {
            say!("{line}");
            line = "           ".to_owned();
        }
        line.push_str(&word);
    }
    say!("{line}");
}

/// The widest column of hosts beside figures at 80 columns.
const WIDEST: usize = 34;

fn table(answer: &LoggedTests, units: RateUnit) {
    let shown = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    say!("");
    let name = |host: &HostTests| host.server.split("://").last().unwrap_or(&host.server).to_owned();
    let side = answer.hosts.iter().map(|host| name(host).chars().count()).max().unwrap_or(0).clamp(9, WIDEST);
    say!("{:<side$} {:>4} {:>4} {:>9} {:>5}  rate", "host", "hops", "TTL", "connect", "tests");
    for host in &answer.hosts {
        let HostTests { hops, reply_ttl, connect_us, completed, tests, .. } = host;
        let mut name = name(host);
        if name.chars().count() > side {
            // In full, and the figures below it.
            say!("{name}");
            name.clear();
        }
        say!(
            "{name:<side$} {:>4} {:>4} {:>9} {:>5}  {}",
            shown(hops.map(|hops| hops.to_string())),
            shown(reply_ttl.map(|ttl| ttl.to_string())),
            shown(connect_us.map(|us| format!("{:.1} ms", us / 1e3))),
            format!("{completed}/{tests}"),
            units.show_mean(host.mean_bps, host.standard_error_bps)
        );
    }
    say!(
        "{:<side$} {:>4} {:>4} {:>9} {:>5}  {}",
        "mean ± SE",
        "",
        "",
        "",
        "",
        units.show_mean(answer.mean_bps, answer.standard_error_bps)
    );
}
