//! The largest of the last values, for BBR's bandwidth.
//!
//! What this leaves out: nothing of the kernel's; values that lie between the three candidates are forgotten, as there. It
//! matters right after the largest has grown too old.
//!
//! | kernel | draft-cardwell-iccrg-bbr-congestion-control-00 | here |
//! |---|---|---|
//! | `minmax_running_max` | §4.1 | [`WindowedMax`] |

/// The largest value of the last `window` rounds, by the three best candidates in order of age.
///
/// # Source
/// Kathleen Nichols' algorithm, as lib/win_minmax.c of Linux describes it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowedMax {
    best: [(u64, u64); 3],
}

impl WindowedMax {
    /// Forgets all but this value, seen at `at`.
    pub(super) fn reset(&mut self, at: u64, value: u64) -> u64 {
        self.best = [(at, value); 3];
        value
    }

    pub(super) const fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Takes a value in, and returns the largest of the window.
    pub(super) fn update(&mut self, window: u64, at: u64, value: u64) -> u64 {
        let best = &mut self.best;
        if value >= best[0].1 || at - best[2].0 > window {
            return self.reset(at, value);
        }
        if value >= best[1].1 {
            best[1] = (at, value);
            best[2] = (at, value);
        } else if value >= best[2].1 {
            best[2] = (at, value);
        }
        self.age(window, at, value)
    }

    /// Lets the second take over from a first that is too old, and new ones stand in while a quarter or half of the
    /// window has passed without a second or third.
    fn age(&mut self, window: u64, at: u64, value: u64) -> u64 {
        let best = &mut self.best;
        let age = at - best[0].0;
        if age > window {
            best[0] = best[1];
            best[1] = best[2];
            best[2] = (at, value);
            if at - best[0].0 > window {
                best[0] = best[1];
                best[1] = best[2];
                best[2] = (at, value);
            }
        } else if best[1].0 == best[0].0 && age > window / 4 {
            best[2] = (at, value);
            best[1] = (at, value);
        } else if best[2].0 == best[1].0 && age > window / 2 {
            best[2] = (at, value);
        }
        best[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_forgotten_after_the_window_and_not_long_before() {
        let mut max = WindowedMax::default();
        max.reset(0, 100);
        for at in 1..=10 {
            assert_eq!(max.update(10, at, 50), 100, "round {at}");
        }
        assert_eq!(max.update(10, 11, 50), 50);
        assert_eq!(max.update(10, 12, 80), 80);
    }
}
