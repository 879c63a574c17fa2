//! Tests that are under way, so that further connections can join them.

use super::message::MOST_SIDES;
use super::{ServerState, lock, now};
use crate::allowance::Allowance;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The place of a test, which all of its connections hold: it is free again when the last of them has ended, not the first.
#[derive(Debug)]
pub(super) struct TestPlace {
    shared: Arc<ServerState>,
    client: IpAddr,
    /// By the monotonic clock.
    pub(super) begun: Duration,
    /// What may be moved, together with everything else of this client, and until when.
    pub(super) most: Allowance,
}

impl TestPlace {
    /// Takes a place for a client, whose account has noted that.
    pub(super) fn take(shared: &Arc<ServerState>, client: IpAddr, begun: Duration, most: Allowance) -> Arc<Self> {
        shared.metrics.running.fetch_add(1, Ordering::AcqRel);
        Arc::new(Self { shared: Arc::clone(shared), client, begun, most })
    }
}

impl Drop for TestPlace {
    fn drop(&mut self) {
        lock(&self.shared.accounts).end(self.client, self.begun, now());
        self.shared.metrics.running.fetch_sub(1, Ordering::AcqRel);
        self.shared.wake.wake();
    }
}

/// What the connections of tests share, by the client and the token of the first connection.
#[derive(Debug)]
pub(super) struct Groups<P>(Mutex<HashMap<(IpAddr, u64), Weak<P>>>);

impl<P> Default for Groups<P> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<P> Groups<P> {
    fn lock(&self) -> MutexGuard<'_, HashMap<(IpAddr, u64), Weak<P>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A test begins.
    pub(super) fn begin(&self, client: IpAddr, token: u64, place: &Arc<P>) {
        self.lock().insert((client, token), Arc::downgrade(place));
    }

    /// Its first connection has ended: nobody joins any more.
    pub(super) fn end(&self, client: IpAddr, token: u64) {
        self.lock().remove(&(client, token));
    }

    /// One more connection with this token: what it shares with the others, as long as it lasts; nothing unless it belongs to a
    /// test of this client that has room.
    pub(super) fn enter(&self, client: IpAddr, token: u64) -> Option<Arc<P>> {
        let groups = self.lock();
        let mut mains = (1..=MOST_SIDES).map(|number| token.wrapping_sub(number));
        let place = mains.find_map(|main| groups.get(&(client, main)))?.upgrade()?;
        // The first connection, and this one.
        let others = (Arc::strong_count(&place) as u64).saturating_sub(2);
        (others < MOST_SIDES).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_client_joins_a_test_that_is_under_way_and_only_so_often() {
        let (own, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let groups = Groups::default();
        assert!(groups.enter(own, 257).is_none(), "no test");
        let first = Arc::new(());
        groups.begin(own, 256, &first);
        let mut sides: Vec<_> = groups.enter(own, 257).into_iter().collect();
        assert_eq!(sides.len(), 1);
        assert!(groups.enter(other, 258).is_none() && groups.enter(own, 256 + 64).is_none());
        sides.extend((0..100).filter_map(|_| groups.enter(own, 258)));
        assert_eq!(sides.len() as u64, MOST_SIDES);
        sides.pop();
        assert!(groups.enter(own, 259).is_some());
        groups.begin(other, 256, &Arc::new(()));
        groups.end(other, 256);
        assert!(groups.enter(own, 259).is_some(), "the same token of another client is another test");
        groups.end(own, 256);
        assert!(groups.enter(own, 257).is_none());
    }
}
