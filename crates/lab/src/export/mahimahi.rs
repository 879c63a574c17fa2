use super::{ExportedPath, OneWay, mean_rate, one_line};
use crate::Scenario;
use std::fmt::Write as _;
use std::path::Path;
use wt_link::{Discipline, RateConfig, Trace};
use wt_units::{BitsPerSecond, shell_word};

/// What mm-link sends at each opportunity.
const BYTES: u64 = 1504;
/// Traces of constant rates last so long at most, ms.
const LONGEST_MS: u64 = 60_000;
/// Lines of a trace that we write at most.
const MOST_LINES: u64 = 2_000_000;

/// Commands of mahimahi, and the traces that they need.
///
/// # Source
/// mm-delay(1), mm-loss(1) and mm-link(1) of mahimahi.
pub(super) fn export(scenario: &Scenario, folder: &Path) -> ExportedPath {
    let (mut up, mut down) = (OneWay::of(scenario, true), OneWay::of(scenario, false));
    let mut exported = ExportedPath::default();
    let mut command = String::new();
    let [delay_up, delay_down] = [&up, &down].map(OneWay::mean_delay);
    let mean = (delay_up + delay_down) / 2;
    let ms = (mean.as_secs_f64() * 1e3).round() as u64;
    if delay_up != delay_down || mean != std::time::Duration::from_millis(ms) {
        exported.missing.push("the delay exactly: mm-delay has whole milliseconds, the same both ways".to_owned());
    }
    let _ = write!(command, "mm-delay {ms}");
    for (name, one) in [("uplink", &mut up), ("downlink", &mut down)] {
        if one.loss > 0.0 {
            let _ = write!(command, " mm-loss {name} {}", (one.loss * 1e8).round() / 1e8);
        }
        exported.missing.extend(lacks(one).into_iter().map(|what| format!("{name}: {what}")));
    }
    let names = ["up", "down"].map(|way| format!("{}.{way}", scenario.name));
    for (name, one) in names.iter().zip([&up, &down]) {
        let rate = one.queue.as_ref().map_or(BitsPerSecond(1), |queue| mean_rate(&queue.rate));
        let (trace, exact) = own_trace(one).map_or_else(|| trace(rate), |own| (lines(own.moments_ms()), true));
        if !exact {
            exported.missing.push(format!("{name}: the rate exactly; the trace rounds it"));
        }
        exported.files.push((name.clone(), trace));
    }
    let place = |name: &String| folder.join(name).display().to_string();
    let _ = write!(command, " mm-link {} {}", shell_word(&place(&names[0])), shell_word(&place(&names[1])));
    for (name, one) in [("uplink", &up), ("downlink", &down)] {
        let _ = write!(command, " --{name}-queue=droptail --{name}-queue-args=packets={}", one.queue_packets());
    }
    exported
        .missing
        .push("the framing: mm-link counts 1504 bytes per opportunity whatever a packet's framing".to_owned());
    exported.missing.push("IPv6".to_owned());
    exported.script = format!("# {}: {}\n{command}\n", one_line(&scenario.name), one_line(&scenario.title));
    exported
}

fn lacks(one: &mut OneWay) -> Vec<String> {
    let mut lacks = std::mem::take(&mut one.missing);
    let has = [
        (one.model.is_some(), "the model of loss"),
        (one.jitter.is_some(), "jitter (its mean is in the delay)"),
        (one.duplicate.get() > 0.0, "duplication"),
        (one.corrupt.get() > 0.0, "corruption"),
    ];
    lacks.extend(has.iter().filter(|(there, _)| *there).map(|(_, what)| (*what).to_owned()));
    if let Some(queue) = &one.queue {
        if queue.discipline != Discipline::DropTail {
            lacks.push("the active queue management (the queue became drop-tail)".to_owned());
        }
        match queue.rate {
            RateConfig::Constant(_) => {}
            RateConfig::Trace(_) if own_trace(one).is_some() => {}
            RateConfig::Trace(_) => {
                lacks.push(format!("the trace: its opportunities aren't of {BYTES} bytes (its mean rate is taken)"));
            }
            _ => lacks.push("a rate that isn't constant".to_owned()),
        }
    }
    lacks
}

/// The trace of a path whose slowest link has one that mm-link takes as it is.
fn own_trace(one: &OneWay) -> Option<&Trace> {
    match &one.queue.as_ref()?.rate {
        RateConfig::Trace(config) if config.bytes.get() == BYTES => Some(&config.trace),
        _ => None,
    }
}

fn lines(moments_ms: impl Iterator<Item = impl std::fmt::Display>) -> String {
    let mut text = String::new();
    for ms in moments_ms {
        let _ = writeln!(text, "{ms}");
    }
    text
}

/// A trace of a constant rate, as short as it can be exact, and whether it is.
fn trace(rate: BitsPerSecond) -> (String, bool) {
    let bits = BYTES * 8;
    // Rates go up to 10^15 bit/s.
    let of = |period: u64| u128::from(rate.get()) * u128::from(period);
    let a_line = u128::from(bits * 1000);
    // In `period` ms there are `count` opportunities: rate = count · bits · 1000 / period.
    let exact = (1..=LONGEST_MS).find(|period| of(*period).is_multiple_of(a_line));
    let lines_in = |period: u64| u64::try_from(of(period) / a_line).unwrap_or(u64::MAX);
    let (period, count) = match exact.filter(|period| lines_in(*period) <= MOST_LINES) {
        Some(period) => (period, lines_in(period)),
        None => {
            let period = (MOST_LINES * bits * 1000 / rate.get().max(1)).clamp(1, LONGEST_MS);
            let count = u64::try_from(of(period).div_ceil(a_line)).unwrap_or(u64::MAX);
            (period, count.clamp(1, MOST_LINES))
        }
    };
    let text = lines((1..=count).map(|number| (number * period).div_ceil(count)));
    (text, exact.is_some() && u128::from(count) * a_line == of(period))
}
