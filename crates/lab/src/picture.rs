//! A path as a picture: hosts, routers, links with their figures.

use crate::Scenario;
use crate::scenario::{Direction, Link, QueueBound};
use std::fmt::Write as _;
use wt_units::format_duration;

/// Width of a link with the host or router behind it.
const STEP: usize = 216;
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
    let notes: usize = groups.iter().map(|group| group.0.hop.describe().len()).sum();
    // A title of so many letters needs so much room, at 9 units for the average bold letter.
    let title_width = 2 * EDGE + 9 * scenario.title.chars().count();
    let (width, height) = ((2 * EDGE + STEP * groups.len()).max(title_width), 190 + 16 * notes);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{EDGE}\" y=\"24\" font-size=\"15\" font-weight=\"bold\" fill=\"#222\">{title}</text>\n",
        title = escaped(&scenario.title)
    );
    let mut note = LINE + 74;
    for (place, (link, count)) in groups.iter().enumerate() {
        let from = EDGE + STEP * place;
        draw_link(&mut svg, from, link, *count);
        for what in link.hop.describe() {
            text(&mut svg, EDGE, note, "start", &format!("before {}: {what}", link.name));
            note += 16;
        }
    }
    for (place, name) in nodes(&groups).into_iter().enumerate() {
        node(&mut svg, EDGE + STEP * place, name.as_deref());
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

fn draw_link(svg: &mut String, from: usize, link: &Link, count: usize) {
    let (to, middle) = (from + STEP, from + STEP / 2);
    let dash = if link.icmp { "" } else { " stroke-dasharray=\"6 4\"" };
    let _ = writeln!(
        svg,
        "<line x1=\"{from}\" y1=\"{LINE}\" x2=\"{to}\" y2=\"{LINE}\" stroke=\"#36c\" stroke-width=\"3\"{dash}/>"
    );
    let times = if count > 1 { format!(" × {count}") } else { String::new() };
    let mtu = if link.mtu.get() < 65_535 { format!(", MTU {}", link.mtu.get()) } else { String::new() };
    let silent = if link.icmp { "" } else { ", silent" };
    text(svg, middle, LINE - 46, "middle", &format!("{}{times}{mtu}{silent}", link.name));
    text(svg, middle, LINE - 28, "middle", &format!("← {}", figures(&link.down)));
    text(svg, middle, LINE - 12, "middle", &format!("→ {}", figures(&link.up)));
    text(svg, middle, LINE + 22, "middle", &format!("← {}", queue(&link.down)));
    text(svg, middle, LINE + 38, "middle", &format!("→ {}", queue(&link.up)));
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
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"64\" height=\"28\" rx=\"4\" fill=\"#eef\" stroke=\"#36c\"/>",
                at - 32,
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

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\n', " ")
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
}
