//! Whether routers keep "don't fragment", as their quotations show (IPv4).

use super::{Hop, Item, Purpose, Search};
use crate::Kind;

impl Search {
    /// The last hop before the target is asked what it sees of the flag, where this host reads quotations: whoever
    /// clears it stands before it.
    pub(super) fn ask_for_fragment(&mut self) {
        let last = self.hops_away.unwrap_or(0).saturating_sub(1);
        if self.config.v6 || !self.config.patient || !self.config.kinds.contains(&Kind::OldSegment) {
            return;
        }
        if last > 0 {
            self.ask_hop(last);
        }
    }

    fn ask_hop(&mut self, ttl: u8) {
        // Echoes, whoever answers them: routers on the way do.
        let size = 84.min(self.max);
        self.queue.push_back(Item { kind: Kind::Echo, size, ttl: Some(ttl), purpose: Purpose::Fragment });
    }

    /// Asks all hops which of them see the flag cleared, once, if any does; tells whether it asks.
    pub(super) fn seek_fragmenting_hop(&mut self) -> bool {
        let Some(first) = self.df_cleared().map(|hop| hop.ttl) else { return false };
        let unasked: Vec<u8> = (1..first)
            .filter(|ttl| {
                let asks = |item: &Item| item.purpose == Purpose::Fragment && item.ttl == Some(*ttl);
                !self.quoted_fragment.contains_key(ttl) && !self.flights.iter().any(|flight| asks(&flight.item))
            })
            .collect();
        unasked.iter().for_each(|ttl| self.ask_hop(*ttl));
        !unasked.is_empty()
    }

    /// The first hop that sees the flag cleared.
    pub(super) fn df_cleared(&self) -> Option<Hop> {
        let (ttl, (address, _)) = self.quoted_fragment.iter().find(|(_, (_, kept))| !kept)?;
        Some(Hop { ttl: *ttl, address: *address })
    }
}
