//! Work on many threads whose results come in the order of what they were asked: nobody waits for the slowest of a round.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wt_problem::Problem;
use wt_sys::clock::monotonic_ns;
use wt_trial::Cancel;

/// Items that are under way or done before the first of them is taken, for each thread.
const AHEAD: usize = 16;
/// A batch takes about so long: much longer than handing it over and being woken for it, and so short that nobody waits for its end.
const BATCH_NS: u64 = 8_000_000;
/// A batch has so many at most.
const BATCH_MOST: u64 = 512;

/// As [`in_order`], for items that may be so quick that handing over each of them costs more than it brings: they are handed over
/// in batches, of one where they are slow. What becomes of an item can't depend on its batch.
///
/// # Errors
/// The first that an item is, or that `take` returns.
pub(super) fn in_batches<T: Send, A: Send>(
    mut items: impl Iterator<Item = Result<T, Problem>>,
    on: (usize, &Cancel),
    work: impl Fn(&[T]) -> A + Sync,
    mut take: impl FnMut(A) -> Result<(), Problem>,
) -> Result<(), Problem> {
    // How long an item took the last time: unknown things are slow.
    let pace = AtomicU64::new(BATCH_NS);
    let mut wrong = None;
    let batches = std::iter::from_fn(|| {
        if let Some(problem) = wrong.take() {
            return Some(Err(problem));
        }
        let most = (BATCH_NS / pace.load(Ordering::Relaxed).max(1)).clamp(1, BATCH_MOST);
        let mut batch = Vec::new();
        while (batch.len() as u64) < most {
            match items.next() {
                Some(Ok(item)) => batch.push(item),
                Some(Err(problem)) if batch.is_empty() => return Some(Err(problem)),
                Some(Err(problem)) => {
                    wrong = Some(problem);
                    break;
                }
                None => break,
            }
        }
        if batch.is_empty() { None } else { Some(Ok(batch)) }
    });
    let timed = |batch: &Vec<T>| {
        let began = monotonic_ns();
        let done = work(batch);
        pace.store((monotonic_ns() - began) / batch.len().max(1) as u64, Ordering::Relaxed);
        done
    };
    in_order(batches, on, timed, |_, done| take(done))
}

