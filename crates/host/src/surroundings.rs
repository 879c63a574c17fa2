use crate::read::Survey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What settings depend on and no change makes: addresses, what is switched on, rules that choose a routing table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// Addresses with their bits, by device.
    pub addresses: BTreeMap<String, BTreeSet<String>>,
    /// Devices that are switched on.
    pub up: BTreeSet<String>,
    /// Rules, in words.
    pub rules: BTreeSet<String>,
}

impl Surroundings {
    /// What lies around the settings now.
    #[must_use]
    pub fn of(survey: &Survey) -> Self {
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for link in &survey.devices.links {
            addresses.entry(link.name.clone()).or_default();
        }
        let names = survey.names();
        for address in &survey.devices.addresses {
            let own = addresses.entry(names.get(address.device)).or_default();
            own.insert(format!("{}/{}", address.address, address.prefix));
        }
        let up = survey.devices.links.iter().filter(|link| link.up).map(|link| link.name.clone()).collect();
        Self { addresses, up, rules: survey.rules.iter().cloned().collect() }
    }
}
