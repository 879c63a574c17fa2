//! `windtunnel doctor`: what works on this machine, and why not.

use crate::edge::{Exit, Outcome, say};
use serde_json::json;
use std::path::Path;

/// What to do where user namespaces are forbidden.
pub(crate) const USER_NAMESPACE_HELP: &str = "allow them for this program: on Ubuntu 23.10 and later with an AppArmor profile \
(`aa-status` tells; sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows all), on older Debian with sysctl \
kernel.unprivileged_userns_clone=1, in a container with a seccomp profile that permits unshare; or run as root";

/// Shows what works on this machine, and why something doesn't
///
/// Tries things rather than looking them up: it takes a second or two, and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel doctor
  windtunnel doctor --json")]
pub(crate) struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Prints an AppArmor profile that lets this program make user namespaces, and how to install it
    #[arg(long)]
    apparmor_profile: bool,
}

/// Whether AppArmor takes the rights from user namespaces here.
///
/// # Source
/// Ubuntu's specification SE045, "Unprivileged user namespace restrictions via AppArmor".
pub(crate) fn apparmor_restricts() -> bool {
    let name = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    std::fs::read_to_string(name).is_ok_and(|text| text.trim() == "1")
}

/// What to do about that.
pub(crate) const APPARMOR_HELP: &str = "install a profile for this program: windtunnel doctor --apparmor-profile prints it \
and tells how; or run as root";

/// A profile that allows everything as before, and user namespaces besides.
///
/// # Source
/// apparmor.d(5) of AppArmor 4: the rule `userns` and the flag `unconfined`.
fn apparmor_profile(program: &str) -> String {
    // A quoted path may hold anything but quotes and line breaks; these stand for patterns unless escaped.
    let escaped: String =
        program.chars().flat_map(|c| if "\"\\*?[]{}^@".contains(c) { vec!['\\', c] } else { vec![c] }).collect();
    format!(
        "# Lets windtunnel make user namespaces. Install it as root, and again when the program moves:\n\
         #   windtunnel doctor --apparmor-profile > /etc/apparmor.d/windtunnel\n\
         #   apparmor_parser -r /etc/apparmor.d/windtunnel\n\
         abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile windtunnel \"{escaped}\" flags=(unconfined) {{\n  userns,\n}}"
    )
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    ok: bool,
    /// Whether something can't be done without it.
    needed: bool,
    found: String,
    advice: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// None: what doesn't work is the answer.
pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    if args.apparmor_profile {
        let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
        let program =
            program.ok_or_else(|| crate::edge::Failure::environment("this program's own path can't be told"))?;
        say!("{}", apparmor_profile(&program));
        return Ok(Exit::Done);
    }
    let checks = look();
    let works = checks.iter().all(|check| check.ok || !check.needed);
    if args.json {
        let list: Vec<_> = checks
            .iter()
            .map(|c| json!({"name": c.name, "ok": c.ok, "needed": c.needed, "found": c.found, "advice": c.advice}))
            .collect();
        say!("{}", json!({"schema_version": 1, "works": works, "checks": list}));
    } else {
        for check in &checks {
            let mark = if check.ok {
                "ok  "
            } else if check.needed {
                "FAIL"
            } else {
                "-   "
            };
            say!("{mark} {:<26} {}", check.name, check.found);
            if let (false, Some(advice)) = (check.ok, check.advice) {
                say!("     {:<26} {advice}", "");
            }
        }
        say!("\n{}", if works { "The lab works here." } else { "The lab does not work here; see FAIL above." });
    }
    Ok(if works { Exit::Done } else { Exit::No })
}

