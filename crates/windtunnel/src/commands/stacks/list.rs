use crate::edge::{Exit, Outcome, say};
use clap::Args;
use serde_json::{Value, json};
use wt_stacks::catalogue::{Built, STACKS};
use wt_stacks::profile::{Fact, PROFILES, Profile};

/// Lists the stacks that can be compared, and what the others need
#[derive(Debug, Args)]
#[command(after_help = "Example:
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
    if args.json {
        let stacks: Vec<Value> = STACKS.iter().map(stack).collect();
        say!("{}", json!({"schema_version": 1, "stacks": stacks, "profiles": PROFILES}));
        return Ok(Exit::Done);
    }
    for one in &STACKS {
        let state = match one.built() {
            Built::Direct | Built::In(_) => "built in".to_owned(),
            Built::Program(path) => path.display().to_string(),
            Built::No(_) => "not built".to_owned(),
        };
        say!("{:<14} {:<10} {}", one.name, state, one.title);
        if let Built::No(how) = one.built() {
            say!("{:<25} {how}", "");
        }
        if let Some(description) = one.described() {
            let settings = ["rwin", "mss", "mtu"].into_iter().chain(description.options.iter().map(String::as_str));
            say!("{:<25} {}; settings: {}", "", description.version, settings.collect::<Vec<_>>().join(", "));
        }
    }
    say!("\nOld stacks, as far as they are documented; another stack with these settings stands in for each:");
    for profile in &PROFILES {
        say!("{:<14} {} (on {}): {}", profile.name, profile.title, profile.stands_on, facts(profile));
    }
    Ok(Exit::Done)
}

fn stack(one: &wt_stacks::Stack) -> Value {
    let mut told = json!({"name": one.name, "title": one.title, "built": true});
    match one.built() {
        Built::Direct | Built::In(_) => {}
        Built::Program(path) => told["program"] = json!(path),
        Built::No(how) => {
            told["built"] = json!(false);
            told["install"] = json!(how);
        }
    }
    if let Some(description) = one.described() {
        told["version"] = json!(description.version);
        told["options"] = json!(description.options);
    }
    told
}

/// What is documented; the rest is unknown.
fn facts(profile: &Profile) -> String {
    let mut known = Vec::new();
    let mut unknown = Vec::new();
    let mut add = |name: &str, value: Option<String>| match value {
        Some(value) => known.push(format!("{name} {value}")),
        None => unknown.push(name.to_owned()),
    };
    let yes = |fact: Fact<bool>| fact.number().map(|yes| if yes { "yes" } else { "no" }.to_owned());
    add("rwin", profile.window.number().map(|bytes| bytes.to_string()));
    add("rwin can be set:", yes(profile.window_can_be_set));
    add("MSS", profile.mss.number().map(|bytes| bytes.to_string()));
    add("delayed ACK", profile.ack_delay_ms.number().map(|ms| format!("{ms} ms")));
    add("SACK", yes(profile.sack));
    add("window scaling", yes(profile.window_scaling));
    format!("{}; unknown: {}", known.join(", "), unknown.join(", "))
}
