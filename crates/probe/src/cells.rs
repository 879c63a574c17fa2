//! Whether a link cuts packets into cells: what a packet takes then grows by steps of 48 bytes, and not by the byte.
//!
//! # What this leaves out
//! Links that are fast enough to send a cell within the jitter of the path.

use crate::Time;

/// Bytes of a packet that one cell of ATM carries (ITU-T I.361).
const CELL: u16 = 48;
/// With fewer sizes nothing is said.
const FEWEST: usize = 24;
/// So many times closer than a straight line must steps be to what was measured. Without steps the best of 48 of them is
/// hardly ever closer at all.
const CLOSER: f64 = 3.0;

/// The share of the points that may be late by anything: what a busy host answered late is left out of either line.
const LATE: usize = 6;

/// A link of cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cells {
    /// What one cell more takes, there and back if the probes were echoes.
    pub each: Time,
    /// How many bytes of other layers share the cells with an IP packet, but for whole cells: 0 to 47.
    pub overhead: u16,
}

/// The sizes to send, bytes, up to `most`: three cells' worth in steps of 4, ascending; none where there is no room.
#[must_use]
pub fn cell_sizes(most: u16) -> Vec<u16> {
    let from = most.saturating_sub(3 * CELL);
    if from < CELL { Vec::new() } else { (from..most).step_by(4).collect() }
}

/// Whether the shortest round-trip times by size go up in steps of a cell.
#[must_use]
pub fn cells(rtts: &[(u16, Time)]) -> Option<Cells> {
    if rtts.len() < FEWEST {
        return None;
    }
    let points = |x: &dyn Fn(u16) -> f64| -> Vec<(f64, f64)> {
        rtts.iter().map(|(size, rtt)| (x(*size), rtt.as_secs_f64())).collect()
    };
    let (_, straight) = timely(points(&|size| f64::from(size)));
    let stepped =
        (0..CELL).map(|overhead| (overhead, timely(points(&|size| f64::from((size + overhead).div_ceil(CELL))))));
    let (overhead, (each, left)) = stepped.min_by(|one, other| one.1.1.total_cmp(&other.1.1))?;
    (each > 0.0 && left * CLOSER < straight).then(|| Cells { each: Time::from_secs_f64(each), overhead })
}

/// Whether round-trip times without steps are too uneven to say that there are none, where a cell would take so long: steps
/// leave a twelfth of their square to a straight line, and these leave a quarter of that or more.
#[must_use]
pub fn cells_may_hide(rtts: &[(u16, Time)], cell: Time) -> bool {
    let points: Vec<(f64, f64)> = rtts.iter().map(|(size, rtt)| (f64::from(*size), rtt.as_secs_f64())).collect();
    let kept = points.len() - points.len() / LATE;
    let (_, left) = timely(points);
    rtts.len() >= FEWEST && left / kept as f64 * 48.0 >= cell.as_secs_f64().powi(2)
}

/// As [`fit`], without the points that lie highest above the line: a sixth of them, a third at a time, since one that is
/// very late draws the line towards itself.
fn timely(mut points: Vec<(f64, f64)>) -> (f64, f64) {
    let late = points.len() / LATE;
    for left in [late - late / 3, late / 3] {
        let (slope, _) = fit(&points);
        let above = |point: &(f64, f64)| point.1 - slope * point.0;
        points.sort_by(|one, other| above(one).total_cmp(&above(other)));
        points.truncate(points.len() - left);
    }
    fit(&points)
}

