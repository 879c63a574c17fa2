//! Two ways to the same peer, exchange by exchange in turn: what one costs beyond the other, where the machine's noise is
//! larger than that.

use super::record::Record;
use super::talk::Talk;
use super::{Leg, RemoteEnd, close};
use crate::allowance::Allowance;
use crate::error::{FetchError, LoadError};
use crate::transfer::Finish;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;
use wt_trial::Cancel;

/// What is exchanged, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Bytes of a request.
    pub request: u32,
    /// Bytes of its answer.
    pub answer: u32,
    /// Pairs of exchanges.
    pub count: u32,
    /// All of it is over by then.
    pub deadline: Duration,
}

/// What was taken in turn.
#[derive(Debug)]
pub struct PairedTimes {
    /// From a request's first byte to its answer's last, ns, by the first and by the second way.
    pub times_ns: Vec<[u64; 2]>,
    /// How it ended.
    pub finish: Finish,
    /// Under which the peer keeps its side of both.
    pub tokens: [u64; 2],
}

/// Runs exchanges by two ways, one by each in a pair; `first` says which of the two goes first in the next pair: fair coins, so
/// that nothing that drifts favours one of them.
///
/// Every byte is checked. A pair that broke off isn't among the times.
///
/// # Errors
/// [`FetchError`] when a connection can't be had; what broke off later is in [`PairedTimes::finish`].
pub fn in_pairs(
    ways: [&dyn RemoteEnd; 2],
    turns: &Turns,
    mut first: impl FnMut() -> usize,
    cancel: &Cancel,
) -> Result<PairedTimes, FetchError> {
    let limit_ns = monotonic_ns().saturating_add(turns.deadline.as_nanos() as u64);
    let broken = |error| FetchError::Load(LoadError::Broken(error));
    let leg = Leg::Talk { time: turns.deadline };
    let opened = [ways[0].open(0, &leg)?, ways[1].open(1, &leg)?];
    let tokens = [opened[0].token, opened[1].token];
    let talk = |at: usize| {
        let stream = opened[at].stream.try_clone().map_err(broken)?;
        Talk::new(stream, limit_ns, opened[at].window, Allowance::endless(), cancel).map_err(broken)
    };
    let mut talks = [talk(0)?, talk(1)?];
    let mut times_ns = Vec::with_capacity(turns.count as usize);
    let mut finish = Finish::Done;
    while times_ns.len() < turns.count as usize {
        let one = first() & 1;
        let mut pair = [0; 2];
        let done = [one, 1 - one].into_iter().try_for_each(|at| {
            pair[at] = exchange(&mut talks[at], turns)?;
            Ok(())
        });
        if let Err(trouble) = done {
            finish = trouble;
            break;
        }
        times_ns.push(pair);
    }
    for one in opened {
        let mut stream = one.stream;
        if finish == Finish::Done {
            close(&mut stream, cancel);
        }
        let _ = tcp::reset_on_close(&stream);
    }
    Ok(PairedTimes { times_ns, finish, tokens })
}

/// One exchange; how long it took, ns.
fn exchange(talk: &mut Talk<'_>, turns: &Turns) -> Result<u64, Finish> {
    let begun = monotonic_ns();
    talk.ask(Record::Exchange { request: turns.request, answer: turns.answer })?;
    let (_, last_ns) = talk.take(turns.answer.into(), &"an answer")?;
    talk.still()?;
    Ok(last_ns.saturating_sub(begun))
}
