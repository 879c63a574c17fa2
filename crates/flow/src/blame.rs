//! Which end is to blame, and for what, in words.
//!
//! Every finding has a weight: the share of the connection's time that it cost, or 1 and more where nothing works at all.
//! The heaviest is the verdict, the others are told beside it.

mod marks;
mod supply;

use crate::connection::{Connection, End};
use crate::finding::{Blame, Culprit, Finding, Reason};
use crate::report::{ConnectionReport, EndReport, Position, State};
use wt_units::{counted, three_digits};

/// Less than this share of the time isn't told.
const LEAST: f64 = 0.05;
/// Less than this share of the time without anything under way isn't told.
const IDLE: f64 = 0.3;
/// Whom a silence at the end is blamed on waited for at least so long, µs.
const LEAST_SILENCE_US: u64 = 1_000_000;
/// A window that held the sender back for less than this share of the time isn't told.
const WINDOW: f64 = 0.2;

/// A connection with its verdict.
pub(crate) fn judged(connection: &Connection, number: u64) -> ConnectionReport {
    let mut report = ConnectionReport::of(connection, number);
    if report.without_time > 0 {
        let number = counted(report.without_time as usize, "packet");
        let text = format!("Who is to blame can't be said: of {number} of it the capture doesn't tell the time.");
        report.blame = Blame { text, ..Blame::default() };
        return report;
    }
    if report.looks_joined {
        let text = "This looks like two captures in one: nearly all of its packets stand in it twice. What looks retransmitted are the \
                    same packets at another place: analyse each capture by itself.";
        report.blame = Blame { text: text.to_owned(), ..Blame::default() };
        return report;
    }
    report.blame = blame(&report, connection.half(End::Client).rst, connection.half(End::Server).rst);
    report
}

/// Weighs what was found.
fn blame(report: &ConnectionReport, client_reset: bool, server_reset: bool) -> Blame {
    let mut findings = Vec::new();
    opening(report, &mut findings);
    findings.extend(silence(report));
    for end in [End::Client, End::Server] {
        receiver(report, end, &mut findings);
        sender(report, end, &mut findings);
        findings.extend(marks::marks(report, end));
        supply::supply(report, end, &mut findings);
        let reset = if end == End::Client { client_reset } else { server_reset };
        let lost = report.end(end.other()).most_in_flight > 0;
        if reset && report.state == State::Reset && lost && report.time.ending_us < report.duration_us / 2 {
            let text = format!("{} reset the connection.", name(report, end));
            findings.push(Finding { end: end.into(), reason: Reason::Reset, weight: 0.06, text });
        }
    }
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    match findings.first() {
        Some(first) => Blame { end: first.end, reason: first.reason, text: first.text.clone(), findings },
        None => Blame { text: hole(report).unwrap_or_else(|| nothing(report)), ..Blame::default() },
    }
}

/// Where the capture lacks what was under way for as long as would be told.
fn hole(report: &ConnectionReport) -> Option<String> {
    let part = share(report, report.hole_us);
    (part >= IDLE).then(|| {
        let [client, server] = [&report.client, &report.server].map(|end| end.bytes_unseen);
        format!(
            "What held it back for {} can't be told: packets of that time aren't in the capture, though numbers and ACKs say that they passed \
             ({client} bytes of the client, {server} of the server).",
            percent(part)
        )
    })
}

