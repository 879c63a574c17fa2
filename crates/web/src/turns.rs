use crate::error::ApiError;
use crate::guest::GuestId;
use axum::http::StatusCode;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// So many wait, in all and of one that asks; who comes then is told to come back.
const MOST_WAITING: usize = 256;
const MOST_WAITING_OF_ONE: usize = 32;
/// So many are remembered for when they were last served.
const MOST_KNOWN: usize = 1024;

/// Turns to compute: some at a time. Nobody has all of them, and next is the one with the fewest, then the one that was served
/// longest ago; so whoever asks for much only waits for himself.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    at_once: usize,
    running: HashMap<GuestId, usize>,
    waiting: VecDeque<(GuestId, oneshot::Sender<Turn>)>,
    /// When each was last served, counted in turns.
    served: HashMap<GuestId, u64>,
    count: u64,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Option<Turns>,
    who: GuestId,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        let mut state = turns.lock();
        if let Some(running) = state.running.get_mut(&self.who) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&self.who);
            }
        }
        turns.begin(&mut state);
    }
}

impl Turn {
    /// For what takes no time.
    pub(crate) fn instant(who: GuestId) -> Self {
        Self { turns: None, who }
    }
}

impl Turns {
    /// So many at once.
    pub(crate) fn new(at_once: usize) -> Self {
        let (running, waiting, served) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self(Arc::new(Mutex::new(State { at_once, running, waiting, served, count: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. Dropping the future gives the place up.
    ///
    /// # Errors
    /// [`ApiError`], 429 where too many wait.
    pub(crate) async fn take(&self, who: GuestId) -> Result<Turn, ApiError> {
        self.ask(who)?.await.map_err(|_| ApiError::ours("the server is ending"))
    }

    fn ask(&self, who: GuestId) -> Result<oneshot::Receiver<Turn>, ApiError> {
        let mut state = self.lock();
        state.waiting.retain(|(_, waiting)| !waiting.is_closed());
        let own = state.waiting.iter().filter(|(other, _)| *other == who).count();
        if own >= MOST_WAITING_OF_ONE || state.waiting.len() >= MOST_WAITING {
            return Err(busy("too many requests wait for their turn"));
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back((who, sender));
        self.begin(&mut state);
        Ok(receiver)
    }

    /// Gives what is free to those who are next.
    fn begin(&self, state: &mut State) {
        while state.running.values().sum::<usize>() < state.at_once {
            let share = (state.at_once - 1).max(1);
            let running = |who: &GuestId| state.running.get(who).copied().unwrap_or(0);
            let may = state.waiting.iter().enumerate().filter(|(_, (who, _))| running(who) < share);
            let next = may.min_by_key(|(_, (who, _))| (running(who), state.served.get(who).copied().unwrap_or(0)));
            let Some((who, waiting)) = next.map(|(at, _)| at).and_then(|at| state.waiting.remove(at)) else { return };
            match waiting.send(Turn { turns: Some(self.clone()), who }) {
                Ok(()) => {
                    state.count += 1;
                    if state.served.len() >= MOST_KNOWN {
                        state.served.clear();
                    }
                    state.served.insert(who, state.count);
                    *state.running.entry(who).or_default() += 1;
                }
                // Nobody waits for it any more, and it hasn't begun.
                Err(mut turn) => turn.turns = None,
            }
        }
    }
}

/// The server has too much to do for whoever asks.
pub(crate) fn busy(what: &str) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, what).hint("read or close what is open, and ask again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn who(last: u8) -> GuestId {
        GuestId::of(IpAddr::from([192, 0, 2, last]), None)
    }

    fn now(receiver: &mut oneshot::Receiver<Turn>) -> Option<Turn> {
        receiver.try_recv().ok()
    }

    #[test]
    fn nobody_has_all_turns_and_who_comes_new_is_next() {
        let turns = Turns::new(3);
        let mut greedy: Vec<_> = (0..20).map(|_| turns.ask(who(1)).unwrap()).collect();
        let mut held: Vec<Turn> = greedy.iter_mut().filter_map(now).collect();
        assert_eq!(held.len(), 2, "one stays free");
        let mut other = turns.ask(who(2)).unwrap();
        let first = now(&mut other).expect("the free one");
        let mut third = turns.ask(who(3)).unwrap();
        assert!(now(&mut third).is_none());
        held.pop();
        let second = now(&mut third).expect("before the other eighteen");
        assert!(greedy.iter_mut().find_map(now).is_none());
        drop((first, second));
        assert!(greedy.iter_mut().find_map(now).is_some());
    }

    #[test]
    fn two_who_ask_without_end_are_served_in_turn() {
        let turns = Turns::new(1);
        let mut running = turns.ask(who(9)).unwrap();
        let mut turn = now(&mut running);
        let mut asked: Vec<_> = (0..30).map(|_| (1, turns.ask(who(1)).unwrap())).collect();
        asked.extend((0..3).map(|_| (2, turns.ask(who(2)).unwrap())));
        let mut order = Vec::new();
        for _ in 0..7 {
            drop(turn.take());
            let next = asked.iter_mut().find_map(|(who, receiver)| now(receiver).map(|turn| (*who, turn)));
            let (who, next) = next.unwrap();
            order.push(who);
            turn = Some(next);
        }
        assert_eq!(order, [1, 2, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn who_waits_is_bounded_and_who_left_leaves_nothing() {
        let turns = Turns::new(1);
        let mut first = turns.ask(who(1)).unwrap();
        let turn = now(&mut first).unwrap();
        let waiting: Vec<_> = (0..40).filter_map(|_| turns.ask(who(1)).ok()).collect();
        assert_eq!(waiting.len(), MOST_WAITING_OF_ONE);
        let many: Vec<_> =
            (2..=200).flat_map(|n| std::iter::repeat_n(n, 32)).filter_map(|n| turns.ask(who(n)).ok()).collect();
        assert_eq!(waiting.len() + many.len(), MOST_WAITING);
        drop((waiting, many));
        drop(turn);
        let mut last = turns.ask(who(3)).unwrap();
        let turn = now(&mut last).expect("nobody is in front any more");
        drop(turn);
        // A turn that was given and never fetched comes back, too.
        drop(turns.ask(who(4)).unwrap());
        assert!(now(&mut turns.ask(who(5)).unwrap()).is_some());
    }
}
