//! The report as one HTML file that needs nothing else: no script, no network, no font.

/// Tables.
mod tables;

use crate::chart::{Chart, escape};
use crate::tune::{AnswerAction, TuneReport};
use crate::words;

/// Width of the charts on a screen and on a phone, and their height.
const WIDE: u32 = 734;
const NARROW: u32 = 342;
const HEIGHT: u32 = 330;

const STYLE: &str = include_str!("style.css");
/// Nothing is loaded and nothing is run, whatever a label may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

impl TuneReport {
    /// The report as one self-contained page, for light and dark screens, phones and paper.
    #[must_use]
    pub fn to_html(&self) -> String {
        let title = format!("{} · {}", self.verdict.answer.what, self.target);
        let body: String = [
            self.html_head(),
            "<main>\n".to_owned(),
            self.html_tiles(),
            self.html_warnings(),
            self.html_where(),
            "<details>\n<summary>What stands behind it</summary>\n".to_owned(),
            self.html_details(),
            self.html_settings(),
            self.html_frontier(),
            self.html_plateau(),
            self.html_waterfalls(),
            self.html_evidence(),
            self.html_over_time(),
            self.html_granted(),
            self.html_servers(),
            self.html_path(),
            self.html_method(),
            self.html_trials(),
            "</details>\n</main>\n".to_owned(),
        ]
        .concat();
        document(&title, &body, &format!("Windtunnel {} · {}", self.run.version, self.id))
    }

    fn html_head(&self) -> String {
        let v = &self.verdict;
        let class = if v.answer.action == AnswerAction::Set { " class=\"faster\"" } else { "" };
        let summary = format!(
            "{} ({}) · {} · {}, {}, {}",
            self.target,
            self.tunnel,
            words::date(self.run.started_unix_us),
            wt_units::counted(self.rounds, "round"),
            wt_units::counted(self.trials, "trial"),
            words::duration(self.run.spent_s)
        );
        let comment = if self.run.comment.is_empty() { String::new() } else { paragraph(&self.run.comment) };
        format!(
            "<header>\n<p>{}</p>\n{comment}<h1{class}>{}</h1>\n</header>\n",
            escape(&summary),
            whole(&v.answer.what)
        )
    }

