//! What each stack can do, as a table: features in rows, stacks in columns.

use serde::Serialize;
use wt_stacks::Offer;
use wt_stacks::conformance::{Answer, Conformance};

/// What a stack can do, and the MSS that it announces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackConformance {
    /// What it can do.
    #[serde(flatten)]
    pub features: Conformance,
    /// The MSS that its SYN announces, bytes.
    pub mss: Option<u16>,
}

impl StackConformance {
    /// What packet scripts said; without them what its SYN offered, the rest untested.
    pub(super) fn new(scripts: Option<&Conformance>, offer: Option<&Offer>) -> Self {
        let features = scripts.cloned().unwrap_or_else(|| offered(offer));
        Self { features, mss: offer.and_then(|offer| offer.mss) }
    }

    /// The features that it hasn't, by their names in JSON.
    pub(super) fn lacks(&self) -> Vec<String> {
        let mut names: Vec<&str> =
            features(&self.features).iter().filter(|(_, _, answer)| **answer == Answer::No).map(|one| one.0).collect();
        names.sort_unstable();
        names.iter().map(|name| name.replace('_', " ")).collect()
    }
}

fn offered(offer: Option<&Offer>) -> Conformance {
    let of = |yes: Option<bool>| match yes {
        Some(true) => Answer::Yes,
        Some(false) => Answer::No,
        None => Answer::Unknown("unknown".to_owned()),
    };
    let not_tested = || Answer::Unknown("not tested".to_owned());
    Conformance {
        window_scaling: of(offer.map(|offer| offer.window_scale.is_some())),
        sack: of(offer.map(|offer| offer.sack)),
        timestamps: of(offer.map(|offer| offer.timestamps)),
        pmtu_discovery: not_tested(),
        zero_window_probe: not_tested(),
        rst_handling: not_tested(),
        out_of_order_reassembly: not_tested(),
        simultaneous_close: not_tested(),
    }
}

/// Each feature as JSON has it, in words, and with the answer.
fn features(of: &Conformance) -> [(&'static str, &'static str, &Answer); 8] {
    [
        ("window_scaling", "window scaling", &of.window_scaling),
        ("sack", "SACK", &of.sack),
        ("timestamps", "timestamps", &of.timestamps),
        ("pmtu_discovery", "path MTU discovery", &of.pmtu_discovery),
        ("zero_window_probe", "zero-window probe", &of.zero_window_probe),
        ("rst_handling", "resets obeyed, blind ones ignored", &of.rst_handling),
        ("out_of_order_reassembly", "out-of-order reassembly", &of.out_of_order_reassembly),
        ("simultaneous_close", "simultaneous close", &of.simultaneous_close),
    ]
}

/// The table with its head, of stacks with their titles.
pub(super) fn table<'a>(stacks: impl Iterator<Item = (&'a str, &'a StackConformance)>) -> Vec<Vec<String>> {
    let (titles, told): (Vec<&str>, Vec<_>) = stacks.map(|(title, told)| (title, features(&told.features))).unzip();
    let head = std::iter::once(String::new()).chain(titles.iter().map(|title| (*title).to_owned())).collect();
    let rows = told.first().into_iter().flatten().enumerate().map(|(at, (_, words, _))| {
        let answers = told.iter().map(|features| text(features[at].2).to_owned());
        std::iter::once((*words).to_owned()).chain(answers).collect()
    });
    std::iter::once(head).chain(rows).collect()
}

fn text(answer: &Answer) -> &str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Unknown(why) => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_feature_that_json_has_is_in_the_table() {
        let untested = StackConformance::new(None, None);
        let Ok(Value::Object(told)) = serde_json::to_value(&untested) else { panic!("no object") };
        assert_eq!(told["sack"], "unknown");
        let mut names: Vec<&str> = told.keys().map(String::as_str).filter(|name| *name != "mss").collect();
        let mut known: Vec<&str> = features(&untested.features).iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
        let table = table(std::iter::once(("smoltcp", &untested)));
        assert_eq!((table.len(), table[0].clone()), (9, vec![String::new(), "smoltcp".to_owned()]));
        assert!(table[1..].iter().all(|row| row.len() == 2));
    }

    #[test]
    fn what_a_stack_lacks_is_told_without_scripts_as_far_as_its_syn_says_it() {
        let offer = Offer { mss: Some(1460), window_scale: None, sack: false, timestamps: true };
        let told = StackConformance::new(None, Some(&offer));
        assert_eq!((told.lacks(), told.mss), (vec!["sack".to_owned(), "window scaling".to_owned()], Some(1460)));
    }
}
