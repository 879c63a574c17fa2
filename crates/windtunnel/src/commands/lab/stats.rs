//! What the lab says of itself after a run.

use clap::ValueEnum;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;
use wt_lab::EngineStats;

/// How it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StatsForm {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Says on stderr how the lab did.
pub(super) fn tell(stats: &EngineStats, rtt: Duration, form: StatsForm) {
    let text = match form {
        StatsForm::Text => as_text(stats, rtt),
        StatsForm::Json => {
            let complaint = stats.complaint(rtt);
            let object = json!({
                "schema_version": 1, "valid": complaint.is_none(), "why_invalid": complaint, "lab": stats.to_json(),
            });
            format!("{object}\n")
        }
    };
    use std::io::Write as _;
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn as_text(stats: &EngineStats, rtt: Duration) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut text = String::from("The lab itself:\n");
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "  {what:<28} {value}");
    };
    line("segments taken, delivered", format!("{}, {}", stats.received, stats.delivered));
    let by_aqm = if stats.aqm > 0 { format!(" {} by AQM,", stats.aqm) } else { String::new() };
    line(
        "ended on the path",
        format!(
            "{} at full queues,{by_aqm} {} lost, {} too long, {} otherwise",
            stats.queue_full, stats.lost, stats.too_big, stats.other
        ),
    );
    if stats.marked > 0 {
        line("marked on the path", format!("{} with congestion experienced (CE)", stats.marked));
    }
    line("lost by the lab itself", format!("{}", stats.refused + stats.overflowed));
    for (top, count) in stats.histogram() {
        let bound = top.map_or("later".to_owned(), |us| format!("up to {} ms late", us as f64 / 1e3));
        let share = if stats.delivered == 0 { 0.0 } else { 100.0 * count as f64 / stats.delivered as f64 };
        line(&bound, format!("{count} ({share:.1} %)"));
    }
    line("latest", format!("{:.3} ms", ms(stats.latest_ns)));
    line("emulator's CPU", format!("{:.0} ms; waited {:.0} ms for a core", ms(stats.cpu_ns), ms(stats.waited_ns)));
    line("stolen from this machine", format!("{:.0} ms", ms(stats.stolen_ns)));
    match stats.complaint(rtt) {
        None => line("valid", "yes".to_owned()),
        Some(why) => line("valid", format!("no: {why}")),
    }
    text
}
