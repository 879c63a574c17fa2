use crate::edge::say;
use wt_probe::PathKind;
use wt_prober::mtu::{MtuAnswer, OpenScan, SearchAnswer};

/// What searches found, host by host; of several also which of them nothing is known of, and why.
pub(super) fn show(answers: &[MtuAnswer]) {
    for answer in answers {
        match answer.problem().filter(|_| answers.len() > 1) {
            Some(problem) => say!("{}: {}", answer.search.target, problem.what),
            None => show_host(answer, answers.len()),
        }
    }
}

/// What a search found of a host, if it answered.
fn show_host(answer: &MtuAnswer, hosts: usize) {
    let search = &answer.search;
    let (Some(pmtu), Some(address)) = (search.pmtu, search.address) else { return };
    let bound = if search.pmtu_at_least { "at least" } else { "up to" };
    say!("{} ({address}): packets of {bound} {pmtu} bytes get through", search.target);
    let scanned = answer.scan.as_ref().and_then(|scan| scan.threshold);
    let open = answer.scan.as_ref().and_then(|scan| scan.open).filter(|_| search.kind == PathKind::Inconclusive);
    say!(
        "  {}",
        scanned.map_or_else(
            || open.map_or_else(|| sentence(search, pmtu), |open| sentence_of_open(open).to_owned()),
            |found| {
                let (high, low) = (found.loss_above * 100.0, found.loss_below * 100.0);
                format!(
                    "size-dependent loss: {high:.0} % of those above {} bytes get lost, {low:.1} % of shorter ones",
                    found.below
                )
            }
        )
    );
    match search.reverse_pmtu {
        Some(reverse) if reverse == pmtu => say!("  and as large ones come back"),
        Some(reverse) => say!("  packets of up to {reverse} bytes come back"),
        None => {}
    }
    if let Some(clamp) = search.mss_clamp {
        let place = clamp.hop.map_or("on the way or by the target's choice".to_owned(), |hop| {
            format!("before hop {} ({})", hop.ttl, hop.address)
        });
        say!("  TCP's MSS is lowered from {} to {}, {place}", clamp.from, clamp.to);
    }
    for finding in &search.findings {
        say!("  {finding}");
    }
    let rtt = answer.rtt_us.map_or(String::new(), |rtt| format!(", RTT {:.1} ms", rtt / 1e3));
    let by = search.method.unwrap_or_default();
    let (packets, seconds) = answer.reverse.map_or((0, 0.0), |reverse| (reverse.packets, reverse.seconds));
    let all = search.packets + packets;
    // What leaves for several hosts at once is told together.
    let sent = if hosts > 1 {
        format!("{} probes of {all} packets to all hosts", search.probes)
    } else {
        format!("{all} packets")
    };
    say!("  {sent}, {:.2} s, by {by}{rtt}", search.seconds + seconds);
    // A scan tells its own behind the table.
    for line in search.advice.iter().filter(|_| scanned.is_none()) {
        say!("  to do: {line}");
    }
}

/// What a scan leaves open, where the search had found nothing wrong.
const fn sentence_of_open(open: OpenScan) -> &'static str {
    match open {
        OpenScan::Unanswered => "inconclusive: the search's packets were answered, and none of the scan's",
        OpenScan::LongLoseMore => "inconclusive: longer packets get lost more often, perhaps by the scan's own rate",
    }
}

fn sentence(search: &SearchAnswer, pmtu: u16) -> String {
    let hop = search.black_hole_hop.map_or(String::new(), |hop| format!(" behind hop {} ({})", hop.ttl, hop.address));
    match search.kind {
        PathKind::BlackHole => format!("black hole{hop}: longer ones vanish there, and nobody says so"),
        PathKind::ReverseBlackHole => "clean on the way there, a black hole on the way back".to_owned(),
        PathKind::LyingRouter => {
            let router = search.black_hole_hop.map(|hop| hop.address);
            let says = search.hints.iter().find(|hint| hint.router == router);
            let says = says.map_or(String::new(), |hint| format!(": it says that {} do", hint.mtu));
            format!("lying router{hop}{says}")
        }
        PathKind::SizeDependentLoss => {
            let (short, long) = search.loss;
            format!(
                "size-dependent loss: {:.0} % of {pmtu} bytes get lost, {:.0} % of short ones",
                long.loss() * 100.0,
                short.loss() * 100.0
            )
        }
        PathKind::RateLimited => "rate-limited: routers say so, but not every time".to_owned(),
        PathKind::NarrowBranch => "narrow branch: some connections carry less than others".to_owned(),
        PathKind::DfCleared => "fragmented: routers cut up what is too long, whoever forbids it".to_owned(),
        PathKind::IcmpBlocked => "clean, though the target answers no ICMP".to_owned(),
        PathKind::Clean | PathKind::Clamped if search.device_mtu.is_some_and(|most| pmtu >= most) => {
            format!("clean: all that {} takes gets through", search.device.as_deref().unwrap_or("the device"))
        }
        PathKind::Clean | PathKind::Clamped => "clean: routers say so when packets are longer".to_owned(),
        PathKind::Inconclusive if search.pmtu_at_least => "inconclusive: longer ones may get through, too".to_owned(),
        PathKind::Inconclusive => "it can't be said why".to_owned(),
    }
}
