//! `windtunnel self`: what packages carry beside the program, written by the program itself so that it can't differ.

use crate::cli::bash::BashCompletion;
use crate::cli::help_lines::lines;
use crate::edge::{Exit, Outcome, Problem};
use clap::{Args, Command, Subcommand};
use clap_complete::env::{EnvCompleter, Fish, Zsh};
use std::path::{Path, PathBuf};

/// Writes manual pages and completions, for packages
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel self manual ~/.local/share/man/man1
  windtunnel self completions ~/.local/share/bash-completion/completions")]
pub(crate) struct OwnArgs {
    #[command(subcommand)]
    command: Own,
}

#[derive(Debug, Subcommand)]
enum Own {
    /// Writes a manual page for the program and for each command: windtunnel.1, windtunnel-tune.1 …
    Manual {
        /// The folder; it must exist
        folder: PathBuf,
    },
    /// Writes completions: windtunnel.bash, _windtunnel (zsh) and windtunnel.fish
    Completions {
        /// The folder; it must exist
        folder: PathBuf,
    },
}

/// Runs the command; `program` is the command line as a whole.
///
/// # Errors
/// A [`Problem`] that names the file that can't be written.
pub(crate) fn run(args: &OwnArgs, program: Command) -> Outcome {
    match &args.command {
        Own::Manual { folder } => manual(folder, program)?,
        Own::Completions { folder } => completions(folder)?,
    }
    Ok(Exit::Done)
}

fn manual(folder: &Path, program: Command) -> Result<(), Problem> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    pages(folder, &program, "windtunnel")
}

/// The page of a command, and those of the commands below it; hidden ones have none.
fn pages(folder: &Path, command: &Command, name: &str) -> Result<(), Problem> {
    let mut page = Vec::new();
    let behind = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).section("1");
    let man = man.source(concat!("windtunnel ", env!("CARGO_PKG_VERSION"))).manual("Windtunnel");
    man.render(&mut page).map_err(|error| Problem::internal(error.to_string()))?;
    let page = with_examples(&String::from_utf8_lossy(&page), &behind) + &exit_status();
    write(&folder.join(format!("{name}.1")), page.as_bytes())?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    shown.into_iter().try_for_each(|below| pages(folder, below, &format!("{name}-{}", below.get_name())))
}

/// How a section begins, and what that of clap's is called which has what stands behind the options in --help.
const SECTION: &str = "\n.SH ";
const EXTRA: &str = "\n.SH EXTRA\n";
/// Columns of an example's lines: man indents by seven, and a terminal has 80.
const EXAMPLE: usize = 72;

/// A page whose examples a shell takes as they are shown: man would fill and justify them as prose, and break them anywhere.
fn with_examples(page: &str, behind: &str) -> String {
    let Some((before, rest)) = page.split_once(EXTRA) else { return page.to_owned() };
    let after = rest.find(SECTION).map_or("", |at| &rest[at..]);
    let mut text = String::new();
    let mut is_example = false;
    for line in lines(behind, EXAMPLE).iter().filter(|line| *line != "Examples:") {
        if line.starts_with(' ') != is_example {
            is_example = !is_example;
            text.push_str(if is_example { "\n.nf" } else { "\n.fi" });
        }
        match line.as_str() {
            "" => text.push_str("\n.PP"),
            line => {
                text.push('\n');
                text.push_str(&roff(line));
            }
        }
    }
    let end = if is_example { "\n.fi" } else { "" };
    format!("{before}\n.SH EXAMPLES{text}{end}{after}")
}

/// The section on exit codes, the same for every command.
fn exit_status() -> String {
    let codes = Exit::MEANINGS.iter().map(|(code, meaning)| format!("\n.TP\n{code}\n{}", roff(meaning)));
    format!("\n.SH EXIT STATUS{}\n", codes.collect::<String>())
}

/// A line as roff's text: a hyphen that can be pasted, quotes and backslashes as they are, and no request.
fn roff(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\*(Aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

fn completions(folder: &Path) -> Result<(), Problem> {
    let shells: [(&dyn EnvCompleter, &str); 3] =
        [(&BashCompletion, "windtunnel.bash"), (&Zsh, "_windtunnel"), (&Fish, "windtunnel.fish")];
    shells.into_iter().try_for_each(|(shell, file)| {
        let mut script = Vec::new();
        shell
            .write_registration("COMPLETE", "windtunnel", "windtunnel", "windtunnel", &mut script)
            .map_err(|error| Problem::internal(error.to_string()))?;
        write(&folder.join(file), &script)
    })
}

fn write(file: &Path, text: &[u8]) -> Result<(), Problem> {
    wt_setup::files::write_whole(file, text).map_err(|error| {
        Problem::environment(error.to_string()).hint("name a folder that exists and can be written to")
    })
}
