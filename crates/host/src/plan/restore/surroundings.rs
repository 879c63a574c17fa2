use super::Restoration;
use std::collections::BTreeSet;

impl Restoration<'_> {
    /// What settings depend on and no change of ours makes: it stays as it is, and is said.
    pub(super) fn tell_surroundings(&mut self) {
        let Some(before) = self.before.filter(|_| self.same_network) else { return };
        let mut told = Vec::new();
        let nothing = BTreeSet::new();
        for (name, now) in &self.around.addresses {
            let Some(old) = before.addresses.get(name) else {
                if !self.was_renamed(name) {
                    told.push((name.clone(), format!("the device {name} wasn't there: its settings stay as they are")));
                }
                continue;
            };
            for (addresses, others, verb) in [(old, now, "add"), (now, old, "del")] {
                for address in addresses.difference(others).filter(|address| !self.comes_back(name, address)) {
                    let was = if verb == "add" { "is gone" } else { "wasn't there, and stays" };
                    told.push((
                        name.clone(),
                        format!("the address {address} {was}: ip addr {verb} {address} dev {name}"),
                    ));
                }
            }
            if before.up.contains(name) != self.around.up.contains(name) {
                let (was, verb) = if before.up.contains(name) { ("up", "up") } else { ("down", "down") };
                told.push((name.clone(), format!("the device {name} was {was}: ip link set dev {name} {verb}")));
            }
        }
        let gone = before.addresses.iter().filter(|(name, _)| !self.around.addresses.contains_key(*name));
        for (name, addresses) in gone.filter(|(_, addresses)| **addresses != nothing) {
            let all: Vec<&str> = addresses.iter().map(String::as_str).collect();
            told.push((name.clone(), format!("it had the addresses {}", all.join(", "))));
        }
        for rule in before.rules.difference(&self.around.rules) {
            told.push(("rule".to_owned(), format!("the rule \"{rule}\" is gone: ip rule add brings it back")));
        }
        for rule in self.around.rules.difference(&before.rules) {
            told.push((
                "rule".to_owned(),
                format!("the rule \"{rule}\" wasn't there, and stays: ip rule del removes it"),
            ));
        }
        for (key, text) in told {
            self.leave_out(&key, text);
        }
    }

    /// Below an MTU of 1280 a device has no addresses of IPv6; those that the kernel makes by itself come back with the MTU.
    fn comes_back(&self, name: &str, address: &str) -> bool {
        const IPV6_LEAST_MTU: u32 = 1_280;
        let now = self.survey.snapshot.devices.get(name).map(|device| device.mtu);
        address.starts_with("fe80:") && now.is_some_and(|mtu| mtu < IPV6_LEAST_MTU)
    }

    fn was_renamed(&self, name: &str) -> bool {
        let index = self.survey.snapshot.devices.get(name).map(|now| now.index);
        self.stored.devices.values().any(|old| Some(old.index) == index)
    }
}
