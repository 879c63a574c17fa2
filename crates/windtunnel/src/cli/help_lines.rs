//! What stands behind a command's options, in lines: for `--help` and manual pages.

/// Indented lines are examples; others are prose, of which lines one after the other are one paragraph.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut().filter(|_| is_open && is_prose) {
            Some(paragraph) => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            None if is_prose => lines.push(line.to_owned()),
            None => lines.extend(example(line, width)),
        }
        is_open = is_prose;
    }
    lines
}

/// An example in lines that fit. A comment behind it stands above it where there is no room for both.
fn example(line: &str, width: usize) -> Vec<String> {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    if line.chars().count() <= width {
        return vec![line.to_owned()];
    }
    let (command, comment) = trimmed.split_once("  #").map_or((trimmed, ""), |(command, comment)| (command, comment));
    let mut lines = Vec::new();
    for word in comment.split_whitespace() {
        match lines.last_mut().filter(|line: &&mut String| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("{}# {word}", " ".repeat(indent))),
        }
    }
    lines.extend(wt_report::command_lines(command.trim_end(), width, indent));
    lines
}
