use super::{ExportedPath, OneWay, mean_rate, one_line};
use crate::Scenario;
use std::time::Duration;
use wt_link::{Discipline, Distribution, JitterConfig, LossConfig, RateConfig, WireLen};
use wt_units::{BitsPerSecond, Bytes};

/// Delays of so many deviations above the mean find room in netem's limit: of a normal distribution one in 740 is longer.
const DEVIATIONS: u32 = 3;

/// Commands of tc for a router with a device on each side.
///
/// # Source
/// tc-netem(8) of iproute2, for the order and the meaning of the parameters.
pub(super) fn export(scenario: &Scenario) -> ExportedPath {
    let mut exported = ExportedPath {
        script: format!(
            "#!/bin/sh\n# {}: {}\n# Run it as root on a router (or bridge) between both hosts, never on a sender itself: there netem's\n\
             # drops are told to TCP as local congestion. Both devices are taken to be Ethernet.\n: \"${{CLIENT_DEV:?the device towards the client}}\" \
             \"${{SERVER_DEV:?the device towards the server}}\"\n",
            one_line(&scenario.name),
            one_line(&scenario.title)
        ),
        ..ExportedPath::default()
    };
    for (device, up) in [("$CLIENT_DEV", false), ("$SERVER_DEV", true)] {
        let mut one = OneWay::of(scenario, up);
        let parameters = parameters(&mut one);
        exported.script += &format!("tc qdisc replace dev \"{device}\" root netem{parameters}\n");
        let way = if up { "towards the server" } else { "towards the client" };
        exported.missing.extend(one.missing.into_iter().map(|what| format!("{way}: {what}")));
    }
    exported
}

fn parameters(one: &mut OneWay) -> String {
    let mut text = format!(" limit {}", limit(one));
    let mut lacks = Vec::new();
    text += &delay(one, &mut lacks);
    text += &loss(one, &mut lacks);
    if one.duplicate.get() > 0.0 {
        text += &format!(" duplicate {}", percent(one.duplicate.get()));
    }
    if one.corrupt.get() > 0.0 {
        text += &format!(" corrupt {}", percent(one.corrupt.get()));
    }
    text += &rate(one, &mut lacks);
    if let Some(queue) = &one.queue {
        if queue.discipline != Discipline::DropTail {
            lacks.push("the active queue management (the queue became drop-tail)".to_owned());
        }
        if queue.bound.bytes.is_some() {
            lacks.push("a queue counted in bytes (became packets of 1500 bytes)".to_owned());
        }
    }
    lacks.push("the queue apart from the delay: netem's limit counts what is propagating, too".to_owned());
    one.missing.extend(lacks);
    text
}

/// The queue's packets, and those that are held by propagation and jitter at full rate, as far as tc takes it.
fn limit(one: &OneWay) -> u64 {
    let rate = one.queue.as_ref().map_or(BitsPerSecond(0), |queue| mean_rate(&queue.rate));
    let longest = one.jitter.as_ref().map_or(Duration::ZERO, |jitter| longest(&jitter.distribution));
    let flying: Bytes = rate * one.delay.saturating_add(longest);
    (one.queue_packets() + flying.get().div_ceil(1500)).min(u32::MAX.into())
}

/// What jitter adds to a packet's delay in netem, but for few packets: a limit that has room for the mean alone drops packets behind
/// those that are held for longer, where the path has room in its queue.
fn longest(distribution: &Distribution) -> Duration {
    match *distribution {
        Distribution::Uniform { max, .. } => max,
        Distribution::Normal { mean, deviation } => mean.saturating_add(deviation.saturating_mul(DEVIATIONS)),
        // It becomes a table whose deviation is the mean.
        Distribution::Pareto { .. } => distribution.mean().saturating_mul(1 + DEVIATIONS),
    }
}

fn ms(time: Duration) -> String {
    format!("{}ms", time.as_secs_f64() * 1e3)
}

