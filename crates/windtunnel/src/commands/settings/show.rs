//! `settings show` on the terminal.

use crate::edge::{self, Problem, say};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use wt_host::{Adapter, KnobRow, Report, RouteRow, Severity};

/// What fits on a screen: what the classic optimisers showed, and what most often matters.
const IMPORTANT: [&str; 21] = [
    "mtu",
    "mss",
    "rwin",
    "sndbuf",
    "ttl",
    "window-scaling",
    "pmtud",
    "mtu-probing",
    "sack",
    "timestamps",
    "initcwnd",
    "initrwnd",
    "cc",
    "ecn",
    "tcp-rmem",
    "tcp-wmem",
    "rmem-max",
    "wmem-max",
    "slow-start-after-idle",
    "no-metrics-save",
    "qdisc",
];

/// Asks for an adapter.
///
/// # Errors
/// A usage [`Problem`] where there is nobody to ask, or no such number.
pub(super) fn pick(report: &Report) -> Result<&Adapter, Problem> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Problem::usage("there is nobody to ask").hint("name the adapter with --adapter"));
    }
    for (at, adapter) in report.adapters.iter().enumerate() {
        say!("{:>3}  {}", at + 1, line(adapter));
    }
    let _ = write!(std::io::stderr().lock(), "Which one? ");
    let mut answer = String::new();
    let _ = input.lock().read_line(&mut answer);
    let number = answer.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number
        .and_then(|at| report.adapters.get(at))
        .ok_or_else(|| Problem::usage(format!("there is no number {}", answer.trim())))
}

fn line(adapter: &Adapter) -> String {
    let speed = adapter.speed_mbps.map_or_else(String::new, |speed| format!(", {speed} Mbit/s"));
    let duplex = adapter.duplex.map_or_else(String::new, |duplex| format!(" {duplex} duplex"));
    let state = if adapter.up && adapter.carrier {
        "up"
    } else if adapter.up {
        "no carrier"
    } else {
        "down"
    };
    let route = if adapter.default_route { ", default route" } else { "" };
    let driver = adapter.driver.as_deref().unwrap_or("no driver");
    format!(
        "{:<12} {state}, {driver}{speed}{duplex}, MTU {}, {} (queue {}){route}",
        adapter.name, adapter.mtu, adapter.qdisc, adapter.txqueuelen
    )
}

/// Prints everything on one screen, or with `all` more than that; one adapter with its details.
pub(super) fn print(report: &Report, chosen: Option<&Adapter>, all: bool) {
    say!("Linux {}", report.kernel);
    for caveat in report.caveats.iter().filter(|caveat| all || caveat.limits || caveat.id.contains("-init")) {
        say!("  {}", caveat.text);
    }
    say!("");
    for adapter in &report.adapters {
        let mark = if chosen.is_some_and(|chosen| chosen.name == adapter.name) { "*" } else { " " };
        say!("{mark} {}", line(adapter));
    }
    if let Some(adapter) = chosen {
        details(adapter);
    }
    let congestion = &report.congestion;
    say!(
        "\nCongestion control: {}; registered {}; allowed {}{}",
        congestion.current,
        congestion.available.join(" "),
        congestion.allowed.join(" "),
        loadable(&congestion.loadable)
    );
    let head = ["setting", "value", "origin", "clamped or managed by"].map(str::to_owned).to_vec();
    let wanted = report.knobs.iter().filter(|row| all || IMPORTANT.contains(&row.key) && row.value.is_some());
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(wanted.map(setting)).collect();
    say!("\n{}", settings(rows, edge::room()).join("\n"));
    routes(&report.routes, all);
    if !report.managers.is_empty() {
        say!("\nManaged by {}", report.managers.join(", "));
    }
    if !report.findings.is_empty() {
        say!("\nFindings (windtunnel settings mute ID hides one):");
    }
    for finding in &report.findings {
        let mark = match finding.severity {
            Severity::Problem => "!!",
            Severity::Warning => "! ",
            Severity::Info => "  ",
        };
        say!("{mark} {:<28} {}", finding.id, finding.text);
    }
    if !report.muted.is_empty() {
        say!("Muted: {}", report.muted.join(", "));
    }
    if !all {
        say!("\nwindtunnel settings show --all shows every setting.");
    }
}

