use super::change::ChangeRequest;
use wt_host::{Plan, Request, ScopeName, Target};
use wt_problem::Problem;

/// A change in words that mean the same on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenChange {
    /// `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Where: `host`, `default`, an address, a network or a device.
    pub to: String,
    /// The server that the verdict was measured against, `ADDRESS:PORT`, where there is one.
    pub server: Option<String>,
}

impl ChangeRequest {
    /// What is asked for, with what an experiment recommends, in words for other hosts.
    ///
    /// # Errors
    /// A usage [`Problem`] where nothing is asked for, or the experiment recommends nothing.
    pub fn written_out(&self) -> Result<WrittenChange, Problem> {
        if self.defaults || !self.files.is_empty() {
            return Err(Problem::usage("only settings and verdicts mean the same on every host"));
        }
        if self.is_empty() {
            return Err(Problem::usage("it isn't said what to change")
                .hint("name settings as KEY=VALUE, or --verdict EXPERIMENT"));
        }
        let request: Request = self.read_for_others()?;
        if request.places.values().any(|place| *place != request.target) {
            return Err(Problem::usage("its settings belong to different places")
                .hint("one after the other: windtunnel fleet apply NAME URL KEY=VALUE --to PLACE"));
        }
        let server = request.basis.as_ref().and_then(|basis| basis.server).map(|server| server.to_string());
        let settings = request.pairs.iter().map(|(knob, value)| format!("{}={value}", knob.name)).collect();
        Ok(WrittenChange { settings, to: request.target.to_string(), server })
    }
}

/// Whether a plan touches more than the routes that it names and the connections over them.
#[must_use]
pub fn reaches_beyond(plan: &Plan) -> bool {
    let is_narrow = matches!(plan.to.parse(), Ok(Target::Route(..)));
    plan.changes.iter().filter(|change| !change.unchanged).any(|change| match change.scope {
        ScopeName::Route | ScopeName::Connection => !is_narrow,
        ScopeName::Host | ScopeName::Link => true,
    })
}
