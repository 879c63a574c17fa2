//! What the sender's side held back while data was under way: its program, its send buffer, Nagle's rule.

use super::{IDLE, LEAST, WINDOW, name, percent, seconds, share};
use crate::connection::End;
use crate::finding::{Finding, Reason};
use crate::report::{ConnectionReport, Position};
use wt_units::{counted, three_digits};

/// Fewer small segments than this that waited for an ACK may have done so by chance.
const FEWEST_HELD: u64 = 3;
/// What is under way is bounded by the sender's side if it was so for this share of the time.
const CAPPED: f64 = 0.5;
/// A shorter path is as good as full of what a host has under way by chance, µs.
const SHORTEST_RTT_US: u64 = 5000;

/// What an end held back as the sender.
pub(super) fn supply(report: &ConnectionReport, end: End, findings: &mut Vec<Finding>) {
    findings.extend(nagle(report, end));
    findings.extend(late(report, end).or_else(|| capped(report, end)));
    let idle = share(report, if end == End::Client { report.time.client_idle_us } else { report.time.server_idle_us });
    // As long a time without anything under way has a finding of its own.
    if idle >= IDLE {
        return;
    }
    let (own, other) = (&report.end(end).supply, &report.end(end.other()).supply);
    // Elsewhere what flows must be level, too: not all stacks put small pieces together while they wait.
    let is_known = is_near(report, end) || own.level_us * 2 >= own.application_limited_us;
    let limited = if is_known { share(report, own.application_limited_us) } else { 0.0 };
    // A path whose RTT varies looks like a program that takes time, but at the program's end.
    let answers = if is_near(report, end) { share(report, other.unanswered_us) } else { 0.0 };
    let of_the_time = limited + answers + idle;
    if of_the_time < IDLE || idle > limited + answers {
        return;
    }
    let text = if limited >= answers {
        slow_program(report, end, limited + idle)
    } else {
        format!(
            "{} had received all that the {} had sent, and sent nothing for {}: its program (or the person before it) took that long to \
             answer; the network is not to blame.",
            name(report, end),
            end.other().name(),
            percent(answers + idle)
        )
    };
    // Waiting is no fault where something is wrong as well.
    findings.push(Finding { end: end.into(), reason: Reason::Application, weight: of_the_time * 0.3, text });
}

/// Whether this was captured near an end.
fn is_near(report: &ConnectionReport, end: End) -> bool {
    report.captured == if end == End::Client { Position::NearClient } else { Position::NearServer }
}

/// A share of the time in words: figures would tell more than is known.
fn most(share: f64) -> &'static str {
    match share {
        0.9.. => "nearly all",
        0.5.. => "most",
        _ => "much",
    }
}

fn slow_program(report: &ConnectionReport, end: End, part: f64) -> String {
    let own = report.end(end);
    let times = own.supply.application_limited_times.max(1);
    let (bytes, apart) = (own.bytes / times, own.supply.application_limited_us / times);
    let mbps = own.goodput_bps / 1e6;
    let or_buffer =
        if is_near(report, end) { "" } else { ", or its send buffer held no more: a capture near it tells" };
    format!(
        "{} had nothing more to send for {}, though the path took what it sent: about {bytes} bytes each {} ({} Mbit/s). Its segments \
         weren't full, and the next came later without a loss or an ACK that it waited for. Its program (or what feeds it) sets the \
         pace{or_buffer}.",
        name(report, end),
        percent(part),
        seconds(apart),
        three_digits(mbps, mbps)
    )
}

/// Small segments that waited for the ACK of the one before, which the other end may have delayed.
///
/// # Source
/// RFC 9293 section 3.7.4 (Nagle's rule) and 3.8.6.3 (delayed ACKs).
fn nagle(report: &ConnectionReport, end: End) -> Option<Finding> {
    let supply = &report.end(end).supply;
    let weight = share(report, supply.nagle_us);
    if supply.nagle_times < FEWEST_HELD || weight < WINDOW {
        return None;
    }
    let (times, delayed) = (supply.nagle_times, supply.delayed_ack_times);
    let who = if delayed * 2 >= times {
        let mean = supply.delayed_ack_us / delayed.max(1);
        format!(", and the {} delayed that ACK by {} in the mean", end.other().name(), seconds(mean))
    } else {
        String::new()
    };
    let text = format!(
        "{} held small segments back until the small one before was acknowledged (Nagle's rule){who}: {}, {}. TCP_NODELAY at the {}, or \
         one write of what belongs together, ends that.",
        name(report, end),
        counted(times as usize, "time"),
        percent(weight),
        end.name()
    );
    Some(Finding { end: end.into(), reason: Reason::Nagle, weight, text })
}