fn look() -> Vec<Check> {
    let mut checks = vec![kernel(), user(), congestion_controls(), own_controls()];
    // The trial: all that a lab needs, done for real. It must come last, for it moves this process.
    let namespace = wt_lab::enter();
    let entered = namespace.is_ok();
    checks.push(Check {
        name: "user namespaces",
        ok: entered,
        needed: true,
        found: namespace
            .map_or_else(|error| error.to_string(), |()| "an unprivileged user may make network namespaces".to_owned()),
        advice: Some(if apparmor_restricts() { APPARMOR_HELP } else { USER_NAMESPACE_HELP }),
    });
    if entered {
        checks.extend([
            tun(),
            backend("lab over TUN", wt_lab::Backend::Tun, false),
            backend("lab over veth + AF_PACKET", wt_lab::Backend::Veth, false),
            backend("lab", wt_lab::Backend::Best, true),
        ]);
    }
    checks.push(btf());
    checks
}

fn kernel() -> Check {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check { name: "kernel", ok: true, needed: false, found: format!("Linux {}", release.trim()), advice: None }
}

fn user() -> Check {
    let uid = wt_sys::process::effective_uid();
    let found =
        if uid == 0 { "root (not needed for the lab)".to_owned() } else { format!("uid {uid}, an ordinary user") };
    Check { name: "user", ok: true, needed: false, found, advice: None }
}

fn congestion_controls() -> Check {
    let read = |name| wt_sys::ns::read_net_sysctl(name).unwrap_or_default();
    let (known, current) = (read("ipv4/tcp_available_congestion_control"), read("ipv4/tcp_congestion_control"));
    let found = format!("{known} (current: {current})");
    Check {
        name: "congestion controls",
        ok: known.contains(' '),
        needed: false,
        found,
        advice: Some("others are kernel modules: modprobe tcp_bbr"),
    }
}

/// Whether our own congestion controls can be loaded; one of them is loaded for a moment, under a name of its own.
fn own_controls() -> Check {
    let loaded = "newreno"
        .parse()
        .map_err(|error: wt_cc::ChoiceError| error.to_string())
        .and_then(|choice: wt_cc::Choice| wt_bpf::Loaded::load_privately(&choice).map_err(|error| error.to_string()));
    let built = wt_cc::ALGORITHMS.iter().all(|algorithm| algorithm.object().is_some());
    Check {
        name: "own congestion controls",
        ok: loaded.is_ok(),
        needed: false,
        found: loaded.map_or_else(|error| error, |_| "can be loaded (BPF)".to_owned()),
        advice: Some(if built {
            "only root can (CAP_BPF and CAP_PERFMON): windtunnel cc list"
        } else {
            "install clang (Debian: apt-get install clang) and build windtunnel again"
        }),
    }
}

fn tun() -> Check {
    let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    Check {
        name: "/dev/net/tun",
        ok: open.is_ok(),
        needed: false,
        found: open.map_or_else(|error| format!("{error}"), |_| "can be opened".to_owned()),
        advice: Some("not needed: the lab uses veth and AF_PACKET instead"),
    }
}

/// Starts a lab and asks it for one ping's worth of life.
fn backend(name: &'static str, backend: wt_lab::Backend, needed: bool) -> Check {
    let started = crate::commands::lab::load("lan")
        .map_err(|failure| failure.what)
        .and_then(|scenario| wt_lab::Lab::start(scenario, backend, 1).map_err(|error| error.to_string()));
    let ok = started.is_ok();
    let found = started.map_or_else(|error| error, |lab| format!("works ({})", lab.backend()));
    Check { name, ok, needed, found, advice: Some("windtunnel lab run lan -- true tells more") }
}

fn btf() -> Check {
    let there = Path::new("/sys/kernel/btf/vmlinux").exists();
    let found = if there { "there" } else { "missing" };
    Check {
        name: "BTF (for BPF controls)",
        ok: there,
        needed: false,
        found: found.to_owned(),
        advice: Some("a kernel built with CONFIG_DEBUG_INFO_BTF"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_this_program_and_escapes_what_apparmor_would_read_as_a_pattern() {
        let text = apparmor_profile("/opt/wind tunnel/{a,b}*/windtunnel");
        let rule = "profile windtunnel \"/opt/wind tunnel/\\{a,b\\}\\*/windtunnel\" flags=(unconfined) {\n  userns,\n}";
        assert!(text.ends_with(rule), "{text}");
        assert!(text.lines().take(3).all(|line| line.starts_with('#')));
    }
}
