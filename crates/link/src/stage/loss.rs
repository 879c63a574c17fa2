use crate::dice::{Chance, Dice, mix};
use crate::{LossConfig, OutageConfig, Packet, time::nanos};

/// Who is lost.
#[derive(Debug, Clone)]
pub(crate) enum Loss {
    Bernoulli(Chance),
    GilbertElliott { to_bad: Chance, to_good: Chance, loss: [Chance; 2], bad: bool },
    EveryNth { n: u64, seen: u64 },
    BySize { above: u32, long: Chance, short: Chance },
    ByDataIndex { seed: u64, lost: Chance, next: u64 },
    Numbered { packets: Vec<u64>, seen: u64 },
    Next { from: u64, left: u64 },
}

impl Loss {
    pub(crate) fn new(config: &LossConfig, dice: &mut Dice) -> Self {
        match *config {
            LossConfig::Bernoulli { probability } => Self::Bernoulli(probability.into()),
            LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => Self::GilbertElliott {
                to_bad: to_bad.into(),
                to_good: to_good.into(),
                loss: [loss_good.into(), loss_bad.into()],
                bad: false,
            },
            LossConfig::EveryNth { n } => Self::EveryNth { n: n.max(1), seen: 0 },
            LossConfig::BySize { above, long, short } => Self::BySize {
                above: u32::try_from(above.get()).unwrap_or(u32::MAX),
                long: long.into(),
                short: short.into(),
            },
            LossConfig::ByDataIndex { probability } => {
                Self::ByDataIndex { seed: dice.bits(), lost: probability.into(), next: 0 }
            }
            LossConfig::Numbered { ref packets } => Self::Numbered { packets: packets.clone(), seen: 0 },
            LossConfig::Next { from, packets } => Self::Next { from: nanos(from), left: packets },
        }
    }

    pub(crate) fn loses<P>(&mut self, at: u64, packet: &Packet<P>, dice: &mut Dice) -> bool {
        match self {
            Self::Bernoulli(chance) => dice.happens(*chance),
            Self::GilbertElliott { to_bad, to_good, loss, bad } => {
                let turn = if *bad { *to_good } else { *to_bad };
                *bad ^= dice.happens(turn);
                dice.happens(loss[usize::from(*bad)])
            }
            Self::EveryNth { n, seen } => {
                *seen += 1;
                let lost = *seen == *n;
                if lost {
                    *seen = 0;
                }
                lost
            }
            Self::BySize { above, long, short } => dice.happens(if packet.ip_len > *above { *long } else { *short }),
            Self::ByDataIndex { .. } if packet.data_len == 0 => false,
            Self::ByDataIndex { seed, lost, next } => {
                let index = *next;
                *next = next.wrapping_add(1);
                match *lost {
                    Chance::Never => false,
                    Chance::Always => true,
                    Chance::Below(limit) => mix(*seed, index) < limit,
                }
            }
            Self::Numbered { packets, seen } => {
                *seen = if packet.syn { 0 } else { *seen + u64::from(packet.data_len > 0) };
                packet.data_len > 0 && packets.binary_search(seen).is_ok()
            }
            Self::Next { from, left } => {
                let lost = *left > 0 && at >= *from && packet.data_len > 0;
                *left -= u64::from(lost);
                lost
            }
        }
    }
}

/// When nobody passes.
#[derive(Debug, Clone)]
pub(crate) struct Outages {
    /// From, until; in order.
    windows: Vec<(u64, u64)>,
    period: Option<u64>,
}

impl Outages {
    pub(crate) fn new(config: &OutageConfig) -> Self {
        Self {
            windows: config.windows.iter().map(|(from, until)| (nanos(*from), nanos(*until))).collect(),
            period: config.period.map(nanos).filter(|period| *period > 0),
        }
    }

    pub(crate) fn cover(&self, at: u64) -> bool {
        let phase = self.period.map_or(at, |period| at % period);
        let begun = self.windows.partition_point(|(from, _)| *from <= phase);
        let last = begun.checked_sub(1).and_then(|last| self.windows.get(last));
        last.is_some_and(|(_, until)| phase < *until)
    }
}
