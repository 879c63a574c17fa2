//! Work on many threads whose results come in the order of what they were asked: nobody waits for the slowest of a batch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wt_problem::Problem;
use wt_sys::clock::monotonic_ns;
use wt_trial::Cancel;

/// Items that are under way or done before the first of them is taken, for each thread.
const AHEAD: usize = 256;
/// A thread takes so many at once where they are quick, so that handing them over costs little.
const MOST_AT_ONCE: usize = 32;
/// So long all of them may have taken the last time.
const QUICK_NS: u64 = 2_000_000;

/// Hands each item to whichever of so many threads is free, and each result to `take`, in the order of the items. The caller's thread
/// is one of them: it reads, takes, and works in between, so that no thread more than processors are there runs. Ends early once
/// `cancel` is set.
///
/// # Errors
/// The first that an item is, or that `take` returns.
pub(super) fn in_order<T: Send, A: Send>(
    mut items: impl Iterator<Item = Result<T, Problem>>,
    (threads, cancel): (usize, &Cancel),
    work: impl Fn(&T) -> A + Sync,
    mut take: impl FnMut(T, A) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let threads = threads.max(1);
    let (queue, work) = (&Queue::default(), &work);
    std::thread::scope(move |scope| {
        let (answer, answers) = channel::<Vec<(u64, T, A)>>();
        // The others end when this returns, in whatever way.
        let _closing = Closing(queue);
        for _ in 1..threads {
            let answer = answer.clone();
            scope.spawn(move || {
                let mut most = 1;
                while let Some(some) = queue.wait(most).filter(|_| !cancel.is_cancelled()) {
                    let began = monotonic_ns();
                    let done = |(number, item): (u64, T)| {
                        let done = work(&item);
                        (number, item, done)
                    };
                    if answer.send(some.into_iter().map(done).collect()).is_err() {
                        break;
                    }
                    most = if monotonic_ns() - began < QUICK_NS { (most * 2).min(MOST_AT_ONCE) } else { 1 };
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
            arrived(&answers, &mut early);
            while let Some((item, done)) = early.remove(&taken) {
                take(item, done)?;
                taken += 1;
            }
            if taken == given || more && given - taken <= room / 2 {
                continue;
            }
            if let Some((number, item)) = queue.take() {
                let done = work(&item);
                early.insert(number, (item, done));
            } else if !early.contains_key(&taken) {
                // Others have the last ones.
                let Ok(done) = answers.recv() else { return Ok(()) };
                keep(done, &mut early);
            }
        }
    })
}

/// Keeps what others have done by now.
fn arrived<T, A>(answers: &Receiver<Vec<(u64, T, A)>>, early: &mut BTreeMap<u64, (T, A)>) {
    while let Ok(done) = answers.try_recv() {
        keep(done, early);
    }
}

fn keep<T, A>(done: Vec<(u64, T, A)>, early: &mut BTreeMap<u64, (T, A)>) {
    early.extend(done.into_iter().map(|(number, item, done)| (number, (item, done))));
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

    /// The next one, if there is one now.
    fn take(&self) -> Option<(u64, T)> {
        self.items().0.pop_front()
    }

    /// The next ones, `most` at most and few where few are left; nothing once there will be none.
    fn wait(&self, most: usize) -> Option<Vec<(u64, T)>> {
        let mut items = self.items();
        loop {
            if !items.1 {
                return None;
            }
            let count = items.0.len();
            if count > 0 {
                return Some(items.0.drain(..most.min(count.div_ceil(4))).collect());
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