/// Less was under way than its congestion window had allowed before, and the next came later than the ACKs.
fn late(report: &ConnectionReport, end: End) -> Option<Finding> {
    let supply = &report.end(end).supply;
    let weight = share(report, supply.late_us);
    // What is marked halves what may be under way, without a loss.
    let is_marked = report.end(end.other()).sent.ece > 0;
    if weight < IDLE || supply.late_us < supply.moved_us || is_marked {
        return None;
    }
    let text = format!(
        "{} didn't use what it might have had under way, for {}: ACKs left less than half of what had been under way before, and the next \
         data came an eighth of an RTT later or more, without a loss. Its send buffer is too small (SO_SNDBUF, tcp_wmem), or its program \
         hands over too little or too late; the network is not to blame.",
        name(report, end),
        percent(weight)
    );
    Some(Finding { end: end.into(), reason: Reason::SendBuffer, weight, text })
}

/// As much was under way as ever, for many round trips, without loss, growth or a queue.
fn capped(report: &ConnectionReport, end: End) -> Option<Finding> {
    let (own, other) = (report.end(end), report.end(end.other()));
    let supply = &own.supply;
    // What differs by less is chance.
    let weight = (share(report, supply.capped_us) / LEAST).round() * LEAST;
    let rtt = report.min_rtt_us.filter(|rtt| *rtt >= SHORTEST_RTT_US)?;
    let is_steady = supply.capped_us * 5 >= (supply.level_us + supply.moved_us) * 4;
    let is_window_known = other.window.scale_known && own.window_unsure_packets == 0;
    if !is_near(report, end) || weight < CAPPED || !is_steady || !is_window_known || other.sent.ece > 0 {
        return None;
    }
    let mbps = own.goodput_bps / 1e6;
    let bytes = mbps * rtt as f64 / 8.0;
    let text = format!(
        "{} had no more under way than before for {} of the time, without a loss, a queue or growth: about {bytes:.0} bytes in each round \
         trip of {} ({} Mbit/s). Its send buffer is that small (SO_SNDBUF, tcp_wmem), or its program, a rate or a congestion control \
         that leaves no queue keeps to that.",
        name(report, end),
        most(weight),
        seconds(rtt),
        three_digits(mbps, mbps)
    );
    Some(Finding { end: end.into(), reason: Reason::SendBuffer, weight, text })
}

/// Why neither end nor the path can be blamed, if for most of the time nothing shows what held the data back.
pub(super) fn untold(report: &ConnectionReport) -> Option<String> {
    let supply = |end: End| &report.end(end).supply;
    let ends = [End::Client, End::Server];
    let is_level = |end: &End| {
        let supply = supply(*end);
        let level_us = supply.level_us + supply.late_us;
        level_us > supply.moved_us && share(report, level_us) >= IDLE
    };
    let level = ends.into_iter().find(is_level);
    if let Some(end) = level {
        let elsewhere =
            if is_near(report, end) { String::new() } else { format!(" A capture near the {} may tell.", end.name()) };
        return Some(format!(
            "What held it back isn't shown: for {} of the time the {} sent no more in each round trip than in those before, without a loss or a queue. \
             Its program, its send buffer or a rate that it keeps to does that, and so do a link that is just full and a congestion control \
             that leaves no queue.{elsewhere}",
            most(share(report, supply(end).level_us + supply(end).late_us)),
            end.name()
        ));
    }
    let slow = ends.into_iter().find(|end| supply(end.other()).unanswered_us * 2 > report.time.under_way_us);
    slow.map(|end| {
        format!(
            "What held it back isn't shown: for {} the {} hadn't answered, longer than the way to it and back takes at the least. Its \
             program takes time, or the path's RTT varies: a capture near the {} tells.",
            percent(share(report, supply(end.other()).unanswered_us)),
            end.name(),
            end.name()
        )
    })
}
