use crate::Time;

/// What sending packets of one size brings, as far as loss lets a connection grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// Bytes a second with a congestion control that takes each loss for congestion, such as CUBIC and Reno.
    pub loss_based: f64,
    /// Bytes a second with one that doesn't, such as BBR.
    pub rate_based: f64,
}

/// The least time that Linux adds to the round trip before it takes a segment for lost (`TCP_RTO_MIN`).
const RTO_MIN: f64 = 0.2;

/// Up to this loss BBR keeps its rate, and from the other one on nothing of it is left.
const BBR_BEARS: f64 = 0.13;
const BBR_COLLAPSES: f64 = 0.22;

/// Goodput by packets of this size at this loss, on a path of this capacity in bytes a second.
///
/// # Source
/// Padhye, Firoiu, Towsley and Kurose, ACM SIGCOMM 1998, equation 30, with an acknowledgement per packet: at losses of
/// more than a few per cent it is timeouts that cost. CUBIC does no better where its window is smaller than Reno's would
/// be (RFC 9438 section 4.3). The rate-based law is fitted to this project's model of Linux' BBR (`windtunnel predict` with 20 MB
/// over 10 and 100 Mbit/s and RTT 10, 40 and 150 ms): it bears 13 %, and falls to a window of four packets and to timeouts
/// above 22 %, since it probes for bandwidth with 1.25 times its rate and a fifth of that is more than the gain.
#[must_use]
pub fn goodput(payload: u16, headers: u16, loss: f64, rtt: Time, capacity: f64) -> Goodput {
    let (payload, wire) = (f64::from(payload), f64::from(payload) + f64::from(headers));
    let ceiling = capacity * payload / wire * (1.0 - loss);
    let (rtt, p) = (rtt.as_secs_f64().max(1e-6), loss.max(1e-12));
    let timeouts = (rtt + RTO_MIN) * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    let grown = payload / (rtt * (2.0 * p / 3.0).sqrt() + timeouts);
    let borne = ((BBR_COLLAPSES - loss) / (BBR_COLLAPSES - BBR_BEARS)).clamp(0.0, 1.0);
    let left = 1.15 * (11.0 * (0.3 - loss)).exp() * payload / rtt;
    Goodput { loss_based: grown.min(ceiling), rate_based: (ceiling * borne).max(left).min(ceiling) }
}
