use super::answer::{CurrentDifference, ExpectedElsewhere, HoursRatio, SharedSetting, SideBySideAnswer};
use super::disturbed::{self, FleetRun};
use super::experiment::{ComparedExperiment, TriedSetting};
use super::left_out::LeftOut;
use super::request::SideBySideRequest;
use super::words;
use std::path::Path;
use wt_experiment::fleet::{Combination, FleetFinding, SiteFinding};
use wt_experiment::meta::Summary;
use wt_problem::Problem;

/// More are no comparison that anybody reads.
const MOST: usize = 20;

/// Puts experiments of the journal side by side.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn run(request: &SideBySideRequest) -> Result<SideBySideAnswer, Problem> {
    if request.experiments.len() < 2 {
        return Err(Problem::usage("a comparison takes two experiments or more"));
    }
    if request.experiments.len() > MOST {
        return Err(Problem::usage(format!("at most {MOST} experiments are compared at once")));
    }
    Ok(compare(read(&request.experiments, request.journal.as_deref())?, Vec::new(), request.anyway))
}

/// Puts all experiments of a fleet side by side, however different their paths are: that is what is asked. In all runs of the mesh it
/// looks for pairs that disturb one another. What one host's rows make unreadable is left out and named.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub fn of_fleet(experiments: &[String], runs: &[FleetRun], journal: &Path) -> Result<SideBySideAnswer, Problem> {
    let mut left_out = LeftOut::default();
    let disturbances = disturbed::find(runs, journal, &mut left_out)?;
    let readable = read_readable(experiments, journal, &mut left_out)?;
    if readable.len() < 2 {
        let why = left_out.notes().join("; ");
        return Err(Problem::usage(format!("{} of the mesh can be reported: a report takes two", readable.len()))
            .because(why)
            .hint("windtunnel journal show EXPERIMENT --journal URL says what is wrong with one"));
    }
    let mut answer = compare(readable, left_out.notes(), true);
    answer.text = format!("{}\n{}", answer.text, disturbed::text(&disturbances));
    answer.disturbances = Some(disturbances);
    Ok(answer)
}

fn read(keys: &[String], journal: Option<&Path>) -> Result<Vec<ComparedExperiment>, Problem> {
    let journal = wt_setup::journal::open_to_read(journal)?;
    let mut experiments: Vec<ComparedExperiment> = Vec::new();
    for key in keys {
        let stored = journal.load(key).map_err(|error| wt_setup::journal::problem(&error))?;
        if experiments.iter().any(|one| one.id == stored.id) {
            return Err(Problem::usage(format!("{} is named twice", stored.id)).hint("name different experiments"));
        }
        experiments.push(ComparedExperiment::read(&*journal, &stored)?);
    }
    Ok(experiments)
}

fn read_readable(ids: &[String], journal: &Path, left_out: &mut LeftOut) -> Result<Vec<ComparedExperiment>, Problem> {
    let journal = wt_setup::journal::open_to_read(Some(journal))?;
    let mut experiments = Vec::new();
    for id in ids {
        let stored = journal.load(id).map_err(|error| wt_setup::journal::problem(&error));
        let read = stored.and_then(|stored| ComparedExperiment::read(&*journal, &stored));
        experiments.extend(left_out.unless_all(id, read)?);
    }
    Ok(experiments)
}

fn compare(experiments: Vec<ComparedExperiment>, mut notes: Vec<String>, anyway: bool) -> SideBySideAnswer {
    let mut because = Vec::new();
    if let Some((first, others)) = experiments.split_first() {
        because.extend(first.unusable());
        for other in others {
            because.extend(other.unusable());
            because.extend(first.obstacles(other));
            notes.extend(first.differences(other));
        }
    }
    notes.extend(experiments.iter().filter_map(ComparedExperiment::link_changed));
    notes.extend(experiments.iter().filter_map(ComparedExperiment::partly_failed));
    // Trials count once: what another one goes on with is a part of that one.
    let continued = |one: &ComparedExperiment| experiments.iter().find(|other| one.is_continued_by(other));
    let part = |one: &ComparedExperiment| {
        Some(format!("{} is a part of {}, which continues it, and is left out", one.id, continued(one)?.id))
    };
    notes.extend(experiments.iter().filter_map(part));
    let separate: Vec<&ComparedExperiment> = experiments.iter().filter(|one| continued(one).is_none()).collect();
    if separate.len() < 2 {
        because.push("all but one of them are parts of the one that continues them".to_owned());
    }
    because.dedup();
    let comparable = because.is_empty();
    // A ratio of a page's load to a bulk transfer says nothing, whoever asks for it.
    let alike = experiments.windows(2).all(|pair| pair[0].kind() == pair[1].kind());
    let go_on = comparable || anyway && alike;
    let current = if go_on { currents(&separate) } else { Vec::new() };
    let settings = if go_on { shared(&separate) } else { Vec::new() };
    let mut answer = SideBySideAnswer {
        schema_version: 1,
        kind: "compare",
        experiments,
        comparable,
        because,
        notes,
        current,
        settings,
        disturbances: None,
        headline: String::new(),
        remarks: Vec::new(),
        text: String::new(),
    };
    answer.headline = words::headline(&answer);
    answer.remarks = words::remarks(&answer);
    answer.text = words::text(&answer);
    answer
}

