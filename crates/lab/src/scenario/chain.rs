//! Links that say what they join, put in the order in which packets cross them.
//!
//! # What this leaves out
//! Branches: a path is a chain from the client to the server, with hosts on the way if you like.

use super::ScenarioError;
use super::read::{RawLink, Reader};
use super::value::SpannedValue;

impl Reader<'_> {
    /// The links in order from the client: as written, or as `from` and `to` say when they are there.
    pub(super) fn chain(&self, links: &[SpannedValue<RawLink>]) -> Result<Vec<usize>, ScenarioError> {
        let named = |link: &RawLink| link.from.is_some() || link.to.is_some();
        if !links.iter().any(|link| named(link.get_ref())) {
            return Ok((0..links.len()).collect());
        }
        let joints = links.iter().map(|link| self.joint(link)).collect::<Result<Vec<_>, _>>()?;
        let (mut order, mut at) = (Vec::new(), "client");
        while at != "server" {
            let mut onward = joints.iter().enumerate().filter(|(_, (from, _))| *from == at).map(|(index, _)| index);
            let Some(next) = onward.next() else {
                let why =
                    format!("from: no link begins at \"{at}\"; allowed is one chain from \"client\" to \"server\"");
                return Err(self.error(links[order.last().copied().unwrap_or(0)].span().start, why));
            };
            if let Some(second) = onward.next() {
                return Err(self.joint_wrong(&links[second], "from", at, "a second link that begins there"));
            }
            order.push(next);
            at = joints[next].1;
            if at == "client" || order[..order.len() - 1].iter().any(|link| joints[*link].0 == at) {
                return Err(self.joint_wrong(&links[next], "to", at, "a loop"));
            }
        }
        match (0..links.len()).find(|index| !order.contains(index)) {
            Some(apart) => {
                Err(self.joint_wrong(&links[apart], "from", joints[apart].0, "not on the way from the client"))
            }
            None => Ok(order),
        }
    }

    /// What a link joins: both ends must be named.
    fn joint<'a>(&self, link: &'a SpannedValue<RawLink>) -> Result<(&'a str, &'a str), ScenarioError> {
        let raw = link.get_ref();
        match (&raw.from, &raw.to) {
            (Some(from), Some(to)) => Ok((from.get_ref(), to.get_ref())),
            (from, _) => {
                let missing = if from.is_none() { "from" } else { "to" };
                let why = format!("link \"{}\", {missing}: is missing; all links have from and to, or none", raw.name);
                Err(self.error(link.span().start, why))
            }
        }
    }

    fn joint_wrong(&self, link: &SpannedValue<RawLink>, field: &str, node: &str, what: &str) -> ScenarioError {
        let raw = link.get_ref();
        let value = if field == "from" { &raw.from } else { &raw.to };
        let at = value.as_ref().map_or(link.span().start, |value| value.span().start);
        let why = "allowed is one chain from \"client\" to \"server\" that meets nothing twice";
        self.error(at, format!("link \"{}\", {field}: \"{node}\" is {what}; {why}", raw.name))
    }
}
