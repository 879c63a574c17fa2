use crate::edge::{Exit, Outcome, say};
use serde_json::json;
use wt_bpf::missing_capabilities;
use wt_cc::{ALGORITHMS, Choice};
use wt_setup::controls::available;

/// One of the kernel's.
struct Known {
    name: String,
    everybody: bool,
    default: bool,
    ours: Option<Choice>,
}

/// All of our named variants.
fn variants() -> Vec<Choice> {
    let of = |algorithm: &'static wt_cc::Algorithm| {
        algorithm.variants.iter().filter_map(|variant| {
            let mut choice = Choice::new(algorithm.name).ok()?;
            choice.vary(variant.name).ok()?;
            Some(choice)
        })
    };
    ALGORITHMS.iter().flat_map(of).collect()
}

fn known() -> Vec<Known> {
    let read = |name| wt_sys::ns::read_net_sysctl(name).unwrap_or_default();
    let allowed = read("ipv4/tcp_allowed_congestion_control");
    let default = read("ipv4/tcp_congestion_control");
    let ours = variants();
    let one = |name: String| Known {
        everybody: allowed.split_whitespace().any(|word| word == name),
        default: default == name,
        ours: ours.iter().find(|choice| choice.kernel_name() == name).cloned(),
        name,
    };
    available().into_iter().map(one).collect()
}

/// Why ours can't be loaded here; `None` if they can.
fn obstacle() -> Option<String> {
    if ALGORITHMS.iter().any(|algorithm| algorithm.object().is_none()) {
        return Some("this windtunnel was built without clang".to_owned());
    }
    let missing = missing_capabilities();
    if missing.is_empty() { None } else { Some(format!("needs {}, as root has", missing.join(" and "))) }
}

/// Runs the command.
pub(super) fn run(as_json: bool) -> Outcome {
    let (known, obstacle) = (known(), obstacle());
    if as_json {
        let kernel: Vec<_> = known
            .iter()
            .map(|one| {
                json!({
                    "name": one.name, "default": one.default,
                    "who": if one.everybody { "everybody" } else { "CAP_NET_ADMIN" },
                    "ours": one.ours.as_ref().map(ToString::to_string),
                })
            })
            .collect();
        let ours: Vec<_> = variants()
            .iter()
            .map(|choice| {
                let loaded = known.iter().any(|one| one.name == choice.kernel_name());
                json!({
                    "name": choice.algorithm.name, "variant": choice.variant_text(), "title": choice.algorithm.title,
                    "kernel_name": choice.kernel_name(), "loaded": loaded,
                })
            })
            .collect();
        say!(
            "{}",
            json!({"schema_version": 1, "kernel": kernel, "ours": ours, "loadable": obstacle.is_none(), "obstacle": obstacle})
        );
        return Ok(Exit::Done);
    }
    say!("In the kernel now:");
    for one in &known {
        let who = if one.everybody { "everybody" } else { "root (CAP_NET_ADMIN)" };
        let what = one.ours.as_ref().map(|choice| format!("  = {choice}")).unwrap_or_default();
        let default = if one.default { "  (this host's default)" } else { "" };
        say!("  {:<18} for {who}{what}{default}", one.name);
    }
    match &obstacle {
        None => say!("\nOurs, loadable with `windtunnel cc load`:"),
        Some(why) => say!("\nOurs; loading them isn't possible now: {why}"),
    }
    for choice in variants() {
        let loaded = known.iter().any(|one| one.name == choice.kernel_name());
        let state = if loaded { format!("  (loaded as {})", choice.kernel_name()) } else { String::new() };
        say!("  {:<22} {}{state}", choice.to_string(), choice.algorithm.title);
    }
    Ok(Exit::Done)
}
