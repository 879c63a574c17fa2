//! Fair scheduling of transfers: of those that could, the one that had least so far.
//!
//! A thousand threads on a few cores get about the same time, but not the same bytes: how much goes in one piece depends on buffers,
//! which grow where they are full most often. So pieces are counted, as start-time fair queueing does (Goyal, Vin and Cheng, SIGCOMM
//! 1996): whoever comes back from waiting for its network has no credit, and whoever is alone never waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The turns of all transfers of a server.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Transfers that move bytes at the same moment.
    at_once: usize,
    /// Transfers that there are.
    members: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    moving: usize,
    /// The start of the piece that began last, in bytes of virtual time.
    now: u64,
    next_number: u64,
    /// Those that could move, by their virtual start and then by their arrival.
    waiting: BTreeMap<(u64, u64), Arc<Condvar>>,
    /// Those that may.
    called: Vec<u64>,
}

impl Turns {
    /// As many at once as this machine has cores.
    pub(crate) fn new() -> Self {
        Self::of(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    /// So many at once.
    fn of(at_once: usize) -> Self {
        Self { at_once, members: AtomicUsize::new(0), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One transfer's place among the others.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Option<Arc<Turns>>,
    /// Where its next piece starts.
    start: u64,
    called: Arc<Condvar>,
}

impl Turn {
    /// The place of a transfer that there may be others beside.
    pub(crate) fn among(turns: Option<&Arc<Turns>>) -> Self {
        if let Some(turns) = turns {
            turns.members.fetch_add(1, Ordering::Relaxed);
        }
        Self { turns: turns.cloned(), start: 0, called: Arc::default() }
    }

    /// Whether nobody has to wait for anybody now: there is a core for each. Then a piece may also block.
    pub(crate) fn is_free(&self) -> bool {
        self.turns.as_ref().is_none_or(|turns| turns.members.load(Ordering::Relaxed) <= turns.at_once)
    }

    /// Waits for the turn, does one piece that doesn't block, and counts the bytes that it says.
    pub(crate) fn take<R>(&mut self, piece: impl FnOnce() -> (R, u64)) -> R {
        let Some(turns) = &self.turns else { return piece().0 };
        let mut state = turns.lock();
        self.start = self.start.max(state.now);
        if state.moving < turns.at_once {
            state.moving += 1;
        } else {
            let number = state.next_number;
            state.next_number += 1;
            state.waiting.insert((self.start, number), Arc::clone(&self.called));
            while !state.called.contains(&number) {
                state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.called.retain(|called| *called != number);
        }
        state.now = state.now.max(self.start);
        drop(state);
        let moving = Moving(turns);
        let (result, bytes) = piece();
        self.start += bytes;
        drop(moving);
        result
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = &self.turns {
            turns.members.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A transfer that moves bytes right now. Its end calls the next.
struct Moving<'a>(&'a Turns);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        match state.waiting.pop_first() {
            // It takes over the place.
            Some(((_, number), called)) => {
                state.called.push(number);
                called.notify_one();
            }
            None => state.moving -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// Threads that always could move, with pieces of these sizes, for so many pieces in all; the bytes of each.
    fn race(at_once: usize, sizes: &[u64], pieces: u64) -> Vec<u64> {
        let turns = Arc::new(Turns::of(at_once));
        let (left, ready) = (AtomicU64::new(pieces), std::sync::Barrier::new(sizes.len()));
        let left = &left;
        std::thread::scope(|scope| {
            let run = |size: u64| {
                let (turns, ready) = (&turns, &ready);
                scope.spawn(move || {
                    let (mut turn, mut bytes, mut go_on) = (Turn::among(Some(turns)), 0, true);
                    ready.wait();
                    while go_on {
                        go_on = turn.take(|| {
                            let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
                            // The others get a chance to come.
                            std::thread::yield_now();
                            (before.is_ok(), size)
                        });
                        bytes += if go_on { size } else { 0 };
                    }
                    bytes
                })
            };
            let threads: Vec<_> = sizes.iter().map(|size| run(*size)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn large_pieces_bring_no_more_than_small_ones() {
        let bytes = race(1, &[1000, 1000, 4000, 16_000, 64_000, 64_000], 20_000);
        let (least, most) = (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap());
        // A piece and the time until all had come apart.
        assert!(most - least <= most / 5 + 128_000, "{bytes:?}");
    }

    #[test]
    fn no_more_move_at_once_than_may_and_all_get_to_their_end() {
        let turns = Arc::new(Turns::of(3));
        let (moving, most, too_many) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let mut turn = Turn::among(Some(&turns));
                    for _ in 0..200 {
                        turn.take(|| {
                            let now = moving.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            too_many.fetch_or(now > 3, Ordering::SeqCst);
                            std::thread::yield_now();
                            moving.fetch_sub(1, Ordering::SeqCst);
                            ((), 100)
                        });
                    }
                });
            }
        });
        assert!(!too_many.load(Ordering::SeqCst) && most.load(Ordering::SeqCst) >= 1);
        let state = turns.lock();
        assert_eq!((state.moving, state.waiting.len(), state.called.len()), (0, 0, 0));
    }

    #[test]
    fn whoever_is_alone_or_has_nobody_beside_it_never_waits() {
        let turns = Arc::new(Turns::new());
        let mut turn = Turn::among(Some(&turns));
        assert_eq!(turn.take(|| (7, 100)), 7);
        assert_eq!(turn.start, 100);
        assert_eq!(Turn::among(None).take(|| (8, 1)), 8);
    }

    #[test]
    fn with_a_core_for_each_nobody_has_to_wait() {
        let turns = Arc::new(Turns::of(2));
        let (first, second) = (Turn::among(Some(&turns)), Turn::among(Some(&turns)));
        assert!(first.is_free() && Turn::among(None).is_free());
        let third = Turn::among(Some(&turns));
        assert!(!first.is_free() && !third.is_free());
        drop(second);
        assert!(first.is_free());
    }

    #[test]
    fn a_long_silence_earns_nothing() {
        let turns = Arc::new(Turns::of(1));
        let (mut busy, mut late) = (Turn::among(Some(&turns)), Turn::among(Some(&turns)));
        for _ in 0..10 {
            busy.take(|| ((), 1000));
        }
        late.take(|| ((), 10));
        assert_eq!(late.start, 9010, "it begins where the last piece began");
    }
}
