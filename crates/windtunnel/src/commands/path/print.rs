use crate::commands::trace::lines_of;
use wt_probe::PathKind;
use wt_prober::path::{PathAnswer, RttAnswer};
use wt_units::BitsPerSecond;

/// Why round trips weren't counted: only UDP was answered.
const RATIONED: &str = "unknown: only UDP is answered, by errors whose number is limited; name an open port (HOST:443), or run it as root, by pings";

/// The screen.
pub(super) fn text(answer: &PathAnswer) -> String {
    let search = &answer.search;
    let address = search.address.map_or(String::new(), |address| format!(" ({address})"));
    let device = search.device.as_deref().unwrap_or("?");
    let mtu = search.device_mtu.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
    let mut rows: Vec<(&str, String)> = vec![
        ("path to", format!("{}{address}", search.target)),
        ("adapter", format!("{device}{mtu}, address {}", answer.source)),
    ];
    let least = if search.pmtu_at_least { "at least " } else { "" };
    let pmtu = search.pmtu.map_or("?".to_owned(), |pmtu| format!("{least}{pmtu}"));
    let hop = search.black_hole_hop.map_or(String::new(), |hop| format!(" behind hop {} ({})", hop.ttl, hop.address));
    // Each way with what is the matter there.
    let (there, back) = match search.kind {
        PathKind::ReverseBlackHole => (PathKind::Clean.word(), ", black hole"),
        kind => (kind.word(), ""),
    };
    rows.push(("path MTU there", format!("{pmtu} bytes, {there}{hop}")));
    if let Some(reverse) = search.reverse_pmtu {
        rows.push(("path MTU back", format!("{reverse} bytes{back}")));
    }
    if let Some(mss) = search.mss {
        rows.push(("MSS of the target", format!("{mss} bytes")));
    }
    rows.extend(search.findings.iter().map(|finding| ("finding", finding.clone())));
    rows.push(("link, probably", answer.link_guess.to_owned()));
    rows.extend(measured(answer));
    let mut text: String = rows.iter().map(|(name, value)| format!("{name:<18} {value}\n")).collect();
    text.push_str("hops\n");
    for line in lines_of(&answer.route.hops, answer.count.is_none()) {
        text.push_str(&line);
        text.push('\n');
    }
    for line in &search.advice {
        text.push_str(&format!("to do: {line}\n"));
    }
    text + &format!("{} packets, {:.1} s", search.packets, search.seconds)
}

/// Round trips, the narrowest link, and the windows that follow.
fn measured(answer: &PathAnswer) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(count) = answer.count {
        rows.push(("RTT", round_trips(answer.rtt_us, answer.jitter_us)));
        let (low, high) = count.interval();
        let loss = format!("{:.1} % ({:.1} to {:.1} %)", count.loss() * 100.0, low * 100.0, high * 100.0);
        let reordered = answer.reordered.unwrap_or(0);
        let cut = answer
            .cut_after
            .map_or(String::new(), |seconds| format!("; {} packets, for no more than {seconds} s", count.sent));
        rows.push(("loss", format!("{loss}, {reordered} of {} reordered{cut}", count.answered)));
    } else {
        rows.push(("RTT, loss, rate", RATIONED.to_owned()));
    }
    rows.extend(narrowest(answer).map(|text| ("narrowest link", text)));
    if let (Some(bdp), Some(initcwnd)) = (answer.bdp_bytes, answer.initcwnd) {
        let window = "RWIN belongs to the way back: windtunnel tune measures it";
        rows.push(("bandwidth-delay", format!("{bdp} bytes there, initcwnd {initcwnd} segments; {window}")));
    }
    rows
}

fn round_trips(rtt: RttAnswer, jitter_us: Option<f64>) -> String {
    let RttAnswer { min: Some(min), median: Some(median), p99: Some(p99) } = rtt else {
        return "no answer".to_owned();
    };
    let jitter = jitter_us.map_or(String::new(), |jitter| format!("; jitter {:.2} ms", jitter / 1e3));
    format!("min {:.2} ms, median {:.2} ms, 99 % {:.2} ms{jitter}", min / 1e3, median / 1e3, p99 / 1e3)
}

/// The rate of the narrowest link with its interval, or why there is none.
fn narrowest(answer: &PathAnswer) -> Option<String> {
    let rate = |bps: f64| BitsPerSecond(bps as u64).human();
    match (answer.bottleneck_bps, answer.bottleneck_low_bps, answer.bottleneck_high_bps) {
        (Some(bps), Some(low), Some(high)) => Some(format!("{} ({} to {})", rate(bps), rate(low), rate(high))),
        (Some(_), Some(low), None) if answer.bottleneck_answers_limited == Some(true) => {
            Some(format!("at least {} (perhaps it is the answers that come back no faster)", rate(low)))
        }
        (Some(_), Some(low), None) => Some(format!("at least {} (this host sends no faster)", rate(low))),
        _ if answer.bottleneck_packets > 0 => {
            Some("unknown: the answers came too unevenly to tell its rate".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_without_an_answer_take_no_time() {
        assert_eq!(round_trips(RttAnswer::default(), None), "no answer");
        let rtt = RttAnswer { min: Some(1e3), median: Some(2e3), p99: Some(2e3) };
        assert_eq!(round_trips(rtt, Some(500.0)), "min 1.00 ms, median 2.00 ms, 99 % 2.00 ms; jitter 0.50 ms");
        assert_eq!(round_trips(rtt, None), "min 1.00 ms, median 2.00 ms, 99 % 2.00 ms");
    }
}
