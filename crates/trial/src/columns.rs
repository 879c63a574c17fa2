use crate::Sample;
use serde::Serialize;
use utoipa::ToSchema;

/// Samples as columns, a tenth of the JSON that one object for each would take: one list for each field, all of the same
/// length; names and units are those of [`Sample`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[expect(missing_docs, reason = "the fields are those of `Sample`")]
pub struct SampleColumns {
    pub t_us: Vec<u64>,
    pub bytes: Vec<u64>,
    pub snd_cwnd: Vec<u64>,
    pub ssthresh: Vec<u64>,
    pub rtt: Vec<u64>,
    pub min_rtt: Vec<u64>,
    pub retransmits: Vec<u64>,
    pub snd_wnd: Vec<u64>,
    pub delivery_rate_bps: Vec<u64>,
}

/// From here on a number of JSON isn't exact for every reader.
const INEXACT: u64 = 1 << 53;

impl SampleColumns {
    /// The columns of these samples.
    pub fn of(samples: &[Sample]) -> Self {
        let column = |field: fn(&Sample) -> u64| samples.iter().map(field).collect::<Vec<_>>();
        Self {
            t_us: column(|sample| sample.t_us),
            bytes: column(|sample| sample.bytes),
            snd_cwnd: column(|sample| sample.snd_cwnd),
            ssthresh: column(|sample| sample.ssthresh),
            rtt: column(|sample| sample.rtt),
            min_rtt: column(|sample| sample.min_rtt),
            retransmits: column(|sample| sample.retransmits),
            snd_wnd: column(|sample| sample.snd_wnd),
            // The model paces without a limit at first.
            delivery_rate_bps: column(
                |sample| {
                    if sample.delivery_rate_bps >= INEXACT { 0 } else { sample.delivery_rate_bps }
                },
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_a_limit_is_none_at_all() {
        let samples = [u64::MAX, 8_000_000].map(|delivery_rate_bps| Sample { delivery_rate_bps, ..Sample::default() });
        let columns = SampleColumns::of(&samples);
        assert_eq!(columns.delivery_rate_bps, [0, 8_000_000]);
        assert_eq!(columns.t_us.len(), 2);
    }
}
