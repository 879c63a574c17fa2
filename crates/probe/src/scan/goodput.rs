use crate::Time;

/// What sending packets of one size brings, as far as loss lets a connection grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// Bytes a second with a congestion control that takes each loss for congestion, such as CUBIC and Reno.
    pub loss_based: f64,
    /// Bytes a second with one that doesn't, such as BBR.
    pub rate_based: f64,
}

/// Goodput by packets of this size at this loss, on a path of this capacity in bytes a second.
///
/// # Source
/// Mathis, Semke, Mahdavi and Ott, ACM CCR 27(3) (1997), with their constant √(3/2) for an acknowledgement per packet.
/// CUBIC does no better where its window is smaller than Reno's would be (RFC 9438 section 4.3).
#[must_use]
pub fn goodput(payload: u16, headers: u16, loss: f64, rtt: Time, capacity: f64) -> Goodput {
    let (payload, wire) = (f64::from(payload), f64::from(payload) + f64::from(headers));
    let ceiling = capacity * payload / wire * (1.0 - loss);
    let grown = payload / rtt.as_secs_f64().max(1e-6) * (1.5 / loss.max(1e-12)).sqrt();
    Goodput { loss_based: grown.min(ceiling), rate_based: ceiling }
}
