use crate::cli::forms::give;
use crate::edge::{Outcome, say};
use clap::Args;
use wt_compare::stacks::{ListedFact, ListedProfile, StacksList, list};

/// Lists the stacks that can be compared, and what the others need
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel stacks list --json")]
pub(super) struct ListArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// None.
pub(super) fn run(args: &ListArgs) -> Outcome {
    give(&list(), args.json, print)
}

fn print(list: &StacksList) {
    for one in &list.stacks {
        let state = match (&one.program, one.built) {
            (Some(_), _) => "adapter",
            (None, true) => "built in",
            (None, false) => "not built",
        };
        say!("{:<14} {state:<10} {}", one.name, one.title);
        if let Some(how) = one.install {
            say!("{:<25} {how}", "");
        }
        if let (Some(version), Some(options)) = (&one.version, &one.options) {
            let settings = ["rwin", "mss", "mtu"].into_iter().chain(options.iter().map(String::as_str));
            say!("{:<25} {version}; settings: {}", "", settings.collect::<Vec<_>>().join(", "));
        }
        if let Some(program) = &one.program {
            say!("{:<25} {}", "", program.canonicalize().as_ref().unwrap_or(program).display());
        }
    }
    say!("\nOld stacks, as far as they are documented; another stack with these settings stands in for each:");
    for profile in &list.profiles {
        say!("{:<14} {} (on {}): {}", profile.name, profile.title, profile.stands_on, facts(profile));
    }
}

/// What is documented; the rest is unknown.
fn facts(profile: &ListedProfile) -> String {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    let mut add = |name: &str, value: Option<String>| match value {
        Some(value) => known.push(format!("{name} {value}")),
        None => unknown.push(name.to_owned()),
    };
    let yes = |fact: &ListedFact<bool>| fact.value().map(|yes| if yes { "yes" } else { "no" }.to_owned());
    add("rwin", profile.window.value().map(|bytes| bytes.to_string()));
    add("rwin can be set:", yes(&profile.window_can_be_set));
    add("MSS", profile.mss.value().map(|bytes| bytes.to_string()));
    add("delayed ACK", profile.ack_delay_ms.value().map(|ms| format!("{ms} ms")));
    add("SACK", yes(&profile.sack));
    add("window scaling", yes(&profile.window_scaling));
    format!("{}; unknown: {}", known.join(", "), unknown.join(", "))
}
