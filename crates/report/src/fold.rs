//! Lines that fit a terminal: prose, rows of tables and commands, each broken so that it can still be read, and copied.

use std::borrow::Cow;

/// Narrower than this nothing is broken: there would be a word a line.
const NARROWEST: usize = 40;
/// With less room than this the last cell of a row isn't continued below itself.
const LAST_CELL: usize = 30;
/// How a line begins that is to be copied into a shell.
const COMMANDS: [&str; 6] = ["sudo ", "windtunnel ", "ip ", "sysctl ", "tc ", "ethtool "];

/// The text with its lines broken at blanks where they are longer than `width` columns. What follows is indented like the last cell
/// of a table's row, else by two more than the line itself; a figure stays with its unit, and a command is continued with a backslash, so that a shell takes it as it
/// was. Pictures made of characters stay as they are, and so does a single word that is too long, and a command that is in lines already.
#[must_use]
pub fn fold(text: &str, width: usize) -> Cow<'_, str> {
    if width < NARROWEST || text.lines().all(|line| columns(line) <= width) {
        return Cow::Borrowed(text);
    }
    let mut in_command = false;
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            // Broken again, it would be two commands: a shell sees no backslash any more at the end of its line.
            let (goes_on, continued) = (line.ends_with(" \\"), in_command);
            in_command = goes_on;
            if goes_on || continued { line.to_owned() } else { fold_line(line, width) }
        })
        .collect();
    Cow::Owned(lines.join("\n"))
}

fn fold_line(line: &str, width: usize) -> String {
    if columns(line) <= width || line.chars().any(is_drawn) {
        return line.to_owned();
    }
    let trimmed = line.trim_start();
    let lead = line.len() - trimmed.len();
    if COMMANDS.iter().any(|begin| trimmed.starts_with(begin)) {
        return command_lines(trimmed, width, lead).join("\n");
    }
    let indent = last_cell(line, width).unwrap_or(lead + 2);
    let mut folded = String::new();
    let mut used = 0;
    for (gap, word) in words(line) {
        let length = columns(word);
        // A word that is too long for the last cell alone begins further left.
        let below = indent.min(width.saturating_sub(length)).max(lead);
        let helps = used > indent || (below < used + gap && below + length <= width);
        if used + gap + length > width && helps {
            used = below;
            folded.push('\n');
            folded.push_str(&" ".repeat(used));
        } else {
            folded.push_str(&" ".repeat(gap));
            used += gap;
        }
        folded.push_str(word);
        used += length;
    }
    folded
}

/// A command in lines of at most `width` columns, indented; all but the last end with a backslash. It is broken at blanks outside
/// of quotes only: a line is longer where a word and its backslash are.
#[must_use]
pub fn command_lines(command: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![" ".repeat(indent)];
    let mut quote = None;
    let mut broken = command.split(|c: char| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        c == ' ' && quote.is_none()
    });
    let mut used = indent;
    if let Some(first) = broken.next() {
        lines[0].push_str(first);
        used += columns(first);
    }
    for word in broken {
        let length = columns(word);
        if let Some(line) = lines.last_mut() {
            // Room for what follows it: a blank and a backslash.
            if used + 1 + length + 2 <= width {
                line.push(' ');
                line.push_str(word);
                used += 1 + length;
                continue;
            }
            line.push_str(" \\");
        }
        lines.push(format!("{}{word}", " ".repeat(indent + 4)));
        used = indent + 4 + length;
    }
    lines
}

/// Rows in columns as wide as their widest cells, two blanks apart; cells of the columns in `right` end together.
#[must_use]
pub fn table(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let all: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).collect();
    some_columns(rows, right, &all)
}

/// The same in tables below each other where all columns are wider than `width` together; each has the first column again.
#[must_use]
pub fn tables(rows: &[Vec<String>], right: &[usize], width: usize) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut parts: Vec<Vec<usize>> = vec![vec![0]];
    for at in 1..count {
        let last = parts.last().map_or(&[][..], Vec::as_slice);
        let used: usize = last.iter().map(|at| widest(rows, *at) + 2).sum();
        if last.len() > 1 && used + widest(rows, at) > width {
            parts.push(vec![0]);
        }
        if let Some(part) = parts.last_mut() {
            part.push(at);
        }
    }
    let parts = parts.iter().map(|part| some_columns(rows, right, part));
    parts.collect::<Vec<_>>().join(&[String::new()][..])
}

fn widest(rows: &[Vec<String>], at: usize) -> usize {
    rows.iter().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max().unwrap_or(0)
}

fn some_columns(rows: &[Vec<String>], right: &[usize], chosen: &[usize]) -> Vec<String> {
    let chosen: Vec<(usize, usize)> = chosen.iter().map(|at| (*at, widest(rows, *at))).collect();
    let line = |row: &Vec<String>| {
        let cell = |(at, width): &(usize, usize)| {
            let cell = row.get(*at).map_or("", String::as_str);
            let blank = " ".repeat(width - columns(cell));
            if right.contains(at) { format!("{blank}{cell}") } else { format!("{cell}{blank}") }
        };
        let cells: Vec<String> = chosen.iter().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Where the last cell of a table's row begins, if enough room is left for it to be read there.
fn last_cell(line: &str, width: usize) -> Option<usize> {
    let mut at = 0;
    let mut last = None;
    for (gap, word) in words(line) {
        at += gap;
        if gap >= 2 && at > gap && at + LAST_CELL <= width {
            last = Some(at);
        }
        at += columns(word);
    }
    last
}

/// Each word with the blanks before it; a figure and its unit are one word.
pub(crate) fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let word = rest.trim_start_matches(' ');
        let gap = rest.len() - word.len();
        let mut end = word.find(' ').unwrap_or(word.len());
        while let Some(next) = word[end..].strip_prefix(' ').filter(|next| !next.starts_with(' ')) {
            let next = &next[..next.find(' ').unwrap_or(next.len())];
            if next.is_empty() || !belong(&word[..end], next) {
                break;
            }
            end += 1 + next.len();
        }
        rest = &word[end..];
        (!word.is_empty()).then(|| (gap, &word[..end]))
    })
}

