//! A turn while it is held: kept every third of its length by one thread, and ended by another which only looks at the clock, so that
//! a server that doesn't answer holds nothing up. A process that is stopped, or gets no processor, looks at no clock: the kernel kills it.

use crate::address::StoreAddress;
use crate::turns::{Turn, TurnAnswer, TurnError, TurnTicket, TurnWish, Turns};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wt_sys::clock::boottime_ns;
use wt_sys::kill_timer::KillTimer;
use wt_trial::Cancel;

/// How often one that waits asks again, and who looks at the clock looks.
const ASK: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);
/// After a server that doesn't answer, doubled up to the longest.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_AT_MOST: Duration = Duration::from_secs(15);
/// How long a server has to answer that a turn is given back; it ends by itself anyway.
const FAREWELL: Duration = Duration::from_secs(2);

/// What stands in the way of a turn, for people who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnWaits {
    /// Others have it.
    Behind(u64),
    /// The server doesn't answer.
    Unreachable(String),
}

/// Takes turns on always the same things, one after the other.
#[derive(Debug)]
pub struct TurnTaker {
    address: StoreAddress,
    wish: TurnWish,
    turns: Option<Turns>,
    /// Whether the end of a turn may end this process.
    kills: bool,
}

/// A turn that is held until it is given back.
#[derive(Debug)]
pub struct HeldTurn {
    shared: Arc<SharedTurn>,
    stop: Sender<()>,
    ended: Receiver<(Option<Turns>, bool)>,
}

#[derive(Debug)]
struct SharedTurn {
    /// Raised when the transfer has to end: the turn is nearly over, or the user wants to stop.
    cut: Cancel,
    /// Whether it was the turn.
    is_cut: AtomicBool,
    is_over: AtomicBool,
    ends_ns: AtomicU64,
    /// Ends this process a moment before the turn ends, if nothing else has ended the transfer by then.
    last_resort: Mutex<Option<KillTimer>>,
    /// How long that moment is.
    moment: Duration,
}

impl TurnTaker {
    /// Turns on these things alone, each so long at first and kept as long as it takes.
    #[must_use]
    pub fn new(address: StoreAddress, alone: Vec<String>, hold: Duration) -> Self {
        Self::wishing(address, TurnWish { alone, shared: Vec::new(), hold, patience: hold })
    }

    /// Turns on these things beside others that want them so, too.
    #[must_use]
    pub fn beside_others(address: StoreAddress, shared: Vec<String>, hold: Duration) -> Self {
        Self::wishing(address, TurnWish { alone: Vec::new(), shared, hold, patience: hold })
    }

    fn wishing(address: StoreAddress, wish: TurnWish) -> Self {
        // Whoever waits asks far more often, and after a while without a server still has its place.
        let patience = wish.hold.clamp(Duration::from_secs(30), Duration::from_secs(600));
        Self { address, wish: TurnWish { patience, ..wish }, turns: None, kills: false }
    }

    /// For a process that has nothing to do but its transfers: where it is stopped while it holds a turn, or gets no processor, the
    /// kernel kills it before the turn is over, so that it never moves data after that.
    #[must_use]
    pub fn killed_with_its_turn(self) -> Self {
        Self { kills: true, ..self }
    }

    /// Waits for a turn; `None` when the user wants to stop, or the monotonic clock says `until_ns`. `waits` hears once what it
    /// waits for, and again when that is something else.
    ///
    /// # Errors
    /// [`TurnError::Refused`]; a server that doesn't answer is asked again.
    pub fn take(
        &mut self,
        cancel: &Cancel,
        until_ns: Option<u64>,
        waits: &mut dyn FnMut(TurnWaits),
    ) -> Result<Option<HeldTurn>, TurnError> {
        let mut ticket: Option<TurnTicket> = None;
        let mut again = AGAIN;
        let mut told = None;
        while !cancel.is_cancelled() && until_ns.is_none_or(|until| wt_sys::clock::monotonic_ns() < until) {
            let why = match self.ask(ticket) {
                Ok((turns, TurnAnswer::Granted(turn))) => match self.hold(turns, turn, cancel) {
                    Some(held) => return Ok(Some(held)),
                    // The answer took as long as the turn: it is over before it began.
                    None => {
                        ticket = None;
                        TurnWaits::Unreachable("it answers too slowly".to_owned())
                    }
                },
                Ok((turns, TurnAnswer::Waits { ticket: mine, ahead })) => {
                    (self.turns, ticket, again) = (Some(turns), Some(mine), AGAIN);
                    TurnWaits::Behind(ahead)
                }
                Err(TurnError::Unreachable(why)) => TurnWaits::Unreachable(why),
                Err(refused) => return Err(refused),
            };
            let pause = match &why {
                TurnWaits::Behind(_) => ASK,
                TurnWaits::Unreachable(_) => again,
            };
            if matches!(why, TurnWaits::Unreachable(_)) {
                again = (again * 2).min(AGAIN_AT_MOST);
            }
            if told.as_ref().is_none_or(|told| std::mem::discriminant(told) != std::mem::discriminant(&why)) {
                waits(why.clone());
                told = Some(why);
            }
            idle(jittered(pause), cancel);
        }
        if let (Some(ticket), Some(turns)) = (ticket, self.turns.as_mut()) {
            // If the server doesn't hear it, it forgets the ticket by itself.
            let _ = turns.give_up(ticket);
        }
        Ok(None)
    }

