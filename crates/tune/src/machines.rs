//! The machines on which the sessions of an experiment were run: one verdict is of all of them.

use wt_journal::{HostConfig, StoredExperiment};
use wt_trial::TunnelKind;

/// A session of an experiment, by where it was run.
pub(crate) struct SessionPlace<'a> {
    pub(crate) stored: &'a StoredExperiment,
    /// The round with which it began; none where it has no trial of one.
    pub(crate) round: Option<u32>,
}

/// This machine: two experiments of different hosts aren't compared.
pub fn host() -> HostConfig {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    HostConfig { name: read("hostname"), kernel: read("osrelease"), ..HostConfig::default() }.whole()
}

/// What a person should know where sessions were run on different machines, or kernels; in a model nothing is of the machine.
pub(crate) fn warning(sessions: &[SessionPlace<'_>]) -> Option<String> {
    let mut all: Vec<(HostConfig, u32)> = Vec::new();
    for session in sessions.iter().filter(|session| session.stored.tunnel != TunnelKind::Sim.name()) {
        let (Some(host), Some(round)) = (&session.stored.config.tune().host, session.round) else { continue };
        if all.last().is_none_or(|(last, _)| differs(last, host)) {
            all.push((host.clone(), round));
        }
    }
    let [(first, _), others @ ..] = all.as_slice() else { return None };
    let others: Vec<String> =
        others.iter().map(|(host, round)| format!("{} from round {round} on", named(host))).collect();
    let others = Some(others.join(", then on ")).filter(|others| !others.is_empty())?;
    Some(format!(
        "It was run on different machines or kernels: on {}, and on {others}. Each round compares settings on one of them; the verdict \
         is of all rounds together, and may not hold on each.",
        named(first)
    ))
}

/// What to know before this machine goes on with an experiment of another one.
pub(crate) fn before_going_on(stored: &StoredExperiment) -> Option<String> {
    let (before, now) = (stored.config.tune().host.as_ref()?, host());
    let is_measured = stored.tunnel != TunnelKind::Sim.name();
    (is_measured && differs(before, &now)).then(|| {
        format!(
            "{} was run on {}, and this is {}: the verdict is of both together, and may not hold on each",
            stored.id,
            named(before),
            named(&now)
        )
    })
}

/// Whether the two aren't one machine with one kernel, as far as both are known.
fn differs(one: &HostConfig, other: &HostConfig) -> bool {
    let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
    differ(&one.name, &other.name) || differ(&one.kernel, &other.kernel)
}

/// As people name it: `vm (Linux 6.18.44)`.
fn named(host: &HostConfig) -> String {
    let name = host.name.as_deref().unwrap_or("a machine without a name");
    host.kernel.as_ref().map_or_else(|| name.to_owned(), |kernel| format!("{name} (Linux {kernel})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_journal::{ExperimentConfig, NewExperiment, TuneConfig};

    fn session(tunnel: &str, host: Option<(&str, &str)>) -> StoredExperiment {
        let host = host.map(|(name, kernel)| HostConfig {
            name: Some(name.to_owned()),
            kernel: Some(kernel.to_owned()),
            ..HostConfig::default()
        });
        let config = ExperimentConfig::Tune(Box::new(TuneConfig { host, ..TuneConfig::default() }));
        NewExperiment { config, ..NewExperiment::new("x", "lan", tunnel) }.begun()
    }

    fn told(sessions: &[StoredExperiment]) -> Option<String> {
        let places = (1..).zip(sessions).map(|(round, stored)| SessionPlace { stored, round: Some(round) });
        warning(&places.collect::<Vec<_>>())
    }

    #[test]
    fn sessions_of_two_machines_or_kernels_are_told_with_the_round_and_those_of_one_are_not() {
        let of = |name, kernel| session("lab", Some((name, kernel)));
        let two = told(&[of("a", "5.4.0"), of("a", "5.4.0"), of("b", "6.18.44")]).unwrap();
        assert!(two.contains("on a (Linux 5.4.0), and on b (Linux 6.18.44) from round 3 on."), "{two}");
        let kernels = told(&[of("a", "5.4.0"), of("a", "6.18.44"), of("a", "5.4.0")]).unwrap();
        assert!(
            kernels.contains("(Linux 6.18.44) from round 2 on, then on a (Linux 5.4.0) from round 3 on."),
            "{kernels}"
        );
        assert_eq!(told(&[of("a", "5.4.0"), of("a", "5.4.0")]), None);
        // Nobody knows where it was run, or nothing of it is the machine's.
        assert_eq!(told(&[of("a", "5.4.0"), session("lab", None)]), None);
        assert_eq!(told(&[session("sim", Some(("a", "5.4.0"))), session("sim", Some(("b", "6.18.44")))]), None);
    }

    #[test]
    fn who_goes_on_with_an_experiment_of_another_machine_is_told_before_anything_is_measured() {
        let other = before_going_on(&session("lab", Some(("a machine elsewhere", "0.1")))).unwrap();
        assert!(other.starts_with("x was run on a machine elsewhere (Linux 0.1), and this is "), "{other}");
        let now = host();
        let here = session("live", Some((now.name.as_deref().unwrap_or(""), now.kernel.as_deref().unwrap_or(""))));
        assert_eq!(before_going_on(&here), None);
        assert_eq!(before_going_on(&session("lab", None)), None);
    }
}
