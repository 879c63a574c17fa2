use super::Builder;
use crate::change::Risk;
use crate::snapshot::DevicePart;
use std::collections::BTreeSet;
use wt_sys::link::Link;

impl Builder<'_> {
    /// The kernel lowers the MTU of devices along with that of the one that they lie on, and doesn't raise it again: what is to be
    /// undone must name them.
    pub(super) fn lower_those_above(&mut self, link: &Link) {
        let (mut below, mut done) = (vec![link], BTreeSet::new());
        while let Some(lower) = below.pop() {
            if !done.insert(lower.index) {
                continue;
            }
            let Some(mtu) = self.plan.wanted.devices.get(&lower.name).map(|device| device.mtu) else { continue };
            for upper in self.survey.devices.links.iter().filter(|other| other.lower == Some(lower.index)) {
                let Some(device) = self.plan.wanted.devices.get_mut(&upper.name).filter(|device| device.mtu > mtu)
                else {
                    continue;
                };
                let text =
                    format!("{} lies on {}: its MTU of {} becomes {mtu}, too", upper.name, lower.name, device.mtu);
                device.mtu = mtu;
                self.plan.risks.push(Risk::new("mtu", text));
                self.plan.scope.devices.entry(upper.name.clone()).or_default().insert(DevicePart::Mtu);
                self.plan.scope.routes_through.insert(upper.index);
                below.push(upper);
            }
        }
    }
}
