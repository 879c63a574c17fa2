use std::borrow::Cow;

/// A text as a terminal can be given it, wherever it comes from: control characters but for tab and new line, with which a
/// terminal can be made to do things, and characters that turn the direction of what follows are written as `\u001b`, which
/// JSON reads as the same character. The few colours that this program itself writes (`ESC [ … m`) stay; others could hide text.
///
/// # Example
/// ```
/// assert_eq!(wt_units::harmless("\u{1b}]0;title\u{7}"), r"\u001b]0;title\u0007");
/// assert_eq!(wt_units::harmless("\u{1b}[1;32mfaster\u{1b}[0m"), "\u{1b}[1;32mfaster\u{1b}[0m");
/// ```
///
/// # Source
/// ECMA-48, 5.3 and 8.3.117 (SGR); Unicode Standard Annex 9, 2.1 to 2.4.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_harmful) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = colour(rest);
        if kept > 0 {
            clean.push_str(&rest[..kept]);
            rest = &rest[kept..];
        } else if let Some(c) = rest.chars().next() {
            clean.push_str(&format!("\\u{:04x}", u32::from(c)));
            rest = &rest[c.len_utf8()..];
        }
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

fn is_harmful(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// The same where nothing is to be coloured: no colour stays either.
#[must_use]
pub fn harmless_and_plain(text: &str) -> Cow<'_, str> {
    let clean = harmless(text);
    if clean.contains('\u{1b}') { Cow::Owned(clean.replace('\u{1b}', "\\u001b")) } else { clean }
}

/// The longest line of a message that quotes a file, characters.
const LONGEST_LINE: usize = 200;

/// A message with what it quotes of a file: the end of each line that is longer than 200 characters is left out.
///
/// # Example
/// ```
/// let line = "x".repeat(1000);
/// assert_eq!(wt_units::shortened(&format!("1 | {line}\nno TOML")).chars().count(), 200 + "\nno TOML".len());
/// ```
#[must_use]
pub fn shortened(message: &str) -> String {
    let line = |line: &str| match line.char_indices().nth(LONGEST_LINE) {
        None => line.to_owned(),
        Some(_) => line.chars().take(LONGEST_LINE - 1).chain(['…']).collect(),
    };
    message.split('\n').map(line).collect::<Vec<String>>().join("\n")
}

/// Bold, faint, yellow, green, struck out, and back to normal.
const OWN_COLOURS: [&str; 6] = ["0", "1", "2", "33", "1;32", "9;2"];
/// Those of charts, of the palette of 256, which no terminal shows as black or as white.
const CHART_COLOURS: std::ops::RangeInclusive<u8> = 20..=250;

/// Bytes of the colour of ours that the text begins with; 0 if it doesn't.
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = codes.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    let (code, rest) = codes.split_at(end);
    let of_chart = || code.strip_prefix("38;5;").and_then(|number| number.parse().ok());
    let ours = OWN_COLOURS.contains(&code) || of_chart().is_some_and(|number| CHART_COLOURS.contains(&number));
    if ours && rest.starts_with('m') { 2 + end + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{harmless, harmless_and_plain};
    use proptest::prelude::*;
    use std::borrow::Cow;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, wanted) in [
            ("plain\tand\nnew", "plain\tand\nnew"),
            ("\u{1b}[2J", r"\u001b[2J"),
            ("\u{1b}[1;32mgreen\u{1b}[0m", "\u{1b}[1;32mgreen\u{1b}[0m"),
            ("\u{1b}[38;5;208mline", "\u{1b}[38;5;208mline"),
            // Concealed, black, black of the palette.
            ("\u{1b}[8mhidden", r"\u001b[8mhidden"),
            ("\u{1b}[30mhidden", r"\u001b[30mhidden"),
            ("\u{1b}[38;5;16mhidden", r"\u001b[38;5;16mhidden"),
            ("\u{1b}[31", r"\u001b[31"),
            ("a\r\u{8}b\u{7f}\u{9b}31m", r"a\u000d\u0008b\u007f\u009b31m"),
            ("\u{202e}cba", r"\u202ecba"),
        ] {
            assert_eq!(harmless(text), wanted);
        }
        assert!(matches!(harmless("münchen"), Cow::Borrowed(_)));
        assert_eq!(harmless_and_plain("\u{1b}[1mbold"), r"\u001b[1mbold");
    }

    proptest! {
        #[test]
        fn nothing_but_colours_is_left(text in "(\\PC|[\u{1b}\\[0-9;m\u{7}\u{9b}\r]){0,40}") {
            let clean = harmless(&text).into_owned();
            let colours: usize = clean.matches('\u{1b}').count();
            prop_assert_eq!(clean.matches("\u{1b}[").count(), colours);
            let others = clean.contains(['\u{7}', '\u{9b}', '\r']);
            prop_assert!(!others);
            prop_assert_eq!(harmless(&clean).into_owned(), clean.clone());
        }
    }
}
