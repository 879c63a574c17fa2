//! What the layers below TCP cost, for terminals and as a chart.

/// The frame as boxes.
mod frame;

use crate::chart::{Axis, Chart, Rule, Series};
use std::fmt::Write as _;
use wt_units::{BitsPerSecond, Ratio};
use wt_wire::{Group, IpVersion, OverheadAnswer, OverheadProto, OverheadWords, SweepStep};

/// The width of what is printed, columns.
const WIDTH: usize = 80;
/// The most peaks of a sweep that are listed.
const MOST_PEAKS: usize = 12;

/// The answer as a person reads it: figures, the frame, and of a sweep its sawtooth.
#[must_use]
pub fn overhead_text(answer: &OverheadAnswer) -> String {
    let mut text = format!("{}\n\n", title(answer));
    if !answer.sweep.is_empty() {
        if answer.sweep.len() > 1 {
            // The line above says already what it is of.
            let chart = Chart { subtitle: String::new(), ..overhead_chart(answer) };
            text.push_str(&chart.to_terminal(WIDTH, 20, false));
            text.push('\n');
        }
        text.push_str(&peaks(answer));
        text.push('\n');
    }
    text.push_str(&figures(answer));
    let packets = if answer.packets > 1 { "a full packet's" } else { "the" };
    let _ = writeln!(text, "\nIn the order of the wire, {packets} frame of {} bytes:", frame_len(answer));
    text.push_str(&frame::boxes(&answer.layers, WIDTH));
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.trim_end().to_owned()
}

fn title(answer: &OverheadAnswer) -> String {
    let options = match answer.tcp_options_len.get() {
        0 => String::new(),
        bytes => format!(" with {bytes} bytes of options"),
    };
    format!("{} · {} · {}{options}", answer.encap, ip(answer.ip), proto(answer.proto))
}

fn frame_len(answer: &OverheadAnswer) -> i64 {
    answer.layers.iter().map(|piece| piece.len).sum()
}

fn figures(answer: &OverheadAnswer) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    line("MTU", format!("{} bytes", answer.mtu.get()));
    line("payload", format!("{} bytes in {}", answer.payload_len.get(), packets(answer)));
    if answer.encap.has_tunnel() {
        line("outer packet", format!("{} bytes", answer.outer_len.get()));
    }
    let cells = answer.cells.map_or_else(String::new, |cells| format!(", {cells} cells of 53"));
    line("on the wire", format!("{} bytes{cells}", answer.wire_len.get()));
    let added = answer.wire_len.get() as i128 - i128::from(answer.payload_len.get());
    let share = answer.overhead_ratio.map_or_else(String::new, |share| format!(", {} of the payload", percent(share)));
    line("overhead", format!("{added} bytes{share}"));
    line("efficiency", percent(answer.efficiency));
    if let (Some(rate), Some(goodput)) = (answer.link_rate_bps, answer.goodput_bps) {
        line("goodput", format!("at most {} ({}) over {}", goodput.human(), kbytes(goodput), rate.human()));
    }
    if let (Some(wanted), Some(needed)) = (answer.wanted_goodput_bps, answer.needed_link_rate_bps) {
        line("needed rate", format!("{} of the wire for {} of payload", needed.human(), wanted.human()));
    }
    let best = percent(answer.best_efficiency);
    line("best MTU", format!("{} at or under {}: {best}", answer.best_mtu.get(), answer.max_mtu.get()));
    text
}

fn packets(answer: &OverheadAnswer) -> String {
    if answer.packets == 1 { "one packet".to_owned() } else { format!("{} packets", answer.packets) }
}

const fn ip(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "IPv4",
        IpVersion::V6 => "IPv6",
    }
}

const fn proto(proto: OverheadProto) -> &'static str {
    match proto {
        OverheadProto::Tcp => "TCP",
        OverheadProto::Udp => "UDP",
    }
}

fn percent(share: Ratio) -> String {
    format!("{:.2} %", share.get() * 100.0)
}

