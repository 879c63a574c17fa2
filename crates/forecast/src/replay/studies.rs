use super::sheet::Sheet;
use super::{ReplayRow, StudyReplay, goodput, line, trial};
use crate::model;
use std::time::Duration;
use wt_lab::presets;
use wt_lab::scenario::{Direction as LineDirection, DirectionBuilder, Link, LinkBuilder, QueueBound};
use wt_problem::Problem;
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, MOST_OBJECTS, Page, PageObject, Tunnel as _, Workload};
use wt_units::{BitsPerSecond, Bytes, Knob, Level, Settings};

/// One direction of a line.
fn way(bps: f64, delay_ms: u64, queue: QueueBound) -> DirectionBuilder {
    LineDirection::builder(BitsPerSecond(bps as u64)).delay(Duration::from_millis(delay_ms)).queue(queue)
}

/// The telephone line of the studies.
fn modem() -> LinkBuilder {
    let way = || way(26_400.0, 75, QueueBound::Packets(20));
    Link::builder("modem", way(), way()).mtu(Bytes(1_500)).framing("ppp")
}

/// An ADSL line of this rate, the propagation assumed.
fn adsl(kbit: f64) -> LinkBuilder {
    let way = |bps, kib: u64| way(bps, 15, QueueBound::Bytes(Bytes(kib << 10)));
    Link::builder("dsl", way(kbit * 1e3, 64), way(1e6, 16)).mtu(Bytes(1_500)).framing("llc-bridged-fcs-atm")
}

/// The path of the page loads: what the study doesn't say is assumed.
fn web() -> LinkBuilder {
    let way = || way(20e6, 30, QueueBound::Packets(200));
    Link::builder("access", way(), way()).mtu(Bytes(1_500))
}

/// The ends of the time: no timestamps, no SACK, an initial window of two segments, Reno.
fn old_ends() -> StackConfig {
    StackConfig {
        congestion_control: "reno".to_owned(),
        initcwnd: 2,
        timestamps: false,
        sack: false,
        ..StackConfig::default()
    }
}

/// The replay of a table that is known by its columns.
pub(super) fn replay(sheet: &Sheet) -> Result<Option<StudyReplay>, Problem> {
    let columns: Vec<&str> = sheet.columns.iter().map(String::as_str).collect();
    match columns.as_slice() {
        ["multiplier", "rwin_bytes", ..] => dialup_windows(sheet).map(Some),
        ["mtu", "series1", ..] => dialup_mtu(sheet).map(Some),
        ["ttl", "series1", ..] => dialup_ttl(sheet).map(Some),
        ["option", "series1", ..] => dialup_options(sheet).map(Some),
        ["mtu", "rwin_bytes", "rate_mbps"] => adsl_factorial(sheet).map(Some),
        ["initcwnd_segments", "requests", "load_ms", "page_kb"] => pages(sheet).map(Some),
        ["cc", "rate_low", "rate_high"] => scp(sheet).map(Some),
        _ => Ok(None),
    }
}

fn number(level: f64) -> Level {
    Level::Number(level as u64)
}

/// Rows over the telephone line: settings by row, figures from a column on.
fn over_the_modem(
    sheet: &Sheet,
    from: usize,
    size: u64,
    settings: impl Fn(usize) -> Option<Settings>,
) -> Result<Vec<ReplayRow>, Problem> {
    let tunnel = line("a telephone line", modem(), old_ends())?;
    let mut rows = Vec::new();
    for row in 0..sheet.rows.len() {
        let modelled = match settings(row) {
            Some(settings) => Some(goodput(&tunnel, &settings, Amount::Size(Bytes(size)), 1)?),
            None => None,
        };
        let label = format!("{} {}", sheet.columns[0], sheet.rows[row][0]);
        rows.push(ReplayRow { label, measured: sheet.numbers(row, from), modelled });
    }
    Ok(rows)
}

/// How far apart the largest and the smallest figure of the model are.
fn spread(rows: &[ReplayRow]) -> f64 {
    let values = rows.iter().filter_map(|row| row.modelled);
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    high / low - 1.0
}

/// What the line alone doesn't explain: how much of it the study's transfers used, and how far apart equal ones were.
fn beyond_the_line(rows: &[ReplayRow]) -> String {
    let mut shares = Vec::new();
    let mut apart = 1.0_f64;
    for row in rows {
        let (low, high) = row.measured.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        if low > 0.0 && high > 0.0 {
            apart = apart.max(high / low);
        }
        shares.extend(row.modelled.iter().flat_map(|model| row.measured.iter().map(move |study| study / model)));
    }
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    format!(
        "The study's transfers used {:.0} % of what the line carries, and with one setting they were up to {apart:.1} times apart: \
         hosts and routes beyond the line held them, which no setting here reaches.",
        mean * 100.0
    )
}

fn modem_path(size: u64) -> String {
    format!("{} kB over 26.4 kbit/s, PPP, RTT 150 ms (assumed), 20 packets of queue (assumed)", size / 1000)
}

