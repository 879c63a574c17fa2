use super::answer::{Answer, SCHEMA_VERSION};
use super::draw;
use crate::edge::say;
use serde_json::json;
use std::fmt::Write as _;
use wt_report::{Axis, Chart, Rule, Series};
use wt_units::{BitsPerSecond, Ratio};
use wt_wire::{Account, Framing, Group};

/// The width of what is printed, columns.
const WIDTH: usize = 96;
/// The most peaks of a sweep that are listed.
const MOST_PEAKS: usize = 12;

/// What a person reads.
pub(super) fn report(answer: &Answer) -> String {
    let mut text = format!("{}\n\n", title(answer));
    if !answer.sweep.is_empty() {
        if answer.sweep.len() > 1 {
            // The line above says already what it is of.
            let chart = Chart { subtitle: String::new(), ..chart(answer) };
            text.push_str(&chart.to_terminal(WIDTH, 20, false));
            text.push('\n');
        }
        text.push_str(&peaks(answer));
        text.push('\n');
    }
    text.push_str(&figures(answer));
    let packets = if answer.account.packets > 1 { "a full packet's" } else { "the" };
    let _ = writeln!(text, "\nIn the order of the wire, {packets} frame of {} bytes:", frame_len(answer));
    text.push_str(&draw::frame(&answer.pieces, WIDTH));
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.trim_end().to_owned()
}

fn title(answer: &Answer) -> String {
    let options = match answer.headers.options_len().get() {
        0 => String::new(),
        bytes => format!(" with {bytes} bytes of options"),
    };
    format!("{} · IPv{} · {}{options}", answer.framing, answer.ip, answer.proto.to_uppercase())
}

fn frame_len(answer: &Answer) -> i64 {
    answer.pieces.iter().map(|piece| piece.len).sum()
}

fn figures(answer: &Answer) -> String {
    let account = &answer.account;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    line("MTU", format!("{} bytes", answer.mtu.get()));
    line("payload", format!("{} bytes in {}", account.payload_len.get(), packets(account)));
    if answer.framing.has_tunnel() {
        line("outer packet", format!("{} bytes", answer.outer_len.get()));
    }
    let cells = account.cells.map_or_else(String::new, |cells| format!(", {cells} cells of 53"));
    line("on the wire", format!("{} bytes{cells}", account.wire_len.get()));
    let added = account.wire_len.get() as i128 - i128::from(account.payload_len.get());
    let share = account.overhead().map_or_else(String::new, |share| format!(", {} of the payload", percent(share)));
    line("overhead", format!("{added} bytes{share}"));
    line("efficiency", percent(account.efficiency()));
    if let Some(rate) = answer.link_rate {
        let goodput = account.goodput(rate);
        line("goodput", format!("at most {} ({}) over {}", goodput.human(), kbytes(goodput), rate.human()));
    }
    if let Some(wanted) = answer.wanted {
        let needed = account.link_rate_for(wanted);
        line("needed rate", format!("{} of the wire for {} of payload", needed.human(), wanted.human()));
    }
    let best = percent(answer.best.efficiency());
    line("best MTU", format!("{} at or under {}: {best}", answer.best_mtu.get(), answer.max_mtu.get()));
    text
}

fn packets(account: &Account) -> String {
    if account.packets == 1 { "one packet".to_owned() } else { format!("{} packets", account.packets) }
}

fn percent(share: Ratio) -> String {
    format!("{:.2} %", share.get() * 100.0)
}

fn kbytes(rate: BitsPerSecond) -> String {
    let bytes = rate.get() as f64 / 8.0;
    if bytes >= 1e7 { format!("{:.1} MB/s", bytes / 1e6) } else { format!("{:.1} kB/s", bytes / 1e3) }
}

/// The sawtooth.
pub(super) fn chart(answer: &Answer) -> Chart {
    let percent = |account: &Account| account.efficiency().get() * 100.0;
    let points = answer.sweep.iter().map(|(mtu, account)| (mtu.get() as f64, percent(account))).collect();
    let inside = answer.sweep.iter().any(|(mtu, _)| *mtu == answer.best_mtu);
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
fn peaks(answer: &Answer) -> String {
    let efficiency = |index: usize| answer.sweep.get(index).map_or(-1.0, |(_, account)| account.efficiency().get());
    let is_peak = |index: usize| {
        (index == 0 || efficiency(index) > efficiency(index - 1)) && efficiency(index) > efficiency(index + 1)
    };
    let all: Vec<usize> = (0..answer.sweep.len()).filter(|index| is_peak(*index)).collect();
    let shown = &all[all.len().saturating_sub(MOST_PEAKS)..];
    let mut text = String::from("   peak MTU   payload      wire    cells  efficiency   one byte more\n");
    for &index in shown {
        let (mtu, account) = &answer.sweep[index];
        let cells = account.cells.map_or_else(|| "-".to_owned(), |cells| cells.to_string());
        let after = answer.sweep.get(index + 1).map_or_else(|| "-".to_owned(), |(_, next)| percent(next.efficiency()));
        let _ = writeln!(
            text,
            "  {:>9} {:>9} {:>9} {cells:>8} {:>11} {after:>15}",
            mtu.get(),
            account.payload_len.get(),
            account.wire_len.get(),
            percent(account.efficiency()),
        );
    }
    if shown.len() < all.len() {
        let _ = writeln!(text, "  the last {} of {}", shown.len(), all.len());
    }
    text
}

/// The words of stacks.
pub(super) fn list(as_json: bool) {
    if as_json {
        let words: Vec<_> = Framing::words()
            .map(|word| {
                let linear = linear_bytes(word.name);
                json!({
                    "name": word.name, "aliases": word.aliases, "about": word.about,
                    "group": group(word.group).0, "bytes": word.bytes(), "alone_bytes": linear,
                })
            })
            .collect();
        say!("{:#}", json!({ "schema_version": SCHEMA_VERSION, "words": words }));
        return;
    }
    say!("Words of a stack, joined by + from the packet outwards: wireguard+ip6+pppoe-ptm");
    for wanted in [Group::Link, Group::Cake, Group::Tunnel, Group::Carrier] {
        say!("\n{}", group(wanted).1);
        for word in Framing::words().filter(|word| word.group == wanted) {
            let also = if word.aliases.is_empty() { String::new() } else { format!(" ({})", word.aliases.join(", ")) };
            say!("  {:<28} {}{also}", word.name, word.about);
        }
    }
}

/// What the word alone adds to a long packet before cells, carriers included.
fn linear_bytes(name: &str) -> Option<i64> {
    Framing::parse(name).ok()?.linear().map(|linear| linear.add)
}

fn group(group: Group) -> (&'static str, &'static str) {
    match group {
        Group::Link => ("link", "Links"),
        Group::Cake => ("cake", "Links by the keywords of tc-cake(8), as tc adds them up"),
        Group::Tunnel => ("tunnel", "Tunnels, inside a link; what carries them goes without saying"),
        Group::Carrier => ("carrier", "What carries a tunnel, if it isn't UDP or IPv4 as usual"),
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
