use crate::edge::{Exit, Outcome, Problem, say};
use serde_json::json;
use wt_cc::Choice;
use wt_setup::controls::available;

/// What the kernel brings, in the words in which ours are told.
struct Native {
    name: &'static str,
    title: &'static str,
    lines: [&'static str; 5],
    source: &'static str,
}

const KERNEL: [Native; 3] = [
    Native {
        name: "reno",
        title: "NewReno by Linux's rules",
        lines: [
            "Grows by the packets acknowledged in slow start, then by one packet per round trip.",
            "Halves the window once for all losses of one window of data, spread over the round trip (PRR).",
            "Recent acknowledgement (RACK) and tail loss probes find losses without waiting for timeouts.",
            "Random loss p holds the window to about 1.22/sqrt(p) packets, whatever the path could carry.",
            "Always there; the kernel falls back to it.",
        ],
        source: "RFC 5681, RFC 6582, RFC 6937; net/ipv4/tcp_cong.c of Linux",
    },
    Native {
        name: "cubic",
        title: "CUBIC",
        lines: [
            "After a loss keeps 70 % of the window and returns to the old one along a cubic curve in time.",
            "Stays level near the old window, then probes beyond it faster and faster.",
            "On short or slow paths it grows like NewReno would, so as not to be slower than it.",
            "HyStart ends slow start when the RTT begins to rise.",
            "The default of Linux; K = cbrt(W * 0.3 / 0.4) seconds back to a window of W packets.",
        ],
        source: "RFC 9438; net/ipv4/tcp_cubic.c of Linux",
    },
    Native {
        name: "bbr",
        title: "BBR version 1",
        lines: [
            "Measures the path's rate and its shortest RTT, and paces to the one with a window of twice their product.",
            "Doesn't react to single losses at all.",
            "Probes for more rate one RTT in eight, and drains the queue in the next one.",
            "Every ten seconds it sends next to nothing for 200 ms, to see the shortest RTT.",
            "Fast under random loss; unfair to others at short queues.",
        ],
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; net/ipv4/tcp_bbr.c of Linux",
    },
];

/// Runs the command.
pub(super) fn run(name: &str, as_json: bool) -> Outcome {
    if let Some(native) = KERNEL.iter().find(|native| native.name == name) {
        return kernel(native, as_json);
    }
    let choice: Choice = name.parse().map_err(|error: wt_cc::ChoiceError| {
        Problem::usage(error.to_string()).hint("windtunnel cc list shows them; reno, cubic and bbr are the kernel's")
    })?;
    ours(&choice, as_json);
    Ok(Exit::Done)
}

fn kernel(native: &Native, as_json: bool) -> Outcome {
    let there = available().iter().any(|name| name == native.name);
    if as_json {
        say!(
            "{}",
            json!({"schema_version": 1, "name": native.name, "title": native.title, "lines": native.lines,
                "parameters": [], "variants": [], "source": native.source, "kernel": true, "available": there})
        );
        return Ok(Exit::Done);
    }
    say!("{}: {}\n", native.name, native.title);
    native.lines.iter().for_each(|line| say!("  {line}"));
    say!("\nSource: {}", native.source);
    let state = if there { "The kernel has it now." } else { "The kernel hasn't got it now: modprobe may bring it." };
    say!("{state}");
    Ok(Exit::Done)
}

fn ours(choice: &Choice, as_json: bool) {
    let algorithm = choice.algorithm;
    if as_json {
        let parameters: Vec<_> = algorithm
            .parameters
            .iter()
            .zip(&choice.values)
            .map(|(p, value)| {
                json!({"name": p.name, "value": p.format(*value), "default": p.format(p.default),
                    "allowed": p.allowed(), "help": p.help})
            })
            .collect();
        let variants: Vec<_> =
            algorithm.variants.iter().map(|variant| json!({"name": variant.name, "help": variant.help})).collect();
        say!(
            "{}",
            json!({"schema_version": 1, "name": algorithm.name, "title": algorithm.title, "lines": algorithm.lines,
                "variant": choice.variant_text(), "kernel_name": choice.kernel_name(), "parameters": parameters,
                "variants": variants, "source": algorithm.source, "kernel": false,
                "available": available().contains(&choice.kernel_name())})
        );
        return;
    }
    say!("{choice}: {}\n", algorithm.title);
    algorithm.lines.iter().for_each(|line| say!("  {line}"));
    say!("\nParameters (of {}):", choice.variant_text());
    for (parameter, value) in algorithm.parameters.iter().zip(&choice.values) {
        let value = parameter.format(*value);
        say!(
            "  {:<16} {value:<8} {} (default {})",
            parameter.name,
            parameter.help,
            parameter.format(parameter.default)
        );
    }
    if algorithm.variants.len() > 1 {
        say!("\nVariants:");
        algorithm.variants.iter().for_each(|variant| say!("  {:<16} {}", variant.name, variant.help));
    }
    say!("\nSource: {}", algorithm.source);
    say!("In the kernel it is called {}.", choice.kernel_name());
}
