use super::{Item, Purpose, Search};
use crate::{Kind, silence_tells};
use rand::seq::SliceRandom as _;

/// After so many probes it is known whether nearly all get lost; each look at it sends half of them.
const ENOUGH: u32 = 80;

impl Search {
    /// Where nearly everything up to this size stays unanswered, nobody can say what vanishes for its length: that is made sure of,
    /// and then another kind of probe is asked, or it is over.
    pub(super) fn is_scarcely_answered(&mut self, passed: u16) -> bool {
        let tells = silence_tells(self.evidence.loss_below(passed));
        if tells || self.method() == Kind::Udp || passed >= self.max {
            return false;
        }
        if self.evidence.lossy_below(passed).sent < ENOUGH {
            self.push(passed, ENOUGH / 2);
            return true;
        }
        self.scarce = true;
        if let Some(kind) = self.short_kind() {
            self.sweeps = 0;
            self.begin_with(kind);
        } else {
            self.undecided = true;
            self.finish();
        }
        true
    }

    /// Whether it isn't by chance that packets just longer than this stay unanswered, as those are that got there.
    pub(super) fn vanishes_for_sure(&self, passed: u16) -> bool {
        let above = self.evidence.of(passed.saturating_add(1));
        self.asked_there == above.size && above.silent + above.refused >= self.repeats(passed)
    }

    /// Lets sizes leave in any order: where a target rations its answers, the first of a burst get them all.
    pub(super) fn shuffle_sizes(&mut self) {
        let kind = self.method();
        if kind == Kind::Udp {
            return;
        }
        let of_sizes = |item: &Item| item.purpose == Purpose::Size && item.kind == kind;
        let mut sizes: Vec<Item> = self.queue.iter().copied().filter(of_sizes).collect();
        sizes.shuffle(&mut self.rng);
        for (place, item) in self.queue.iter_mut().filter(|item| of_sizes(item)).zip(sizes) {
            *place = item;
        }
    }
}
