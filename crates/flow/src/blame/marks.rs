//! Marks of congestion that a queue put on packets instead of dropping them.

use super::share_of;
use crate::connection::End;
use crate::finding::{Culprit, Finding, Reason};
use crate::report::ConnectionReport;

/// Less than this share of an end's packets with data isn't told, as of losses.
const LEAST: f64 = 0.005;

/// What an end sent that came with a mark, or of which the other end says that it came with one.
///
/// # Source
/// RFC 3168 section 6.1: a sender treats an ACK with ECE as it does a loss; SYNs agree on that first. What they agree on otherwise counts
/// marks in the same bits (RFC 9768).
pub(super) fn marks(report: &ConnectionReport, end: End) -> Option<Finding> {
    let (own, other) = (report.end(end), report.end(end.other()));
    let marked = share_of(own.sent.ce_marks, own.sent.data_packets);
    let are_echoes = [own, other].iter().all(|end| end.offer.is_some_and(|offer| offer.ecn));
    let (weight, text) = if own.sent.ce_marks > 0 && marked >= LEAST {
        let text = format!(
            "A queue on the path, between the {} and where this was captured, marked {} of {} packets with congestion (CE, {:.1} %)",
            end.name(),
            own.sent.ce_marks,
            own.sent.data_packets,
            marked * 100.0
        );
        (marked, text)
    } else if are_echoes && other.sent.ece > 0 && share_of(other.sent.ece, other.sent.packets) >= LEAST {
        let text = format!(
            "A queue on the path, between where this was captured and the {}, marks packets of the {} with congestion: {} of {} packets echo \
             that (ECE)",
            end.other().name(),
            end.name(),
            other.sent.ece,
            other.sent.packets
        );
        (LEAST, text)
    } else {
        return None;
    };
    let text = format!("{text}. The {} sends less after a mark, as after a loss.", end.name());
    Some(Finding { end: Culprit::Path, reason: Reason::Marks, weight: weight.clamp(0.01, 1.0), text })
}
