//! Work on many threads whose results come in the order of what they were asked: nobody waits for the slowest of a batch.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Items that are under way or done before the first of them is taken, for each thread.
const AHEAD: usize = 256;

/// Hands each item to whichever of so many threads is free, and each result to `take`, in the order of the items. Ends early
/// once `cancel` is set.
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
    let (give, asked) = channel::<(u64, T)>();
    let (asked, work) = (&Mutex::new(asked), &work);
    std::thread::scope(move |scope| {
        let (answer, answers) = channel::<(u64, T, A)>();
        for _ in 0..threads {
            let answer = answer.clone();
            scope.spawn(move || {
                while let Some((number, item)) = next(asked) {
                    if cancel.is_cancelled() {
                        break;
                    }
                    let done = work(&item);
                    if answer.send((number, item, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(answer);
        // What gives and what takes answers go when this returns, and with them the threads.
        let (mut given, mut taken, mut early, mut more) = (0, 0, BTreeMap::new(), true);
        loop {
            while more && given - taken < (AHEAD * threads) as u64 {
                match items.next() {
                    Some(item) => {
                        // They listen until `give` is gone, or the user wants no more.
                        let _ = give.send((given, item?));
                        given += 1;
                    }
                    None => more = false,
                }
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

fn next<T>(asked: &Mutex<Receiver<T>>) -> Option<T> {
    asked.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
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
