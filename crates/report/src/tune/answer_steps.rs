//! What an answer has people type, and where.

use super::TuneInputs;
use super::answer::{AnswerHost, AnswerStep, CONFIRM};
use super::apply::{SOME_TARGET, are_of_routes};
use std::collections::BTreeMap;
use wt_trial::Direction;
use wt_units::{Knob, Recommendation, Role, Settings, Side};

impl TuneInputs<'_> {
    /// Where a knob acts for payload in this direction.
    pub(super) fn host_of(&self, knob: Knob, direction: Direction) -> AnswerHost {
        let live = self.tunnel == "live";
        let end = match (knob.side(), direction) {
            // What both ends agree on is a switch of each host; the lab turns it on both.
            (Side::Own, _) if knob.scopes().host && !knob.scopes().route && !live => return AnswerHost::Both,
            (Side::Own, _) | (Side::Sender, Direction::Up) | (Side::Receiver, Direction::Down) => AnswerHost::Client,
            (Side::Sender, Direction::Down) | (Side::Receiver, Direction::Up) => AnswerHost::Server,
        };
        if live && end == AnswerHost::Client { AnswerHost::Here } else { end }
    }

    /// What to type on these hosts, in order.
    pub(super) fn steps(&self, hosts: &BTreeMap<AnswerHost, Settings>, direction: Direction) -> Vec<AnswerStep> {
        let mut steps = Vec::new();
        for (host, settings) in hosts {
            // What both ends have are switches, which are the same for either.
            let sends = (direction == Direction::Up) != (*host == AnswerHost::Server);
            let role = if sends { Role::Sender } else { Role::Receiver };
            let addresses = if *host == AnswerHost::Here { self.addresses() } else { Vec::new() };
            // What only sockets or routes to some hosts can have needs their address; the rest holds for all.
            let on_routes = are_of_routes(settings.iter().map(|(knob, _)| knob));
            let first = addresses.first().map(String::as_str);
            let target = first.unwrap_or(if on_routes { "default" } else { SOME_TARGET }).to_owned();
            let targets = if addresses.is_empty() { vec![target] } else { addresses };
            let mut commands = Recommendation::commands(settings, role, &targets, self.id);
            if *host != AnswerHost::Here || commands.is_empty() {
                // The journal with the verdict isn't there.
                commands = Recommendation::of(settings, role, &targets[0]).commands_by_place();
            }
            // The next change of the same machine waits for it.
            let follows = *host != AnswerHost::Both && hosts.contains_key(&AnswerHost::Both);
            let number = commands.len();
            for (at, command) in commands.into_iter().enumerate() {
                steps.push(AnswerStep { host: *host, command });
                if follows || at + 1 < number {
                    steps.push(AnswerStep { host: *host, command: CONFIRM.to_owned() });
                }
            }
        }
        steps
    }
}