fn kbytes(rate: BitsPerSecond) -> String {
    let bytes = rate.get() as f64 / 8.0;
    if bytes >= 1e7 { format!("{:.1} MB/s", bytes / 1e6) } else { format!("{:.1} kB/s", bytes / 1e3) }
}

/// The sawtooth of a sweep: efficiency by MTU.
#[must_use]
pub fn overhead_chart(answer: &OverheadAnswer) -> Chart {
    let point = |step: &SweepStep| (step.mtu.get() as f64, step.efficiency.get() * 100.0);
    let points = answer.sweep.iter().map(point).collect();
    let inside = answer.sweep.iter().any(|step| step.mtu == answer.best_mtu);
    let best = Rule::vertical(answer.best_mtu.get() as f64, format!("best: {}", answer.best_mtu.get()));
    Chart {
        title: "Efficiency of full packets".into(),
        subtitle: title(answer),
        x: Axis::linear("MTU", "bytes"),
        y: Axis::linear("payload's share of the wire", "%"),
        series: vec![Series::line("", points)],
        rules: if inside { vec![best] } else { Vec::new() },
        ..Chart::default()
    }
}

/// The MTUs of a sweep that are better than both neighbours, with the valley behind each.
fn peaks(answer: &OverheadAnswer) -> String {
    let efficiency = |index: usize| answer.sweep.get(index).map_or(-1.0, |step| step.efficiency.get());
    let is_peak = |index: usize| {
        (index == 0 || efficiency(index) > efficiency(index - 1)) && efficiency(index) > efficiency(index + 1)
    };
    let all: Vec<usize> = (0..answer.sweep.len()).filter(|index| is_peak(*index)).collect();
    let shown = &all[all.len().saturating_sub(MOST_PEAKS)..];
    let mut text = String::from("   peak MTU   payload      wire    cells  efficiency   one byte more\n");
    for &index in shown {
        let step = &answer.sweep[index];
        let cells = step.cells.map_or_else(|| "-".to_owned(), |cells| cells.to_string());
        let after = answer.sweep.get(index + 1).map_or_else(|| "-".to_owned(), |next| percent(next.efficiency));
        let _ = writeln!(
            text,
            "  {:>9} {:>9} {:>9} {cells:>8} {:>11} {after:>15}",
            step.mtu.get(),
            step.payload_len.get(),
            step.wire_len.get(),
            percent(step.efficiency),
        );
    }
    if shown.len() < all.len() {
        let _ = writeln!(text, "  the last {} of {}", shown.len(), all.len());
    }
    text
}

/// The words of stacks, group by group, as a person reads them.
#[must_use]
pub fn overhead_words_text(list: &OverheadWords) -> String {
    let mut text = String::from("Words of a stack, joined by + from the packet outwards: wireguard+ip6+pppoe-ptm");
    for wanted in [Group::Link, Group::Cake, Group::Tunnel, Group::Carrier] {
        let _ = write!(text, "\n\n{}", group(wanted));
        for word in list.words.iter().filter(|word| word.group == wanted) {
            let also = if word.aliases.is_empty() { String::new() } else { format!(" ({})", word.aliases.join(", ")) };
            let _ = write!(text, "\n  {:<28} {}{also}", word.name, word.about);
        }
    }
    text
}

const fn group(group: Group) -> &'static str {
    match group {
        Group::Link => "Links",
        Group::Cake => "Links by the keywords of tc-cake(8), as tc adds them up",
        Group::Tunnel => "Tunnels, inside a link; what carries them goes without saying",
        Group::Carrier => "What carries a tunnel, if it isn't UDP or IPv4 as usual",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_also_given_in_bytes() {
        assert_eq!(kbytes(BitsPerSecond(6_836_275)), "854.5 kB/s");
        assert_eq!(kbytes(BitsPerSecond(949_284_785)), "118.7 MB/s");
        assert_eq!(percent(Ratio(0.854_53)), "85.45 %");
    }
}
