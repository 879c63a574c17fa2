//! What the guide's tutorial has a reader type in a lab.

use crate::common::{binary, ran, shared, windtunnel};
use std::path::Path;

#[test]
fn what_the_tutorial_types_in_a_lab_is_planned_applied_undone_and_listed() {
    let _machine = shared();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/tutorial.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, typed) = text.split_once("```sh\n").unwrap();
    let (typed, _) = typed.split_once("```").unwrap();
    assert!(
        typed.lines().count() >= 5 && typed.lines().all(|line| line.starts_with("windtunnel settings ")),
        "{typed}"
    );
    let home = tempfile::tempdir().unwrap();
    let program = binary().parent().unwrap().display().to_string();
    let mut command = windtunnel(home.path());
    command.env("PATH", format!("{program}:{}", std::env::var("PATH").unwrap()));
    command.env("WINDTUNNEL_ROOT", home.path().join("root")).current_dir(home.path());
    let script = format!("set -e\n{typed}\nip route show default");
    command.args(["lab", "run", "transatlantic", "--", "timeout", "60", "sh", "-c", &script]);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for said in ["Nothing was written.", "Change 1 is in force", "  applied  ", "was taken back", "  reverted  "] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    let route = ran.out.lines().last().unwrap_or_default();
    assert!(route.starts_with("default") && !route.contains("initcwnd"), "{route}");
}

#[test]
fn what_is_confirmed_in_a_lab_ends_with_it_and_never_reaches_the_hosts_files() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let mut command = windtunnel(home.path());
    command.env_remove("WINDTUNNEL_ROOT").env("WINDTUNNEL_STATE_DIR", home.path().join("state"));
    // A folder of the lab's own over the host's, so that a mistake reaches nothing.
    let program = binary().display().to_string();
    let script = format!(
        "set -e; mount -t tmpfs none /etc/sysctl.d
         {program} settings apply no-metrics-save=on --to host --confirm-within 1h; {program} settings confirm
         cat /proc/sys/net/ipv4/tcp_no_metrics_save; ls -A /etc/sysctl.d | wc -l"
    );
    command.args(["lab", "run", "transatlantic", "--", "timeout", "60", "sh", "-c", &script]);
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let figures: Vec<&str> = ran.out.lines().rev().take(2).map(str::trim).collect();
    assert_eq!(figures, ["0", "1"], "no file, and the setting is in force: {}", ran.out);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("a network namespace of its own") && said.contains("nothing was written"), "{said}");
}
