//! A path as a picture: hosts, routers, links with their figures.

use crate::Scenario;
use crate::scenario::{Direction, Link, QueueBound};
use std::fmt::Write as _;
use wt_units::format_duration;

/// Width that a link with the host or router behind it has at least.
const STEP: usize = 216;
/// Room for one letter, about.
const LETTER: usize = 7;
/// From the picture's edge to the first host's middle.
const EDGE: usize = 60;
/// The height of hosts' middles.
const LINE: usize = 96;

impl Scenario {
    /// The path as a picture, SVG: hosts, routers, links with their figures. Links in a row that are alike become one,
    /// with their number.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg(self)
    }
}

/// The picture as SVG. Links in a row that are alike become one, with their number.
fn svg(scenario: &Scenario) -> String {
    let groups = groups(scenario);
    let notes: Vec<String> = groups.iter().flat_map(|(link, _)| notes(link)).collect();
    let longest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let texts: Vec<String> = groups.iter().flat_map(|(link, count)| texts(link, *count)).collect();
    let step = STEP.max(LETTER * longest(&mut texts.iter()) + 20);
    // A title of so many letters needs so much room, at 9 units for the average bold letter.
    let title_width = 2 * EDGE + 9 * scenario.title.chars().count();
    let notes_width = 2 * EDGE + LETTER * longest(&mut notes.iter());
    let width = (2 * EDGE + step * groups.len()).max(title_width).max(notes_width);
    let height = 190 + 16 * notes.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{EDGE}\" y=\"24\" font-size=\"15\" font-weight=\"bold\" fill=\"#222\">{title}</text>\n",
        title = escaped(&scenario.title)
    );
    for (place, (link, count)) in groups.iter().enumerate() {
        draw_link(&mut svg, EDGE + step * place, step, link, *count);
    }
    for (place, note) in notes.iter().enumerate() {
        text(&mut svg, EDGE, LINE + 74 + 16 * place, "start", note);
    }
    for (place, name) in nodes(&groups).into_iter().enumerate() {
        node(&mut svg, EDGE + step * place, name.as_deref());
    }
    svg + "</svg>\n"
}

/// Links with how many of them are alike in a row; a host on the way begins a new row.
fn groups(scenario: &Scenario) -> Vec<(&Link, usize)> {
    let mut groups: Vec<(&Link, usize)> = Vec::new();
    for link in &scenario.links {
        let alike = |known: &Link| {
            (known.mtu, known.icmp, known.half_duplex, &known.framing_name, &known.hop)
                == (link.mtu, link.icmp, link.half_duplex, &link.framing_name, &link.hop)
                && scenario.described(known) == scenario.described(link)
        };
        match groups.last_mut() {
            Some((known, count)) if link.hop.host.is_none() && alike(known) => *count += 1,
            _ => groups.push((link, 1)),
        }
    }
    groups
}

/// The hosts' names in order; `None` for a router.
fn nodes(groups: &[(&Link, usize)]) -> Vec<Option<String>> {
    let inner = groups.iter().skip(1).map(|(link, _)| link.hop.host.as_ref().map(|host| host.name.clone()));
    [Some("client".to_owned())].into_iter().chain(inner).chain([Some("server".to_owned())]).collect()
}

/// What there is no room for at a link: what the hop before it does, and what packets pass before its queues.
fn notes(link: &Link) -> Vec<String> {
    let hop = link.hop.describe().into_iter().map(|what| format!("before {}: {what}", link.name));
    let way = |arrow: &'static str, direction: &Direction| -> Vec<String> {
        direction.described_before().map(|stage| format!("{arrow} {}: {stage}", link.name)).collect()
    };
    hop.chain(way("←", &link.down)).chain(way("→", &link.up)).collect()
}

/// What stands at a link, from top to bottom.
fn texts(link: &Link, count: usize) -> [String; 5] {
    let times = if count > 1 { format!(" × {count}") } else { String::new() };
    let mtu = if link.mtu.get() < 65_535 { format!(", MTU {}", link.mtu.get()) } else { String::new() };
    let silent = if link.icmp { "" } else { ", silent" };
    [
        format!("{}{times}{mtu}{silent}", link.name),
        format!("← {}", figures(&link.down)),
        format!("→ {}", figures(&link.up)),
        format!("← {}", queue(&link.down)),
        format!("→ {}", queue(&link.up)),
    ]
}

fn draw_link(svg: &mut String, from: usize, step: usize, link: &Link, count: usize) {
    let (to, middle) = (from + step, from + step / 2);
    let dash = if link.icmp { "" } else { " stroke-dasharray=\"6 4\"" };
    let _ = writeln!(
        svg,
        "<line x1=\"{from}\" y1=\"{LINE}\" x2=\"{to}\" y2=\"{LINE}\" stroke=\"#36c\" stroke-width=\"3\"{dash}/>"
    );
    let heights = [LINE - 46, LINE - 28, LINE - 12, LINE + 22, LINE + 38];
    for (height, what) in heights.into_iter().zip(texts(link, count)) {
        text(svg, middle, height, "middle", &what);
    }
}