    /// Before and after, how sure it is, and what to do: what a manager reads.
    fn html_tiles(&self) -> String {
        let answer = &self.verdict.answer;
        let show = |figure: f64| match answer.unit {
            "ms" => words::milliseconds((figure * 1e3) as u64),
            _ => self.measured.show(Some(figure)),
        };
        let mut tiles = Vec::new();
        let measure = answer.measure_beside(&self.measured, self.arms.first().and_then(|arm| arm.figure));
        if let (Some(before), Some(after)) = (answer.before, answer.after) {
            tiles.push((measure.as_str(), format!("{} → {}", show(before), show(after))));
        } else if let Some(before) = answer.before {
            tiles.push((measure.as_str(), show(before)));
        }
        if let Some(reached) = answer.reached {
            tiles.push(("of what the line can carry, now", words::whole_percent(reached * 100.0)));
        }
        if let Some(change) = answer.change_percent {
            let sign = if change < 0.0 { "−" } else { "+" };
            let least = answer
                .sure
                .at_least
                .map_or_else(String::new, |least| format!(" (at least {sign}{})", words::percent_down(least.abs())));
            tiles.push(("change", format!("{sign}{}{least}", words::percent(change.abs()))));
        }
        let sure = answer.lines[1].trim_start_matches("Sure: ").trim_end_matches('.');
        tiles.push(("sure", sure.to_owned()));
        let tiles: String = tiles
            .iter()
            .map(|(name, text)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(text)))
            .collect();
        let steps: String = answer
            .steps
            .iter()
            .map(|step| {
                let (place, command) = (step.host.place(), &step.command);
                format!("<p>{}:</p>\n<pre><code>{}</code></pre>\n", escape(&format!("Do {place}")), escape(command))
            })
            .collect();
        let nothing = match answer.steps.is_empty() {
            true if self.state.is_some() => paragraph("Do nothing yet: it still runs."),
            true => paragraph("Do nothing: your settings stay as they are."),
            false => steps,
        };
        format!("<section>\n<dl class=\"tiles\">\n{tiles}</dl>\n{nothing}</section>\n")
    }

    /// Where and when it was measured.
    fn html_where(&self) -> String {
        let run = &self.run;
        let rows = [
            ("Target", format!("{} ({})", self.target, self.tunnel)),
            ("Host", run.host.clone().unwrap_or_default()),
            ("Kernel", run.kernel.clone().unwrap_or_default()),
            ("Device", run.device.clone().unwrap_or_default()),
            ("Begun", words::date(run.started_unix_us)),
            (if self.state.is_some() { "So far" } else { "Took" }, words::duration(run.spent_s)),
            ("Comment", run.comment.clone()),
        ];
        section("Where", &definitions(&rows))
    }

    fn html_warnings(&self) -> String {
        let mut out = String::new();
        if !self.warnings.is_empty() {
            let warnings = list(&self.warnings);
            out.push_str(&format!("<section class=\"warn\">\n<h2>Warnings</h2>\n{warnings}</section>\n"));
        }
        out
    }

    fn html_details(&self) -> String {
        let v = &self.verdict;
        let mut details = paragraph(&v.headline) + &list(&v.details);
        if self.tunnel == "live" || self.limits_say_more() {
            details.push_str(&paragraph(&self.limits.text));
        }
        if !self.soak.is_empty() {
            details.push_str(&list(&self.soak_lines()));
        }
        [self.limit_line(), self.ceiling_line()].iter().flatten().for_each(|line| details.push_str(&paragraph(line)));
        let mut out = section("What the data say", &details);
        if !self.next.is_empty() {
            out.push_str(&section("What to do next", &list(&self.next)));
        }
        out
    }

    fn html_settings(&self) -> String {
        let chart = self.settings_chart().map_or_else(String::new, |chart| figure(&chart));
        section("Settings", &(chart + &self.settings_table()))
    }

    fn html_frontier(&self) -> String {
        let Some(chart) = self.frontier_chart() else { return String::new() };
        let note = paragraph(
            "No setting on the line is beaten by another in both goodput and delay. These are medians of trials: what is proven \
             stands in the answer.",
        );
        section("Goodput against delay", &(figure(&chart) + &note))
    }

    fn html_waterfalls(&self) -> String {
        let charts = self.waterfall_charts();
        let tall = |chart: &Chart| figure_of(chart, HEIGHT.max(90 + 15 * chart.categories.len() as u32));
        let figures: String = charts.iter().map(tall).collect();
        if figures.is_empty() { figures } else { section("The page, object by object", &figures) }
    }

    fn html_plateau(&self) -> String {
        let Some((chart, plateau)) = self.plateau_chart().zip(self.plateau.as_ref()) else { return String::new() };
        let behind = plateau.epsilon * 100.0;
        let anchor = self.arms.get(plateau.anchor).filter(|_| plateau.anchor != 0);
        let anchor = anchor.map_or("the current settings", |arm| arm.label.as_str());
        let line = if plateau.shown {
            format!(
                "The smallest level shown to be within {behind:.0} % of {anchor}: {} = {}.",
                plateau.knob, plateau.level
            )
        } else {
            format!("No level smaller than that of {anchor} is shown to be within {behind:.0} % of it.")
        };
        section("The smallest level that suffices", &(paragraph(&line) + &figure(&chart)))
    }

    fn html_evidence(&self) -> String {
        let Some(chart) = self.evidence_chart() else { return String::new() };
        let note = format!(
            "<p class=\"soft\">If a setting is like the current one, its evidence ever reaches what its claim needs with a \
             probability of at most {}, for all settings together, however often one looks.</p>\n",
            escape(&format!("{:.0} %", self.verdict.alpha * 100.0))
        );
        section("Evidence", &(figure(&chart) + &note))
    }

    fn html_over_time(&self) -> String {
        let charts: String = [self.rate_chart(), self.cwnd_chart()].iter().flatten().map(figure).collect();
        if charts.is_empty() { String::new() } else { section("Over time", &charts) }
    }

    /// Which server gave what, where a profile names several.
    fn html_servers(&self) -> String {
        if self.servers.is_empty() {
            return String::new();
        }
        let note = "Servers take turns: what one gives says nothing of the settings.";
        section("Servers", &(list(&self.server_lines()) + &paragraph(note)))
    }

    fn html_path(&self) -> String {
        // Without a text a row is left out.
        let known = |figure: u64, show: fn(u64) -> String| if figure == 0 { String::new() } else { show(figure) };
        let bytes = |bytes: u64| format!("{bytes} bytes");
        let rows = [
            ("RTT, idle", known(self.path.rtt_us, words::milliseconds)),
            ("Largest packet", known(self.path.pmtu, bytes)),
            ("Bandwidth-delay product", known(self.path.bdp_bytes, bytes)),
            (
                "Physical limit",
                self.physical_goodput_bps.map_or_else(
                    || "the link isn't known".to_owned(),
                    |limit| format!("{} of TCP payload", words::rate(Some(limit as f64))),
                ),
            ),
            ("Current settings", self.current.to_string()),
        ];
        section("The path", &definitions(&rows))
    }

    fn html_method(&self) -> String {
        let run = &self.run;
        let noise =
            self.verdict.noise_cv.map_or_else(|| "unknown".to_owned(), |cv| format!("{:.1} % of a trial", cv * 100.0));
        let rows = [
            ("Each trial", run.workload.clone()),
            ("Pause after it", words::duration(run.cool_down_s)),
            (
                "Rounds",
                "every setting once, on a quiet path twice, the current one among them, in random order, one flow at a time"
                    .to_owned(),
            ),
            (
                "Decided by",
                format!(
                    "the random order alone, no matter how the path drifts; false claims in at most {:.0} % of experiments",
                    self.verdict.alpha * 100.0
                ),
            ),
            ("Noise", noise),
            ("Seed", run.seed.to_string()),
            ("In the journal", self.id.clone()),
        ];
        let command = if run.command.is_empty() {
            String::new()
        } else {
            format!("<p>To run the same again:</p>\n<pre><code>{}</code></pre>\n", escape(&run.command))
        };
        section("How it was measured", &(definitions(&rows) + &command))
    }
}