/// Whether a line may not be broken between these words: `35 : 1`, `1.2 %`, `49 s`.
fn belong(before: &str, word: &str) -> bool {
    const UNITS: [&str; 18] = [
        "%", "s", "ms", "µs", "min", "h", "B", "kB", "MB", "bytes", "kbit/s", "Mbit/s", "kB/s", "MB/s", "round",
        "rounds", "trial", "trials",
    ];
    let ratio = word == ":" || before.ends_with(" :");
    let figure = before.ends_with(|c: char| c.is_ascii_digit());
    let unit = word.trim_end_matches(['.', ',', ';', ':', ')']);
    figure && UNITS.contains(&unit) || ratio
}

/// How many columns a text takes: what colours it takes none.
fn columns(text: &str) -> usize {
    let mut in_colour = false;
    let shown = |c: &char| {
        let ends = in_colour && *c == 'm';
        in_colour = (in_colour && !ends) || *c == '\x1b';
        !in_colour && !ends
    };
    text.chars().filter(shown).count()
}

/// Whether charts are drawn with it: boxes, blocks and dots.
fn is_drawn(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_blanks_and_nothing_else_changes() {
        let text = "Nothing is claimed from two series of four numbers each: five at least are needed.";
        let folded = fold(text, 50);
        assert_eq!(folded, "Nothing is claimed from two series of four numbers\n  each: five at least are needed.");
        assert_eq!(folded.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
        assert!(matches!(fold(text, 90), Cow::Borrowed(_)) && matches!(fold(text, 20), Cow::Borrowed(_)));
        let coloured = "\x1b[1mNothing\x1b[0m is claimed from two series of four num";
        assert_eq!(fold(coloured, 50), coloured, "colours take no room");
    }

    #[test]
    fn the_last_cell_of_a_row_goes_on_below_itself() {
        let row = "rwin=14400 (10x1440)  half the bandwidth-delay product, too small if the model is right";
        assert_eq!(
            fold(row, 60),
            "rwin=14400 (10x1440)  half the bandwidth-delay product, too\n                      small if the model is right"
        );
        let file = "rwin                      16777216              /etc/sysctl.d/90-windtunnel.conf:2";
        assert_eq!(
            fold(file, 80),
            "rwin                      16777216\n                                              /etc/sysctl.d/90-windtunnel.conf:2"
        );
        let figures = "linux         103.1/s       -     -     -     -       83.3  19.5 MiB       0    0.03 ms";
        assert!(fold(figures, 60).lines().all(|line| line.len() <= 60), "{}", fold(figures, 60));
        let picture = "  50 │⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤";
        assert_eq!(fold(picture, 50), picture);
    }

    #[test]
    fn a_figure_and_its_unit_stay_together() {
        let parts: Vec<&str> = words("evidence 54 : 1 of 35 : 1, 1.2 % in 49 s.").map(|(_, word)| word).collect();
        assert_eq!(parts, ["evidence", "54 : 1", "of", "35 : 1,", "1.2 %", "in", "49 s."]);
        let gaps: Vec<(usize, &str)> = words("  a   5  % ").collect();
        assert_eq!(gaps, [(2, "a"), (3, "5"), (2, "%")]);
    }

    #[test]
    fn a_tables_columns_are_as_wide_as_they_need_be() {
        let rows = [["a", "1", "x"], ["long", "22", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows, &[1]), ["a      1  x", "long  22"]);
        assert_eq!(tables(&rows, &[1], 80), table(&rows, &[1]));
        assert_eq!(tables(&rows, &[1], 10), ["a      1", "long  22", "", "a     x", "long"]);
    }

    #[test]
    fn a_command_is_continued_as_a_shell_takes_it() {
        let command =
            "  sudo windtunnel tune --lab adsl --levels 'rwin=4x, 16x' --budget '60 trials' --comment 'new modem'";
        let folded = fold(command, 50);
        assert_eq!(
            folded,
            "  sudo windtunnel tune --lab adsl --levels \\\n      'rwin=4x, 16x' --budget '60 trials' \\\n      --comment \
             'new modem'"
        );
        let joined = folded.replace("\\\n", "");
        assert_eq!(joined.split_whitespace().collect::<Vec<_>>(), command.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_command_in_lines_stays_one_command_however_long_its_words_are() {
        let long = |length: usize| {
            let word = "j".repeat(length);
            format!("windtunnel report {word} --full --comment 'a b {word}'")
        };
        for width in [40, 80] {
            for command in (width - 12..=width + 12).map(long) {
                let folded = command_lines(&command, width, 2).join("\n");
                for text in [fold(&folded, width), fold(&command, width)] {
                    let (lines, last) = text.rsplit_once('\n').unwrap();
                    assert!(lines.lines().all(|line| line.ends_with(" \\") && line.trim() != "\\"), "{text}");
                    assert!(
                        last.trim_start().starts_with("--comment") || last.trim_start().starts_with("'a b"),
                        "{text}"
                    );
                    assert_eq!(
                        text.replace("\\\n", "").split_whitespace().collect::<Vec<_>>(),
                        command.split(' ').collect::<Vec<_>>()
                    );
                }
            }
        }
    }
}