fn currents(experiments: &[&ComparedExperiment]) -> Vec<CurrentDifference> {
    let Some((first, others)) = experiments.split_first() else { return Vec::new() };
    let with = |other: &&ComparedExperiment| CurrentDifference {
        experiment: other.id.clone(),
        against: first.id.clone(),
        difference: typical(other.judged())
            .zip(typical(first.judged()))
            .map(|(own, others)| HoursRatio { ratio: own / others }),
        evidence: None,
    };
    others.iter().map(with).collect()
}

/// The geometric mean.
fn typical(judged: &[f64]) -> Option<f64> {
    let mean = judged.iter().map(|one| one.ln()).sum::<f64>() / judged.len() as f64;
    mean.is_finite().then(|| mean.exp())
}

/// What at least two of them tried, beside the current settings.
fn shared(experiments: &[&ComparedExperiment]) -> Vec<SharedSetting> {
    let mut found: Vec<SharedSetting> = Vec::new();
    for (place, experiment) in experiments.iter().enumerate() {
        for arm in experiment.arms.iter().skip(1) {
            if found.iter().any(|known| known.settings == arm.settings) {
                continue;
            }
            let each: Vec<TriedSetting> =
                experiments.iter().skip(place).filter_map(|other| other.tried(&arm.settings)).collect();
            if each.len() < 2 {
                continue;
            }
            let combination = Combination::of(each.iter().map(|tried| tried.sessions.as_slice()));
            let needed = experiments.iter().map(|one| one.needed()).fold(1.0, f64::max);
            let finding = |tried: &TriedSetting| SiteFinding { evidence: tried.evidence, effect: tried.effect };
            let findings: Vec<SiteFinding> = each.iter().map(finding).collect();
            let together = FleetFinding::of(&findings, combination, 1.0 / needed);
            let shown_in = together.at.iter().filter_map(|place| Some(each.get(*place)?.experiment.clone())).collect();
            // Errors that several have in common are no spread between them.
            let elsewhere = together.new_site.filter(|_| combination == Combination::Product).map(elsewhere);
            let gains_differ =
                each.iter().enumerate().any(|(at, one)| each[..at].iter().any(|other| differ(one, other)));
            let ratio = common_ratio(&each);
            let relevant = experiments.iter().map(|one| one.relevant()).fold(f64::INFINITY, f64::min);
            let is_little = ratio.is_some_and(|ratio| ratio < 1.0 + relevant)
                && !gains_differ
                && !each.iter().any(|tried| tried.is_worth);
            found.push(SharedSetting {
                label: arm.label.clone(),
                settings: arm.settings.clone(),
                each,
                evidence: together.somewhere,
                everywhere: together.everywhere,
                shown_in,
                elsewhere,
                combined: combination.name(),
                needed,
                ratio,
                faster_by_little: together.somewhere >= needed && is_little,
                relevant,
                gains_differ,
            });
        }
    }
    found
}

fn elsewhere(summary: Summary) -> ExpectedElsewhere {
    ExpectedElsewhere {
        ratio: summary.mean.exp(),
        low: summary.prediction_low.exp(),
        high: summary.prediction_high.exp(),
        heterogeneity: summary.i_squared,
    }
}

/// The geometric mean over the rounds of all, which is what one experiment with all of them would estimate.
fn common_ratio(each: &[TriedSetting]) -> Option<f64> {
    let rounds: usize = each.iter().map(|tried| tried.rounds).sum();
    let logs = each.iter().map(|tried| Some(tried.rounds as f64 * tried.ratio?.ln()));
    let sum = logs.sum::<Option<f64>>()?;
    Some((sum / rounds as f64).exp()).filter(|ratio| ratio.is_finite())
}

/// Whether two intervals have nothing in common.
fn differ(a: &TriedSetting, b: &TriedSetting) -> bool {
    let above = |a: &TriedSetting, b: &TriedSetting| a.low.zip(b.high).is_some_and(|(low, high)| low > high);
    above(a, b) || above(b, a)
}
