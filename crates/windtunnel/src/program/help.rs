//! What stands behind the options in `--help`: examples that a shell takes as they are shown, and footnotes.

use crate::cli::help_lines::lines;
use clap::Command;

/// The widest help, columns: longer lines are hard to read.
const WIDEST: usize = 100;

/// Clap breaks lines at blanks, so what it is to leave alone has none until it is [`printed`].
const NO_BREAK: &str = "\u{a0}";

/// Help as it is printed.
pub(crate) fn printed(help: &str) -> String {
    help.replace(NO_BREAK, " ")
}

/// The program's command line with its help in lines of so many columns. Clap breaks examples as it breaks prose, and pasted they
/// would be other commands; so they are broken here, and clap finds nothing left to break.
pub(crate) fn fitted(program: Command, columns: usize) -> Command {
    let width = columns.min(WIDEST);
    broken(program.term_width(width), width)
}

fn broken(command: Command, width: usize) -> Command {
    let behind = command.get_after_help().map(ToString::to_string);
    let command = match behind {
        Some(text) => {
            let example =
                |line: &String| if line.starts_with(' ') { line.replace(' ', NO_BREAK) } else { line.clone() };
            command.after_help(lines(&text, width).iter().map(example).collect::<Vec<_>>().join("\n"))
        }
        None => command,
    };
    command.mut_subcommands(|below| broken(below, width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Cli, groups};
    use clap::CommandFactory as _;

    /// The lines of a text without those that a backslash or a comment of its own makes of one, each with single blanks.
    fn examples(text: &str) -> Vec<String> {
        let joined = text.replace("\\\n", " ");
        let indented = joined.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  # "));
        let command = |line: &str| line.split_once("  #").map_or(line, |(command, _)| command).to_owned();
        let words = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        indented.map(|line| words(command(line))).collect()
    }

    /// Every command below this one, itself included, with its name in full.
    fn walk(command: &mut Command, name: &str, on: &mut dyn FnMut(&mut Command, &str)) {
        on(command, name);
        for below in command.get_subcommands_mut() {
            let name = format!("{name} {}", below.get_name());
            walk(below, &name, on);
        }
    }

    #[test]
    fn no_example_of_any_commands_help_is_broken_without_a_backslash() {
        let mut written = std::collections::BTreeMap::new();
        walk(&mut groups::grouped(Cli::command()), "windtunnel", &mut |command, name| {
            let behind = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            written.insert(name.to_owned(), examples(&behind));
        });
        assert!(written.values().map(Vec::len).sum::<usize>() > 150, "{written:#?}");
        for columns in [60, 80, 100] {
            let mut program = fitted(groups::grouped(Cli::command()), columns);
            program.build();
            walk(&mut program, "windtunnel", &mut |command, name| {
                let Some(wanted) = written.get(name) else { return };
                let help = printed(&command.render_long_help().to_string());
                let Some((_, behind)) = help.split_once("\nExamples:\n") else {
                    assert!(wanted.is_empty(), "{name} has examples under no heading: {help}");
                    return;
                };
                assert_eq!(examples(behind), *wanted, "{name} at {columns} columns: {behind}");
                let wide =
                    behind.lines().find(|line| line.chars().count() > columns && line.trim_start().contains(' '));
                assert!(columns < 80 || wide.is_none(), "{name} at {columns} columns: {wide:?}");
            });
        }
    }

    #[test]
    fn a_comment_that_has_no_room_stands_above_its_command_and_prose_is_joined() {
        let text = "Examples:\n  ip route change default via 192.0.2.1   # every program to this route\n\nOne,\ntwo.";
        let wanted = [
            "Examples:",
            "  # every program to this",
            "  # route",
            "  ip route change \\",
            "      default via \\",
            "      192.0.2.1",
            "",
            "One, two.",
        ];
        assert_eq!(lines(text, 26), wanted);
        assert_eq!(lines(text, 80)[1], "  ip route change default via 192.0.2.1   # every program to this route");
    }
}
