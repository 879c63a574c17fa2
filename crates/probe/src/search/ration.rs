use super::{Purpose, Search, UDP_BURST};
use crate::{Kind, Rtt, Time};

impl Search {
    /// How many answers to UDP the target has left.
    pub(super) fn ration_at(&self, now: Time) -> f64 {
        (self.ration.0 + now.saturating_sub(self.ration.1).as_secs_f64()).min(UDP_BURST)
    }

    /// Where the target rations its answers, waits until there are enough for the round that is planned.
    pub(super) fn wait_for_ration(&mut self, now: Time) {
        if self.method() != Kind::Udp || self.queue.is_empty() {
            return;
        }
        if self.rationed {
            self.not_before = now + 2 * Rtt::UNKNOWN;
            return;
        }
        let sizes = self.queue.iter().filter(|item| item.purpose == Purpose::Size).map(|item| item.size);
        let passed = self.evidence.passed().unwrap_or(0);
        // Of each size that may get through one, and those that surely do.
        let (sure, unsure): (Vec<u16>, Vec<u16>) = sizes.partition(|size| *size <= passed);
        let wanted = sure.len() as f64 + f64::from(u8::from(!unsure.is_empty()));
        let lacking = (wanted - self.ration_at(now)).clamp(0.0, UDP_BURST);
        self.not_before = self.not_before.max(now + Time::from_secs_f64(lacking));
    }
}
