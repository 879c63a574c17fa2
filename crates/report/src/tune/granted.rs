use super::Granted;
use std::collections::BTreeMap;
use wt_trial::TrialRecord;
use wt_units::{Knob, Level};

/// Different values shown at most.
const MOST: usize = 3;

/// What each arm's knobs asked for, got and showed, over all its trials; the current settings ask for nothing.
pub(super) fn granted(records: &[&TrialRecord]) -> Vec<Granted> {
    let mut table: BTreeMap<(usize, Knob), Granted> = BTreeMap::new();
    for record in records {
        for (knob, asked) in record.spec.settings.iter() {
            let row = table.entry((record.spec.arm, knob)).or_insert_with(|| Granted {
                arm: record.spec.arm,
                knob,
                asked: asked.clone(),
                granted: Vec::new(),
                scope: String::new(),
                observed: Vec::new(),
                differs: false,
            });
            let granted = record.outcome.granted.get(knob);
            let observed = name(knob).and_then(|name| record.outcome.observed.get(name)).filter(|v| !v.is_null());
            row.differs |= contradict(knob, asked, granted, observed);
            if let Some(granted) = granted {
                keep(&mut row.granted, granted.clone());
            }
            if let Some(observed) = observed {
                keep(&mut row.observed, words(observed));
            }
            if let Some(scope) = record.outcome.scopes.get(knob.name()) {
                row.scope.clone_from(scope);
            }
        }
    }
    table.into_values().collect()
}

fn keep<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if values.len() < MOST && !values.contains(&value) {
        values.push(value);
    }
}

/// Under which name a knob is observed.
fn name(knob: Knob) -> Option<&'static str> {
    Some(match knob {
        Knob::Rwin => "rwin_max",
        Knob::Mtu => "pmtu",
        Knob::Cc => "cc",
        Knob::Mss => "mss",
        Knob::Sack => "sack",
        Knob::Timestamps => "timestamps",
        Knob::WindowScaling => "window_scale",
        Knob::Ecn => "ecn",
        _ => return None,
    })
}

fn words(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        other => other.to_string(),
    }
}

/// Whether what was granted isn't what was asked, or what was seen can't be with it.
fn contradict(knob: Knob, asked: &Level, granted: Option<&Level>, observed: Option<&serde_json::Value>) -> bool {
    if granted.is_some_and(|granted| granted != asked && *asked != Level::Auto) {
        return true;
    }
    let level = granted.unwrap_or(asked);
    let Some(observed) = observed else { return false };
    match (knob, level) {
        // A window that isn't needed isn't opened all the way, so only a larger one is odd.
        (Knob::Rwin, Level::Number(most)) => observed.as_u64().is_some_and(|seen| seen as f64 > *most as f64 * 1.02),
        // Timestamps take 12 bytes of a segment.
        (Knob::Mss, Level::Number(most)) => {
            observed.as_u64().is_some_and(|seen| !(seen <= *most && seen + 12 >= *most))
        }
        (Knob::Mtu, Level::Number(mtu)) => observed.as_u64().is_some_and(|seen| seen != *mtu),
        (Knob::Cc | Knob::Sack | Knob::Timestamps | Knob::Ecn, Level::Name(name)) => words(observed) != *name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_cannot_be_together_is_a_contradiction() {
        let n = Level::Number;
        let on = Level::Name("on".into());
        for (knob, asked, granted, observed, want) in [
            (Knob::Rwin, n(16_384), Some(n(16_384)), json!(14_600), false),
            (Knob::Rwin, n(16_384), Some(n(16_384)), json!(65_536), true),
            (Knob::Rwin, n(16_384), Some(n(18_432)), json!(18_432), true),
            (Knob::Rwin, n(16_384), None, json!(null), false),
            (Knob::Mss, n(1_460), Some(n(1_460)), json!(1_448), false),
            (Knob::Mss, n(1_460), Some(n(1_460)), json!(536), true),
            (Knob::Mtu, n(1_400), Some(n(1_400)), json!(1_492), true),
            (Knob::Cc, Level::Name("bbr".into()), Some(Level::Name("bbr".into())), json!("bbr"), false),
            (Knob::Cc, Level::Name("bbr".into()), Some(Level::Name("cubic".into())), json!("cubic"), true),
            (Knob::Sack, on.clone(), Some(on.clone()), json!(true), false),
            (Knob::Sack, on.clone(), Some(on), json!(false), true),
        ] {
            let observed = Some(&observed).filter(|v| !v.is_null());
            assert_eq!(
                contradict(knob, &asked, granted.as_ref(), observed),
                want,
                "{knob} {asked:?} {granted:?} {observed:?}"
            );
        }
    }
}
