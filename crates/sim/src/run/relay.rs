//! Relays: what arrives on one connection is sent on another, as a proxy does.
//!
//! What this leaves out: what a proxy computes and stores. One that keeps whole answers never holds its origin back, where
//! this one reads no faster than it can write; it matters where the near side is slower than the far one.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | a proxy's `read` and `write` | 3135 (split connections) | [`Simulation::add_relay`] |

use super::{REQUEST, Simulation, Stage};
use crate::spec::{Exchange, FlowSpec, Job, RelaySpec, SimError};
use std::cmp::Reverse;
use std::time::Duration;
use wt_link::PathConfig;

/// A relay between two flows: what arrives on one is sent on the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relay {
    near: usize,
    far: usize,
    /// The far side waits for a request before it connects.
    sleeps: bool,
}

impl Simulation {
    /// Adds a relay: the client asks it over the first path, it asks the origin over `path` and hands on what comes. Returns
    /// the numbers of the near and the far flow.
    ///
    /// # Errors
    /// [`SimError`].
    pub fn add_relay(&mut self, path: &PathConfig, spec: RelaySpec) -> Result<(usize, usize), SimError> {
        let RelaySpec { client, near, far, origin, answer, on_demand } = spec;
        let line = self.net.add_line(path, Vec::new(), self.seed.wrapping_add(1))?;
        let job = || Job::Exchanges(vec![Exchange { ask: REQUEST, answer, pause: Duration::ZERO }]);
        let start = if on_demand { Duration::MAX } else { Duration::ZERO };
        let near = FlowSpec { client, server: near, job: job(), start: Duration::ZERO };
        let near = self.add_flow(near)?;
        let far = self.add_flow_on(line, FlowSpec { client: far, server: origin, job: job(), start })?;
        let relay = self.relays.len();
        self.relays.push(Relay { near, far, sleeps: on_demand });
        self.flows[near].relay = Some((relay, false));
        self.flows[far].relay = Some((relay, true));
        Ok((near, far))
    }

    /// Hands on what has arrived at a relay: the request to the origin, the answer to the client.
    pub(super) fn relay(&mut self, number: usize) {
        let Some((relay, _)) = self.flows[number].relay else { return };
        let now = self.now_ns;
        let Relay { near, far, sleeps } = self.relays[relay];
        let request = self.net.end(self.flows[near].server).received();
        if sleeps && request >= REQUEST {
            self.relays[relay].sleeps = false;
            self.wake.push(Reverse((now, far)));
        }
        if self.flows[far].stage != Stage::Running {
            return;
        }
        let (far_client, near_server) = (self.flows[far].client, self.flows[near].server);
        if request >= REQUEST {
            self.net.act(far_client, now, |end, out| end.write_to(now, request, out));
        }
        // It reads no faster than it can write.
        let there = self.net.end(far_client).arrived();
        let room = self.net.end(near_server).write_room();
        let written = self.net.end(far_client).received();
        let most = there.min(written + room);
        self.net.act(far_client, now, |end, out| end.set_read_limit(now, most, out));
        let read = self.net.end(far_client).received();
        if read > 0 {
            self.net.act(near_server, now, |end, out| end.write_to(now, read, out));
        }
        if self.flows[far].stage == Stage::Running && number != far {
            self.advance_far(far);
        }
    }

    /// The far side goes on when the near side made room.
    fn advance_far(&mut self, far: usize) {
        let flow = &self.flows[far];
        if flow.served == flow.asked && flow.asked > 0 && self.net.end(flow.client).received() >= flow.answered {
            self.finish(far);
        }
    }
}
