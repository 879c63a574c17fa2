use crate::{Cancel, Direction, PathFacts, TrialOutcome, TrialSpec, Tunnel, TunnelError, TunnelKind};
use std::net::SocketAddr;
use wt_units::{Knob, Settings, Url};

/// A tunnel in which some settings hold for every trial, those of the current settings among them.
///
/// They belong to what is current there: what is compared differs from them in what it asks for itself.
#[derive(Debug)]
pub struct Holding<T> {
    tunnel: T,
    held: Settings,
}

impl<T> Holding<T> {
    /// Holds these settings in a tunnel; none leave it as it is.
    #[must_use]
    pub fn new(tunnel: T, held: Settings) -> Self {
        Self { tunnel, held }
    }

    /// What is held.
    #[must_use]
    pub fn held(&self) -> &Settings {
        &self.held
    }
}

impl<T: Tunnel> Tunnel for Holding<T> {
    fn kind(&self) -> TunnelKind {
        self.tunnel.kind()
    }

    fn target(&self) -> String {
        self.tunnel.target()
    }

    fn current(&self) -> Settings {
        self.tunnel.current().overlaid(&self.held)
    }

    fn usual_knobs(&self, direction: Direction) -> Vec<Knob> {
        self.tunnel.usual_knobs(direction)
    }

    fn path(&self, direction: Direction) -> PathFacts {
        self.tunnel.path(direction)
    }

    fn header_len(&self) -> u64 {
        self.tunnel.header_len()
    }

    fn check(&self, settings: &Settings) -> Result<(), TunnelError> {
        self.tunnel.check(&self.held.overlaid(settings))
    }

    fn stands_ready(&mut self, arms: &[&Settings]) -> Result<(), TunnelError> {
        let with: Vec<Settings> = arms.iter().map(|arm| self.held.overlaid(arm)).collect();
        self.tunnel.stands_ready(&with.iter().collect::<Vec<_>>())
    }

    fn gives_up_round(&self) -> bool {
        self.tunnel.gives_up_round()
    }

    fn refusal(&self) -> Option<&str> {
        self.tunnel.refusal()
    }

    fn pause(&self) -> std::time::Duration {
        self.tunnel.pause()
    }

    fn asked_last(&self) -> Option<(Url, SocketAddr)> {
        self.tunnel.asked_last()
    }

    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError> {
        if self.held.is_empty() {
            return self.tunnel.run(spec, cancel);
        }
        let spec = TrialSpec { settings: self.held.overlaid(&spec.settings), ..spec.clone() };
        self.tunnel.run(&spec, cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, Phase, Status, Workload};
    use std::cell::RefCell;
    use std::time::Duration;
    use wt_units::{Bytes, Level};

    /// Takes down what it is asked for.
    #[derive(Default)]
    struct RecordingTunnel(RefCell<Vec<String>>);

    impl Tunnel for RecordingTunnel {
        fn kind(&self) -> TunnelKind {
            TunnelKind::Sim
        }
        fn target(&self) -> String {
            "nowhere".to_owned()
        }
        fn current(&self) -> Settings {
            Settings::new().with(Knob::Mtu, Level::Number(1500)).with(Knob::Cc, Level::Name("cubic".into()))
        }
        fn path(&self, _: Direction) -> PathFacts {
            PathFacts::default()
        }
        fn check(&self, settings: &Settings) -> Result<(), TunnelError> {
            self.0.borrow_mut().push(format!("check {settings}"));
            Ok(())
        }
        fn stands_ready(&mut self, arms: &[&Settings]) -> Result<(), TunnelError> {
            arms.iter().for_each(|arm| self.0.borrow_mut().push(format!("ready {arm}")));
            Ok(())
        }
        fn run(&mut self, spec: &TrialSpec, _: &Cancel) -> Result<TrialOutcome, TunnelError> {
            self.0.borrow_mut().push(format!("run {}", spec.settings));
            Ok(TrialOutcome::empty(Status::Completed, Duration::ZERO, ""))
        }
    }

    #[test]
    fn what_is_held_is_current_and_part_of_every_trial_and_what_is_asked_for_wins() {
        let held = Settings::new().with(Knob::Cc, Level::Name("reno".into())).with(Knob::Mss, Level::Number(1000));
        let mut holding = Holding::new(RecordingTunnel::default(), held);
        assert_eq!(holding.current().to_string(), "mtu=1500 cc=reno mss=1000");
        let (none, own) = (Settings::new(), Settings::new().with(Knob::Mss, Level::Number(500)));
        holding.check(&own).unwrap();
        holding.stands_ready(&[&none, &own]).unwrap();
        for settings in [none, own] {
            let spec = TrialSpec {
                experiment: String::new(),
                phase: Phase::Round,
                round: 1,
                order: 1,
                arm: 0,
                settings,
                workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(1)) },
                deadline: Duration::from_secs(1),
                seed: 1,
            };
            holding.run(&spec, &Cancel::new()).unwrap();
        }
        let all = ["cc=reno mss=500", "cc=reno mss=1000", "cc=reno mss=500", "cc=reno mss=1000", "cc=reno mss=500"];
        let words = ["check", "ready", "ready", "run", "run"];
        let wanted: Vec<String> = words.iter().zip(all).map(|(word, what)| format!("{word} {what}")).collect();
        assert_eq!(*holding.tunnel.0.borrow(), wanted);
        let plain = Holding::new(RecordingTunnel::default(), Settings::new());
        assert_eq!(plain.current(), RecordingTunnel::default().current());
    }
}
