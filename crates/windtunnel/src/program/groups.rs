//! The commands, grouped by what people want to do: the list in `windtunnel --help`.
//!
//! Only the grouping and the order stand here. Each line is the first line of the command's own help, so the two can't
//! differ; a test keeps every command in exactly one group.

use clap::Command;
use std::fmt::Write as _;

/// Commands that people use for one purpose.
struct Group {
    /// What they are for.
    heading: &'static str,
    /// Their names, the most used first.
    commands: &'static [&'static str],
}

/// All groups, in the order of the list.
const GROUPS: [Group; 6] = [
    Group { heading: "Measure", commands: &["tune", "test", "traffic", "lab", "stacks", "cdn", "page", "fleet"] },
    Group { heading: "Inspect", commands: &["path", "mtu", "trace", "first-window", "watch", "doctor"] },
    Group { heading: "Analyse", commands: &["analyse", "report", "compare", "journal", "metrics", "self-test"] },
    Group { heading: "Model", commands: &["predict", "replay", "calibrate", "overhead"] },
    Group { heading: "Change", commands: &["settings", "schedule", "cc"] },
    Group { heading: "Serve", commands: &["serve", "web"] },
];

/// Columns in which the longest name of a command stands, with the space behind it.
const NAME_WIDTH: usize = 14;

/// The program's command line with its commands listed by group.
pub(crate) fn grouped(program: Command) -> Command {
    let list = list(&program);
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n`windtunnel COMMAND --help` shows a command's options and examples.\n\n{{options}}"
    ))
}

/// The groups, each with a heading and one line a command.
fn list(program: &Command) -> String {
    let heading = program.get_styles().get_header();
    let name = program.get_styles().get_literal();
    let mut text = String::new();
    for group in &GROUPS {
        let _ = writeln!(text, "\n{heading}{}:{heading:#}", group.heading);
        for command in group.commands {
            let about = program.find_subcommand(command).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name}{command:<NAME_WIDTH$}{name:#}{about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|group| group.commands).copied().collect();
        listed.sort_unstable();
        let program = Cli::command();
        let mut commands: Vec<_> =
            program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed, commands);
    }

    #[test]
    fn every_command_has_one_line_of_at_most_80_columns() {
        let list = list(&Cli::command().styles(clap::builder::Styles::plain()));
        for line in list.lines().filter(|line| line.starts_with("  ")) {
            assert!(line.chars().count() <= 80, "{line}");
            let about = line.get(2 + NAME_WIDTH..).unwrap_or_default();
            let verb = about.split(' ').next().unwrap_or_default();
            assert!(verb.starts_with(char::is_uppercase) && verb.ends_with('s'), "no verb in the third person: {line}");
            assert!(!about.ends_with('.'), "{line}");
        }
    }

    #[test]
    fn the_help_of_the_program_lists_the_groups() {
        let help = grouped(Cli::command()).render_help().to_string();
        let mut rest = help.as_str();
        for group in &GROUPS {
            let heading = format!("\n{}:\n", group.heading);
            rest =
                rest.split_once(&heading).unwrap_or_else(|| panic!("{heading} isn't there, or not in order: {help}")).1;
        }
        assert!(rest.contains("-V, --version"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    /// The words of a line as a shell would part them; nothing behind a pipe, a redirection or a comment.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (c, quote) {
                ('\'' | '"', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => words.extend(word.take()),
                ('|' | '>' | '<' | '&' | ';', None) => break,
                ('#', None) if word.is_none() => break,
                (c, _) => word.get_or_insert_default().push(c),
            }
        }
        // What a redirection begins with is its number.
        words.extend(word.filter(|word| word != "2"));
        words
    }

    /// How many commands of a text are understood: lines of code that begin with the program's name.
    fn understood(name: &str, text: &str) -> usize {
        let program = Cli::command();
        let mut lines = 0;
        let joined = text.replace("\\\n", " ");
        for line in joined.lines() {
            let code = line.strip_prefix("    ").unwrap_or(line).trim_start().trim_start_matches("sudo ");
            let is_code = line.starts_with("    ") || line.starts_with("windtunnel ");
            let words = words(code);
            if !is_code || words.first().is_none_or(|word| word != "windtunnel") {
                continue;
            }
            lines += 1;
            let read = program.clone().try_get_matches_from(&words);
            let told = read.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.is_empty(), "{name}: {line}: {told}");
        }
        lines
    }

    #[test]
    fn every_command_of_the_readme_is_understood() {
        let lines = understood("README.md", include_str!("../../../../README.md"));
        assert!(lines >= 8, "{lines}");
    }

    #[test]
    fn every_command_of_the_guide_is_understood() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let mut lines = 0;
        for page in std::fs::read_dir(folder).unwrap() {
            let page = page.unwrap().path();
            if page.extension().is_some_and(|extension| extension == "md") {
                lines += understood(&page.display().to_string(), &std::fs::read_to_string(&page).unwrap());
            }
        }
        assert!(lines >= 140, "{lines}");
    }
}
