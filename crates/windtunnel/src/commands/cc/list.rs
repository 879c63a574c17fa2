use crate::cli::forms::give;
use crate::edge::{Outcome, say};
use wt_setup::controls::{ControlsList, list};

/// Runs the command.
pub(super) fn run(as_json: bool) -> Outcome {
    give(&list(), as_json, print)
}

fn print(list: &ControlsList) {
    say!("In the kernel now:");
    for one in &list.kernel {
        let who = if one.who == "everybody" { one.who } else { "root (CAP_NET_ADMIN)" };
        let what = one.ours.as_ref().map(|choice| format!("  = {choice}")).unwrap_or_default();
        let default = if one.default { "  (this host's default)" } else { "" };
        say!("  {:<18} for {who}{what}{default}", one.name);
    }
    match &list.obstacle {
        None => say!("\nOurs, loadable with `windtunnel cc load`:"),
        Some(why) => say!("\nOurs; loading them isn't possible now: {why}"),
    }
    for one in &list.ours {
        let name = wt_setup::controls::choice(&format!("{}@{}", one.name, one.variant));
        let name = name.map_or_else(|_| one.name.to_owned(), |choice| choice.to_string());
        let loaded = if one.loaded { format!("loaded as {}", one.kernel_name) } else { String::new() };
        let boot = if one.boot { "loaded at boot".to_owned() } else { String::new() };
        let states: Vec<String> = [loaded, boot].into_iter().filter(|state| !state.is_empty()).collect();
        let state = if states.is_empty() { String::new() } else { format!("  ({})", states.join(", ")) };
        say!("  {name:<22} {}{state}", one.title);
    }
}
