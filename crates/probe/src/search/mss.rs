use super::{Clamp, Hop, Search, Stage};
use std::net::IpAddr;

impl Search {
    /// Asks what routers saw of this host's MSS, once all else is done: where that is lowered on the way there alone, the target's answer
    /// doesn't show it. Tells whether there is anybody to ask.
    pub fn ask_for_quotes(&mut self) -> bool {
        if self.stage != Stage::Done || self.quotes_asked || !self.config.kinds.contains(&crate::Kind::OldSegment) {
            return false;
        }
        (self.stage, self.heard) = (Stage::Clamp, None);
        self.round += 1;
        self.round_from = self.flights.len();
        self.push_quotes();
        true
    }

    /// Whether a router saw a smaller MSS than this host's.
    #[must_use]
    pub fn sees_lowered_mss(&self) -> bool {
        self.lowered().is_some()
    }

    pub(super) fn headers(&self) -> u16 {
        if self.config.v6 { 60 } else { 40 }
    }

    fn offered_mss(&self) -> u16 {
        self.config.max.saturating_sub(self.headers())
    }

    /// The first router that saw a smaller MSS than this host's, and what it saw.
    fn lowered(&self) -> Option<(Hop, u16)> {
        let lower = |(_, (_, mss)): &(&u8, &(IpAddr, u16))| *mss < self.offered_mss();
        let (ttl, (address, mss)) = self.quoted_mss.iter().find(lower)?;
        Some((Hop { ttl: *ttl, address: *address }, *mss))
    }

    /// Whether the MSS is smaller than the path carries, in the target's answer or in what a router saw of ours, and where it became so.
    pub(super) fn clamp(&self, pmtu: u16) -> Option<Clamp> {
        let lowered = self.lowered();
        let comes_back = self.small_mss(pmtu).filter(|_| !self.ours_is_kept());
        let of_ours = lowered.map(|(_, mss)| mss).filter(|mss| *mss < pmtu.saturating_sub(self.headers()));
        let to = comes_back.or(of_ours)?;
        Some(Clamp { from: self.offered_mss(), to, hop: lowered.map(|(hop, _)| hop) })
    }

    /// The MSS of the target's answer, if it is smaller than the path carries.
    fn small_mss(&self, pmtu: u16) -> Option<u16> {
        self.mss.filter(|mss| *mss < pmtu.saturating_sub(self.headers()))
    }

    /// The same, if routers quote the MSS as this host offers it: it is the target's own word, which may know of a narrower way back,
    /// or was lowered where no quotation shows it.
    pub(super) fn small_mss_of_target(&self, pmtu: u16) -> Option<u16> {
        self.small_mss(pmtu).filter(|_| self.ours_is_kept())
    }

    fn ours_is_kept(&self) -> bool {
        !self.quoted_mss.is_empty() && self.lowered().is_none()
    }
}
