/// The text in ASCII, column by column where that goes: for terminals that show nothing else.
#[must_use]
pub fn ascii(text: &str) -> String {
    text.replace(" … ", " - ").chars().flat_map(|c| letter(c).chars().collect::<Vec<_>>()).collect()
}

fn letter(c: char) -> String {
    let plain = match c {
        c if c.is_ascii() => return c.to_string(),
        '─' | '–' | '—' | '−' | '╌' | '⠤' | '━' => "-",
        '│' | '┆' | '┃' => "|",
        '└' | '┤' | '┬' | '┴' | '├' | '┼' | '┌' | '┐' | '┘' => "+",
        '┈' | '░' => ":",
        '═' | '▓' => "=",
        '┊' => "!",
        '║' => "I",
        '█' => "#",
        '▒' => "%",
        '●' => "o",
        '■' => "#",
        '▲' => "^",
        '◆' => "*",
        '○' => "0",
        '▼' => "v",
        '□' => "H",
        '△' => "A",
        '◇' => "&",
        '▽' => "V",
        '×' => "x",
        '÷' => "/",
        '·' => "*",
        '…' => ".",
        '→' => ">",
        '◁' | '‹' => "<",
        '▷' | '›' => ">",
        '“' | '”' | '„' => "\"",
        '’' | '‘' => "'",
        'µ' => "u",
        'ε' => "e",
        '±' => "~",
        '≤' => "<=",
        '≥' => ">=",
        '\u{2800}' | '\u{a0}' | '\u{202f}' | '\u{2009}' => " ",
        '\u{2801}'..='\u{28ff}' => ".",
        _ => "?",
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn nothing_but_ascii_is_left_and_columns_stay() {
        let text = "×1.03 … ×1.30 │⠤⣀● a→b “x” cc=wt…1";
        assert_eq!(ascii(text), "x1.03 - x1.30 |-.o a>b \"x\" cc=wt.1");
        assert_eq!(ascii(text).len(), text.chars().count());
        assert!(ascii("ä漢").is_ascii());
        assert_eq!(ascii("█▒▓░"), "#%=:");
    }
}
