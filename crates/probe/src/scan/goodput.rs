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

/// Up to this loss BBR keeps its rate.
const BBR_BEARS: f64 = 0.13;
/// From this loss on it keeps a window of four packets.
const BBR_COLLAPSES: f64 = 0.22;

/// Goodput by packets of this size at this loss of one direction, on a path of this capacity in bytes a second: the order of magnitude.
///
/// # Source
/// Both laws are fitted to this project's model of Linux (`windtunnel predict`; losses of 1 to 50 % over RTTs of 10, 40 and 150 ms at
/// 10 and 100 Mbit/s). The loss-based one has the form of Padhye, Firoiu, Towsley and Kurose, ACM SIGCOMM 1998, equation 30: a term for
/// windows that are halved and one for timeouts. Their constants are of Reno without SACK, tail loss probes and RACK, and came to
/// a seventh of what Linux moves at a loss of 30 %; these are within 15 % (root mean square) of the model with CUBIC. The rate-based one
/// is of BBR (20 MB): it bears 13 %, and falls to a window of four packets and to timeouts above 22 %, since it probes for bandwidth with
/// 1.25 times its rate and a fifth of that is more than the gain.
#[must_use]
pub fn goodput(payload: u16, headers: u16, loss: f64, rtt: Time, capacity: f64) -> Goodput {
    let (payload, wire) = (f64::from(payload), f64::from(payload) + f64::from(headers));
    let ceiling = capacity * payload / wire * (1.0 - loss);
    let (rtt, p) = (rtt.as_secs_f64().max(1e-6), loss.max(1e-12));
    let timeouts = 0.43 * (rtt + RTO_MIN) * p.powf(5.0 / 3.0) * (1.0 + 18.0 * p * p);
    let grown = payload / (0.9 * rtt * (2.0 * p / 3.0).sqrt() + timeouts);
    let borne = ((BBR_COLLAPSES - loss) / (BBR_COLLAPSES - BBR_BEARS)).clamp(0.0, 1.0);
    let left = 1.15 * (11.0 * (0.3 - loss)).exp() * payload / rtt;
    Goodput { loss_based: grown.min(ceiling), rate_based: (ceiling * borne).max(left).min(ceiling) }
}
