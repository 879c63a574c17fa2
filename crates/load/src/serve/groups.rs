//! Tests that are under way, so that further connections can join them.

use super::message::MOST_SIDES;
use crate::allowance::Allowance;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By the token of the first connection.
#[derive(Debug, Default)]
pub(super) struct Groups(Mutex<HashMap<u64, Group>>);

/// A test.
#[derive(Debug)]
struct Group {
    client: IpAddr,
    /// Connections beside the first one.
    sides: u64,
    /// What all of them may move together.
    most: Allowance,
}

impl Groups {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A test begins.
    pub(super) fn begin(&self, client: IpAddr, token: u64, most: Allowance) {
        self.lock().insert(token, Group { client, sides: 0, most });
    }

    /// It has ended.
    pub(super) fn end(&self, token: u64) {
        self.lock().remove(&token);
    }

    /// One more connection with this token: what it may move, with the others; nothing unless it belongs to a test of this
    /// client that has room.
    pub(super) fn enter(&self, client: IpAddr, token: u64) -> Option<Allowance> {
        let mut groups = self.lock();
        let main = main_of(&groups, token)?;
        let group = groups.get_mut(&main).filter(|group| group.client == client && group.sides < MOST_SIDES)?;
        group.sides += 1;
        Some(group.most.clone())
    }

    /// It is gone; the test may be, too.
    pub(super) fn leave(&self, token: u64) {
        let mut groups = self.lock();
        if let Some(group) = main_of(&groups, token).and_then(|main| groups.get_mut(&main)) {
            group.sides = group.sides.saturating_sub(1);
        }
    }
}

/// The test that a further connection's token belongs to.
fn main_of(groups: &HashMap<u64, Group>, token: u64) -> Option<u64> {
    (1..=MOST_SIDES).map(|number| token.wrapping_sub(number)).find(|main| groups.contains_key(main))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_client_joins_a_test_that_is_under_way_and_only_so_often() {
        let (own, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let groups = Groups::default();
        let enters = |client, token| groups.enter(client, token).is_some();
        assert!(!enters(own, 257), "no test");
        groups.begin(own, 256, Allowance::endless());
        assert!(enters(own, 257) && !enters(other, 258) && !enters(own, 256 + 64));
        let more = (0..100).filter(|_| enters(own, 258)).count();
        assert_eq!(more as u64, MOST_SIDES - 1);
        groups.leave(258);
        assert!(enters(own, 259));
        groups.end(256);
        assert!(!enters(own, 257));
    }
}