fn nothing(report: &ConnectionReport) -> String {
    if let (State::Opening, Some(us)) = (report.state, report.given_up_us) {
        let (waited, server) = (seconds(report.duration_us + us), report.server.address);
        return format!(
            "{waited} after the SYN to {server} it was given up to bound memory: before an answer could come. If one came, it is told as \
             another connection."
        );
    }
    if report.state == State::Opening {
        let waited = seconds(report.duration_us + report.tail_us.unwrap_or(0));
        let server = report.server.address;
        return format!("The capture ends {waited} after the SYN to {server}: before an answer could come.");
    }
    if let Some(end) = report.only_seen() {
        return format!(
            "Only packets of the {} were captured, so who is to blame can't be said: capture where both directions pass.",
            end.name()
        );
    }
    if report.bytes() == 0 {
        return "No payload was seen.".to_owned();
    }
    // As long a time would be told.
    let quiet = |end: &End| share(report, report.end(*end).unsure_us) >= IDLE;
    if let Some(end) = [End::Client, End::Server].into_iter().find(quiet) {
        return format!(
            "Whether the {0} had nothing to say for {1}, or waited for ACKs, can't be told: how long packets take from here to it and \
             back stands in the handshake or in timestamps, which aren't in the capture. Capture from before the connection begins, \
             or at the {0}. Nothing else is found but the path and the congestion control.",
            end.name(),
            percent(share(report, report.end(end).unsure_us))
        );
    }
    // As a share of the time would be told.
    let unsure = |end: &End| {
        let sender = report.end(end.other());
        sender.window_unsure_packets > 0 && sender.window_unsure_packets * 5 >= sender.sent.data_packets
    };
    if let Some(end) = [End::Client, End::Server].into_iter().find(unsure) {
        return format!(
            "Whether the {}'s receive window held the {} back can't be told: how its windows are scaled stands in the \
             options of its SYN, which aren't in the capture. Capture from before the connection begins. Nothing else is found but the path and \
             the congestion control.",
            end.name(),
            end.other().name()
        );
    }
    quiet_text(report).or_else(|| supply::untold(report)).unwrap_or_else(|| {
        "Neither end is to blame: what held it back is the path and the congestion control.".to_owned()
    })
}

/// Where for most of the time nothing was under way, that and what ended it.
fn quiet_text(report: &ConnectionReport) -> Option<String> {
    let time = &report.time;
    let path_us = time.handshake_us + time.under_way_us + time.client_repair_us + time.server_repair_us;
    let quiet_us = time.client_idle_us + time.server_idle_us + time.ending_us;
    if path_us * 2 >= report.duration_us || quiet_us <= path_us {
        return None;
    }
    let silence = report.silence.filter(|silence| silence.us * 2 > quiet_us && silence.of_us == report.duration_us);
    let when = silence.map_or_else(String::new, |silence| {
        let after = silence.after.map_or_else(String::new, |end| format!(" after the {}'s last data", end.name()));
        format!("{after}, {}", silence.until.text())
    });
    Some(format!(
        "Neither end is to blame: nothing was under way for {} ({}){when}.",
        seconds(quiet_us),
        percent(share(report, quiet_us))
    ))
}

/// What a connection ended in, where somebody may have waited for an answer. A server that had the last word owes none.
fn silence(report: &ConnectionReport) -> Option<Finding> {
    let silence = report.silence?;
    let part = silence.share();
    if silence.us < LEAST_SILENCE_US || part < IDLE || report.only_seen().is_some() {
        return None;
    }
    let (how_long, until) = (format!("{} ({})", seconds(silence.us), percent(part)), silence.until.text());
    // A FIN takes a number, too.
    if let Some((end, bytes)) = [End::Client, End::Server].into_iter().zip(silence.unseen).find(|(_, bytes)| *bytes > 1)
    {
        let text = format!(
            "What the {} sent got lost on the way here: of {bytes} bytes, by the numbers of its ACKs, nothing came for {how_long}, {until}. \
             If only large packets vanish, `windtunnel mtu {}` finds the size that fits.",
            end.name(),
            report.end(end).address.ip()
        );
        return Some(Finding { end: Culprit::Path, reason: Reason::Loss, weight: part, text });
    }
    if silence.after != Some(End::Client) {
        return None;
    }
    let why = if report.captured == Position::NearServer {
        "if it owed an answer, its program hung; the network is not to blame."
    } else {
        "if it owed an answer, its program hung, or what it sends gets lost before it comes here: a capture near the server tells."
    };
    let server = report.server.address;
    let text = format!("The server {server} acknowledged the request and sent nothing for {how_long}, {until}: {why}");
    // No request may have been what the client sent.
    Some(Finding { end: Culprit::Server, reason: Reason::Application, weight: part * 0.3, text })
}

