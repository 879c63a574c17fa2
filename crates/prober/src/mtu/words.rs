use crate::RefusalAnswer;
use crate::target::{Target, no_time};
use std::net::IpAddr;
use wt_probe::{Finding, Kind, PathKind, SearchReport};
use wt_problem::{Fault, Problem};

/// What it means that a host answered nothing.
pub fn unanswered(target: &Target, report: &SearchReport) -> Problem {
    if report.findings.contains(&Finding::OutOfTime) {
        return no_time(target);
    }
    if report.findings.contains(&Finding::PathChanged) {
        let what = format!("the path to {} changed or broke while it was probed", target.name);
        return Problem::new(Fault::Remote, what)
            .because(
                "what had got through before wasn't answered any more; it may also be that its answers are rationed",
            )
            .hint("try again, or name a TCP port that is open there, as HOST:PORT");
    }
    if report.findings.iter().any(|finding| matches!(finding, Finding::TooFewAnswers | Finding::GaveUp)) {
        let what = format!("what gets through to {} ({}) can't be told", target.name, target.ip);
        return Problem::new(Fault::Remote, what)
            .because("too few probes were answered: its answers are rationed, or nearly all packets get lost")
            .hint("name a TCP port that is open there, as HOST:PORT; TCP probes need CAP_NET_RAW (root)");
    }
    // A kernel calls a connection refused where a firewall on the way says that it is forbidden, too.
    let elsewhere = report.refusal.is_some_and(|said| said.from != Some(target.ip));
    if report.findings.contains(&Finding::PortRefused) && !elsewhere {
        let what = format!("{} ({}) refuses TCP connections at port {}", target.name, target.ip, target.port);
        return Problem::new(Fault::Remote, format!("{what}, and answers nothing else"))
            .because(
                "a firewall forbids ICMP echo and UDP; only packets that an ordinary user can't send make it answer",
            )
            .hint("run it as root (CAP_NET_RAW): its refusals then tell sizes; or name an open port, as HOST:PORT");
    }
    if report.findings.contains(&Finding::LittleAnswered) {
        let what = format!("what gets through to {} ({}) can't be told", target.name, target.ip);
        return Problem::new(Fault::Remote, what)
            .because(format!(
                "it answers, but nothing that tells sizes: no data on TCP connections to port {}, and no ICMP echo or UDP",
                target.port
            ))
            .hint("run it as root (CAP_NET_RAW), or name another TCP port that is open there, as HOST:PORT");
    }
    let problem = Problem::new(Fault::Remote, format!("{} ({}) answers nothing", target.name, target.ip));
    match refusal(target, report) {
        Some(said) => problem.because(said.text()).hint(said.hint(&target.name)),
        None => problem
            .because("it is down, or a firewall forbids ICMP echo, the TCP port and UDP")
            .hint("name a TCP port that is open there, as HOST:PORT; TCP probes need CAP_NET_RAW (root)"),
    }
}

/// That a target was searched by packets of a connection, and another one for a scan didn't come about.
pub(crate) fn no_connection(target: &Target) -> Problem {
    let what = format!("{} ({}) no longer accepts a TCP connection at port {}", target.name, target.ip, target.port);
    Problem::new(Fault::Remote, what)
        .because("it did when its path was searched, and sizes are scanned by packets of a connection: it limits new ones, or too much gets lost")
        .hint("try again, or name another TCP port that is open there, as HOST:PORT")
}

/// Who says that packets to the target go no further.
pub(super) fn refusal(target: &Target, report: &SearchReport) -> Option<RefusalAnswer> {
    report.refusal.map(|said| RefusalAnswer::of(said, target.ip.is_ipv6(), None))
}

/// What the path answered.
pub(super) const fn method(kind: Kind) -> &'static str {
    match kind {
        Kind::Echo | Kind::LooseEcho => "icmp-echo",
        Kind::Udp => "udp",
        Kind::Stream | Kind::LastingStream => "tcp-data",
        Kind::RefusedSyn => "tcp-refused",
        Kind::OldSegment | Kind::Syn => "tcp-old-segment",
    }
}

