//! From the journal to the report: an experiment is assessed again from its rounds, as `tune` does at its end.

use super::answer::TuneAnswer;
use super::duration::{self, TrialTime};
use super::history::{History, delay_rules, is_of_a_round};
use super::link;
use super::screen_report::{self, ScreenFindings, ScreenReport};
use std::net::IpAddr;
use std::time::Duration;
use wt_experiment::{EProcess, Experiment};
use wt_journal::{Journal, State, StoredExperiment};
use wt_problem::Problem;
use wt_report::{NewComparison, Run, RunFacts, Setting, TuneInputs, TuneReport};
use wt_trial::{Direction, Phase, STOPPED, Status, TrialRecord, TunnelKind};
use wt_units::shell_word;

/// The report of an experiment of settings, or of a screen with its confirmation.
///
/// # Errors
/// A [`Problem`] that says what the journal lacks.
pub fn report(journal: &dyn Journal, stored: StoredExperiment) -> Result<TuneAnswer, Problem> {
    let Some(screened) = ScreenFindings::read(journal, &stored)? else {
        return Ok(TuneAnswer::Report(Box::new(of_journal(journal, &stored)?)));
    };
    let stopped = stored.state != State::Finished;
    let is_running = stored.state == State::Running;
    let confirmed = screen_report::confirmation(journal, &stored)?;
    let confirmation = confirmed.map(|stored| of_journal(journal, &stored)).transpose()?;
    Ok(TuneAnswer::Screen(Box::new(ScreenReport {
        stored,
        screened,
        confirmation,
        stopped,
        is_running,
        confirm_by: None,
    })))
}

/// Assesses an experiment again from what the journal holds.
fn of_journal(journal: &dyn Journal, stored: &StoredExperiment) -> Result<TuneReport, Problem> {
    let history = History::read(journal, stored)?;
    let experiment = history.replay()?;
    let records = history.records(journal)?;
    let is_running = stored.state == State::Running;
    let continued_by = continued_by(journal, &stored.id)?;
    let history = Some(&history);
    let (records, experiment) = (&records, &experiment);
    Ok(ReportedExperiment { stored, is_running, continued_by, records, experiment, history }.report())
}

/// The experiment whose report has the trials of this one and of all that go on with it, if that is another one.
///
/// Where the next one is from before its row said under which budget a half-seen round is finished, nothing is said of it: reports of
/// journals from then stay what they were.
fn continued_by(journal: &dyn Journal, id: &str) -> Result<Option<String>, Problem> {
    let mut chain = journal.continuations(id).map_err(|error| wt_setup::journal::problem(&error))?;
    let Some(next) = chain.first() else { return Ok(None) };
    // One that can't be read takes nothing from the report of this one.
    let is_of_now = journal.load(next).is_ok_and(|next| next.config.tune().cut_as_drawn.is_some());
    Ok(chain.pop().filter(|_| is_of_now))
}

/// An experiment with all that is reported of it.
pub(crate) struct ReportedExperiment<'a> {
    pub(crate) stored: &'a StoredExperiment,
    /// Whether somebody still measures it. What is reported at the end of a run stands in the journal as running until its verdict does.
    pub(crate) is_running: bool,
    /// The experiment that goes on with it, as [`continued_by()`] finds it.
    pub(crate) continued_by: Option<String>,
    pub(crate) records: &'a [TrialRecord],
    pub(crate) experiment: &'a Experiment,
    /// What the records were taken from, if they may be less than everything.
    pub(crate) history: Option<&'a History>,
}

