//! What monitoring reads of an agent while it runs: of its journal and its host what `windtunnel metrics` prints, and of itself what only it
//! knows. A question never waits for what the agent is doing.

use crate::answer::AgentAnswer;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::HostAccess;
use wt_setup::metrics::{counter, metric, metrics, untyped_metric};
use wt_setup::scraped::{AskedNames, Askers};

/// What only the agent knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentFigures {
    /// Whether the server answered when it was asked last.
    pub(crate) is_reached: bool,
    /// When it last did, seconds since 1970.
    pub(crate) reached_unix_s: Option<f64>,
    /// This host's wall clock less the server's, to within a round trip.
    pub(crate) skew_s: Option<f64>,
    /// Experiments that aren't in the common journal as they are here.
    pub(crate) outbox: u64,
    /// Whether an experiment runs.
    pub(crate) is_measuring: bool,
    /// Jobs that came to their end since the agent began.
    pub(crate) jobs: AgentAnswer,
}

impl AgentFigures {
    /// The server still is there, or isn't, while an experiment runs.
    pub(crate) fn kept(&mut self, is_reached: bool, here_us: i64) {
        self.is_reached = is_reached;
        if is_reached {
            self.reached_unix_s = Some(here_us as f64 / 1e6);
        }
    }

    /// The server has answered: with its clock, to what this host's clock said before, after so long.
    pub(crate) fn reached(&mut self, there_us: i64, here_us: i64, rtt: Duration, outbox: u64) {
        let here_us = here_us.saturating_add(i64::try_from(rtt.as_micros() / 2).unwrap_or(i64::MAX));
        (self.is_reached, self.outbox) = (true, outbox);
        self.reached_unix_s = Some(here_us as f64 / 1e6);
        self.skew_s = Some(here_us.saturating_sub(there_us) as f64 / 1e6);
    }
}

/// The figures, with one who writes and one who reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedFigures(Arc<Mutex<AgentFigures>>);

impl SharedFigures {
    pub(crate) fn write(&self) -> MutexGuard<'_, AgentFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers whoever asks at this address, for as long as the process lives.
    ///
    /// # Errors
    /// A [`Problem`] that says who is in the way.
    pub(crate) fn serve(&self, address: SocketAddr, journal: PathBuf) -> Result<(), Problem> {
        let listener: TcpListener = wt_setup::serve::listen(address)
            .map_err(|problem| problem.hint("metrics in agent.toml with another address or port"))?;
        let names = AskedNames::of(address);
        let figures = self.clone();
        std::thread::spawn(move || {
            let askers = Askers::default();
            // One reads the host at a time.
            let reader = Mutex::new(());
            std::thread::scope(|scope| {
                for stream in listener.incoming() {
                    let text = || {
                        let _one = reader.lock().unwrap_or_else(PoisonError::into_inner);
                        figures.text(&journal)
                    };
                    match stream {
                        Ok(stream) => askers.answer(scope, stream, &names, text),
                        // Where descriptors have run out the listener stays ready: a pause, and not in a busy loop.
                        Err(_) => drop(wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(250)))),
                    }
                }
            });
        });
        Ok(())
    }

    fn text(&self, journal: &Path) -> String {
        let own = self.write().clone();
        let mut text = metrics(Some(journal), HostAccess::open(None, None).ok().as_mut());
        let one = |value: f64| [(String::new(), value)];
        let yes = |is_so: bool| one(f64::from(u8::from(is_so)));
        metric(&mut text, "agent_server_up", "Whether the fleet's server answered last time.", yes(own.is_reached));
        let reached = own.reached_unix_s.map(|at| (String::new(), at));
        metric(&mut text, "agent_last_contact_timestamp_seconds", "When it last answered.", reached);
        let skew = own.skew_s.map(|skew| (String::new(), skew));
        metric(&mut text, "agent_clock_skew_seconds", "This host's wall clock less the server's.", skew);
        metric(&mut text, "agent_outbox", "Experiments that the server doesn't have yet.", one(own.outbox as f64));
        metric(&mut text, "agent_measuring", "Whether an experiment runs.", yes(own.is_measuring));
        let jobs = [("measured", own.jobs.measured), ("refused", own.jobs.refused), ("failed", own.jobs.failed)];
        let jobs = jobs.map(|(result, count)| (format!("{{result=\"{result}\"}}"), count as f64));
        let help = "Jobs that came to their end since the agent began.";
        counter(&mut text, "agent_jobs_total", help, jobs.clone());
        untyped_metric(&mut text, "agent_jobs", "The same as windtunnel_agent_jobs_total, by its older name.", jobs);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_ended_are_a_counter_and_keep_their_older_name() {
        let folder = tempfile::tempdir().unwrap();
        let figures = SharedFigures::default();
        figures.write().jobs = AgentAnswer { measured: 3, refused: 1, ..AgentAnswer::default() };
        let text = figures.text(&folder.path().join("journal"));
        assert!(text.contains("# TYPE windtunnel_agent_jobs_total counter\n"), "{text}");
        for line in [
            "windtunnel_agent_jobs_total{result=\"measured\"} 3\n",
            "windtunnel_agent_jobs_total{result=\"failed\"} 0\n",
            "windtunnel_agent_jobs{result=\"measured\"} 3\n",
            "windtunnel_agent_jobs{result=\"refused\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(!text.contains("windtunnel_agent_jobs gauge"), "{text}");
    }

    #[test]
    fn a_server_that_is_there_while_an_experiment_runs_isnt_away() {
        let mut figures = AgentFigures::default();
        figures.reached(1_000_000, 1_000_000, Duration::ZERO, 2);
        figures.kept(true, 9_000_000);
        assert_eq!((figures.is_reached, figures.reached_unix_s, figures.outbox), (true, Some(9.0), 2));
        figures.kept(false, 10_000_000);
        assert_eq!((figures.is_reached, figures.reached_unix_s), (false, Some(9.0)));
    }
}
