use super::sheet::Sheet;
use super::{ReplayRow, StudyReplay, goodput, line, trial};
use crate::gain::range_of;
use crate::model;
use std::ops::RangeInclusive;
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

/// Windows and MTUs that the model is asked about, bytes.
const WINDOWS: RangeInclusive<f64> = 1_152.0..=1_073_741_824.0;
const MTUS: RangeInclusive<f64> = 88.0..=1_500.0;
/// Rates over ADSL that a line can be behind, Mbit/s.
const RATES_MBPS: RangeInclusive<f64> = 0.001..=10_000.0;
/// What a table's options are made of, joined by +.
const OPTIONS: [&str; 4] = ["none", "pmtud", "blackhole", "sack"];

/// The replay of a table that is known by its columns.
pub(super) fn replay(sheet: &Sheet) -> Result<Option<StudyReplay>, Problem> {
    let columns: Vec<&str> = sheet.columns.iter().map(String::as_str).collect();
    // Settings come first, figures from a column on.
    match columns.as_slice() {
        ["multiplier" | "mtu", "rwin_bytes", ..] | ["initcwnd_segments", "requests", "load_ms", "page_kb"] => {
            sheet.check_figures(2)?;
        }
        ["mtu" | "ttl" | "option", "series1", ..] | ["cc", "rate_low", "rate_high"] => sheet.check_figures(1)?,
        _ => {}
    }
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

/// What the figures of one setting are of another's, where that is more than 2 % and, of several series, than chance explains.
fn differs(ratios: &[f64]) -> Option<f64> {
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let (low, high) = range_of(ratios.iter().copied()).unwrap_or((mean - 1.0, mean - 1.0));
    (low > 0.02 || high < -0.02).then_some(mean)
}

/// What the line alone doesn't explain: how much of it the study's transfers used, and how far apart equal ones were. Nothing
/// where there are no figures.
fn beyond_the_line(rows: &[ReplayRow]) -> Option<String> {
    let mut shares = Vec::new();
    let mut apart = 1.0_f64;
    for row in rows {
        let (low, high) = row.measured.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
        if low > 0.0 && high > 0.0 {
            apart = apart.max(high / low);
        }
        shares.extend(row.modelled.iter().flat_map(|model| row.measured.iter().map(move |study| study / model)));
    }
    if shares.is_empty() {
        return None;
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let mut used = format!("The study's transfers used {:.0} % of what the line carries", mean * 100.0);
    if rows.iter().any(|row| row.measured.len() > 1) {
        used.push_str(&format!(", and with one setting they were up to {apart:.1} times apart"));
    }
    Some(match mean {
        mean if mean > 1.02 => format!("{used}: theirs was a faster line than this one."),
        mean if mean > 0.95 => format!("{used}: the line held them."),
        _ => format!("{used}: hosts and routes beyond the line held them, which no setting here reaches."),
    })
}

fn modem_path(size: u64) -> String {
    format!("{} kB over 26.4 kbit/s, PPP, RTT 150 ms (assumed), 20 packets of queue (assumed)", size / 1000)
}

fn dialup_windows(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    const FIGURES: usize = 2;
    sheet.check(1, WINDOWS)?;
    let settings = |row| Some(Settings::new().with(Knob::Rwin, number(sheet.number(row, 1)?)));
    let rows = over_the_modem(sheet, FIGURES, 290_000, settings)?;
    let best = rows.iter().filter_map(|row| row.modelled).fold(0.0, f64::max);
    let enough = rows.iter().position(|row| row.modelled.is_some_and(|value| value >= 0.98 * best));
    let mut notes = Vec::new();
    let mut contradicted = None;
    if let Some(enough) = enough {
        let label = &rows[enough].label;
        notes.push(format!(
            "In the model {label} is the smallest window within 2 % of the best; what lies beyond only queues."
        ));
        let beyond = |row: &usize| sheet.number(*row, 1) > sheet.number(enough, 1);
        let larger = || (0..rows.len()).filter(beyond);
        contradicted = larger().find_map(|row| Some((row, differs(&sheet.ratios(row, enough, FIGURES))?)));
        notes.extend(match contradicted {
            Some(_) if sheet.columns.len() == FIGURES + 1 => {
                Some("With one figure for each window the study can't tell what it gained from noise.".to_owned())
            }
            Some((row, ratio)) => Some(format!(
                "The study's figures at {} are {ratio:.2} times those at {label}, more than chance explains: its windows \
                 mattered beyond that, so its path wasn't this line.",
                rows[row].label
            )),
            None if larger().any(|row| !rows[row].measured.is_empty()) => Some(
                "No window gains anything beyond that: what the study found there between levels is noise of the path."
                    .to_owned(),
            ),
            None => None,
        });
    }
    if contradicted.is_none() {
        notes.extend(beyond_the_line(&rows));
    }
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(290_000), rows, notes })
}

