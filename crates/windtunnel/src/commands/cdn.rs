//! `windtunnel cdn`: a client, an edge and a backend, and which of their four initial windows matters on which request.

use super::comparison::{ends, progress};
use super::lab::LabOptions;
use crate::cli::forms::give;
use crate::cli::signals::cancel_on_signals;
use crate::cli::typed;
use crate::edge::{Outcome, say, say_table};
use clap::{Args, ValueEnum};
use std::io::Write as _;
use wt_compare::cdn::{
    self, CdnAnswer, CdnMeasured, CdnModelled, CdnRequest, EdgeRequest, HopSeconds, Proxy, RequestMeasured,
    WindowMeasured,
};
use wt_compare::{CompareEvent, LabRequest};
use wt_units::Bytes;

/// Finds which initial windows of a CDN affect response times
///
/// A client, an edge with nginx or Varnish as a caching proxy, and a backend, as three hosts of the lab. Every round asks for an object
/// that the edge has (a hit) and for one that it must fetch (a miss) under half of the combinations of two levels of
/// each window, in random order, over cold connections. What is claimed holds however long you watched (95 %).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cdn
  windtunnel cdn my-chain.toml --object 300kB --low 4 --high 32 --rounds 12 --json
  windtunnel cdn --model")]
pub(crate) struct CdnArgs {
    /// The path: a preset's name or a TOML file, with one host on the way
    #[arg(default_value = "cdn-chain", value_name = "PATH")]
    path: String,
    /// How large the object is
    #[arg(long, default_value = "100kB", value_parser = object)]
    object: Bytes,
    /// The small level of each window, segments
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    low: u32,
    /// The large level of each window, segments
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=1000))]
    high: u32,
    /// Rounds, of eight combinations each
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Let the model answer, in moments and without any host: all sixteen combinations once. It is no evidence
    #[arg(long, conflicts_with_all = ["rounds", "proxy"])]
    model: bool,
    /// What caches at the edge
    #[arg(long, value_enum, default_value_t = ProxyName::Nginx)]
    proxy: ProxyName,
    /// Draws the order of the combinations from this number: only to repeat an order [default: the operating system draws
    /// one]
    #[arg(long, value_name = "N", value_parser = crate::cli::values::order_seed, conflicts_with = "model")]
    order_seed: Option<u64>,
    #[command(flatten)]
    options: LabOptions,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Proxies by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProxyName {
    /// nginx with `proxy_cache`.
    Nginx,
    /// Varnish.
    Varnish,
}

fn object(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=50_000_000).contains(&size.get()) { Ok(size) } else { Err("from 1 B to 50 MB, please".to_owned()) }
}

