use super::WINDOWS;
use super::chain::Request;
use crate::edge::{Exit, say};
use serde_json::{Value, json};
use std::time::Duration;
use wt_experiment::factorial::{EffectAssessment, Run, Screen};
use wt_units::Bytes;

/// The least ratio that matters to anybody. On a quiet machine less than a thousandth can be shown, such as a last segment that
/// leaves in one burst with others.
const RELEVANT: f64 = 1.02;

/// What came of one kind of requests.
pub(super) struct Kind {
    pub(super) request: Request,
    pub(super) screen: Screen,
    pub(super) trials: Trials,
}

/// Which windows were large, and how long it took.
#[derive(Debug, Default)]
pub(super) struct Trials(pub(super) Vec<(Run, Duration)>);

/// The two windows of each hop: (initcwnd of who sends, initrwnd of who receives), as numbers of knobs.
const HOPS: [(&str, usize, usize); 2] = [("backend to edge", 0, 1), ("edge to client", 2, 3)];

impl Trials {
    /// The geometric mean of the times of those trials, seconds.
    pub(super) fn mean(&self, wanted: impl Fn(&Run) -> bool) -> Option<f64> {
        let logs: Vec<f64> =
            self.0.iter().filter(|(run, _)| wanted(run)).map(|(_, took)| took.as_secs_f64().ln()).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Each hop's two windows with the seconds.
    pub(super) fn hops(&self, (low, high): (u32, u32)) -> Vec<Value> {
        let level = |large: bool| if large { high } else { low };
        HOPS.iter()
            .flat_map(|(hop, cwnd, rwnd)| {
                [(false, false), (false, true), (true, false), (true, true)].map(|(c, r)| {
                    json!({
                        "hop": hop,
                        "initcwnd": level(c),
                        "initrwnd": level(r),
                        "seconds": self.mean(|run| run[*cwnd] == c && run[*rwnd] == r),
                    })
                })
            })
            .collect()
    }

    /// The same in words.
    pub(super) fn print_hops(&self, (low, high): (u32, u32)) {
        for (hop, cwnd, rwnd) in HOPS {
            let cell = |c: bool, r: bool| {
                let mean = self.mean(|run| run[cwnd] == c && run[rwnd] == r);
                mean.map_or("?".to_owned(), |seconds| format!("{:.0} ms", seconds * 1e3))
            };
            let small_rwnd = (cell(false, false), cell(true, false));
            let large_rwnd = (cell(false, true), cell(true, true));
            say!(
                "  {hop}: initcwnd {low} -> {high} takes {} -> {} where initrwnd is {low},",
                small_rwnd.0,
                small_rwnd.1
            );
            say!("  {:width$}  {} -> {} where it is {high}", "", large_rwnd.0, large_rwnd.1, width = hop.len() + 26);
        }
    }
}

/// Whether the large level is shown to be faster, and by enough to matter.
fn matters(effect: &EffectAssessment) -> bool {
    effect.claimed.is_some() && effect.estimate.is_some_and(|log| log >= RELEVANT.ln())
}

impl Kind {
    /// Each window with what is claimed of it.
    fn effects(&self) -> Vec<(usize, EffectAssessment)> {
        let effects = self.screen.assessment().effects;
        effects.into_iter().filter_map(|effect| Some((*effect.knobs.first()?, effect))).collect()
    }

    /// The windows whose large level is shown to be faster, and by enough to matter; the strongest first.
    fn matter(&self) -> Vec<(usize, EffectAssessment)> {
        let mut claimed: Vec<_> = self.effects().into_iter().filter(|(_, effect)| matters(effect)).collect();
        claimed.sort_by(|a, b| b.1.estimate.unwrap_or(0.0).total_cmp(&a.1.estimate.unwrap_or(0.0)));
        claimed
    }

    fn json(&self, levels: (u32, u32)) -> Value {
        let windows: Vec<Value> = self
            .effects()
            .iter()
            .map(|(knob, effect)| {
                json!({
                    "window": WINDOWS[*knob].0,
                    "what": WINDOWS[*knob].1,
                    "ratio": effect.estimate.map(f64::exp),
                    "lower": effect.lower.map(f64::exp),
                    "upper": effect.upper.map(f64::exp),
                    "evidence": effect.evidence,
                    "needed": effect.needed,
                    "matters": matters(effect),
                    "slower": effect.slower,
                })
            })
            .collect();
        json!({
            "rounds": self.screen.assessment().rounds,
            "seconds": self.trials.mean(|_| true),
            "matters": self.matter().iter().map(|(knob, _)| WINDOWS[*knob].0).collect::<Vec<_>>(),
            "windows": windows,
            "combinations": self.trials.hops(levels),
        })
    }

    fn print(&self, (low, high): (u32, u32)) {
        let title = self.request.title();
        let other = format!("a {}", self.request.name());
        let needed = self.effects().first().map_or(f64::NAN, |(_, effect)| effect.needed);
        say!(
            "\n{title}\n  {:<44} {:>14}  95 % interval   of {:.0} : 1  shown",
            "window",
            format!("{low} -> {high}"),
            needed
        );
        for (knob, effect) in self.effects() {
            let ratio = |value: Option<f64>| value.map_or("open".to_owned(), |value| format!("{:.2}", value.exp()));
            let shown = match () {
                () if matters(&effect) => "it matters",
                () if effect.claimed.is_some() => "faster, by less than 2 %",
                () if effect.slower => "slower",
                () => "not shown",
            };
            say!(
                "  {:<44} {:>14}  {:>6} to {:<6}  {:>8.1}  {shown}",
                WINDOWS[knob].1,
                format!("×{}", ratio(effect.estimate)),
                ratio(effect.lower),
                ratio(effect.upper),
                effect.evidence.min(99_999.0)
            );
        }
        self.trials.print_hops((low, high));
        match self.matter().as_slice() {
            [] => say!("  No window is shown to matter on {other}."),
            shown => {
                let names: Vec<&str> = shown.iter().map(|(knob, _)| WINDOWS[*knob].1).collect();
                say!("  On {other} these matter: {}.", names.join("; "));
            }
        }
    }
}

/// What came of all.
pub(super) struct Report {
    pub(super) path: String,
    pub(super) proxy: &'static str,
    pub(super) object: Bytes,
    pub(super) levels: (u32, u32),
    pub(super) round_trips: [Duration; 2],
    pub(super) kinds: Vec<Kind>,
}

impl Report {
    /// Prints it; the exit code says whether any window is shown to matter.
    pub(super) fn tell(&self, as_json: bool) -> Exit {
        let [near, far] = self.round_trips.map(|rtt| rtt.as_secs_f64() * 1e3);
        if as_json {
            let requests: serde_json::Map<String, Value> =
                self.kinds.iter().map(|kind| (kind.request.name().to_owned(), kind.json(self.levels))).collect();
            say!(
                "{}",
                json!({
                    "schema_version": 1,
                    "path": self.path,
                    "proxy": self.proxy,
                    "object_bytes": self.object.get(),
                    "low": self.levels.0,
                    "high": self.levels.1,
                    "rtt_ms": { "client_edge": near, "edge_backend": far },
                    "requests": requests,
                })
            );
        } else {
            say!(
                "{}: client and edge {near:.0} ms apart, edge and backend {far:.0} ms; an object of {} over cold connections",
                self.path,
                self.object
            );
            self.kinds.iter().for_each(|kind| kind.print(self.levels));
        }
        if self.kinds.iter().any(|kind| !kind.matter().is_empty()) { Exit::Done } else { Exit::No }
    }
}