/// `The client 192.0.2.1:50000`.
fn name(report: &ConnectionReport, end: End) -> String {
    format!("The {} {}", end.name(), report.end(end).address)
}

fn share(report: &ConnectionReport, us: u64) -> f64 {
    if report.duration_us == 0 { 0.0 } else { us as f64 / report.duration_us as f64 }
}

/// A part of a number, 0 of none.
fn share_of(part: u64, of: u64) -> f64 {
    part as f64 / of.max(1) as f64
}

fn percent(share: f64) -> String {
    format!("{:.0} % of the time", share * 100.0)
}

fn seconds(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.0} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

fn opening(report: &ConnectionReport, findings: &mut Vec<Finding>) {
    let server = report.server.address;
    let times = report.client.sent.packets;
    match report.state {
        State::Unanswered => findings.push(Finding {
            end: Culprit::Path,
            reason: Reason::Unanswered,
            weight: 2.0,
            text: format!(
                "Nobody answered: {times} SYN{} to {server} in {}. A firewall drops them, the server is down, or the way \
                 back is broken.",
                if times == 1 { "" } else { "s" },
                seconds(report.duration_us + report.tail_us.unwrap_or(0))
            ),
        }),
        State::Refused => findings.push(Finding {
            end: Culprit::Server,
            reason: Reason::Refused,
            weight: 2.0,
            text: format!("The server {server} refused: nothing listens on that port, or a firewall answers for it."),
        }),
        State::HalfOpen if times > 0 && report.server.sent.syn_retransmissions > 0 => findings.push(Finding {
            end: Culprit::Path,
            reason: Reason::Unanswered,
            weight: 2.0,
            text: format!(
                "The client {} didn't complete the handshake: {} SYN-ACKs in {}, no answer. It is gone, the way to it is broken, or \
                 its address is forged.",
                report.client.address,
                report.server.sent.syn_retransmissions + 1,
                seconds(report.duration_us)
            ),
        }),
        State::HalfOpen => {}
        _ => findings.extend(slow_handshake(report)),
    }
}

/// SYNs that got lost and cost time. Each that comes is answered: what isn't answered got lost behind this place, and what is
/// answered in vain got lost before it.
fn slow_handshake(report: &ConnectionReport) -> Option<Finding> {
    let [syns, answers] = [&report.client, &report.server].map(|end| end.sent.syn_retransmissions);
    let weight = share(report, report.time.handshake_us);
    if syns + answers == 0 || weight < LEAST {
        return None;
    }
    let (what, lost, where_to, also) = match syns.saturating_sub(answers) {
        0 => ("server's SYN-ACK", answers, "client", "the ACK of it"),
        unanswered => ("client's SYN", unanswered, "server", "the answer to it"),
    };
    let times = match lost {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{lost} times"),
    };
    let text = format!(
        "The {what} got lost {times}, between where this was captured and the {where_to} (or {also} did): opening took {} ({}).",
        seconds(report.time.handshake_us),
        percent(weight)
    );
    Some(Finding { end: Culprit::Path, reason: Reason::Loss, weight, text })
}