impl CdnArgs {
    /// What is asked for.
    fn request(&self) -> CdnRequest {
        let lab = LabRequest {
            seed: self.options.seed,
            order_seed: self.order_seed,
            backend: self.options.backend.into(),
            sharp: self.options.sharp,
            command: typed::command(),
            ..LabRequest::on(&self.path)
        };
        CdnRequest {
            lab,
            object: self.object,
            low: self.low,
            high: self.high,
            rounds: self.rounds,
            model: self.model,
            proxy: match self.proxy {
                ProxyName::Nginx => Proxy::Nginx,
                ProxyName::Varnish => Proxy::Varnish,
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &CdnArgs) -> Outcome {
    let cancel = cancel_on_signals()?;
    let mut progress = progress(args.quiet);
    // What is refused is told without it.
    let mut tell = |event| {
        let begins = matches!(event, CompareEvent::Begin { .. });
        if let (true, false, Some(line)) = (begins, args.quiet, too_few(args.rounds, cdn::fewest_rounds())) {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
        progress(event);
    };
    let answer = cdn::run(&args.request(), &cancel, &mut tell)?;
    give(&answer, args.json, |answer| match answer {
        CdnAnswer::Measured(measured) => print(measured),
        CdnAnswer::Modelled(modelled) => print_model(modelled),
    })?;
    Ok(ends(answer.is_no()))
}

/// That so many rounds can't show anything, if it is so.
fn too_few(rounds: u32, fewest: u32) -> Option<String> {
    let rounds = (rounds < fewest).then(|| wt_units::counted(rounds as usize, "round"))?;
    Some(format!("{rounds} can show nothing of any window, whatever they bring: it takes {fewest} at least."))
}

fn print(answer: &CdnMeasured) {
    say!(
        "{}: client and edge {:.0} ms apart, edge and backend {:.0} ms; an object of {} over cold connections",
        answer.path,
        answer.rtt_ms.client_edge,
        answer.rtt_ms.edge_backend,
        answer.object().human()
    );
    for (request, measured) in &answer.requests {
        print_request(*request, measured, (answer.low, answer.high));
    }
    let done = answer.requests.values().map(|one| one.rounds).min().unwrap_or(0);
    if let Some(line) = too_few(u32::try_from(done).unwrap_or(u32::MAX), answer.fewest_rounds) {
        say!("\n{line}");
    }
}

fn print_request(request: EdgeRequest, measured: &RequestMeasured, (low, high): (u32, u32)) {
    say!("\n{}", request.title());
    let needed = measured.windows.first().map_or(f64::NAN, |window| window.needed);
    let head = ["  window", &format!("{low}->{high}"), "95 %", &format!("of {needed:.0}:1"), "shown"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(measured.windows.iter().map(window_row));
    say_table(&rows, &[1, 3]);
    remarks(&measured.windows).iter().for_each(|line| say!("  {line}"));
    print_hops(&measured.combinations, (low, high));
    let named = |name: &&str| measured.windows.iter().find(|one| one.window == *name).map(|one| one.what);
    let names: Vec<&str> = measured.matters.iter().filter_map(named).collect();
    match names.as_slice() {
        [] => say!("  No window is shown to matter on a {}.", request.name()),
        names => say!("  On a {} these matter: {}.", request.name(), names.join("; ")),
    }
}

/// What "faster" means where it isn't shown to matter.
fn remarks(windows: &[WindowMeasured]) -> Vec<String> {
    let least = (cdn::RELEVANT - 1.0) * 100.0;
    let faster = || windows.iter().filter(|window| window.faster && !window.matters);
    let is_little = |window: &WindowMeasured| window.ratio.is_some_and(|ratio| ratio < cdn::RELEVANT);
    let mut lines = Vec::new();
    if faster().any(is_little) {
        lines.push(format!("faster: by less than {least:.0} %, which doesn't matter"));
    }
    if faster().any(|window| !is_little(window)) {
        lines.push(format!("faster: it is shown to be, but not by how much; {least:.0} % at least would matter"));
    }
    lines
}

fn window_row(window: &WindowMeasured) -> Vec<String> {
    let ratio = |value: Option<f64>| value.map_or("open".to_owned(), |value| format!("{value:.2}"));
    let shown = match () {
        () if window.matters => "matters",
        () if window.faster => "faster",
        () if window.slower => "slower",
        () => "-",
    };
    vec![
        format!("  {}", window.what),
        format!("×{}", ratio(window.ratio)),
        format!("{}–{}", ratio(window.lower), ratio(window.upper)),
        format!("{:.1}", window.evidence.min(99_999.0)),
        shown.to_owned(),
    ]
}

/// What each hop's two windows come to: four combinations of each hop, the sender's window changing last.
fn print_hops(combinations: &[HopSeconds], (low, high): (u32, u32)) {
    let cell = |one: &HopSeconds| one.seconds.map_or("?".to_owned(), |seconds| format!("{:.0} ms", seconds * 1e3));
    for hop in combinations.chunks_exact(4) {
        let name = hop[0].hop;
        say!(
            "  {name}: initcwnd {low} -> {high} takes {} -> {} where initrwnd is {low},",
            cell(&hop[0]),
            cell(&hop[2])
        );
        say!("  {:width$}  {} -> {} where it is {high}", "", cell(&hop[1]), cell(&hop[3]), width = name.len() + 26);
    }
}

fn print_model(answer: &CdnModelled) {
    let (low, high) = (answer.low, answer.high);
    say!(
        "{}: a model's answer, not a measurement; an object of {} over cold connections",
        answer.path,
        answer.object().human()
    );
    for (request, modelled) in &answer.requests {
        say!("\n{}", request.title());
        let row = |what: &str, figure: String| vec![format!("  {what}"), figure];
        let ratio = |value: Option<f64>| value.map_or("?".to_owned(), |ratio| format!("×{ratio:.2}"));
        let mut rows = vec![row("window", format!("{low}->{high}"))];
        rows.extend(modelled.windows.iter().map(|window| row(window.what, ratio(window.ratio))));
        say_table(&rows, &[1]);
        print_hops(&modelled.combinations, (low, high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_whose_size_isnt_shown_is_told_from_one_that_doesnt_matter() {
        let window = |ratio: f64, faster: bool| WindowMeasured {
            window: "backend",
            what: "",
            ratio: Some(ratio),
            lower: Some(1.001),
            upper: None,
            evidence: 200.0,
            needed: 160.0,
            matters: false,
            slower: false,
            faster,
        };
        assert_eq!(remarks(&[window(1.3, false)]), [""; 0]);
        assert_eq!(remarks(&[window(1.004, true)]), ["faster: by less than 1 %, which doesn't matter"]);
        let told = remarks(&[window(1.3, true)]);
        assert_eq!(told, ["faster: it is shown to be, but not by how much; 1 % at least would matter"]);
        let guide = include_str!("../../../../docs/guide/cdn.md");
        assert!(guide.contains(&format!("by at least {:.0} %", (cdn::RELEVANT - 1.0) * 100.0)));
    }
}
