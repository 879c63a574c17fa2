use wt_report::{Axis, Chart, Page, Rule, Series};
use wt_traffic::{TrafficArmReport, TrafficEffect, TrafficReport};

type Table = Vec<Vec<String>>;

/// What an experiment on a server's connections shows, as one self-contained page: the answer, the arms, gains with their
/// intervals, goodput by size, guards and self-checks.
#[must_use]
pub fn page(report: &TrafficReport) -> String {
    let [title, text @ ..] = report.answer();
    let mut charts = Vec::new();
    charts.extend(gains(report).map(|chart| ("What each arm gains".to_owned(), chart)));
    charts.extend(sizes(report).map(|chart| ("Goodput by size".to_owned(), chart)));
    let mut text = text.to_vec();
    text.extend(report.receiver_settings.iter().map(|receiver| receiver.text.clone()));
    text.extend(report.next.iter().map(|step| match &step.command {
        Some(command) => format!("{}: {command}", step.text.trim_end_matches(['.', ':'])),
        None => step.text.clone(),
    }));
    let more = [
        ("Gains", gain_table(report)),
        ("By size", size_table(report)),
        ("Guards", guard_table(report)),
        ("Can it be trusted", check_table(report)),
    ];
    let page = Page {
        title,
        about: format!("{} · assigned by {}", report.id, report.backend),
        text,
        table: arm_table(report),
        more: more
            .into_iter()
            .filter(|(_, table)| table.len() > 1)
            .map(|(heading, table)| (heading.to_owned(), table))
            .collect(),
        charts,
        film: None,
        footer: format!("Windtunnel {} · {}", env!("CARGO_PKG_VERSION"), report.id),
    };
    page.to_html()
}

fn head(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{ratio:.3}"))
}

fn evidence(evidence: f64) -> String {
    if evidence >= 1e6 { "over 1,000,000 : 1".to_owned() } else { format!("{evidence:.1} : 1") }
}

fn arm_table(report: &TrafficReport) -> Table {
    let row = |arm: &TrafficArmReport| {
        let rto = arm.rto_per_1000.map_or_else(|| "–".to_owned(), |rto| format!("{rto:.1}"));
        vec![
            format!("{}: {}", arm.name, arm.settings),
            arm.looked_at().to_string(),
            percent(arm.retransmitted_share),
            rto,
            percent(arm.aborted_share),
            percent(arm.unfinished_share),
        ]
    };
    let first = head(&["arm", "connections", "retransmitted", "RTOs per 1000", "aborted", "unfinished"]);
    std::iter::once(first).chain(report.arms.iter().map(row)).collect()
}

fn gain_table(report: &TrafficReport) -> Table {
    let row = |effect: &TrafficEffect| {
        vec![
            effect.arm.clone(),
            times(effect.ratio),
            format!("{} to {}", times(effect.low), times(effect.high)),
            effect.saved_ms.map_or_else(
                || "–".to_owned(),
                |ms| if ms.abs() < 0.95 { format!("{ms:.3}") } else { format!("{ms:.1}") },
            ),
            evidence(effect.evidence_faster),
            evidence(effect.evidence_slower),
            effect.units.to_string(),
        ]
    };
    let first = head(&["arm", "goodput", "interval", "ms saved each", "evidence: faster", "slower", "units"]);
    std::iter::once(first).chain(report.effects.iter().map(row)).collect()
}

fn size_table(report: &TrafficReport) -> Table {
    let mut first = head(&["size"]);
    for arm in &report.arms {
        first.extend([format!("{}, Mbit/s", arm.name), "share".to_owned(), "90 % within".to_owned()]);
    }
    let rows = report.classes.iter().map(|class| {
        let mut cells = vec![class.name.clone()];
        for arm in &class.arms {
            cells.push(arm.goodput_bps.map_or_else(|| "–".to_owned(), |bps| format!("{:.3}", bps / 1e6)));
            cells.push(percent(arm.share));
            cells.push(arm.p90_ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0} ms")));
        }
        cells
    });
    std::iter::once(first).chain(rows).collect()
}

fn guard_table(report: &TrafficReport) -> Table {
    // What a holdback keeps back is slower on purpose.
    let guards = report.guardrails.iter().filter(|_| report.holdback.is_none());
    let rows = guards.map(|guard| {
        let state = if guard.stopped { "stopped it" } else { "watches" };
        let what = format!("{}: {}", guard.arm, guard.guard.text());
        vec![what, evidence(guard.evidence), format!("{:.0} : 1", guard.needed), state.to_owned()]
    });
    std::iter::once(head(&["guard", "evidence", "stops at", ""])).chain(rows).collect()
}

fn check_table(report: &TrafficReport) -> Table {
    let rows = report.self_checks.iter().map(|check| {
        let word = if check.ok { "well" } else { "look at it" };
        vec![check.name.replace('_', " "), word.to_owned(), check.text.clone()]
    });
    std::iter::once(head(&["check", "", "what was seen"])).chain(rows).collect()
}