/// What an end did wrong as the receiver.
fn receiver(report: &ConnectionReport, end: End, findings: &mut Vec<Finding>) {
    let own = report.end(end);
    let time = &report.time;
    let (zero_us, window_us) = match end {
        End::Client => (time.client_zero_window_us, time.client_window_us),
        End::Server => (time.server_zero_window_us, time.server_window_us),
    };
    let zero = share(report, zero_us);
    let window = share(report, window_us);
    if window >= WINDOW && own.low_window_us > window_us / 2 {
        findings.push(Finding {
            end: end.into(),
            reason: Reason::ZeroWindow,
            weight: zero + window,
            text: slow_reader(report, end, (zero, window)),
        });
        late_acks(report, end, findings);
        return;
    }
    if own.window.closed_times > 0 && (zero >= LEAST || own.window.closed_longest_us >= 200_000) {
        findings.push(Finding {
            end: end.into(),
            reason: Reason::ZeroWindow,
            weight: zero.max(LEAST),
            text: format!(
                "{} didn't take what had arrived: its window was closed {} time{} for {} in all ({}). Its program reads \
                 too slowly, or its host is overloaded.",
                name(report, end),
                own.window.closed_times,
                if own.window.closed_times == 1 { "" } else { "s" },
                seconds(own.window.closed_us),
                percent(zero)
            ),
        });
    }
    if window >= WINDOW {
        findings.push(Finding {
            end: end.into(),
            reason: Reason::ReceiveWindow,
            weight: window,
            text: window_text(report, end, own, window),
        });
    }
    late_acks(report, end, findings);
}

/// A window that was mostly less than half of what it had been: the program reads what has arrived more slowly than it comes, and the
/// longest buffer is full once.
fn slow_reader(report: &ConnectionReport, end: End, (zero, low): (f64, f64)) -> String {
    let window = report.end(end).window;
    let held = format!(
        "its window, which had been up to {} bytes, was mostly less than half of that and held the {} back ({})",
        window.max,
        end.other().name(),
        percent(low)
    );
    let closed = match window.closed_times {
        0 => String::new(),
        times => format!(
            ", and it was closed {times} time{} for {} in all ({})",
            if times == 1 { "" } else { "s" },
            seconds(window.closed_us),
            percent(zero)
        ),
    };
    let time = &report.time;
    let quiet_us = time.handshake_us + time.client_idle_us + time.server_idle_us + time.ending_us;
    let mbps = report.end(end.other()).bytes as f64 * 8.0 / report.duration_us.saturating_sub(quiet_us).max(1) as f64;
    format!(
        "{} didn't take what had arrived: {held}{closed}. Its program reads too slowly (about {} Mbit/s), or its host is overloaded. \
         A larger receive buffer doesn't help.",
        name(report, end),
        three_digits(mbps, mbps)
    )
}

/// ACKs of an end that came late.
fn late_acks(report: &ConnectionReport, end: End, findings: &mut Vec<Finding>) {
    let own = report.end(end);
    if let Some((reason, text)) = late(report, end, own) {
        let p95 = own.ack_delay.as_ref().map_or(0.0, |delay| delay.p95_us);
        let growing = own.ack_delay.as_ref().is_some_and(|delay| delay.growing);
        let held = if growing && reason == Reason::AckDelay { 0.3 } else { 0.0 };
        let weight = (p95 / 1e6).clamp(LEAST, 0.5) + held;
        let culprit = if reason == Reason::Queue { Culprit::Path } else { end.into() };
        findings.push(Finding { end: culprit, reason, weight, text });
    }
}

fn window_text(report: &ConnectionReport, end: End, own: &EndReport, window: f64) -> String {
    let largest = own.window.max;
    // One that grows, or varies.
    let mean = own.window.mean_over_time.filter(|mean| *mean < f64::from(largest) * 0.9);
    let mut text = format!(
        "{}'s receive window held the {} back ({}): at most {largest} bytes may be under way",
        name(report, end),
        end.other().name(),
        percent(window)
    );
    if let Some(mean) = mean {
        text.push_str(&format!(" ({mean:.0} in the mean over time)"));
    }
    if let Some(rtt) = report.min_rtt_us.filter(|rtt| *rtt > 0) {
        let most = mean.unwrap_or(f64::from(largest)) * 8.0 / rtt as f64;
        text.push_str(&format!(", which at an RTT of {} is {most:.2} Mbit/s", seconds(rtt)));
    }
    text.push('.');
    // What it offers may be less by far.
    let up_to_that = if largest < 50_000 { " A larger receive buffer there would help up to that." } else { "" };
    match own.offer {
        Some(offer) if offer.window_scale.is_none() => {
            text.push_str(" Its SYN had no window scale, so it can't offer more than 65535 bytes.");
            text.push_str(up_to_that);
        }
        Some(_) if report.end(end.other()).offer.is_some_and(|offer| offer.window_scale.is_none()) => {
            text.push_str(" The other end doesn't scale windows, so it can't offer more than 65535 bytes.");
            text.push_str(up_to_that);
        }
        _ => text.push_str(" A larger receive buffer there would help."),
    }
    text
}