/// Hands each item to whichever of so many threads is free, and each result to `take`, in the order of the items. Where they are
/// several, the caller's thread only reads and takes. Ends early once `cancel` is set.
///
/// glibc keeps a piece of memory for the thread that freed it, and locks the arena of the thread that made it when the piece grows:
/// a thread that computed and also freed what others made went on computing in their memory, and 300,000 rows on two threads waited
/// for one another 200,000 times.
///
/// # Errors
/// The first that an item is, or that `take` returns.
pub(super) fn in_order<T: Send, A: Send>(
    mut items: impl Iterator<Item = Result<T, Problem>>,
    (threads, cancel): (usize, &Cancel),
    work: impl Fn(&T) -> A + Sync,
    mut take: impl FnMut(T, A) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if threads <= 1 {
        while let Some(item) = items.next().filter(|_| !cancel.is_cancelled()) {
            let item = item?;
            let done = work(&item);
            take(item, done)?;
        }
        return Ok(());
    }
    let (queue, work) = (&Queue::default(), &work);
    std::thread::scope(move |scope| {
        let (answer, answers) = channel::<(u64, T, A)>();
        // The others end when this returns, in whatever way.
        let _closing = Closing(queue);
        for _ in 0..threads {
            let answer = answer.clone();
            scope.spawn(move || {
                // One that panics has an item that nobody waits for in vain.
                let _closing = Closing(queue);
                while let Some((number, item)) = queue.wait().filter(|_| !cancel.is_cancelled()) {
                    let done = work(&item);
                    if answer.send((number, item, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(answer);
        let room = (AHEAD * threads) as u64;
        let (mut given, mut taken, mut early, mut more) = (0, 0, BTreeMap::new(), true);
        loop {
            if more && given - taken <= room / 2 {
                let mut next = VecDeque::new();
                while more && given - taken < room {
                    match items.next() {
                        Some(item) => {
                            next.push_back((given, item?));
                            given += 1;
                        }
                        None => more = false,
                    }
                }
                queue.give(next);
            }
            if taken == given || cancel.is_cancelled() {
                return Ok(());
            }
            let Ok((number, item, done)) = answers.recv() else { return Ok(()) };
            early.insert(number, (item, done));
            while let Some((item, done)) = early.remove(&taken) {
                take(item, done)?;
                taken += 1;
            }
        }
    })
}

/// What nobody works on yet.
struct Queue<T> {
    /// The items with their numbers, and whether there will be more.
    items: Mutex<(VecDeque<(u64, T)>, bool)>,
    changed: Condvar,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { items: Mutex::new((VecDeque::new(), true)), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn items(&self) -> MutexGuard<'_, (VecDeque<(u64, T)>, bool)> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, mut next: VecDeque<(u64, T)>) {
        self.items().0.append(&mut next);
        self.changed.notify_all();
    }

    /// The next one; nothing once there will be none.
    fn wait(&self) -> Option<(u64, T)> {
        let mut items = self.items();
        loop {
            if !items.1 {
                return None;
            }
            if let Some(next) = items.0.pop_front() {
                return Some(next);
            }
            items = self.changed.wait(items).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Says that there will be no more.
struct Closing<'a, T>(&'a Queue<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.items().1 = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(count: u64, threads: usize, cancel: &Cancel) -> Result<Vec<(u64, u64)>, Problem> {
        let mut taken = Vec::new();
        let items = (0..count).map(|n| if n == 5_000 { Err(Problem::usage("five thousand")) } else { Ok(n) });
        in_order(
            items,
            (threads, cancel),
            |n| n * n,
            |n, square| {
                taken.push((n, square));
                if n == 4_000 { Err(Problem::usage("four thousand")) } else { Ok(()) }
            },
        )?;
        Ok(taken)
    }

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        let wanted: Vec<(u64, u64)> = (0..3_000).map(|n| (n, n * n)).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(squares(3_000, threads, &Cancel::new()).unwrap(), wanted, "{threads} threads");
        }
        assert_eq!(squares(0, 3, &Cancel::new()).unwrap(), []);
    }

    #[test]
    fn batches_hold_every_item_once_in_order_and_slow_ones_alone() {
        for threads in [1, 3] {
            let mut taken = Vec::new();
            let on = (threads, &Cancel::new());
            let items = (0..5_000_u64).map(Ok);
            in_batches(items, on, <[u64]>::to_vec, |batch| {
                taken.push(batch);
                Ok(())
            })
            .unwrap();
            assert_eq!(taken.concat(), (0..5_000).collect::<Vec<_>>(), "{threads} threads");
            assert!(taken.len() < 5_000 && taken.iter().all(|batch| batch.len() as u64 <= BATCH_MOST));
        }
        let slow = |batch: &[u64]| {
            let end = monotonic_ns() + BATCH_NS * batch.len() as u64;
            while monotonic_ns() < end {}
            batch.len()
        };
        in_batches((0..20).map(Ok), (2, &Cancel::new()), slow, |count| {
            assert_eq!(count, 1);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn what_came_before_a_wrong_item_is_taken_or_not_but_nothing_behind_it() {
        let mut taken = Vec::new();
        let items = (0..100).map(|n| if n == 70 { Err(Problem::usage("seventy")) } else { Ok(n) });
        let ended = in_batches(items, (1, &Cancel::new()), <[u64]>::to_vec, |batch| {
            taken.extend(batch);
            Ok(())
        });
        assert_eq!(ended.unwrap_err().what, "seventy");
        assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
        assert!(taken.len() <= 70);
    }

    #[test]
    fn what_goes_wrong_ends_it_whoever_it_is() {
        assert_eq!(squares(4_500, 2, &Cancel::new()).unwrap_err().what, "four thousand");
        let early =
            in_order((0..9).map(|_| Err(Problem::usage("an item"))), (2, &Cancel::new()), |(): &()| (), |_, ()| Ok(()));
        assert_eq!(early.unwrap_err().what, "an item");
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(squares(3_000, 2, &cancel).unwrap().len() < 3_000);
    }
}