fn dialup_windows(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let rows =
        over_the_modem(sheet, 2, 290_000, |row| Some(Settings::new().with(Knob::Rwin, number(sheet.number(row, 1)?))))?;
    let best = rows.iter().filter_map(|row| row.modelled).fold(0.0, f64::max);
    let enough = rows.iter().find(|row| row.modelled.is_some_and(|value| value >= 0.98 * best));
    let mut notes = Vec::new();
    if let Some(row) = enough {
        notes.push(format!(
            "In the model {} is the smallest window within 2 % of the best; what lies beyond only queues.",
            row.label
        ));
    }
    notes.push(
        "No window gains anything beyond that: what the study found there between levels is noise of the path."
            .to_owned(),
    );
    notes.push(beyond_the_line(&rows));
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(290_000), rows, notes })
}

fn dialup_mtu(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let settings = |row| {
        let mtu = sheet.number(row, 0)?;
        Some(Settings::new().with(Knob::Mtu, number(mtu)).with(Knob::Rwin, number(4.0 * (mtu - 40.0))))
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let notes = vec![
        format!(
            "The model's figures differ by {:.1} %, by the headers of 40 and PPP's 7 bytes: the larger the packets, the better.",
            spread(&rows) * 100.0
        ),
        beyond_the_line(&rows),
    ];
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(360_000), rows, notes })
}

fn dialup_ttl(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let settings = |row| {
        let window = Settings::new().with(Knob::Rwin, Level::Number(5_840));
        match sheet.number(row, 0)? {
            0.0 => Some(window),
            ttl => Some(window.with(Knob::Ttl, number(ttl))),
        }
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let notes = vec![
        "A time to live that is long enough changes nothing: the model's figures are equal, to the byte.".to_owned(),
        beyond_the_line(&rows),
    ];
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(360_000), rows, notes })
}

fn dialup_options(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let word = |on: bool| Level::Name(if on { "on" } else { "off" }.to_owned());
    let settings = |row: usize| {
        let option = &sheet.rows[row][0];
        let base = Settings::new().with(Knob::Rwin, Level::Number(5_840));
        let base = base.with(Knob::Pmtud, word(option.contains("pmtud"))).with(Knob::Sack, word(option == "sack"));
        Some(base.with(Knob::MtuProbing, word(option.contains("blackhole"))))
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let notes = vec![
        "On a line without loss and with one MTU none of the options has anything to do.".to_owned(),
        beyond_the_line(&rows),
    ];
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(360_000), rows, notes })
}

/// Goodput on an ADSL line with this MTU and window, Mbit/s.
fn over_adsl(tunnel: &SimTunnel, mtu: f64, rwin: f64) -> Result<f64, Problem> {
    let settings = Settings::new().with(Knob::Mtu, number(mtu)).with(Knob::Rwin, number(rwin));
    Ok(goodput(tunnel, &settings, Amount::Time(Duration::from_secs(20)), 1)? * 8.0 / 1e6)
}

/// The smallest window in whole segments within 2 % of the best, bytes.
fn plateau(tunnel: &SimTunnel, mtu: f64) -> Result<f64, Problem> {
    let mss = mtu - 40.0;
    let best = over_adsl(tunnel, mtu, 44.0 * mss)?;
    for segments in 1..44 {
        let rwin = mss * f64::from(segments);
        if rwin >= 1_152.0 && over_adsl(tunnel, mtu, rwin)? >= 0.98 * best {
            return Ok(rwin);
        }
    }
    Ok(44.0 * mss)
}

fn adsl_factorial(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    const SOLD_KBIT: f64 = 8_000.0;
    let stack = StackConfig { timestamps: false, ..StackConfig::default() };
    let sold = line("ADSL", adsl(SOLD_KBIT), stack.clone())?;
    let best = (0..sheet.rows.len()).filter_map(|row| sheet.number(row, 2)).fold(0.0, f64::max);
    let efficiency = sold.path(wt_trial::Direction::Down).physical_goodput_bps.unwrap_or(0) as f64 / 1e3 / SOLD_KBIT;
    // The line that would have had the study's best rate as its limit.
    let slow_kbit = best * 1e3 / efficiency;
    let slow = line("ADSL", adsl(slow_kbit.round()), stack)?;
    let mut rows = Vec::new();
    for (name, tunnel) in [("8 Mbit/s as sold", &sold), ("the line behind the figures", &slow)] {
        for row in 0..sheet.rows.len() {
            let (Some(mtu), Some(rwin)) = (sheet.number(row, 0), sheet.number(row, 1)) else { continue };
            let modelled = Some(over_adsl(tunnel, mtu, rwin)?);
            let label = format!("{name}: {mtu}/{rwin}");
            rows.push(ReplayRow { label: label.chars().take(40).collect(), measured: sheet.numbers(row, 2), modelled });
        }
    }
    let notes = vec![
        format!(
            "Throughput over link rate is {:.0} % at best, where the cells of ATM leave {:.0} %: 8 Mbit/s were not the limit.",
            best * 1e5 / SOLD_KBIT,
            efficiency * 100.0
        ),
        format!(
            "A line of {:.2} Mbit/s explains the level, and why a third more window gained next to nothing: both were on the plateau.",
            slow_kbit / 1e3
        ),
        format!(
            "Smallest window on the plateau (MTU 1500, RTT 30 ms): {} bytes at 8 Mbit/s, {} bytes on the slower line.",
            plateau(&sold, 1500.0)?,
            plateau(&slow, 1500.0)?
        ),
    ];
    let path = "20 s of payload; cells of ATM, RTT 30 ms (assumed)".to_owned();
    Ok(StudyReplay { name: sheet.name.clone(), unit: "Mbit/s; setting: MTU/RWIN", path, rows, notes })
}