/// More ACKs than this that are late at the same time stand in a queue; an end that holds its ACKs back has one or two.
const MOST_HELD: f64 = 4.0;
/// An end that is nearer than this has no queue before it.
const NEAR_US: f64 = 2000.0;

/// Late ACKs that cost something: by a tenth of a second and more, or ever later. Whether the end holds them back, or a
/// queue holds up what they answer, is told by where this was captured and by how many are late at once.
fn late(report: &ConnectionReport, end: End, own: &EndReport) -> Option<(Reason, String)> {
    let delay = own.ack_delay.as_ref()?;
    let ms = |us: f64| format!("{:.0} ms", us / 1e3);
    // A single late ACK at the end of a request is what delayed ACKs are for.
    let bulk = report.end(end.other()).sent.data_packets >= 50;
    let late = bulk && delay.median_us >= 100_000.0;
    if !delay.growing && !late {
        return None;
    }
    let near = own.rtt.as_ref().is_some_and(|rtt| rtt.min_us < NEAR_US);
    let queued = !near && delay.at_once.is_some_and(|at_once| at_once > MOST_HELD);
    let thirds = delay.thirds_us.filter(|_| delay.growing);
    let course = match thirds {
        Some([first, _, last]) => format!("{} in the first third of the time, {} in the last", ms(first), ms(last)),
        None => format!("{} in the median, {} for one in twenty", ms(delay.median_us), ms(delay.p95_us)),
    };
    if queued {
        let text = format!(
            "The way to the {} and back takes longer under load: by {course}. A queue fills (bufferbloat): a queue that is \
             kept short (CoDel, CAKE) at the bottleneck, or a smaller window, would help.",
            end.name()
        );
        return Some((Reason::Queue, text));
    }
    let how = if delay.growing { "acknowledges later and later" } else { "acknowledges late" };
    let text = format!("{} {how}: by {course}. Its host or its stack falls behind.", name(report, end));
    Some((Reason::AckDelay, text))
}

/// What happened to what an end sent.
fn sender(report: &ConnectionReport, end: End, findings: &mut Vec<Finding>) {
    let own = report.end(end);
    let (repair_us, idle_us) = match end {
        End::Client => (report.time.client_repair_us, report.time.client_idle_us),
        End::Server => (report.time.server_repair_us, report.time.server_idle_us),
    };
    let sent = &own.sent;
    // What is overtaken looks like a loss until it comes: of the time of repair each of both has its part.
    let reordered = sent.out_of_order as f64 / sent.data_packets.max(1) as f64;
    // SYNs have a finding of their own.
    let again = sent.retransmissions.saturating_sub(sent.syn_retransmissions);
    let overtakes = sent.out_of_order as f64 / (sent.out_of_order + again).max(1) as f64;
    let overtaken = share(report, repair_us) * overtakes;
    let repair = share(report, repair_us) - overtaken;
    if let Some(hole) = own.black_hole {
        findings.push(black_hole(report, end, hole));
    } else if sent.spurious_retransmissions > 0 && sent.spurious_retransmissions * 2 >= again {
        if sent.spurious_retransmissions > 2 || repair >= LEAST {
            findings.push(spurious(report, end, repair));
        }
    } else if again > 0 && (own.retransmission_rate >= 0.005 || repair >= LEAST) {
        findings.push(loss(report, end, repair));
    }
    if sent.out_of_order > 2 && reordered >= 0.01 {
        findings.push(Finding {
            end: Culprit::Path,
            reason: Reason::Reordering,
            weight: reordered.min(0.5).max(overtaken),
            text: format!(
                "Packets of the {} overtake each other: {} of {} came behind later ones.",
                end.name(),
                sent.out_of_order,
                sent.data_packets
            ),
        });
    }
    let idle = share(report, idle_us);
    if idle >= IDLE && report.bytes() > 0 {
        findings.push(Finding {
            end: end.into(),
            reason: Reason::Application,
            // Waiting is no fault where something is wrong as well.
            weight: idle * 0.3,
            text: application(report, end, idle),
        });
    }
}