/// What else was found.
pub(super) fn findings(target: &Target, report: &SearchReport) -> Vec<String> {
    let words = report.findings.iter().map(|finding| match finding {
        Finding::EchoBlocked => "the target answers no ICMP echo".to_owned(),
        Finding::AbsurdHints { count } => format!("{count} ICMP messages named an impossible MTU; they were ignored"),
        Finding::HoleAbove { told, lost } => format!(
            "packets of {lost} bytes vanish without a word before they get to the router that tells of those of {told}"
        ),
        Finding::EchoLostOnItsWayBack => "longer echoes get there and vanish on their way back".to_owned(),
        Finding::HoleOnTheWayBack { most } => format!(
            "packets of more than {most} bytes vanish on their way back, and nobody says so: downloads hang or begin after a stall"
        ),
        Finding::TargetsMss { mss } => {
            let narrow = if report.reverse_pmtu.is_some() { "" } else { "; its way back may be narrower" };
            format!(
                "an MSS of {mss} comes back: the target's own choice, or lowered on its way back or by the last router{narrow}"
            )
        }
        Finding::RandomLoss => "packets of every size get lost".to_owned(),
        Finding::LossByRate => {
            "long packets get lost where many come at once, and fewer where they come slower: a policer or a short queue"
                .to_owned()
        }
        Finding::PortRefused => "the target refuses TCP connections at that port".to_owned(),
        Finding::TooFewAnswers => {
            "too few probes were answered to tell what vanishes: answers are rationed, or nearly all get lost"
                .to_owned()
        }
        Finding::LowerBound { mss: Some(mss) } => {
            format!("longer ones can't be tried: TCP's MSS is {mss}, and the target answers no datagrams")
        }
        Finding::LowerBound { mss: None } => format!(
            "longer ones can't be tried: this host holds itself to that size (ip route get {} shows a route's MTU or a path MTU that it \
             has learnt), and the target answers no datagrams",
            target.ip
        ),
        Finding::FlowsTooLong { size, longest } => format!(
            "other branches of a load balancer weren't looked for: this host sends no TCP packets of {size} bytes there, but {longest} \
             (ip route get {} shows a route's MTU or a path MTU that it has learnt)",
            target.ip
        ),
        Finding::FlowsRetransmitted { size, late, flows } => format!(
            "{late} of {flows} TCP connections had to retransmit packets of {size} bytes that other probes don't lose: a branch of a load \
             balancer may be narrower, and retransmissions take another one"
        ),
        Finding::LittleAnswered => "it answers, but nothing that tells sizes".to_owned(),
        Finding::PathChanged => {
            "what had got through before didn't any more: the path changed or broke, or answers are rationed".to_owned()
        }
        Finding::Unreachable { .. } => {
            refusal(target, report).map_or("nothing answered".to_owned(), |said| format!("unreachable: {}", said.text()))
        }
        Finding::OutOfTime => "the time was up before the search was done".to_owned(),
        Finding::GaveUp => "no clear answer within the bounds of packets and rounds".to_owned(),
    });
    words.chain(uneven(report)).chain(cleared(report)).collect()
}

/// Connections that load balancers send over unequal branches.
fn uneven(report: &SearchReport) -> Option<String> {
    let flows = report.flows.filter(|_| report.kind == PathKind::NarrowBranch)?;
    let (size, sent, lost) = (flows.size, flows.flows, flows.flows - flows.carried);
    Some(format!(
        "{lost} of {sent} TCP connections carry no packets of {size} bytes, and nobody says so: a load balancer sends them \
         over a branch with a smaller MTU"
    ))
}

/// A router that clears "don't fragment".
fn cleared(report: &SearchReport) -> Option<String> {
    let hop = report.df_cleared?;
    Some(format!(
        "before hop {} ({}) \"don't fragment\" is cleared: routers behind fragment what is too long",
        hop.ttl, hop.address
    ))
}

/// What to do about it.
pub(super) fn advice(target: &Target, report: &SearchReport) -> Vec<String> {
    let Some(pmtu) = report.pmtu else { return Vec::new() };
    let narrow = narrower(target.ip, u64::from(pmtu));
    let probing = "windtunnel settings plan mtu-probing=on  # TCP then finds the size itself, after a stall".to_owned();
    let hole_back = report.findings.iter().find_map(|finding| match finding {
        Finding::HoleOnTheWayBack { most } => Some(*most),
        _ => None,
    });
    let back = hole_back.map(|most| shorter_back(target.ip, most)).into_iter();
    let forward = match report.kind {
        PathKind::BlackHole | PathKind::LyingRouter => vec![narrow, probing],
        PathKind::NarrowBranch => vec![probing],
        PathKind::SizeDependentLoss => vec![
            format!("windtunnel mtu --scan {}  # finds the size from which packets get lost", target.name),
            "lower the MSS to that size: a loss-based congestion control gains most".to_owned(),
        ],
        PathKind::RateLimited => vec![probing],
        _ => Vec::new(),
    };
    back.chain(forward).collect()
}

/// The command that shows how to ask a target for packets of at most that size.
fn shorter_back(target: IpAddr, most: u16) -> String {
    let mss = most.saturating_sub(if target.is_ipv6() { 60 } else { 40 });
    format!("windtunnel settings plan mss={mss} --to {target}  # the target then sends packets of at most {most} bytes")
}

/// The command that shows how to keep packets to a target, and those from it, at a size. `settings apply` does it.
pub(super) fn narrower(target: IpAddr, mtu: u64) -> String {
    const LEAST_OF_IPV6: u64 = 1_280;
    let mss = mtu.saturating_sub(if target.is_ipv6() { 60 } else { 40 });
    // The kernel has no smaller MTU on routes of IPv6; the MSS still keeps TCP below.
    let mtu = if target.is_ipv6() && mtu < LEAST_OF_IPV6 { String::new() } else { format!("mtu={mtu} ") };
    format!("windtunnel settings plan {mtu}mss={mss} --to {target}")
}