fn figures(direction: &Direction) -> String {
    format!("{}, {}", direction.rate.human(), format_duration(direction.delay))
}

fn queue(direction: &Direction) -> String {
    let queue = match direction.queue {
        QueueBound::Bytes(bytes) => format!("queue {bytes}"),
        QueueBound::Packets(packets) => format!("queue {packets} packets"),
    };
    let loss = if direction.loss.get() > 0.0 { format!(", loss {}", direction.loss) } else { String::new() };
    queue + &loss
}

fn node(svg: &mut String, at: usize, host: Option<&str>) {
    match host {
        Some(name) => {
            let width = (LETTER * name.chars().count() + 12).max(64);
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"28\" rx=\"4\" fill=\"#eef\" stroke=\"#36c\"/>",
                at.saturating_sub(width / 2),
                LINE - 14
            );
            text(svg, at, LINE + 4, "middle", name);
        }
        None => {
            let _ = writeln!(
                svg,
                "<circle cx=\"{at}\" cy=\"{LINE}\" r=\"8\" fill=\"#fff\" stroke=\"#36c\" stroke-width=\"2\"/>"
            );
        }
    }
}

fn text(svg: &mut String, x: usize, y: usize, anchor: &str, what: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"#222\">{}</text>", escaped(what));
}

/// Text as it may stand in XML, which knows no control characters.
fn escaped(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c }).collect();
    plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn every_preset_is_drawn_with_its_hosts_and_alike_links_once() {
        for name in presets::names() {
            let scenario = presets::load(name).expect("presets are good");
            let svg = svg(&scenario);
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
            assert!(svg.contains(">client<") && svg.contains(">server<"), "{name}");
            assert_eq!(svg.matches("<text ").count(), svg.matches("</text>").count());
        }
        let market = svg(&presets::load("market-data").expect("a preset"));
        // Nine alike, the one that loses, ten alike.
        assert_eq!((market.matches("<line ").count(), market.matches("× ").count()), (3, 2), "{market}");
        assert!(svg(&presets::load("cdn-chain").expect("a preset")).contains(">edge<"));
    }

    /// Where texts end on the right, if each letter takes so much room, and the picture's width.
    fn ends(svg: &str) -> (Vec<(f64, f64)>, f64) {
        let number = |line: &str, name: &str| -> f64 {
            line.split(&format!(" {name}=\""))
                .nth(1)
                .and_then(|rest| rest.split('"').next()?.parse().ok())
                .unwrap_or(0.0)
        };
        let texts = svg.lines().filter(|line| line.starts_with("<text ") && !line.contains("bold"));
        let place = |line: &str| {
            let letters = line.split('>').nth(1).map_or(0, |rest| rest.trim_end_matches("</text").chars().count());
            let wide = 6.2 * letters as f64;
            let left = number(line, "x") - if line.contains("middle") { wide / 2.0 } else { 0.0 };
            (left, left + wide)
        };
        (texts.map(place).collect(), number(svg.lines().next().unwrap_or(""), "width"))
    }

    #[test]
    fn whatever_is_written_fits_and_stays_xml() {
        let long = "a-link-with-a-name-that-is-longer-than-most-of-them-are";
        let direction = "{ rate = \"8mbit\", delay = \"10ms\", queue_packets = 100 }";
        let link = |name: &str| format!("[[link]]\nname = \"{name}\"\ndown = {direction}\nup = {direction}\n");
        let other = link(&format!("{long}-too")).replace("8mbit", "9mbit");
        let text = format!("title = \"a\\u0001b\\u001b[2Jc\"\nsource = \"s\"\n{}{other}", link(long));
        let picture = svg(&Scenario::parse("odd", &text).expect("a scenario"));
        assert!(!picture.chars().any(|c| c.is_control() && c != '\n') && picture.contains("a b"), "{picture}");
        let (texts, width) = ends(&picture);
        assert!(texts.iter().all(|(left, right)| *left >= 0.0 && *right <= width), "{picture}");
        let names: Vec<&(f64, f64)> = texts.iter().filter(|(left, right)| right - left > 300.0).collect();
        assert!(names.len() == 2 && names[0].1 < names[1].0, "names of two links don't touch: {picture}");
        for name in presets::names() {
            let (texts, width) = ends(&svg(&presets::load(name).expect("presets are good")));
            assert!(texts.iter().all(|(_, right)| *right <= width), "{name}");
        }
        let market = svg(&presets::load("market-data").expect("a preset"));
        assert!(market.contains("loss: kind by-size, above 512"), "{market}");
    }
}
