use crate::lab::{APPARMOR_HELP, USER_NAMESPACE_HELP, apparmor_restricts};
use serde::Serialize;
use std::path::Path;
use utoipa::ToSchema;
use wt_bpf::{TrafficKnowledge, TrafficProgram, TrafficRules};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// Whether the lab can't do without it.
    pub needed: bool,
    /// What was found.
    pub found: String,
    /// What to do where it doesn't work.
    pub advice: Option<&'static str>,
}

/// What works on this machine. Its JSON is the contract of `windtunnel doctor --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DoctorAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// Whether the lab works.
    pub works: bool,
    /// All that was looked at.
    pub checks: Vec<Check>,
}

/// Tries what a lab needs. It moves this process into a user namespace, so it must be the last that the process does, and
/// the process must have a single thread.
#[must_use]
pub fn examine() -> DoctorAnswer {
    let checks = look();
    let works = checks.iter().all(|check| check.ok || !check.needed);
    DoctorAnswer { schema_version: 1, works, checks }
}

/// An AppArmor profile for a program that allows everything as before, and user namespaces besides; its comments say how
/// to install it.
///
/// # Source
/// apparmor.d(5) of AppArmor 4: the rule `userns` and the flag `unconfined`.
#[must_use]
pub fn apparmor_profile(program: &str) -> String {
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

fn look() -> Vec<Check> {
    let mut checks = vec![kernel(), user(), congestion_controls(), own_controls(), connections()];
    checks.extend(without_bpf());
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
    let loaded =
        "newreno".parse().map_err(|error: wt_cc::ChoiceError| error.to_string()).and_then(|choice: wt_cc::Choice| {
            wt_bpf::RegisteredControl::load_privately(&choice).map_err(|error| error.to_string())
        });
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

/// Whether a server's connections can be assigned to arms; the program is attached for a moment and assigns nothing.
fn connections() -> Check {
    let rules = TrafficRules {
        ports: Vec::new(),
        arms: Vec::new(),
        by_connection: false,
        skip_private: true,
        skip_loopback: true,
        skip_own_cc: true,
        administrators: Vec::new(),
        key: [0; 2],
        tag_key: [0; 2],
        patience_ns: 0,
    };
    let tried = match TrafficProgram::unavailable() {
        Some(why) => Err(why),
        None => TrafficProgram::attach(&rules).map(|program| program.knows()).map_err(|error| error.to_string()),
    };
    let knows = |knows| match knows {
        TrafficKnowledge::Responses => "and times each response".to_owned(),
        TrafficKnowledge::Idle => "and times connections as a whole: single responses take Linux 6.15".to_owned(),
        TrafficKnowledge::Connection => format!(
            "and times connections as a whole; {}: on those that clients keep open, idle time counts as if data were outstanding",
            wt_bpf::idle_unknown().unwrap_or("this kernel refuses the program that knows more")
        ),
    };
    Check {
        name: "traffic over BPF (sockops)",
        ok: tried.is_ok(),
        needed: false,
        found: tried.map_or_else(|why| why, |known| format!("can assign a server's connections, {}", knows(known))),
        advice: Some("only root can (CAP_BPF and CAP_NET_ADMIN), from Linux 5.15 on, with control groups of version 2"),
    }
}

/// The same without BPF: marks and routes, or settings of the whole host.
fn without_bpf() -> [Check; 2] {
    let check = |name, why: Option<String>, does: &str, advice| Check {
        name,
        ok: why.is_none(),
        needed: false,
        found: why.unwrap_or_else(|| does.to_owned()),
        advice: Some(advice),
    };
    [
        check(
            "traffic over marks (routes)",
            crate::connections::routes_unavailable(),
            if crate::connections::routes_left() {
                "nftables can mark a server's connections; rules of an experiment that was killed with its guard stand here, and \
                 steer nobody: windtunnel traffic stop removes them"
            } else {
                "nftables can mark a server's connections, and routes follow"
            },
            "it takes CAP_NET_ADMIN, nftables, and no routing rules but the usual ones",
        ),
        check(
            "traffic in slots (sysctl)",
            crate::connections::slots_unavailable(),
            "this host's settings can change from slot to slot",
            "only root can (CAP_NET_ADMIN)",
        ),
    ]
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
    let started = crate::lab::load("lan")
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