/// A headline in which a figure and its unit stay on one line.
fn whole(text: &str) -> String {
    let words = crate::fold::words(text).map(|(gap, word)| {
        let apart = " ".repeat(gap);
        if word.contains(' ') {
            format!("{apart}<span class=\"whole\">{}</span>", escape(word))
        } else {
            apart + &escape(word)
        }
    });
    words.collect()
}

/// The whole file: the title and the footer are text, the body is HTML.
fn document(title: &str, body: &str, footer: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <footer><p>{}</p></footer>\n</body>\n</html>\n",
        escape(title),
        escape(footer)
    )
}

/// A page of plain parts, in the style of the reports: for what isn't an experiment of [`TuneReport`]'s kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The headline.
    pub title: String,
    /// What stands above it.
    pub about: String,
    /// Paragraphs below it.
    pub text: Vec<String>,
    /// A table's rows, the first one being its head; the first column holds names, the others figures.
    pub table: Vec<Vec<String>>,
    /// Further tables, under headings.
    pub more: Vec<(String, Vec<Vec<String>>)>,
    /// Charts, under headings.
    pub charts: Vec<(String, Chart)>,
    /// What something looked like, moment by moment.
    pub film: Option<Filmstrip>,
    /// The last line.
    pub footer: String,
}

impl Page {
    /// One self-contained file, for light and dark screens, phones and paper.
    #[must_use]
    pub fn to_html(&self) -> String {
        let text: String = self.text.iter().map(|text| paragraph(text)).collect();
        let mut body =
            format!("<header>\n<p>{}</p>\n<h1>{}</h1>\n</header>\n<main>\n", escape(&self.about), escape(&self.title));
        body.push_str(&format!("<section>\n{text}</section>\n"));
        if let Some((head, rows)) = self.table.split_first() {
            body.push_str(&section("In figures", &plain_table(head, rows)));
        }
        for (heading, table) in &self.more {
            if let Some((head, rows)) = table.split_first() {
                body.push_str(&section(heading, &plain_table(head, rows)));
            }
        }
        for (heading, chart) in &self.charts {
            body.push_str(&section(heading, &figure(chart)));
        }
        if let Some(film) = &self.film {
            body.push_str(&section("What it looked like", &film.to_html()));
        }
        body.push_str("</main>\n");
        document(&self.title, &body, &self.footer)
    }
}

/// Pictures of several runs at the same moments, a row for each run.
#[derive(Debug, Clone, PartialEq)]
pub struct Filmstrip {
    /// When, ms after the beginning.
    pub moments_ms: Vec<f64>,
    /// What a run is called, and its picture at each moment: JPEG as base64; nothing where there was none yet.
    pub rows: Vec<(String, Vec<Option<String>>)>,
}

impl Filmstrip {
    fn to_html(&self) -> String {
        let head: String = self.moments_ms.iter().map(|ms| format!("<th>{ms:.0} ms</th>")).collect();
        let cell = |picture: &Option<String>, label: &str, ms: f64| match picture {
            Some(jpeg) if jpeg.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) => format!(
                "<td><img src=\"data:image/jpeg;base64,{jpeg}\" width=\"120\" alt=\"{} after {ms:.0} ms\"></td>",
                escape(label)
            ),
            _ => "<td></td>".to_owned(),
        };
        let row = |(label, pictures): &(String, Vec<Option<String>>)| {
            let cells: String = pictures.iter().zip(&self.moments_ms).map(|(one, ms)| cell(one, label, *ms)).collect();
            format!("<tr><td class=\"name\">{}</td>{cells}</tr>\n", escape(label))
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"scroll\"><table>\n<thead>\n<tr><th class=\"name\"></th>{head}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n\
             </table></div>\n{}",
            paragraph("Loads that were filmed, which costs the browser time: they count nowhere else.")
        )
    }
}

fn plain_table(head: &[String], rows: &[Vec<String>]) -> String {
    let row = |cells: &[String], tag: &str| {
        let cell = |(column, text): (usize, &String)| {
            let class = if column == 0 { " class=\"name\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escape(text))
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let body: String = rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead>\n{}</thead>\n<tbody>\n{body}</tbody>\n</table></div>\n",
        row(head, "th")
    )
}

fn section(title: &str, body: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{body}</section>\n", escape(title))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

fn list(lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<ul>\n{items}</ul>\n")
}

fn definitions(rows: &[(&str, String)]) -> String {
    let rows: String = rows
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)))
        .collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// The chart twice, so that its labels are as readable on a phone; the style shows one of them.
fn figure(chart: &Chart) -> String {
    figure_of(chart, HEIGHT)
}

fn figure_of(chart: &Chart, height: u32) -> String {
    format!(
        "<figure>\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n</figure>\n",
        chart.to_svg(WIDE, height),
        chart.to_svg(NARROW, height)
    )
}