fn loadable(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; can be loaded {}", names.join(" ")) }
}

fn details(adapter: &Adapter) {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    say!(
        "  {:<12} driver {} {}, firmware {}, bus {}",
        "",
        text(&adapter.driver),
        text(&adapter.driver_version),
        text(&adapter.firmware),
        text(&adapter.bus)
    );
    let on: Vec<&str> =
        adapter.offloads.iter().filter(|(_, on)| **on).map(|(name, _)| name.trim_start_matches("offload-")).collect();
    let rings =
        adapter.rings.map_or_else(|| "-".to_owned(), |r| format!("rx {}/{} tx {}/{}", r.rx, r.rx_max, r.tx, r.tx_max));
    say!(
        "  {:<12} offloads {}; rings {rings}; managed by {}",
        "",
        if on.is_empty() { "-".to_owned() } else { on.join(" ") },
        text(&adapter.managed_by)
    );
    say!("  {:<12} addresses {}", "", adapter.addresses.join(" "));
}

/// Routes, as many as a screen takes: first those to everywhere and those that somebody gave a value.
fn routes(routes: &[RouteRow], all: bool) {
    const MOST: usize = 16;
    let matters = |route: &&RouteRow| route.to == "default" || route.has_metrics();
    let mut shown: Vec<&RouteRow> = routes.iter().filter(matters).collect();
    shown.extend(routes.iter().filter(|route| !matters(route)));
    let most = if all { shown.len() } else { MOST };
    say!("\nRoutes:");
    shown.iter().take(most).for_each(|route| say!("  {}", route.text));
    if shown.len() > most {
        say!("  … and {} more: windtunnel settings show --all", shown.len() - most);
    }
}

/// Settings with what clamps or manages them beside them; in a table of its own where there is no room for it.
fn settings(rows: Vec<Vec<String>>, width: usize) -> Vec<String> {
    let whole = wt_report::table(&rows, &[]);
    if whole.iter().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let notes = rows.iter().filter(|row| row.last().is_some_and(|note| !note.is_empty()));
    let notes: Vec<Vec<String>> = notes.map(|row| vec![row[0].clone(), row[row.len() - 1].clone()]).collect();
    let rest: Vec<Vec<String>> = rows.into_iter().map(|row| row[..row.len() - 1].to_vec()).collect();
    let parts = [wt_report::table(&rest, &[]), wt_report::table(&notes, &[])];
    parts.join(&[String::new()][..])
}

fn setting(row: &KnobRow) -> Vec<String> {
    let value = row.value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let origin = match (&row.origin.file, row.origin.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => match &row.target {
            Some(target) if row.origin.kind != "kernel-default" => format!("{} {target}", row.origin.kind),
            _ => row.origin.kind.to_owned(),
        },
    };
    let clamp = row.clamped_by.as_ref().map(ToString::to_string);
    let notes: Vec<&str> = [&clamp, &row.managed_by].into_iter().filter_map(|note| note.as_deref()).collect();
    vec![row.key.to_owned(), value, origin, notes.join("; ")]
}

#[cfg(test)]
mod tests {
    use super::settings;

    #[test]
    fn what_clamps_a_setting_is_never_under_another_heading() {
        let rows = || {
            [
                ["setting", "value", "origin", "clamped by"],
                ["rwin", "16777216", "kernel-default", "net.core.rmem_max=4194304"],
                ["sack", "on", "kernel-default", ""],
            ]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
        };
        let wide = settings(rows(), 80);
        assert!(wide.len() == 3 && wide[1].ends_with("kernel-default  net.core.rmem_max=4194304"), "{wide:#?}");
        let narrow = settings(rows(), 50);
        assert_eq!(narrow[3..], ["", "setting  clamped by", "rwin     net.core.rmem_max=4194304"], "{narrow:#?}");
        assert!(narrow[1].ends_with("kernel-default"), "{narrow:#?}");
    }
}
