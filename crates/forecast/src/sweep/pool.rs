//! Work on many threads whose results come in the order of what they were asked: nobody waits for the slowest of a batch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Items that are under way or done before the first of them is taken, for each thread.
const AHEAD: usize = 256;

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
        let (answer, answers) = channel::<(u64, T, A)>();
        // The others end when this returns, in whatever way.
        let _closing = Closing(queue);
        for _ in 1..threads {
            let answer = answer.clone();
            scope.spawn(move || {
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
                let Ok((number, item, done)) = answers.recv() else { return Ok(()) };
                early.insert(number, (item, done));
            }
        }
    })
}

/// Keeps what others have done.
fn arrived<T, A>(answers: &Receiver<(u64, T, A)>, early: &mut BTreeMap<u64, (T, A)>) {
    loop {
        match answers.try_recv() {
            Ok((number, item, done)) => early.insert(number, (item, done)),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
        };
    }
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
