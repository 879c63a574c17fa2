//! Congestion controls of a real kernel against arithmetic, on lab paths without other traffic and without a queue.
//!
//! `cargo bench -p windtunnel --bench oracles [-- WORD]` prints a line for each oracle, or for those that hold the word, and
//! fails if one is off by more than 15 %. With the rights to load BPF programs newreno of ours is measured beside the
//! kernel's reno; about two minutes, and more where the machine is busy: the lab runs late trials again.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails like a test")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{json, ran, windtunnel};
use serde_json::Value;

/// How far from the oracle a figure may be.
const MOST: f64 = 0.15;
/// Payload of a full segment of 1500 bytes with timestamps.
const MSS: f64 = 1448.0;
/// CUBIC's constant and what it keeps of the window (RFC 9438, section 4; 717/1024 in Linux).
const CUBIC_C: f64 = 0.4;
const CUBIC_BETA: f64 = 717.0 / 1024.0;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let ours = json(&["cc", "list", "--json"])["loadable"] == true;
    let mut figures = Vec::new();
    for cc in if ours { &["reno", "newreno"][..] } else { &["reno"] } {
        if wanted("recovery") {
            figures.push(recovery(cc));
        }
        if wanted("rate") {
            figures.push(rate(cc, "loss_model = { kind = \"every-nth\", n = 1600 }", "1 in 1600 lost"));
            figures.push(rate(cc, "loss = \"0.25%\", loss_by = \"index\"", "0.25 % lost at random"));
            figures.push(rate(cc, "loss = \"1%\", loss_by = \"index\"", "1 % lost at random"));
        }
    }
    if wanted("cubic") {
        figures.push(cubic());
    }
    let mut off = 0;
    for Figure { what, oracle, measured, unit } in figures {
        let error = measured / oracle - 1.0;
        println!("{what:<52} {oracle:8.2} {unit:<5} measured {measured:8.2}  {:+.1} %", error * 100.0);
        off += usize::from(error.is_nan() || error.abs() > MOST);
    }
    if off > 0 {
        println!("{off} off by more than {:.0} %", MOST * 100.0);
        std::process::exit(1);
    }
}

/// What arithmetic says, and what the lab measured.
struct Figure {
    what: String,
    oracle: f64,
    measured: f64,
    unit: &'static str,
}

/// One trial: the answer of `cc compare`, and the trial's outcome from the journal.
struct Trial {
    told: Value,
    outcome: Value,
}

/// Runs one trial of one control on a link of 100 Mbit/s with this RTT and these further fields.
fn trial(cc: &str, rtt_ms: u32, fields: &str, length: &str, more: &[&str]) -> Trial {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("oracle.toml");
    let half = rtt_ms / 2;
    let way = format!("rate = \"100mbit\", delay = \"{half}ms\", queue_packets = 1000");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\nmtu = 1500\ndown = {{ {way}, {fields} }}\nup = {{ {way} }}\n"
    );
    std::fs::write(&path, text).unwrap();
    let mut command = windtunnel(home.path());
    command.args(["cc", "compare", "--lab"]).arg(&path);
    command.args(["--algorithms", cc, "--rounds", "1", "--trial", length, "--quiet", "--json"]).args(more);
    let compared = ran(command.output().unwrap());
    assert_eq!(compared.code, 0, "{}", compared.err);
    let exported = ran(windtunnel(home.path()).args(["journal", "export", "last"]).output().unwrap());
    let exported: Value = serde_json::from_str(&exported.out).unwrap();
    let trials = exported["trials"].as_array().unwrap();
    let completed = trials.iter().rfind(|trial| trial["outcome"]["status"] == "completed").unwrap();
    Trial { told: serde_json::from_str(&compared.out).unwrap(), outcome: completed["outcome"].clone() }
}

/// The window over time around the scripted loss.
struct Sawtooth {
    /// The window before it, segments.
    before: f64,
    /// RTT, s.
    rtt: f64,
    /// After the retransmission: time since its round trip was over, s, and window, segments.
    after: Vec<(f64, f64)>,
}