    fn ask(&mut self, ticket: Option<TurnTicket>) -> Result<(Turns, TurnAnswer), TurnError> {
        let mut turns = match self.turns.take() {
            Some(turns) => turns,
            None => Turns::connect(&self.address)?,
        };
        let now = Duration::from_nanos(boottime_ns());
        let answer = turns.ask(&self.wish, ticket, now)?;
        Ok((turns, answer))
    }

    /// Holds a turn, unless it is nearly over: then it is given back.
    fn hold(&mut self, mut turns: Turns, turn: Turn, user: &Cancel) -> Option<HeldTurn> {
        let hold = self.wish.hold;
        let margin = (hold / 10).min(Duration::from_secs(5));
        let moment = margin / 4;
        if turn.left(Duration::from_nanos(boottime_ns())) <= margin {
            self.turns = turns.end(turn).is_ok().then_some(turns);
            return None;
        }
        // A user with too many timers goes without.
        let last_resort = self.kills.then(|| KillTimer::at(nanos(turn.ends() - moment)).ok()).flatten();
        let shared = Arc::new(SharedTurn {
            cut: Cancel::new(),
            is_cut: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            ends_ns: AtomicU64::new(nanos(turn.ends())),
            last_resort: Mutex::new(last_resort),
            moment,
        });
        let (watched, user) = (Arc::clone(&shared), user.clone());
        std::thread::spawn(move || watched.watch(margin, &user));
        let (stop, stopped) = channel();
        let (tell, ended) = channel();
        let (kept, address) = (Arc::clone(&shared), self.address.clone());
        std::thread::spawn(move || {
            // Nobody may wait for it any more.
            let _ = tell.send(kept.keep(turns, turn, hold, &address, &stopped));
        });
        Some(HeldTurn { shared, stop, ended })
    }

    /// Gives a turn back; whether it was held all the time, as far as is known.
    pub fn give_back(&mut self, held: HeldTurn) -> bool {
        held.shared.end();
        let _ = held.stop.send(());
        match held.ended.recv_timeout(FAREWELL) {
            Ok((turns, was_held)) => {
                self.turns = turns;
                was_held && !held.is_cut()
            }
            Err(_) => !held.is_cut(),
        }
    }
}

impl HeldTurn {
    /// What ends a transfer: raised when the turn is nearly over, or the user wants to stop.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.shared.cut
    }

    /// Whether the turn was nearly over before it was given back.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.shared.is_cut.load(Ordering::Acquire)
    }
}

impl Drop for HeldTurn {
    fn drop(&mut self) {
        self.shared.end();
        let _ = self.stop.send(());
    }
}

impl SharedTurn {
    /// Nothing of it moves any more.
    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        drop(self.last_resort.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The turn ends then, and this process, if it still moves anything by then, at that time.
    fn ends(&self, at: Duration, last: Duration) {
        self.ends_ns.store(nanos(at), Ordering::Release);
        if let Some(timer) = &*self.last_resort.lock().unwrap_or_else(PoisonError::into_inner) {
            // Where it can't be set, it goes off as it was set before.
            let _ = timer.set(nanos(last));
        }
    }

    /// Looks at the clock until it is over.
    fn watch(&self, margin: Duration, user: &Cancel) {
        while !self.is_over.load(Ordering::Acquire) {
            if boottime_ns().saturating_add(nanos(margin)) >= self.ends_ns.load(Ordering::Acquire) {
                self.is_cut.store(true, Ordering::Release);
                self.cut.cancel();
                return;
            }
            if user.is_cancelled() {
                self.cut.cancel();
            }
            idle(LOOK, &Cancel::new());
        }
    }

    /// Keeps the turn every third of its length until it is given back or lost.
    fn keep(
        &self,
        turns: Turns,
        mut turn: Turn,
        hold: Duration,
        address: &StoreAddress,
        stopped: &Receiver<()>,
    ) -> (Option<Turns>, bool) {
        let mut turns = Some(turns);
        let mut pause = hold / 3;
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
            if turns.is_none() {
                turns = Turns::connect(address).ok();
            }
            let now = Duration::from_nanos(boottime_ns());
            match turns.as_mut().map(|turns| turns.keep(&mut turn, hold, now)) {
                Some(Ok(held)) => {
                    if !held {
                        // It ends now; what moves has a moment for it.
                        self.ends(turn.ends(), Duration::from_nanos(boottime_ns()) + self.moment);
                        return (turns, false);
                    }
                    self.ends(turn.ends(), turn.ends().saturating_sub(self.moment));
                    pause = hold / 3;
                }
                Some(Err(TurnError::Refused(_))) => return (turns, false),
                Some(Err(TurnError::Unreachable(_))) | None => {
                    turns = None;
                    pause = (hold / 10).min(AGAIN);
                }
            }
        }
        let given_back = turns.as_mut().map(|turns| turns.end(turn));
        match given_back {
            Some(Ok(was_held)) => (turns, was_held),
            // It isn't known; the clock here has the last word.
            Some(Err(_)) | None => (None, true),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for nothing but time, unless the user wants to stop.
fn idle(time: Duration, cancel: &Cancel) {
    let end = wt_sys::clock::monotonic_ns().saturating_add(nanos(time));
    loop {
        let left = end.saturating_sub(wt_sys::clock::monotonic_ns());
        if left == 0 || cancel.is_cancelled() {
            return;
        }
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left.min(50_000_000))));
    }
}

/// From three quarters to five quarters of a time, so that nobody keeps step with others.
fn jittered(time: Duration) -> Duration {
    static SALT: OnceLock<u64> = OnceLock::new();
    let salt = SALT.get_or_init(|| u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (wt_sys::clock::monotonic_ns() ^ salt).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
    time.mul_f64(0.75 + mixed as f64 / f64::from(1_u32 << 24) / 2.0)
}