impl ReportedExperiment<'_> {
    /// Puts the report together.
    pub(crate) fn report(&self) -> TuneReport {
        let config = self.stored.config.tune();
        let micros = |us: Option<u64>| Duration::from_micros(us.unwrap_or(0));
        let run = Run {
            started_unix_us: self.stored.started_unix_us,
            spent: self.measured_time().unwrap_or_else(|| micros(config.per_trial_us) * self.trials()),
            cool_down: micros(config.cool_down_us),
            seed: self.stored.seed,
            command: config.command.clone().unwrap_or_default(),
            version: self.stored.version.clone(),
            comment: self.stored.comment.clone(),
            host: config.host.as_ref().and_then(|host| host.name.clone()),
            kernel: config.host.as_ref().and_then(|host| host.kernel.clone()),
        };
        let live = config.live.as_ref();
        let facts = RunFacts {
            model: config.model.clone(),
            loss: live.and_then(|live| live.loss),
            addresses: self.addresses(),
            is_running: self.is_running,
            continued_by: self.continued_by.clone(),
            ended_early: self.cut_short().filter(|_| !self.is_running),
            again: self.begin_anew(),
            delay: self.history.map_or_else(|| delay_rules(self.stored), History::delay_rules),
            tells_of_open_delay: config.delay_room.is_some(),
            link: self.beneath(config.direction()),
            all: self.history.and_then(|history| history.all_trials(self.stored.arms.len())),
        };
        let setting = |arm: &wt_journal::Arm| Setting { label: arm.label.clone(), settings: arm.settings.clone() };
        let settings: Vec<Setting> = self.stored.arms.iter().map(setting).collect();
        TuneReport::assemble(&TuneInputs {
            id: &self.stored.id,
            target: &self.stored.target,
            tunnel: &self.stored.tunnel,
            path: &self.stored.path,
            current: self.stored.reference(),
            settings: &settings,
            plateau: config.plateau.as_ref().and_then(|plateau| plateau.knob),
            assessment: &self.experiment.assessment(),
            records: self.records,
            run: &run,
            facts: &facts,
        })
    }

    /// What begins another comparison of loads in a browser, which nothing goes on with. Rows of before they said how know neither the
    /// lab nor the server in it.
    fn begin_anew(&self) -> Option<NewComparison> {
        let config = self.stored.config.tune();
        config.browser.as_ref()?;
        let of_before = || {
            let levels: Vec<_> = self.stored.arms.iter().filter_map(|arm| arm.settings.iter().next()).collect();
            let [(knob, first), (_, second)] = levels[..] else { return None };
            let page = format!("windtunnel page {} --compare {knob}={first},{second}", shell_word(&self.stored.target));
            Some(format!("windtunnel lab run PATH --server COMMAND -- {page}"))
        };
        let command = config.again.clone().or_else(of_before)?;
        // `page` looks at evidence for either side, each at the risk that the report has for its one.
        let fewest_rounds = EProcess::fewest_rounds(1.0 / config.alpha()) as usize;
        Some(NewComparison { command, fewest_rounds })
    }

    /// How many trials count.
    fn trials(&self) -> u32 {
        let on_delay = self.records.iter().filter(|record| record.spec.phase == Phase::Delay).count();
        u32::try_from(self.experiment.trials() + on_delay).unwrap_or(u32::MAX)
    }

    /// How long the trials took, also those that say nothing; `None` of journals that tell how long each was expected to take, as all
    /// reports of them have done.
    fn measured_time(&self) -> Option<Duration> {
        let config = self.stored.config.tune();
        let has_all = self.history.map_or(config.measured_time == Some(true), History::has_measured_time);
        let is_of_model = self.stored.tunnel == TunnelKind::Sim.name();
        let cool_down = is_of_model.then(|| Duration::from_micros(config.cool_down_us.unwrap_or(0)));
        // The records may be the last ones of very many.
        let rounds = self.history.into_iter().flat_map(History::times);
        let counts = |record: &&TrialRecord| match record.spec.phase {
            Phase::Delay => true,
            phase => self.history.is_none() && is_of_a_round(phase),
        };
        let records = self.records.iter().filter(counts);
        let records = records.map(|record| (record.spec.experiment.as_str(), TrialTime::of_record(record)));
        has_all.then(|| duration::whole(rounds.chain(records), cool_down))
    }

    /// What a person should know of the machines and of the link.
    fn beneath(&self, direction: Direction) -> Vec<String> {
        let machines = self.history.and_then(History::machines);
        machines.into_iter().chain(link::warnings(self.records, direction, self.stored.arms.len())).collect()
    }

    /// Who served the rounds, in the order in which they first did; of trials that don't say so, whom the experiment names.
    fn addresses(&self) -> Vec<IpAddr> {
        let named = self.stored.config.tune().live.as_ref().and_then(|live| live.address);
        let rounds = self.records.iter().filter(|record| record.spec.round > 0 && record.outcome.bytes > 0);
        let mut addresses: Vec<IpAddr> = Vec::new();
        for served in rounds.filter_map(|record| record.outcome.observed.address.or(named)) {
            if !addresses.contains(&served) {
                addresses.push(served);
            }
        }
        if addresses.is_empty() { named.into_iter().collect() } else { addresses }
    }

    /// What ended it before its time, if that wasn't the user.
    fn cut_short(&self) -> Option<String> {
        let last = self.records.last().filter(|record| record.outcome.status == Status::Aborted)?;
        let why = last.outcome.notes.first().filter(|note| note.as_str() != STOPPED)?;
        let go_on = match (&self.stored.config.tune().browser, &self.continued_by) {
            (Some(_), _) => String::new(),
            (None, Some(by)) => format!(" {by} goes on with it."),
            (None, None) => format!(" windtunnel tune --resume {} goes on with it.", self.stored.id),
        };
        Some(format!("It ended before its time: {why}.{go_on}"))
    }
}
