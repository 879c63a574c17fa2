//! The grammar of stacks.

use super::layer::{self as l, Coding, Layer};
use super::word::{Body, ETHERNET, Group, HDLC, LinkWord, Medium, Needs, WORDS, Word};
use super::{Framing, Link};

/// The longest stack, in words: more is a mistake, and every word costs time per packet.
const MAX_WORDS: usize = 24;

/// What is wrong with a stack that somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// There are no words in it.
    #[error("a stack needs at least one word, such as ethernet or pppoe-llc-bridged-fcs-atm")]
    Empty,
    /// It has more words than any real stack.
    #[error("a stack has at most {MAX_WORDS} words")]
    TooLong,
    /// There is no such word.
    #[error("\"{word}\" is no layer that I know{}", did_you_mean(.nearest))]
    UnknownWord {
        /// What was written.
        word: String,
        /// The nearest words there are.
        nearest: Vec<String>,
    },
    /// A header of the packet itself was written, or one that carries no tunnel.
    #[error(
        "\"{word}\" carries no tunnel here: a stack begins below the packet's own IP header and goes outwards, \
         as in wireguard+ip6+ethernet"
    )]
    OwnHeader {
        /// What was written.
        word: String,
    },
    /// A tunnel was written outside the link that carries it.
    #[error("\"{link}\" can't be inside \"{tunnel}\": a stack goes from the packet outwards, the tunnel first")]
    LinkInTunnel {
        /// The word of the link.
        link: String,
        /// The tunnel after it.
        tunnel: String,
    },
    /// A number is missing or out of range.
    #[error("{word} needs a whole number from {min} to {max}, as in {word}={example}{}", but_was(.text))]
    BadNumber {
        /// The word.
        word: &'static str,
        /// What was written instead, empty if nothing.
        text: String,
        /// The least that is allowed.
        min: i32,
        /// The most that is allowed.
        max: i32,
        /// One that is allowed.
        example: i32,
    },
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() {
        "; `windtunnel overhead --list` shows all".to_owned()
    } else {
        format!(" (did you mean {}?)", nearest.join(" or "))
    }
}

fn but_was(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", not \"{text}\"") }
}

/// A word as it was written, with its number.
struct WrittenWord {
    word: &'static Word,
    number: i32,
}

