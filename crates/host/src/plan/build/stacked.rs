use super::Builder;
use crate::change::Risk;
use crate::snapshot::DevicePart;
use std::collections::BTreeSet;
use wt_sys::link::Link;

impl Builder<'_> {
    /// The kernel lowers the MTU of devices along with that of the one that they lie on, and doesn't raise it again: what is to be
    /// undone must name them.
    pub(super) fn lower_those_above(&mut self, link: &Link) {
        let Some(mtu) = self.plan.wanted.devices.get(&link.name).map(|device| device.mtu) else { return };
        let (mut below, mut done) = (vec![link], BTreeSet::new());
        while let Some(lower) = below.pop() {
            if !done.insert(lower.index) {
                continue;
            }
            if let Some(bridge) =
                bridge_that_follows(&self.survey.devices.links, lower).filter(|bridge| bridge.mtu > mtu)
            {
                let text = format!(
                    "{} follows its port {}: its MTU of {} becomes {mtu}, too",
                    bridge.name, lower.name, bridge.mtu
                );
                self.plan.risks.push(Risk::new("mtu", text));
                // It follows by itself, and does so no more once it is given one.
                self.plan.scope.routes_through.insert(bridge.index);
                below.push(bridge);
            }
            for upper in self.survey.devices.links.iter().filter(|other| other.lower == Some(lower.index)) {
                let Some(device) = self.plan.wanted.devices.get_mut(&upper.name).filter(|device| device.mtu > mtu)
                else {
                    continue;
                };
                let text =
                    format!("{} lies on {}: its MTU of {} becomes {mtu}, too", upper.name, lower.name, device.mtu);
                (device.mtu, device.ipv6_mtu) = (mtu, device.ipv6_mtu.filter(|own| *own < mtu));
                self.plan.risks.push(Risk::new("mtu", text));
                self.plan.scope.devices.entry(upper.name.clone()).or_default().insert(DevicePart::Mtu);
                self.plan.scope.routes_through.insert(upper.index);
                below.push(upper);
            }
        }
    }

    /// Says what no undo takes back.
    pub(super) fn tell_of_bridge(&mut self, link: &Link) {
        if is_bridge(link) {
            let text = format!(
                "{} doesn't follow the MTU of its ports any more once it has one of its own, also after an undo",
                link.name
            );
            self.plan.risks.push(Risk::new("mtu", text));
        }
    }
}

fn is_bridge(link: &Link) -> bool {
    link.kind.as_deref() == Some("bridge")
}

/// The bridge of a port, if it has the least MTU of its ports: one that was given another doesn't follow them.
fn bridge_that_follows<'a>(links: &'a [Link], port: &Link) -> Option<&'a Link> {
    let bridge = links.iter().find(|other| Some(other.index) == port.master && is_bridge(other))?;
    let least = links.iter().filter(|other| other.master == Some(bridge.index)).map(|port| port.mtu).min();
    (least == Some(bridge.mtu)).then_some(bridge)
}
