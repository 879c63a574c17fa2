use super::left_out::LeftOut;
use rand::SeedableRng as _;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use utoipa::ToSchema;
use wt_experiment::disturbance::{Disturbances, PairRun, RunTrial};
use wt_problem::Problem;
use wt_trial::Status;

/// The chance of a single wrong claim among all pairs.
const ALPHA: f64 = 0.05;

/// A run of a mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRun {
    /// Who measured.
    pub agent: String,
    /// To what.
    pub target: String,
    /// Its experiment.
    pub experiment: String,
    /// How far the agent's clock is ahead of the fleet's, µs, as it was seen last.
    pub ahead_us: i64,
}

/// Who is slower while whom measures: links that they share and the mesh doesn't name.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FleetDisturbances {
    /// So many directions of pairs had runs enough, some of which the other one overlapped.
    pub tested: usize,
    /// Those that are shown, the surest first; the chance that any of them is wrong is 5 % at most.
    pub shown: Vec<FleetDisturbance>,
    /// Pairs that hang together by what is shown, `AGENT to TARGET`.
    pub groups: Vec<Vec<String>>,
}

/// One pair that is slower while another one measures.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FleetDisturbance {
    /// `AGENT to TARGET`.
    pub pair: String,
    /// The one that slows it.
    pub by: String,
    /// Its goodput while the other one measures over that without it; an estimate.
    pub ratio: f64,
    /// The chance of as much by random starts alone.
    pub p: f64,
    /// Its runs.
    pub runs: usize,
    /// Those that the other one overlapped.
    pub overlapped: usize,
}

/// Looks for them in all runs of a mesh.
pub(super) fn find(runs: &[FleetRun], journal: &Path, left_out: &mut LeftOut) -> Result<FleetDisturbances, Problem> {
    let journal = wt_setup::journal::open_to_read(Some(journal))?;
    let mut pairs: Vec<String> = Vec::new();
    let mut arms: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for run in runs {
        let name = format!("{} to {}", run.agent, run.target);
        let pair = pairs.iter().position(|known| *known == name).unwrap_or_else(|| {
            pairs.push(name);
            pairs.len() - 1
        });
        let read = journal.load(&run.experiment).and_then(|stored| Ok((stored, journal.rows(&run.experiment)?)));
        let read = read.map_err(|error| wt_setup::journal::problem(&error));
        let Some((stored, rows)) = left_out.unless_all(&run.experiment, read)? else { continue };
        let (mut began_us, mut ended_us, mut trials) = (i64::MAX, i64::MIN, Vec::new());
        for row in rows.iter().filter(|row| row.round > 0 && row.elapsed_us > 0) {
            let at = row.started_unix_us.saturating_sub(run.ahead_us);
            let took = i64::try_from(row.elapsed_us).unwrap_or(i64::MAX);
            (began_us, ended_us) = (began_us.min(at), ended_us.max(at.saturating_add(took)));
            let settings = stored.arms.get(row.arm).map(|arm| &arm.settings);
            if row.status == Status::Completed && row.bytes > 0 {
                let key = (pair, serde_json::to_string(&settings).unwrap_or_default());
                let next = arms.len();
                let arm = *arms.entry(key).or_insert(next);
                trials.push(RunTrial { arm, log_rate: (row.bytes as f64 / row.elapsed_us as f64).ln() });
            }
        }
        if !trials.is_empty() {
            found.push(PairRun { pair, began_us, ended_us, trials });
        }
    }
    // The same runs give the same answer.
    let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(found.len() as u64);
    let disturbances = Disturbances::find(&found, ALPHA, &mut rng);
    let name = |pair: &usize| pairs.get(*pair).cloned().unwrap_or_default();
    let groups = disturbances.groups().iter().map(|group| group.iter().map(name).collect()).collect();
    let told = disturbances.shown.iter().map(|one| FleetDisturbance {
        pair: name(&one.pair),
        by: name(&one.by),
        ratio: one.ratio,
        p: one.p,
        runs: one.runs,
        overlapped: one.overlapped,
    });
    Ok(FleetDisturbances { tested: disturbances.tested, shown: told.collect(), groups })
}

/// In words.
pub(super) fn text(found: &FleetDisturbances) -> String {
    if found.tested == 0 {
        return "Whether pairs disturb one another can't be told: it takes 6 runs of a pair, some of which another one's overlap, and others don't."
            .to_owned();
    }
    if found.shown.is_empty() {
        return format!(
            "No pair is shown to be slower while another one measures ({} directions tested).",
            found.tested
        );
    }
    let one = |one: &FleetDisturbance| {
        format!(
            "{} is slower while {} measures: ×{:.2} by estimate, in {} of {} runs (p = {:.4}).",
            one.pair, one.by, one.ratio, one.overlapped, one.runs, one.p
        )
    };
    let mut lines: Vec<String> = found.shown.iter().map(one).collect();
    for group in &found.groups {
        lines.push(format!(
            "{} share a link that the mesh doesn't name: give them one word more in links.",
            group.join(", ")
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_is_slower_while_whom_measures_and_what_to_do() {
        let shown = FleetDisturbance {
            pair: "a to s".to_owned(),
            by: "b to t".to_owned(),
            ratio: 0.618,
            p: 0.0004,
            runs: 30,
            overlapped: 12,
        };
        let groups = vec![vec!["a to s".to_owned(), "b to t".to_owned()]];
        let text_of = |tested, shown: Vec<_>, groups| text(&FleetDisturbances { tested, shown, groups });
        assert_eq!(
            text_of(12, vec![shown], groups),
            "a to s is slower while b to t measures: ×0.62 by estimate, in 12 of 30 runs (p = 0.0004).\n\
             a to s, b to t share a link that the mesh doesn't name: give them one word more in links."
        );
        assert!(text_of(12, vec![], vec![]).contains("12 directions tested"));
        assert!(text_of(0, vec![], vec![]).contains("can't be told"));
    }
}