/// A loss in congestion avoidance. An outage of one RTT ends slow start before it, so that the window is moderate.
fn sawtooth(cc: &str) -> Sawtooth {
    let first = "outages = { windows = [[\"500ms\", \"600ms\"]] }";
    let Trial { outcome, told } = trial(cc, 100, first, "20s", &["--disturb", "loss"]);
    let number = |sample: &Value, name: &str| sample[name].as_f64().unwrap();
    let samples = outcome["sender"].as_array().unwrap();
    let scripted = told["disturbance"]["at_s"].as_f64().unwrap() * 1e6;
    let early = samples.iter().rfind(|sample| number(sample, "t_us") < scripted - 500_000.0).unwrap();
    let again = number(early, "retransmits");
    let index = samples.iter().position(|sample| number(sample, "retransmits") > again).unwrap();
    let rtt = number(&samples[index], "min_rtt") / 1e6;
    let zero = number(&samples[index], "t_us") / 1e6 + rtt;
    let point = |sample: &Value| (number(sample, "t_us") / 1e6 - zero, number(sample, "snd_cwnd") / MSS);
    let after = samples[index..].iter().map(point).filter(|(t, _)| *t > 0.0).collect();
    Sawtooth { before: number(&samples[index - 1], "snd_cwnd") / MSS, rtt, after }
}

/// After a halving, NewReno is back at W after W/2 round trips.
fn recovery(cc: &str) -> Figure {
    let Sawtooth { before, rtt, after } = sawtooth(cc);
    let back = after.iter().find(|(_, window)| *window >= before).map_or(f64::NAN, |(t, _)| *t);
    Figure {
        what: format!("{cc}: recovery of W = {before:.0}, W/2 RTTs"),
        oracle: before / 2.0,
        measured: back / rtt,
        unit: "RTTs",
    }
}

/// CUBIC is back at W after K = cbrt(W (1 − beta) / C). Around K its curve is flat, so K is read from every point of it:
/// where the window is w after t, K = t + cbrt((W − w) / C).
fn cubic() -> Figure {
    let Sawtooth { before, after, .. } = sawtooth("cubic");
    let oracle = (before * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt();
    let inverse = |(t, w): &(f64, f64)| t + ((before - w) / CUBIC_C).cbrt();
    // The first tenth still catches up with the curve; within 2 segments of W whole segments are too coarse.
    let told = after.iter().filter(|(t, w)| *t > oracle / 10.0 && *t < oracle && before - w > 2.0);
    let mut found: Vec<f64> = told.map(inverse).collect();
    found.sort_by(f64::total_cmp);
    let measured = found.get(found.len() / 2).copied().unwrap_or(f64::NAN);
    Figure { what: format!("cubic: K for W = {before:.0}, from the curve"), oracle, measured, unit: "s" }
}

/// 1.22 MSS / (RTT sqrt(p)) with the losses that there really were. The first ten seconds, in which slow start's window is
/// brought down, are left out of the rate.
fn rate(cc: &str, loss: &str, words: &str) -> Figure {
    const FROM_US: f64 = 10e6;
    let Trial { outcome, .. } = trial(cc, 60, loss, "50s", &[]);
    let seen = |name: &str| outcome["observed"][name].as_f64().unwrap();
    let p = seen("losses") / (outcome["bytes"].as_f64().unwrap() / MSS + seen("retransmits"));
    let rtt = seen("min_rtt_us") / 1e6;
    let samples = outcome["receiver"].as_array().unwrap();
    let number = |sample: &Value, name: &str| sample[name].as_f64().unwrap();
    let first = samples.iter().find(|sample| number(sample, "t_us") >= FROM_US).unwrap();
    let last = samples.last().unwrap();
    let bytes = number(last, "bytes") - number(first, "bytes");
    Figure {
        what: format!("{cc}: 1.22 MSS / (RTT sqrt(p)), {words}"),
        oracle: 1.22 * MSS / (rtt * p.sqrt()) / 1e3,
        measured: bytes / (number(last, "t_us") - number(first, "t_us")) * 1e3,
        unit: "kB/s",
    }
}
