use crate::guest::GuestId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// So many connections at once, in all and of one that asks. Beyond that newcomers don't wait: the one that has been idle longest,
/// of the same address or else of whoever has most, makes room.
const MOST: usize = 512;
const MOST_OF_ONE: usize = 256;

/// The places of all connections.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Vec<(GuestId, Arc<Seat>)>>);

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Seat {
    /// When it last began a request or took a part of an answer.
    moved_ns: AtomicU64,
    leave: Notify,
}

impl Seat {
    fn new(now_ns: u64) -> Arc<Self> {
        Arc::new(Self { moved_ns: AtomicU64::new(now_ns), leave: Notify::new() })
    }

    /// It did something.
    pub(crate) fn moved(&self) {
        self.moved_ns.store(wt_sys::clock::monotonic_ns(), Ordering::Relaxed);
    }

    /// Ends the connection.
    pub(crate) fn give_up(&self) {
        self.leave.notify_one();
    }

    /// Waits until it has to end.
    pub(crate) async fn given_up(&self) {
        self.leave.notified().await;
    }

    #[cfg(test)]
    pub(crate) fn test() -> Arc<Self> {
        Self::new(0)
    }
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    pub(crate) seat: Arc<Seat>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.list().retain(|(_, seat)| !Arc::ptr_eq(seat, &self.seat));
    }
}

impl Places {
    fn list(&self) -> MutexGuard<'_, Vec<(GuestId, Arc<Seat>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for somebody new.
    pub(crate) fn take(self: &Arc<Self>, who: GuestId) -> Place {
        self.take_at(who, wt_sys::clock::monotonic_ns())
    }

    fn take_at(self: &Arc<Self>, who: GuestId, now_ns: u64) -> Place {
        let mut list = self.list();
        if list.iter().filter(|(other, _)| *other == who).count() >= MOST_OF_ONE {
            remove_idle(&mut list, who);
        } else if list.len() >= MOST {
            remove_of_most(&mut list);
        }
        let seat = Seat::new(now_ns);
        list.push((who, Arc::clone(&seat)));
        Place { places: Arc::clone(self), seat }
    }

    /// Ends a connection of whoever has most, since the process can't have more.
    pub(crate) fn make_room(&self) {
        remove_of_most(&mut self.list());
    }
}

fn remove_of_most(list: &mut Vec<(GuestId, Arc<Seat>)>) {
    let mut counts: HashMap<GuestId, usize> = HashMap::new();
    for (who, _) in list.iter() {
        *counts.entry(*who).or_default() += 1;
    }
    if let Some((who, _)) = counts.into_iter().max_by_key(|(_, count)| *count) {
        remove_idle(list, who);
    }
}

/// Ends the connection of one that has been idle longest.
fn remove_idle(list: &mut Vec<(GuestId, Arc<Seat>)>, who: GuestId) {
    let of_one = list.iter().enumerate().filter(|(_, (other, _))| *other == who);
    let idle = of_one.min_by_key(|(_, (_, seat))| seat.moved_ns.load(Ordering::Relaxed)).map(|(at, _)| at);
    if let Some(at) = idle {
        list.remove(at).1.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn who(last: u8) -> GuestId {
        GuestId::of(IpAddr::from([192, 0, 2, last]), None)
    }

    fn count(places: &Places, last: u8) -> usize {
        places.list().iter().filter(|(other, _)| *other == who(last)).count()
    }

    #[test]
    fn one_address_has_its_share_and_its_own_idle_ones_make_room() {
        let places = Arc::new(Places::default());
        let mut held: Vec<Place> = (0..10_000).map(|now| places.take_at(who(1), now)).collect();
        assert_eq!(count(&places, 1), MOST_OF_ONE);
        let other = places.take_at(who(2), 10_000);
        assert_eq!((count(&places, 1), count(&places, 2)), (MOST_OF_ONE, 1));
        // The newest stay, and so does an old one that moves.
        let list: Vec<_> = places.list().iter().map(|(_, seat)| seat.moved_ns.load(Ordering::Relaxed)).collect();
        assert_eq!(list.iter().min(), Some(&(10_000 - MOST_OF_ONE as u64)));
        let oldest = held.iter().find(|place| place.seat.moved_ns.load(Ordering::Relaxed) == list[0]).unwrap();
        oldest.seat.moved_ns.store(u64::MAX, Ordering::Relaxed);
        let seat = Arc::clone(&oldest.seat);
        held.push(places.take_at(who(1), 20_000));
        assert!(places.list().iter().any(|(_, other)| Arc::ptr_eq(other, &seat)));
        drop((held, other));
        assert!(places.list().is_empty(), "places come back");
    }

    #[test]
    fn where_all_is_taken_those_with_most_make_room_and_a_newcomer_never_waits() {
        let places = Arc::new(Places::default());
        let take = |last: u8, n: usize| (0..n).map(|_| places.take_at(who(last), 1)).collect::<Vec<_>>();
        let (_many, _more, _one) = (take(1, 250), take(2, 255), take(3, 7));
        let _newcomer = take(4, 100);
        assert_eq!((count(&places, 3), count(&places, 4)), (7, 100));
        assert_eq!(places.list().len(), MOST);
        // Thousands of addresses with one each: then the newcomer takes somebody's.
        let _crowd: Vec<_> = (0..2000_u16)
            .map(|n| {
                places.take_at(GuestId::of(IpAddr::from([10, 0, n.to_be_bytes()[0], n.to_be_bytes()[1]]), None), 2)
            })
            .collect();
        assert_eq!(places.list().len(), MOST);
    }

    #[tokio::test]
    async fn who_makes_room_hears_it() {
        let places = Arc::new(Places::default());
        let first = places.take_at(who(1), 0);
        let _others: Vec<_> = (0..MOST_OF_ONE).map(|_| places.take_at(who(1), 1)).collect();
        first.seat.given_up().await;
    }
}