/// A page of so many objects and bytes: as our own where it has as many objects, else one document of a fifth of it and the
/// rest alike.
fn page(requests: usize, total: u64) -> Page {
    let own = Page::built_in();
    let sizes: Vec<u64> = if requests == own.objects.len() {
        own.objects.iter().map(|object| object.size.get() * total / own.size().get()).collect()
    } else {
        let rest = total * 4 / 5 / (requests as u64 - 1).max(1);
        (0..requests).map(|number| if number == 0 { total / 5 } else { rest }).collect()
    };
    let objects = sizes.into_iter().map(|size| PageObject { path: None, size: Bytes(size.max(1)) }).collect();
    Page { name: "the study's".to_owned(), objects, ..own }
}

/// The load time of a page over six cold connections, ms.
fn page_load(tunnel: &SimTunnel, initcwnd: u32, page: Page) -> Result<f64, Problem> {
    let settings = Settings::new().with(Knob::Initcwnd, Level::Number(u64::from(initcwnd)));
    let outcome = tunnel.try_run(&trial(&settings, Workload::Page { page }, 1), Duration::from_millis(100));
    Ok(outcome.map_err(|error| model::problem(&error))?.elapsed_us as f64 / 1e3)
}

fn pages(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let tunnel = line("a web server", web(), StackConfig::default())?;
    let mut rows = Vec::new();
    for row in 0..sheet.rows.len() {
        let cell = |column| sheet.number(row, column);
        let (Some(initcwnd), Some(requests), Some(load), Some(size)) = (cell(0), cell(1), cell(2), cell(3)) else {
            continue;
        };
        let page = page((requests as usize).clamp(1, MOST_OBJECTS), (size.clamp(0.0, 1e9) * 1e3) as u64);
        let modelled = Some(page_load(&tunnel, (initcwnd as u32).max(1), page)?);
        let label = format!("initcwnd {initcwnd}, {requests} requests");
        rows.push(ReplayRow { label, measured: vec![load], modelled });
    }
    let notes = vec![
        "The study names neither rate nor RTT, so the model's level is an assumption's; what compares is the ratio of the rows.".to_owned(),
        "A larger first window saves one or two round trips of each answer that exceeds the smaller one; a factor of three is more than that explains.".to_owned(),
    ];
    let path =
        "our own page of 44 objects, as large as the study's; six connections, 20 Mbit/s and RTT 60 ms (both assumed)"
            .to_owned();
    Ok(StudyReplay { name: sheet.name.clone(), unit: "ms", path, rows, notes })
}

fn scp(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let scenario = presets::load("freebsd-scp").map_err(|error| Problem::internal(error.to_string()))?;
    let tunnel = model::tunnel(&scenario, StackConfig::default())?;
    let modelled = |name: &str| {
        let settings = Settings::new().with(Knob::Cc, Level::Name(name.to_owned()));
        goodput(&tunnel, &settings, Amount::Time(Duration::from_secs(40)), 20).map(|rate| rate / 1e3)
    };
    let mut rows = Vec::new();
    for row in 0..sheet.rows.len() {
        let name = match sheet.rows[row][0].as_str() {
            // As the FreeBSD of the time had it, whose clock ticked a hundred times a second.
            "chd" => "chd@freebsd-hz100",
            "hd" => "hd@freebsd-hz100",
            name => name,
        };
        let known = wt_sim::cc::by_name(name, 1).is_some();
        let modelled = if known { Some(modelled(name)?) } else { None };
        rows.push(ReplayRow { label: name.to_owned(), measured: sheet.numbers(row, 1), modelled });
    }
    for name in ["cubic", "bbr"] {
        rows.push(ReplayRow { label: name.to_owned(), measured: Vec::new(), modelled: Some(modelled(name)?) });
    }
    let notes = vec![
        "Rate, queue and loss of the path are a guess that fits what was reported; a mean of 20 seeds, 40 s each."
            .to_owned(),
    ];
    Ok(StudyReplay { name: sheet.name.clone(), unit: "kB/s", path: scenario.title.clone(), rows, notes })
}
