use super::change::ChangeRequest;
use wt_host::{Plan, Request, ScopeName, Target};
use wt_problem::Problem;

/// A change in words that mean the same on every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenChange {
    /// `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Where: `host`, `default`, an address or a network; never a device, which every host names by itself.
    pub to: String,
    /// The server that the verdict was measured against, `ADDRESS:PORT`, where there is one.
    pub server: Option<String>,
}

impl ChangeRequest {
    /// What is asked for, with what an experiment recommends, in words for other hosts.
    ///
    /// # Errors
    /// A usage [`Problem`] where nothing is asked for, the experiment recommends nothing, or it is to hold at a place that isn't
    /// the same on every host.
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
        if let Target::Device(place) = &request.target {
            return Err(Problem::usage(format!("\"{place}\" is no place that means the same on every host"))
                .hint("name an address, a network, default or host: --to 192.0.2.0/24"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_for_other_hosts_has_a_place_that_is_the_same_on_each_of_them() {
        let written = |to: &str| {
            let (settings, to) = (vec!["initcwnd=20".to_owned()], Some(to.to_owned()));
            ChangeRequest { settings, to, ..ChangeRequest::default() }.written_out()
        };
        for (to, place) in [
            ("host", "host"),
            ("default", "default"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7/24", "192.0.2.0/24"),
            ("2001:db8::/32", "2001:db8::/32"),
        ] {
            assert_eq!(written(to).unwrap().to, place);
        }
        for to in ["nonsense", "0.0.0.0/99", "192.0.2.0/24/1", "192.0.2", "2001:db8::/129", "eth0", ""] {
            let problem = written(to).unwrap_err();
            assert!(problem.what.contains(&format!("\"{to}\" is no place")), "{to}: {}", problem.what);
        }
    }
}
