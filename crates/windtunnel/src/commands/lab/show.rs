use super::load;
use crate::edge::{Exit, Outcome, say};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wt_lab::scenario::{Described, Direction, Hop, Link, QueueBound};
use wt_lab::{Scenario, presets};
use wt_units::{BitsPerSecond, format_duration};

/// Shows a path: its file or its stages, and what follows from its figures.
///
/// # Errors
/// Those of [`load`].
pub(super) fn show(path: &str, svg: Option<&std::path::Path>, json: bool) -> Outcome {
    let scenario = load(path)?;
    if let Some(file) = svg {
        let written = crate::commands::report::write_whole(file, &super::picture::svg(&scenario));
        written.map_err(|failure| failure.hint("name another file"))?;
    }
    if json {
        say!("{}", as_json(&scenario));
        return Ok(Exit::Done);
    }
    match presets::text(&scenario.name).filter(|_| path == scenario.name) {
        Some(text) => say!("{}", text.trim_end()),
        None => say!("{}: {}", scenario.name, scenario.title),
    }
    stages(&scenario);
    what_follows(&scenario);
    Ok(Exit::Done)
}

/// What packets pass, link by link; a row of links that are alike is shown once.
fn stages(scenario: &Scenario) {
    say!("\nWhat packets pass, in order:");
    let mut said: Option<(Hop, bool, [Vec<Described>; 2])> = None;
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
    say!("  goodput at most, down          {}", rate(full.goodput_down));
    say!("  goodput at most, up            {}", rate(full.goodput_up));
    say!(
        "  bandwidth-delay product        {} bytes = {:.1} segments",
        bdp.get(),
        bdp.get() as f64 / full.payload as f64
    );
    for link in &scenario.links {
        if let QueueBound::Bytes(bytes) = link.down.queue {
            let full_queue: Duration = bytes / link.down.rate;
            say!("  full queue of \"{}\", down       about {}", link.name, format_duration(round_ms(full_queue)));
        }
    }
}

fn as_json(scenario: &Scenario) -> Value {
    let full = scenario.full_size(scenario.pmtu());
    let bdp = full.goodput_down * full.rtt;
    let links: Vec<_> = scenario.links.iter().map(|link| link_json(scenario, link)).collect();
    json!({
        "schema_version": 1, "name": scenario.name, "title": scenario.title, "source": scenario.source,
        "client_mtu": scenario.client_mtu, "server_mtu": scenario.server_mtu, "links": links,
        "path": {"rtt_us": full.rtt.as_micros() as u64, "pmtu": full.pmtu, "bdp_bytes": bdp.get()},
        "physical_goodput_bps": {"down": full.goodput_down.get(), "up": full.goodput_up.get()},
    })
}

fn link_json(scenario: &Scenario, link: &Link) -> Value {
    let direction = |d: &Direction, stages: &[Described]| {
        json!({
            "rate_bps": d.rate.get(), "delay_us": d.delay.as_micros() as u64, "jitter_us": d.jitter.as_micros() as u64,
            "queue": match d.queue {
                QueueBound::Bytes(b) => json!({"bytes": b.get()}),
                QueueBound::Packets(p) => json!({"packets": p}),
            },
            "loss": d.loss.get(),
            "stages": stages.iter().map(stage_json).collect::<Vec<_>>(),
        })
    };
    let [up, down] = scenario.described(link);
    let host = link.hop.host.as_ref().map(|host| json!({"name": host.name, "mtu": host.mtu}));
    json!({
        "name": link.name, "mtu": link.mtu.get(), "icmp": link.icmp, "framing": link.framing_name,
        "half_duplex": link.half_duplex, "down": direction(&link.down, &down), "up": direction(&link.up, &up),
        "hop": {"does": link.hop.describe(), "nat": link.hop.nat.is_some(), "host": host},
    })
}

/// A stage with its figures as texts.
fn stage_json(stage: &Described) -> Value {
    let mut fields = Map::new();
    fields.insert("stage".to_owned(), json!(stage.stage));
    fields.extend(stage.fields.iter().map(|(field, value)| ((*field).to_owned(), json!(value))));
    Value::Object(fields)
}

fn round_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn rate(rate: BitsPerSecond) -> String {
    format!("{} = {:.1} kB/s", rate.human(), rate.get() as f64 / 8e3)
}