/// To a millionth of a percent, without the dust of binary fractions.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

fn delay(one: &OneWay, lacks: &mut Vec<String>) -> String {
    let Some(JitterConfig { distribution, correlation, reorder }) = &one.jitter else {
        return if one.delay.is_zero() { String::new() } else { format!(" delay {}", ms(one.delay)) };
    };
    if !reorder {
        lacks.push("jitter that keeps packets in order (netem reorders)".to_owned());
    }
    let correlated = if correlation.get() > 0.0 {
        lacks.push("the correlation exactly: netem mixes each delay with the one before".to_owned());
        format!(" {}", percent(correlation.get()))
    } else {
        String::new()
    };
    match distribution {
        Distribution::Uniform { min, max } => {
            let half = (*max - *min) / 2;
            format!(" delay {} {}{correlated}", ms(one.delay + *min + half), ms(half))
        }
        Distribution::Normal { mean, deviation } => {
            format!(" delay {} {}{correlated} distribution normal", ms(one.delay + *mean), ms(*deviation))
        }
        Distribution::Pareto { shape, .. } => {
            lacks.push(format!("the Pareto distribution's shape of {shape} and its cut: netem has one table"));
            let mean = distribution.mean();
            format!(" delay {} {}{correlated} distribution pareto", ms(one.delay + mean), ms(mean))
        }
    }
}

fn loss(one: &OneWay, lacks: &mut Vec<String>) -> String {
    match &one.model {
        Some(LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad }) => {
            if one.loss > 0.0 {
                lacks.push(format!("random loss of {} beside the bursts", percent(one.loss)));
            }
            // The last two: 1 − h is the loss while bad, 1 − k that while good.
            let all = [to_bad, to_good, loss_bad, loss_good].map(|share| percent(share.get())).join(" ");
            format!(" loss gemodel {all}")
        }
        Some(other) => {
            lacks.push(match other {
                LossConfig::EveryNth { n } => format!("loss of every {n}. packet"),
                LossConfig::Numbered { .. } => "loss of packets by their number in a connection".to_owned(),
                LossConfig::Next { .. } => "loss of single packets at a time".to_owned(),
                _ => "loss by size".to_owned(),
            });
            random(one.loss)
        }
        None => random(one.loss),
    }
}

fn random(share: f64) -> String {
    if share > 0.0 { format!(" loss random {}", percent(share)) } else { String::new() }
}

fn rate(one: &OneWay, lacks: &mut Vec<String>) -> String {
    let Some(queue) = &one.queue else { return String::new() };
    match &queue.rate {
        RateConfig::Constant(_) => {}
        RateConfig::Steps(_) => lacks.push("steps of the rate (the slowest is taken)".to_owned()),
        RateConfig::Trace(_) => lacks.push("the trace (its mean rate is taken)".to_owned()),
        RateConfig::TokenBucket(_) => lacks.push("the token bucket's burst".to_owned()),
        RateConfig::Modem(_) => lacks.push("the modem's escapes, compression and training".to_owned()),
    }
    let bits = mean_rate(&queue.rate).get();
    // RATE, then PACKETOVERHEAD, CELLSIZE and CELLOVERHEAD; netem sees Ethernet's header of 14 bytes, the figures don't.
    let framing = match &queue.framing {
        WireLen::Plain { add, min } => {
            if *min > 0 {
                lacks.push(format!("the least frame of {min} bytes"));
            }
            format!(" {}", i64::from(*add) - 14)
        }
        WireLen::Atm { add } => format!(" {} 48 5", i64::from(*add) - 14),
        WireLen::Ptm { add } => {
            lacks.push("PTM's byte after every 64: netem pads the last 64".to_owned());
            format!(" {} 64 1", i64::from(*add) - 14)
        }
        WireLen::Stack(_) => {
            lacks.push("the framing: its stack is no sum".to_owned());
            String::new()
        }
    };
    format!(" rate {bits}bit{framing}")
}