fn dialup_mtu(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    sheet.check(0, MTUS)?;
    let settings = |row| {
        let mtu = sheet.number(row, 0)?;
        Some(Settings::new().with(Knob::Mtu, number(mtu)).with(Knob::Rwin, number(4.0 * (mtu - 40.0))))
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let mut notes = vec![format!(
        "The model's figures differ by {:.1} %, by the headers of 40 and PPP's 7 bytes: the larger the packets, the better.",
        spread(&rows) * 100.0
    )];
    notes.extend(beyond_the_line(&rows));
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(360_000), rows, notes })
}

fn dialup_ttl(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    sheet.check(0, 0.0..=255.0)?;
    let settings = |row| {
        let window = Settings::new().with(Knob::Rwin, Level::Number(5_840));
        match sheet.number(row, 0)? {
            0.0 => Some(window),
            ttl => Some(window.with(Knob::Ttl, number(ttl))),
        }
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let mut notes = vec![
        "A time to live that is long enough changes nothing: the model's figures are equal, to the byte.".to_owned(),
    ];
    notes.extend(beyond_the_line(&rows));
    Ok(StudyReplay { name: sheet.name.clone(), unit: "bytes/s", path: modem_path(360_000), rows, notes })
}

fn dialup_options(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    let word = |on: bool| Level::Name(if on { "on" } else { "off" }.to_owned());
    let is_known = |option: &str| option.split('+').all(|part| OPTIONS.contains(&part));
    let settings = |row: usize| {
        let option = &sheet.rows[row][0];
        let has = |name: &str| option.split('+').any(|part| part == name);
        let base = Settings::new().with(Knob::Rwin, Level::Number(5_840));
        let base = base.with(Knob::Pmtud, word(has("pmtud"))).with(Knob::Sack, word(has("sack")));
        is_known(option).then(|| base.with(Knob::MtuProbing, word(has("blackhole"))))
    };
    let rows = over_the_modem(sheet, 1, 360_000, settings)?;
    let mut notes = vec!["On a line without loss and with one MTU none of the options has anything to do.".to_owned()];
    let unknown: Vec<&str> = sheet.rows.iter().map(|row| row[0].as_str()).filter(|option| !is_known(option)).collect();
    if !unknown.is_empty() {
        notes.push(format!("Not modelled, since the model has no such option: {}.", unknown.join(", ")));
    }
    notes.extend(beyond_the_line(&rows));
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

/// What a line of this rate explains of what a larger window gained in a study, kbit/s. Nothing where it had one window.
fn what_windows_gained(sheet: &Sheet, slow_kbit: f64) -> Option<String> {
    let slow = format!("A line of {:.2} Mbit/s", slow_kbit / 1e3);
    let cell = |row, column| sheet.number(row, column).unwrap_or(0.0);
    let rows = || 0..sheet.rows.len();
    let pairs = rows().flat_map(|a| rows().map(move |b| (a, b)));
    let larger = pairs.filter(|(a, b)| cell(*a, 0) == cell(*b, 0) && cell(*a, 1) < cell(*b, 1));
    let ratios = larger.map(|(a, b)| (cell(b, 1) / cell(a, 1), cell(b, 2) / cell(a, 2)));
    // The pair whose rate grew most for what its window did.
    let (window, rate) = ratios.max_by(|(w, r), (v, s)| (r.ln() / w.ln()).total_cmp(&(s.ln() / v.ln())))?;
    let more = if (1.25..1.42).contains(&window) {
        "a third more window".to_owned()
    } else {
        format!("{window:.1} times the window")
    };
    Some(if rate.ln() < window.ln() / 4.0 {
        format!("{slow} explains the level, and why {more} gained next to nothing: both were on the plateau.")
    } else {
        format!(
            "{slow} explains the level, and not that {more} brought {rate:.2} times the rate: the window held at least one of them."
        )
    })
}

fn adsl_factorial(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    const SOLD_KBIT: f64 = 8_000.0;
    sheet.check(0, MTUS)?;
    sheet.check(1, WINDOWS)?;
    sheet.check(2, RATES_MBPS)?;
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
    let share = best * 1e3 / SOLD_KBIT / efficiency;
    let over = format!(
        "Throughput over link rate is {:.0} % at best, where the cells of ATM leave {:.0} %",
        best * 1e5 / SOLD_KBIT,
        efficiency * 100.0
    );
    let mut notes = vec![match share {
        share if share > 1.02 => format!("{over}: theirs was a faster line than one of 8 Mbit/s."),
        share if share > 0.9 => format!("{over}: 8 Mbit/s were about the limit."),
        _ => format!("{over}: 8 Mbit/s were not the limit."),
    }];
    notes.extend(what_windows_gained(sheet, slow_kbit));
    notes.push(format!(
        "Smallest window on the plateau (MTU 1500, RTT 30 ms): {} bytes at 8 Mbit/s, {} bytes on the {} line.",
        plateau(&sold, 1500.0)?,
        plateau(&slow, 1500.0)?,
        if share > 1.0 { "faster" } else { "slower" }
    ));
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

/// How much longer pages took with the study's smallest first window than with its largest, and whether round trips explain it.
/// Nothing where it had one window.
fn what_a_first_window_saved(sheet: &Sheet, rows: &[ReplayRow]) -> Option<String> {
    let windows: Vec<f64> = (0..rows.len()).filter_map(|row| sheet.number(row, 0)).collect();
    let of = |window: f64, figure: &dyn Fn(&ReplayRow) -> Option<f64>| {
        let alike = rows.iter().zip(&windows).filter(|(_, other)| **other == window);
        let times: Vec<f64> = alike.filter_map(|(row, _)| figure(row)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    let (least, most) = (windows.iter().copied().reduce(f64::min)?, windows.iter().copied().reduce(f64::max)?);
    if least == most {
        return None;
    }
    let longer = |figure: &dyn Fn(&ReplayRow) -> Option<f64>| Some(of(least, figure)? / of(most, figure)?);
    let (study, model) = (longer(&ReplayRow::measured_mean)?, longer(&|row| row.modelled)?);
    let saves = "A larger first window saves one or two round trips of each answer that exceeds the smaller one";
    Some(match study {
        study if study < 1.5 * model => format!("{saves}."),
        study if (2.5..3.5).contains(&study) => format!("{saves}; a factor of three is more than that explains."),
        study => format!("{saves}; a factor of {study:.1} is more than that explains."),
    })
}

fn pages(sheet: &Sheet) -> Result<StudyReplay, Problem> {
    sheet.check(0, 1.0..=10_000.0)?;
    sheet.check(1, 1.0..=MOST_OBJECTS as f64)?;
    sheet.check(2, 0.001..=1e9)?;
    sheet.check(3, 0.001..=1e6)?;
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
    let mut notes = vec![
        "The study names neither rate nor RTT, so the model's level is an assumption's; what compares is the ratio of the rows.".to_owned(),
    ];
    notes.extend(what_a_first_window_saved(sheet, &rows));
    let own = Page::built_in().objects.len();
    let page = if (0..sheet.rows.len()).all(|row| sheet.number(row, 1) == Some(own as f64)) {
        "our own page of 44 objects, as large as the study's"
    } else {
        "pages of the study's objects and size (of 44 objects like our own page, else a document of a fifth and the rest alike)"
    };
    let path = format!("{page}; six connections, 20 Mbit/s and RTT 60 ms (both assumed)");
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
        if rows.iter().any(|row| row.label == name) {
            continue;
        }
        rows.push(ReplayRow { label: name.to_owned(), measured: Vec::new(), modelled: Some(modelled(name)?) });
    }
    let notes = vec![
        "Rate, queue and loss of the path are a guess that fits what was reported; a mean of 20 seeds, 40 s each."
            .to_owned(),
    ];
    Ok(StudyReplay { name: sheet.name.clone(), unit: "kB/s", path: scenario.title.clone(), rows, notes })
}
