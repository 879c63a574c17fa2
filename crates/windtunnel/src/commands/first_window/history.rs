use super::args::FirstWindowArgs;
use super::print::stored_cells;
use crate::cli::forms::say_json;
use crate::edge::{Exit, Outcome, emit, note, say};
use wt_prober::first_window::history;

/// Shows what is known of these hosts, or of all.
///
/// # Errors
/// A problem that names the journal.
pub(super) fn run(args: &FirstWindowArgs) -> Outcome {
    let request = args.history_request()?;
    let answer = history(&request)?;
    let exit = if answer.targets.is_empty() { Exit::No } else { Exit::Done };
    answer.skipped.iter().for_each(|(_, problem)| note(&format!("{problem}; the other lines count")));
    if args.json {
        say_json(&answer)?;
    } else if args.json_stream {
        answer.targets.iter().for_each(|one| emit!("{one}"));
    } else if answer.targets.is_empty() {
        say!("Nothing is known of {} yet.", if request.targets.is_empty() { "any host" } else { "these hosts" });
    } else {
        // Hosts one after the other, each from its oldest finding on.
        let mut findings = answer.targets;
        findings.sort_by(|a, b| (a["host"].as_str(), a["at"].as_str()).cmp(&(b["host"].as_str(), b["at"].as_str())));
        say!("{:<20}  {:<30} {:>10} {:>9} {:>5}  url", "when", "host", "segments", "bytes", "mss");
        for one in &findings {
            let [segments, bytes, mss] = stored_cells(one);
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            say!("{:<20}  {:<30} {segments:>10} {bytes:>9} {mss:>5}  {}", text("at"), text("host"), text("url"));
        }
    }
    Ok(exit)
}