impl WrittenWord {
    fn canonical(&self) -> String {
        match self.word.body {
            Body::Overhead => format!("overhead={}", self.number),
            Body::Mpu => format!("mpu={}", self.number),
            Body::Tunnel(..) | Body::Link(_) => self.word.name.to_owned(),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Framing, FramingError> {
    let words = read(text)?;
    let first_link = words.iter().rposition(|w| matches!(w.word.body, Body::Tunnel(..))).map_or(0, |last| last + 1);
    let layers = tunnel_layers(&words[..first_link])?;
    let link = link(&words[first_link..]);
    let text = words.iter().map(WrittenWord::canonical).collect::<Vec<_>>().join("+");
    Ok(Framing::new(text, layers, link))
}

/// Splits the text into words and looks each up.
fn read(text: &str) -> Result<Vec<WrittenWord>, FramingError> {
    let lower = text.to_ascii_lowercase();
    let mut pieces = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '+' | '/' | ',' | '='))
        .filter(|piece| !piece.is_empty())
        .peekable();
    let mut words = Vec::new();
    while let Some(piece) = pieces.next() {
        if words.len() == MAX_WORDS {
            return Err(FramingError::TooLong);
        }
        let word = match piece {
            "overhead" => WORDS.iter().find(|word| word.body == Body::Overhead),
            "mpu" => WORDS.iter().find(|word| word.body == Body::Mpu),
            _ => WORDS.iter().find(|word| word.is(piece)),
        };
        let Some(word) = word else {
            return Err(unknown(piece));
        };
        let number = match word.body {
            Body::Overhead => number("overhead", pieces.next(), -64, 256, 44)?,
            Body::Mpu => number("mpu", pieces.next(), 0, 256, 84)?,
            Body::Tunnel(..) | Body::Link(_) => 0,
        };
        words.push(WrittenWord { word, number });
    }
    if words.is_empty() { Err(FramingError::Empty) } else { Ok(words) }
}

fn number(word: &'static str, text: Option<&str>, min: i32, max: i32, example: i32) -> Result<i32, FramingError> {
    let text = text.unwrap_or_default();
    text.parse().ok().filter(|number| (min..=max).contains(number)).ok_or_else(|| FramingError::BadNumber {
        word,
        text: text.to_owned(),
        min,
        max,
        example,
    })
}

fn unknown(piece: &str) -> FramingError {
    if matches!(piece, "tcp" | "icmp" | "payload") {
        return FramingError::OwnHeader { word: piece.to_owned() };
    }
    let names = WORDS.iter().flat_map(|word| std::iter::once(&word.name).chain(word.aliases)).copied();
    FramingError::UnknownWord { word: piece.to_owned(), nearest: wt_units::nearest(piece, names) }
}

/// The layers of the tunnels, from the packet outwards, with the carriers that go without saying.
fn tunnel_layers(words: &[WrittenWord]) -> Result<Vec<Layer>, FramingError> {
    let mut layers = Vec::new();
    let mut needs = Needs::Nothing;
    for (index, written) in words.iter().enumerate() {
        let word = written.word;
        match word.body {
            Body::Tunnel(own, next) => {
                if word.group == Group::Carrier && needs == Needs::Nothing {
                    return Err(FramingError::OwnHeader { word: word.name.to_owned() });
                }
                let is_udp = own == [l::UDP];
                if needs == Needs::Udp && !is_udp {
                    layers.push(l::UDP);
                    needs = Needs::Ip;
                }
                // ESP right below what needs an IP packet is transport mode: no IP header between them.
                let is_esp = own.iter().any(|layer| layer.name == l::ESP_GCM.name);
                let satisfied = own == [l::IP4] || own == [l::IP6] || is_udp || is_esp;
                if needs == Needs::Ip && !satisfied {
                    layers.push(l::IP4);
                }
                layers.extend_from_slice(own);
                needs = next;
            }
            Body::Link(link) if needs == Needs::Nothing && link.mpu.is_none() && link.coding.is_none() => {
                layers.extend_from_slice(link.adds);
            }
            Body::Link(_) | Body::Overhead | Body::Mpu => {
                let is_tunnel = |w: &&WrittenWord| matches!(w.word.body, Body::Tunnel(..));
                let tunnel = words[index..].iter().find(is_tunnel).map_or(String::new(), WrittenWord::canonical);
                return Err(FramingError::LinkInTunnel { link: written.canonical(), tunnel });
            }
        }
    }
    match needs {
        Needs::Nothing => {}
        Needs::Ip => layers.push(l::IP4),
        Needs::Udp => layers.extend([l::UDP, l::IP4]),
    }
    Ok(layers)
}

/// The link, with the medium that goes without saying.
fn link(words: &[WrittenWord]) -> Link {
    let mut link = Link { layers: Vec::new(), mpu: 0, coding: Coding::Plain };
    let mut wanted = Medium::Itself;
    let mut has_medium = false;
    for written in words {
        match written.word.body {
            Body::Link(word) => {
                link.apply(&word);
                match word.medium {
                    Medium::Itself => has_medium = true,
                    Medium::Any => {}
                    // PPP inside PPPoE needs no serial line.
                    Medium::Hdlc if wanted == Medium::Ethernet => {}
                    medium => wanted = medium,
                }
            }
            Body::Overhead => {
                link.layers = vec![Layer::anonymous(written.number)];
                has_medium = true;
            }
            Body::Mpu => link.mpu = u64::from(written.number.unsigned_abs()),
            Body::Tunnel(..) => {}
        }
    }
    if !has_medium {
        match wanted {
            Medium::Itself | Medium::Any => {}
            Medium::Ethernet => link.apply(&ETHERNET),
            Medium::Hdlc => link.apply(&HDLC),
        }
    }
    if link.layers.contains(&l::PPPOE) {
        link.layers.retain(|layer| *layer != l::PPP);
    }
    link.layers.sort_by_key(|layer| layer.rank);
    link
}

impl Link {
    fn apply(&mut self, word: &LinkWord) {
        if word.resets {
            self.layers.clear();
        }
        self.layers.extend_from_slice(word.adds);
        self.mpu = word.mpu.unwrap_or(self.mpu);
        self.coding = word.coding.unwrap_or(self.coding);
    }
}
