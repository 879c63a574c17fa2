use super::GrantedKnob;
use serde_json::Value;
use std::collections::BTreeMap;
use wt_trial::{Observed, TrialRecord};
use wt_units::{Knob, Level};

/// Different values shown at most.
const MOST: usize = 3;

/// What each arm's knobs asked for, got and showed, over all its trials; the current settings ask for nothing.
pub(super) fn granted(records: &[&TrialRecord]) -> Vec<GrantedKnob> {
    let mut table: BTreeMap<(usize, Knob), GrantedKnob> = BTreeMap::new();
    for record in records {
        for (knob, asked) in record.spec.settings.iter() {
            let row = table.entry((record.spec.arm, knob)).or_insert_with(|| GrantedKnob {
                arm: record.spec.arm,
                knob,
                asked: asked.clone(),
                granted: Vec::new(),
                scope: String::new(),
                observed: Vec::new(),
                differs: false,
                differing: 0,
                elsewhere: 0,
                trials: 0,
            });
            let granted = record.outcome.granted.get(knob);
            let observed = observed(&record.outcome.observed, knob);
            let observed = observed.as_ref();
            let narrow = knob == Knob::Rwin && record.outcome.narrow_window().is_some();
            let unscaled = is_beyond_unscaled(knob, asked, &record.outcome.observed);
            let differs = contradict(knob, asked, granted, observed) || narrow || unscaled;
            row.differs |= differs;
            let is_another = unscaled || differs && is_another(knob, asked, observed);
            row.differing += usize::from(is_another);
            let momentary = || was_momentary(knob, asked, observed, used_window(&record.outcome));
            row.elsewhere += usize::from(unscaled || is_another && !momentary());
            row.trials += 1;
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

impl GrantedKnob {
    /// Whether most of its trials tested something else than what was asked for.
    pub(super) fn mostly_differs(&self) -> bool {
        self.elsewhere * 2 > self.trials
    }
}

/// Up to so many times the window that was asked for it is that one, rounded.
const ROUNDED: f64 = 1.02;

/// From so many times the window that was asked for on it is another one: Linux rounds windows up by a segment or two.
const ANOTHER: f64 = 1.5;

/// Below so many times it, a window that was seen once may be a moment's: Linux lets a buffer of a few segments announce more while
/// the packets that it holds have little overhead …
const MOMENTS: f64 = 3.0;
/// … and was none that held, where a round trip never carried more than so many times what was asked for.
const USED: f64 = 1.15;

/// What a round trip carried in the mean, bytes: no window that was in force can have been smaller.
fn used_window(outcome: &wt_trial::TrialOutcome) -> Option<f64> {
    let rtt_us = outcome.observed.min_rtt_us.filter(|us| *us > 0)?;
    (outcome.elapsed_us > 0).then(|| outcome.bytes as f64 * rtt_us as f64 / outcome.elapsed_us as f64)
}

/// Whether a window was asked for that can't be announced at all, since window scaling wasn't agreed to. Whoever knows of no option of the
/// handshake doesn't know that either.
///
/// # Source
/// RFC 7323, section 2.1: without scaling the field of 16 bits is the window.
fn is_beyond_unscaled(knob: Knob, asked: &Level, seen: &Observed) -> bool {
    const UNSCALED: u64 = 65_535;
    let (Knob::Rwin, Level::Number(asked)) = (knob, asked) else { return false };
    // A shift of nothing is agreed to where the buffer has no use for more.
    let is_unscaled = seen.window_scale.map_or(seen.sack.is_some(), |shift| shift == 0);
    is_unscaled && *asked as f64 > UNSCALED as f64 * ROUNDED && seen.rwin_max.is_some_and(|most| most <= UNSCALED)
}

/// Whether what contradicts is far from what was asked.
fn is_another(knob: Knob, asked: &Level, observed: Option<&Value>) -> bool {
    let (Knob::Rwin, Level::Number(asked)) = (knob, asked) else { return true };
    observed.and_then(Value::as_u64).is_some_and(|seen| seen as f64 >= *asked as f64 * ANOTHER)
}

/// Whether a window that was seen held for a moment only, and the one that was asked for otherwise.
fn was_momentary(knob: Knob, asked: &Level, observed: Option<&Value>, used: Option<f64>) -> bool {
    let (Knob::Rwin, Level::Number(asked)) = (knob, asked) else { return false };
    let asked = *asked as f64;
    let seen = observed.and_then(Value::as_u64).map(|seen| seen as f64);
    seen.is_some_and(|seen| seen < asked * MOMENTS) && used.is_some_and(|used| used <= asked * USED)
}

fn keep<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if values.len() < MOST && !values.contains(&value) {
        values.push(value);
    }
}

/// What was seen of a knob.
fn observed(seen: &Observed, knob: Knob) -> Option<Value> {
    match knob {
        Knob::Rwin => seen.rwin_max.map(Value::from),
        Knob::Mtu => seen.pmtu.map(Value::from),
        Knob::Cc => seen.cc.clone().map(Value::from),
        Knob::Mss => seen.mss.map(Value::from),
        Knob::Sack => seen.sack.map(Value::from),
        Knob::Timestamps => seen.timestamps.map(Value::from),
        Knob::WindowScaling => seen.window_scale.map(Value::from),
        Knob::Ecn => seen.ecn.map(Value::from),
        Knob::Initcwnd | Knob::Initrwnd | Knob::Sndbuf | Knob::Ttl | Knob::MtuProbing | Knob::Pmtud => None,
    }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        other => other.to_string(),
    }
}

/// Whether what was granted isn't what was asked, or what was seen can't be with it.
fn contradict(knob: Knob, asked: &Level, granted: Option<&Level>, observed: Option<&Value>) -> bool {
    if granted.is_some_and(|granted| granted != asked && *asked != Level::Auto) {
        return true;
    }
    let level = granted.unwrap_or(asked);
    let Some(observed) = observed else { return false };
    match (knob, level) {
        // A window that isn't needed isn't opened all the way, so only a larger one is odd here.
        (Knob::Rwin, Level::Number(most)) => observed.as_u64().is_some_and(|seen| seen as f64 > *most as f64 * ROUNDED),
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
    fn a_window_that_is_rounded_up_is_no_other_and_one_that_is_doubled_is() {
        let asked = Level::Number(2_896);
        let seen = |window: u64| is_another(Knob::Rwin, &asked, Some(&json!(window)));
        assert_eq!([3_500, 4_343, 5_792].map(seen), [false, false, true]);
        let moment = |window: u64, used| was_momentary(Knob::Rwin, &asked, Some(&json!(window)), used);
        // Not used; used; far from what was asked, whoever held the transfer back; nobody knows.
        assert!(moment(5_792, Some(2_700.0)) && !moment(5_792, Some(5_400.0)));
        assert!(!moment(65_536, Some(2_700.0)) && !moment(5_792, None));
        let (bbr, reno) = (Level::Name("bbr".into()), json!("reno"));
        assert!(is_another(Knob::Cc, &bbr, Some(&reno)) && !was_momentary(Knob::Cc, &bbr, Some(&reno), Some(1.0)));
    }

    #[test]
    fn a_window_beyond_what_can_be_announced_without_scaling_is_told_as_one_that_was_not_set() {
        let trial = |asked: u64, scale: Option<u64>, sack: Option<bool>, seen: u64| {
            let mut record: TrialRecord = serde_json::from_value(json!({ "id": 1,
                "spec": {
                    "experiment": "e", "phase": "round", "round": 1, "order": 0, "arm": 1, "settings": {"rwin": asked},
                    "workload": {"kind": "bulk", "direction": "down", "amount": {"time": "2s"}}, "deadline": "30s", "seed": 1
                },
                "started_unix_us": 1,
                "outcome": {
                    "status": "completed", "bytes": 1_000_000, "elapsed_us": 2_000_000, "granted": {"rwin": asked}, "scopes": {},
                    "observed": {"rwin_max": seen}, "sender": [], "receiver": [],
                    "limits": {"busy_us": 0, "rwnd_limited_us": 0, "sndbuf_limited_us": 0}, "notes": []
                }
            }))
            .unwrap();
            (record.outcome.observed.window_scale, record.outcome.observed.sack) = (scale, sack);
            let table = granted(&[&record]);
            (table[0].differs, table[0].mostly_differs())
        };
        assert_eq!(trial(2_097_152, None, Some(true), 65_535), (true, true));
        assert_eq!(trial(2_097_152, Some(0), Some(true), 65_535), (true, true));
        // It fits; it was agreed to, and the window wasn't needed; nobody knows.
        assert_eq!(trial(65_535, None, Some(true), 65_535), (false, false));
        assert_eq!(trial(2_097_152, Some(7), Some(true), 64_000), (false, false));
        assert_eq!(trial(2_097_152, None, None, 64_000), (false, false));
    }

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