/// The slope of the line closest to the points, and the sum of the squares of what is left.
fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let (xy, xx) = points
        .iter()
        .fold((0.0, 0.0), |sum, point| (sum.0 + (point.0 - x) * (point.1 - y), sum.1 + (point.0 - x).powi(2)));
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    (slope, points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};

    /// Round-trip times over a link that takes so long for each cell, or for each byte, with the jitter that is left of
    /// several.
    fn measured(seed: u64, overhead: u16, cell_us: f64, byte_us: f64, jitter_us: f64) -> Vec<(u16, Time)> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let rtt = |size: u16| {
            let cells = f64::from((size + overhead).div_ceil(CELL));
            let late = rng.random::<f64>() * jitter_us;
            (size, Time::from_secs_f64((30_000.0 + cells * cell_us + f64::from(size) * byte_us + late) / 1e6))
        };
        cell_sizes(1492).into_iter().map(rtt).collect()
    }

    #[test]
    fn an_uplink_of_a_megabit_shows_its_cells() {
        for overhead in [0, 10, 32, 47] {
            // 53 bytes at 1 Mbit/s and again at 8 Mbit/s.
            let found = cells(&measured(1, overhead, 424.0 + 53.0, 0.0, 100.0)).unwrap();
            assert!((found.each.as_secs_f64() * 1e6 / 477.0 - 1.0).abs() < 0.1, "{found:?}");
            let off = found.overhead.abs_diff(overhead);
            assert!(off.min(48 - off) <= 4, "{found:?} for {overhead}");
        }
    }

    #[test]
    fn a_link_of_whole_packets_has_none_however_noisy() {
        for seed in 0..300 {
            assert_eq!(cells(&measured(seed, 0, 0.0, 8.0, 100.0)), None, "slow");
            assert_eq!(cells(&measured(seed, 0, 0.0, 0.01, 100.0)), None, "fast");
            assert_eq!(cells(&measured(seed, 0, 4.0, 0.0, 100.0)), None, "cells too fast to be seen");
        }
        assert_eq!(cells(&[]), None);
        assert_eq!(cells(&[(1000, Time::ZERO); 40]), None);
    }

    #[test]
    fn what_a_busy_host_answered_late_hides_no_cells_and_makes_none() {
        for seed in 0..300 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1000 + seed);
            let mut late = |mut rtts: Vec<(u16, Time)>| {
                for _ in 0..4 {
                    let at = rng.random_range(0..rtts.len());
                    rtts[at].1 += Time::from_secs_f64(rng.random::<f64>() * 5e-3);
                }
                rtts
            };
            let found = cells(&late(measured(seed, 10, 477.0, 0.0, 100.0)));
            assert!(
                found.is_some_and(|found| (found.each.as_secs_f64() * 1e6 / 477.0 - 1.0).abs() < 0.15),
                "{found:?}"
            );
            assert_eq!(cells(&late(measured(seed, 0, 0.0, 8.0, 100.0))), None, "{seed}");
            assert_eq!(cells(&late(measured(seed, 0, 0.0, 8.0, 5.0))), None, "{seed}");
            assert_eq!(cells(&late(measured(seed, 0, 0.0, 1.0, 100.0))), None, "{seed}");
        }
    }

    #[test]
    fn where_a_host_answers_unevenly_more_probes_show_the_cells_and_an_even_line_needs_no_more() {
        let (cell, most) = (Time::from_micros(477), 3);
        let mut found = [0; 2];
        for seed in 0..300 {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            // Half of the answers are 380 µs late or later.
            let mut late = |rtts: Vec<(u16, Time)>| -> Vec<(u16, Time)> {
                let mut least = |rtt: Time| {
                    let late = |rng: &mut rand_chacha::ChaCha8Rng| -550e-6 * rng.random::<f64>().max(1e-9).ln();
                    rtt + Time::from_secs_f64((0..4).map(|_| late(&mut rng)).fold(f64::INFINITY, f64::min))
                };
                rtts.into_iter().map(|(size, rtt)| (size, least(rtt))).collect()
            };
            let mut rtts = late(measured(seed, 10, 477.0, 0.0, 1.0));
            found[0] += usize::from(cells(&rtts).is_some());
            let mut batches = 1;
            while cells(&rtts).is_none() && cells_may_hide(&rtts, cell) && batches < most {
                let more = late(measured(seed, 10, 477.0, 0.0, 1.0));
                rtts.iter_mut().zip(more).for_each(|(least, (_, rtt))| least.1 = least.1.min(rtt));
                batches += 1;
            }
            found[1] += usize::from(cells(&rtts).is_some());
            assert!(!cells_may_hide(&measured(seed, 0, 0.0, 8.0, 100.0), cell), "{seed}");
        }
        assert!(found[1] >= 297 && found[1] > found[0], "{found:?}");
    }

    #[test]
    fn there_is_room_for_three_cells() {
        let sizes = cell_sizes(1492);
        assert_eq!((sizes.len(), sizes[0], sizes.last()), (36, 1348, Some(&1488)));
        assert!(cell_sizes(100).is_empty());
    }
}