/// Only at the sender nothing can have got lost before it came here.
fn application(report: &ConnectionReport, end: End, idle: f64) -> String {
    let near = if end == End::Client { Position::NearClient } else { Position::NearServer };
    let (seen, why) = if report.captured == near {
        ("", "; the network is not to blame.".to_owned())
    } else {
        (
            " as seen here",
            format!(", or what it sent before got lost on the way here: a capture near the {} tells.", end.name()),
        )
    };
    format!(
        "Nothing was under way{seen} for {}, until {} sent something: its program (or the person before it) had nothing to say{why}",
        percent(idle),
        name(report, end).replacen("The", "the", 1)
    )
}

fn black_hole(report: &ConnectionReport, end: End, hole: crate::report::BlackHole) -> Finding {
    let seen = if hole.shown { "went through only in smaller pieces" } else { "never got through" };
    let router = hole.router.map_or_else(
        || "No router said why: its answers (ICMP \"too big\") are dropped, or never sent.".to_owned(),
        |(from, mtu)| format!("The router {from} says that {mtu} bytes fit; the sender doesn't hear or believe it."),
    );
    Finding {
        end: Culprit::Path,
        reason: Reason::BlackHole,
        weight: if hole.shown { 1.5 } else { 1.2 },
        text: format!(
            "Large packets from the {} vanish: packets of {} bytes, sent {} times, {seen}, while packets of up to {} bytes \
             passed. {router} `windtunnel mtu {}` finds the size that fits.",
            end.name(),
            hole.smallest_lost,
            hole.times,
            hole.largest_passed,
            report.end(end.other()).address.ip()
        ),
    }
}

fn spurious(report: &ConnectionReport, end: End, repair: f64) -> Finding {
    let sent = &report.end(end).sent;
    let times = sent.spurious_retransmissions;
    Finding {
        end: Culprit::Path,
        reason: Reason::Spurious,
        weight: repair.max(LEAST),
        text: format!(
            "{} sent {times} segment{} again that had arrived ({} in all): ACKs come late or get lost, or packets overtake \
             each other by far.",
            name(report, end),
            if times == 1 { "" } else { "s" },
            counted(sent.retransmissions as usize, "retransmission"),
        ),
    }
}

fn loss(report: &ConnectionReport, end: End, repair: f64) -> Finding {
    let own = report.end(end);
    let sent = &own.sent;
    // A SYN passes here before it is retransmitted.
    let (before, after) = (sent.lost_before, sent.lost_after.saturating_sub(sent.syn_retransmissions));
    let place = if before > 2 * after {
        format!("between the {} and where this was captured", end.name())
    } else if after > 2 * before {
        format!("between where this was captured and the {}", end.other().name())
    } else {
        "on both sides of where this was captured".to_owned()
    };
    let what = match sent.data_retransmissions {
        0 => "its FIN was retransmitted".to_owned(),
        again => {
            format!("{again} of {} were retransmitted ({:.1} %)", sent.data_packets, own.retransmission_rate * 100.0)
        }
    };
    let time = match report.only_seen() {
        Some(_) => {
            format!("how long repairs took would stand in the {}'s ACKs, which weren't captured", end.other().name())
        }
        None => format!("{} went by while losses were repaired", percent(repair)),
    };
    Finding {
        end: Culprit::Path,
        reason: Reason::Loss,
        weight: repair.max(own.retransmission_rate).max(0.01),
        text: format!("Packets of the {} got lost, {place}: {what}, and {time}.", end.name()),
    }
}
