//! Two stacks exchange by exchange in turn: what an adapter costs, where the machine's noise is larger than that.

use super::{StackConnector, StackTunnel, bring_up};
use crate::catalogue::{Availability, Choice};
use crate::running::AdapterProcess;
use std::time::Duration;
use wt_load::work::{PairedTimes, RemoteEnd, Turns, in_pairs};
use wt_sys::awake::Awake;
use wt_sys::clock::monotonic_ns;
use wt_trial::{Cancel, TrialSpec, Workload};

impl StackTunnel {
    /// Runs the transactions of `spec` by these two stacks, one by each in a pair; `first` says which of them goes first in the
    /// next one. At most one of them can be behind an adapter, since all adapters have the same device and address.
    ///
    /// # Errors
    /// Why there are no times, in words: the stack, or the lab.
    pub fn in_pairs(
        &mut self,
        spec: &TrialSpec,
        arms: [usize; 2],
        count: u32,
        first: impl FnMut() -> usize + Send,
        cancel: &Cancel,
    ) -> Result<PairedTimes, String> {
        let Workload::Transactions { request, response, .. } = &spec.workload else {
            return Err("only transactions are done in turn".to_owned());
        };
        let small = |bytes: wt_units::Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let turns = Turns { request: small(*request), answer: small(*response), count, deadline: spec.deadline };
        let choice = |at: usize| self.arms.get(at).cloned().ok_or("there is no such stack");
        let choices = [choice(arms[0])?, choice(arms[1])?];
        let behind: Vec<&Choice> =
            choices.iter().filter(|choice| choice.stack.built() != Availability::Direct).collect();
        if behind.len() > 1 {
            return Err("both are behind adapters, which have the same device".to_owned());
        }
        self.trials += 1;
        let told = |error: &dyn std::fmt::Display| error.to_string();
        self.lab.reset(spec.seed).map_err(|error| told(&error))?;
        let token = spec.seed ^ monotonic_ns();
        let this = &*self;
        let run = || this.paired(spec, &choices, &turns, token, first, cancel);
        self.lab.client.run(run).map_err(|error| told(&error))?
    }

    /// The same, on a thread in the client's namespace.
    fn paired(
        &self,
        spec: &TrialSpec,
        choices: &[Choice; 2],
        turns: &Turns,
        token: u64,
        first: impl FnMut() -> usize,
        cancel: &Cancel,
    ) -> Result<PairedTimes, String> {
        let mut running = Vec::new();
        let mut ways = Vec::new();
        for choice in choices {
            let adapter = if choice.stack.built() == Availability::Direct {
                None
            } else {
                let arguments = self.arguments(choice);
                running.extend(self.far_end(choice, cancel)?);
                running.push(AdapterProcess::start(choice, &arguments, cancel)?);
                bring_up(arguments.mtu).map_err(|error| error.to_string())?;
                Some(arguments.listen)
            };
            ways.push(StackConnector { spec, choice, adapter, token });
        }
        let [one, other] = [&ways[0], &ways[1]].map(|way| way as &dyn RemoteEnd);
        // Nobody listens at a device meanwhile: who did at one way's would make that way slower.
        let _awake = Awake::keep();
        let done = in_pairs([one, other], turns, first, cancel).map_err(|error| error.to_string());
        if let Ok(done) = &done {
            for token in done.tokens {
                let _ = self.server.take_report(token, Duration::from_millis(500));
            }
        }
        let trouble = running.into_iter().find_map(|one| one.end().trouble);
        trouble.map_or(done, Err)
    }
}
