use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wt_experiment::VerdictKind;
use wt_journal::{PROOF_BEGINS, State, StoredExperiment};
use wt_problem::Problem;
use wt_report::Page;

/// What came out.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProveAnswer {
    /// The version of this form.
    pub schema_version: u32,
    /// The experiment's name in the journal.
    pub id: String,
    /// The number of the change.
    pub change: String,
    /// What it makes, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// What measured.
    pub by: String,
    /// Rounds that count.
    pub rounds: usize,
    /// The verdict's word: `faster`, `no-difference` or `stopped`.
    pub verdict: VerdictKind,
    /// Whether it is shown to be slower.
    pub slower: bool,
    /// What is shown, in one word for both ways; proofs of older versions don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownDifference>,
    /// The rate with the change over that without it.
    pub ratio: Option<f64>,
    /// At least: with 95 % where it is faster, whenever one looks; else the interval's lower end.
    pub ratio_low: Option<f64>,
    /// At most: with 95 % where it is slower, whenever one looks; else the interval's upper end.
    pub ratio_high: Option<f64>,
    /// The median time of a run without the change, seconds.
    pub before_s: Option<f64>,
    /// With it.
    pub after_s: Option<f64>,
    /// The answer in words.
    pub text: String,
}

/// What a proof shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShownDifference {
    /// It is faster with the change.
    Faster,
    /// It is slower with the change.
    Slower,
    /// Neither.
    Nothing,
}

/// The answer of a proof of the journal: what was said when it ended, since the times of its runs say nothing of a path, of a rate, or
/// of what is in force now.
///
/// # Errors
/// A usage [`Problem`] where it has none.
pub fn again(stored: &StoredExperiment) -> Result<ProveAnswer, Problem> {
    let (id, change) = (&stored.id, stored.proved_change().unwrap_or_default());
    let Some(verdict) = &stored.verdict else {
        let why = if stored.state == State::Running { "is under way" } else { "ended before it had any" };
        return Err(Problem::usage(format!("{id} is a proof of change {change}, and has no answer: it {why}"))
            .hint("windtunnel settings prove begins another one"));
    };
    let answer = ProveAnswer::deserialize(&verdict["proof"])
        .map_err(|error| Problem::internal(format!("the verdict of {id}: {error}")))?;
    let begun = || stored.comment.strip_prefix(PROOF_BEGINS)?.split_once(": ").map(|(_, what)| what.to_owned());
    let what = answer.what.clone().or_else(begun);
    Ok(ProveAnswer { what, ..answer })
}

fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.3} s"))
}

impl ProveAnswer {
    /// Whether it isn't shown to be faster with the change.
    #[must_use]
    pub fn is_no(&self) -> bool {
        self.verdict != VerdictKind::Faster
    }

    /// What was proved: `Proof of change 3: sack=off on this host`.
    #[must_use]
    pub fn heading(&self) -> String {
        let what = self.what.as_ref().map_or_else(String::new, |what| format!(": {what}"));
        format!("Proof of change {}{what}", self.change)
    }

    /// The answer, and how long runs took.
    #[must_use]
    pub fn lines(&self) -> [String; 2] {
        let [before, after] = [self.before_s, self.after_s].map(time);
        let times = format!("Median time of {}: {before} without change {}, {after} with it.", self.by, self.change);
        [self.text.clone(), times]
    }

    /// All of it as a page.
    #[must_use]
    pub fn html(&self) -> String {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let page = Page {
            title: self.heading(),
            about: format!("{} · {}", self.by, wt_units::counted(self.rounds, "round")),
            text: vec![self.text.clone()],
            table: vec![
                row(["runs", "median time"]),
                row(["without the change", &time(self.before_s)]),
                row(["with the change", &time(self.after_s)]),
            ],
            more: Vec::new(),
            charts: Vec::new(),
            film: None,
            footer: format!("Windtunnel {} · {}", env!("CARGO_PKG_VERSION"), self.id),
        };
        page.to_html()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wt_journal::NewExperiment;

    /// A proof as it stands in journals of any version; what came later is missing.
    fn stored(proof: Option<serde_json::Value>) -> StoredExperiment {
        let mut stored = NewExperiment::new("x-proof-1-0000", "scp far:big .", "live").begun();
        stored.comment = "proof of change 1: sack=off on this host".to_owned();
        stored.verdict =
            proof.map(|proof| json!({"kind": "no-difference", "settings": {"sack": "off"}, "proof": proof}));
        stored
    }

    #[test]
    fn a_proof_of_the_journal_has_the_answer_that_was_given_in_times_and_nothing_to_apply() {
        let text = "It is SLOWER with the change. windtunnel settings undo 1 takes it back.";
        let answer = again(&stored(Some(json!({
            "schema_version": 1, "id": "x-proof-1-0000", "change": "1", "by": "scp far:big .", "rounds": 7,
            "verdict": "no-difference", "slower": true, "ratio": 0.386, "ratio_low": null, "ratio_high": null,
            "before_s": 0.051, "after_s": 0.1512, "text": text,
        }))));
        let answer = answer.unwrap();
        assert!(answer.slower && answer.is_no());
        assert_eq!(answer.heading(), "Proof of change 1: sack=off on this host");
        let times = "Median time of scp far:big .: 0.051 s without change 1, 0.151 s with it.";
        assert_eq!(answer.lines(), [text, times]);
        let html = answer.html();
        assert!(html.contains(text) && html.contains("0.151 s"), "{html}");
        for wrong in ["Keep your settings", "Mbit/s", "settings apply", "RTT"] {
            assert!(!html.contains(wrong), "{wrong}: {html}");
        }
    }

    #[test]
    fn a_proof_without_an_answer_is_told_as_that() {
        let begun = stored(None);
        assert!(format!("{:?}", again(&begun).unwrap_err()).contains("change 1, and has no answer: it is under way"));
        let ended = StoredExperiment { state: State::Aborted, ..begun };
        assert!(format!("{:?}", again(&ended).unwrap_err()).contains("it ended before it had any"));
    }
}
