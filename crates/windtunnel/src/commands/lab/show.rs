use crate::cli::forms::give;
use crate::edge::{Outcome, emit, say};
use std::time::Duration;
use wt_lab::scenario::{DescribedStage, Hop, QueueBound};
use wt_lab::{Scenario, presets};
use wt_setup::lab::{ScenarioAnswer, load};
use wt_trial::Direction;
use wt_units::{BitsPerSecond, Bytes, format_duration};

/// Shows a path: its file or its stages, and what follows from its figures.
///
/// # Errors
/// Those of [`load`].
pub(super) fn show(path: &str, svg: Option<&std::path::Path>, json: bool) -> Outcome {
    let scenario = load(path)?;
    if let Some(file) = svg {
        let written = crate::cli::forms::write_whole(file, &scenario.to_svg());
        written.map_err(|failure| failure.hint("name another file"))?;
    }
    give(&ScenarioAnswer::of(&scenario), json, |_| print(path, &scenario))
}

fn print(path: &str, scenario: &Scenario) {
    match presets::text(&scenario.name).filter(|_| path == scenario.name) {
        // It is a file, for copies: folded, its strings and inline tables would be invalid.
        Some(text) => emit!("{}", text.trim_end()),
        None => say!("{}: {}", scenario.name, scenario.title),
    }
    stages(scenario);
    what_follows(scenario);
}

/// What packets pass, link by link; a row of links that are alike is shown once.
fn stages(scenario: &Scenario) {
    say!("\nWhat packets pass, in order:");
    let mut said: Option<(Hop, bool, [Vec<DescribedStage>; 2])> = None;
    for link in &scenario.links {
        let own = (link.hop.clone(), link.icmp, scenario.described(link));
        if said.as_ref() == Some(&own) {
            say!("  link \"{}\": the same", link.name);
            continue;
        }
        for line in link.hop.describe() {
            say!("  hop before \"{}\": {line}", link.name);
        }
        let silent = if link.icmp { "" } else { ", and nobody tells of longer packets" };
        say!("  link \"{}\", framing {}{silent}", link.name, link.framing_name);
        let [up, down] = &own.2;
        for (direction, stages) in [("up", up), ("down", down)] {
            for (index, stage) in stages.iter().enumerate() {
                say!("    {:<5} {stage}", if index == 0 { direction } else { "" });
            }
        }
        said = Some(own);
    }
}

fn what_follows(scenario: &Scenario) {
    let full = scenario.full_size(scenario.pmtu());
    let bdp = full.goodput_down * full.rtt;
    say!("\nWhat follows for full-sized TCP segments of {} bytes:", full.pmtu);
    say!("  RTT (segment there, ACK back)  {:.1} ms", full.rtt.as_secs_f64() * 1e3);
    for (direction, way) in [(Direction::Down, "down"), (Direction::Up, "up")] {
        // A bucket that is full, say, lets more through for a while.
        let what = if scenario.has_bursts(direction) { "goodput in the long run" } else { "goodput at most" };
        say!("  {:<30} {}", format!("{what}, {way}"), rate(scenario.goodput_at_most(direction)));
    }
    say!(
        "  bandwidth-delay product        {} bytes = {:.1} segments",
        bdp.get(),
        bdp.get() as f64 / full.payload as f64
    );
    for link in &scenario.links {
        if let QueueBound::Bytes(bytes) = link.down.queue {
            // It holds packets, and each takes what it occupies on the link.
            let packet = full.pmtu.min(link.mtu.get());
            let on_the_wire = link.framing.wire_len(Bytes(packet)).get() as f64 / packet.max(1) as f64;
            let seconds = bytes.get() as f64 * 8.0 * on_the_wire / link.down.rate.get().max(1) as f64;
            let full_queue = Duration::from_millis((seconds * 1e3).round() as u64);
            say!("  full queue of \"{}\", down       about {}", link.name, format_duration(full_queue));
        }
    }
}

fn rate(rate: BitsPerSecond) -> String {
    if rate.get() == 0 {
        return "none: every packet is lost".to_owned();
    }
    format!("{} = {:.1} kB/s", rate.human(), rate.get() as f64 / 8e3)
}