/// Ratios to the first arm; an end that isn't known runs to the edge.
fn gains(report: &TrafficReport) -> Option<Chart> {
    let known: Vec<&TrafficEffect> = report.effects.iter().filter(|effect| effect.ratio.is_some()).collect();
    let first = report.arms.first()?.name.clone();
    let rows: Vec<(f64, f64, f64, f64)> = (0..)
        .map(f64::from)
        .zip(&known)
        .filter_map(|(place, effect)| {
            let (low, high) = (effect.low.unwrap_or(f64::NEG_INFINITY), effect.high.unwrap_or(f64::INFINITY));
            Some((place, low, effect.ratio?, high))
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    Some(Chart {
        title: format!("goodput: ratio to {first}"),
        subtitle: "intervals that hold however often one looks".into(),
        x: Axis::linear("arm", ""),
        y: Axis::linear("ratio", ""),
        series: vec![Series::intervals("", &rows)],
        rules: vec![Rule::horizontal(1.0, first)],
        categories: known.iter().map(|effect| effect.arm.clone()).collect(),
    })
}

/// Goodput of each arm's connections by their sizes.
fn sizes(report: &TrafficReport) -> Option<Chart> {
    let series = |(place, arm): (usize, &TrafficArmReport)| {
        let goodput = |class: usize| report.classes[class].arms.get(place)?.goodput_bps.filter(|bps| *bps > 0.0);
        let points = (0..report.classes.len()).filter_map(|class| Some((class as f64, goodput(class)? / 1e6)));
        Series::points(arm.name.clone(), points.collect())
    };
    let series: Vec<Series> = report.arms.iter().enumerate().map(series).collect();
    if series.iter().all(|one| one.points.is_empty()) {
        return None;
    }
    Some(Chart {
        title: "goodput by the size of connections".into(),
        subtitle: "geometric means".into(),
        x: Axis::linear("size", ""),
        y: Axis::log10("goodput", "Mbit/s"),
        series,
        rules: Vec::new(),
        categories: report.classes.iter().map(|class| class.name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn arm(name: &str, recorded: u64) -> Value {
        json!({
            "name": name, "settings": {"cc": name}, "assigned": recorded, "recorded": recorded, "missed": 0, "open": 0, "set_errors": 0,
            "not_compliant": 0, "retransmitted_share": 0.0123, "rto_per_1000": 4.5, "aborted_share": 0.001, "unfinished_share": null,
        })
    }

    fn class(name: &str, goodputs: [Option<f64>; 2]) -> Value {
        let arm = |goodput| {
            json!({
                "connections": 10, "share": 0.5, "goodput_bps": goodput, "overall_bps": goodput, "p90_ms": 120.0,
            })
        };
        json!({"name": name, "arms": goodputs.map(arm)})
    }

    fn report(next: &str) -> TrafficReport {
        let effect = json!({
            "arm": "bbr", "ratio": 1.25, "low": 1.1, "high": null, "saved_ms": 41.5, "evidence_faster": 85.0,
            "evidence_slower": 0.2, "needed": 20.0, "units": 640, "evidence_better_rank": 30.0, "evidence_worse_rank": 0.3,
            "total_ratio": null, "spillover_ratio": null,
        });
        let verdict = json!({
            "kind": "faster", "arm": "bbr", "ratio": 1.25, "at_least": 1.1, "evidence": 85.0, "needed": 20.0,
            "text": "Connections with bbr are faster beside cubic: goodput +25%.", "claim": "beside",
        });
        let report = json!({
            "schema_version": 1, "id": "2026-01-01-1-1", "unit": "prefix", "backend": "bpf",
            "arms": [arm("cubic", 5000), arm("bbr", 4990)],
            "classes": [class("up to 100 kB", [Some(2e6), Some(3e6)]), class("over 10 MB", [None, Some(9e6)])],
            "effects": [effect], "verdict": verdict, "guardrails": [],
            "self_checks": [{"name": "sample_ratio", "ok": false, "text": "5000 <b> 4990"}],
            "next": [{"text": next, "command": null}],
        });
        serde_json::from_value(report).expect("a report")
    }

    #[test]
    fn the_page_has_the_answer_the_arms_the_gains_and_what_to_look_at() {
        let html = page(&report("Look again tomorrow."));
        let told = [
            "<h1>Connections with bbr are faster beside cubic: goodput +25%.</h1>",
            "bbr: cc=bbr",
            "4990",
            "1.23 %",
            "×1.250",
            "×1.100 to –",
            "85.0 : 1",
            "up to 100 kB",
            "9.000",
            "look at it",
            "5000 &lt;b&gt; 4990",
            "Look again tomorrow.",
            "ratio to cubic",
            "goodput by the size of connections",
        ];
        let missing: Vec<&str> = told.into_iter().filter(|text| !html.contains(text)).collect();
        assert!(missing.is_empty(), "{missing:?} in {html}");
        assert!(html.contains("<svg"), "{html}");
        assert!(
            !html.contains("Guards") && !html.contains("<b>"),
            "what isn't there has no heading, and nothing is markup"
        );
    }

    #[test]
    fn the_page_says_what_isnt_compared_where_a_setting_acts_on_what_the_server_receives() {
        let plain = report("Wait.");
        let received = wt_traffic::ReceiverSettings::of(&crate::arms_of_levels(&["initrwnd=3,44".to_owned()]).unwrap());
        let said = "What is compared is what the server sends; initrwnd acts on what it receives.";
        assert!(!page(&plain).contains("What is compared"));
        assert!(page(&TrafficReport { receiver_settings: received, ..plain }).contains(said));
    }

    #[test]
    fn before_the_first_figure_there_is_a_page_without_charts() {
        let mut report = report("Wait.");
        report.effects.clear();
        report.classes.clear();
        let html = page(&report);
        assert!(!html.contains("<svg") && html.contains("cc=cubic"), "{html}");
    }
}
