//! What the sockets of connections with a target get, from the boot on: a unit of systemd for each target, which attaches the
//! BPF program again before the network comes up.

use super::PersistencePlan;
use crate::boot::{UNITS, has_systemd, others_can_change, unit_path, unit_word};
use crate::change::{Checkpoint, FileChange, Risk, ScopeName};
use crate::hex::to_hex;
use crate::knob::{ALL, ConnectionKnob, Knob, Value};
use crate::plan::{Target, masked};
use crate::read::connection_value;
use crate::system::System;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wt_bpf::ConnectionRule;
use wt_sys::{SysError, SysResult};

/// The unit of a target, and what makes systemd start it: a drop-in of a target that every boot reaches.
fn paths(target: &str) -> [PathBuf; 2] {
    let name = format!("windtunnel-connections-{}", target.replace('/', "-"));
    [
        Path::new(UNITS).join(format!("{name}.service")),
        Path::new(UNITS).join("sysinit.target.d").join(format!("{name}.conf")),
    ]
}

/// The unit's text and its drop-in's.
///
/// # Source
/// systemd.unit(5), systemd.special(7).
fn texts(program: &str, target: &str, rule: &ConnectionRule) -> [String; 2] {
    let head = "# Written by windtunnel settings confirm; windtunnel settings undo takes it away.\n";
    let pairs = ALL.iter().filter_map(|knob| Some((knob.name, connection_value(knob, Some(rule))?.number()?)));
    let words: Vec<String> = pairs.map(|(name, bytes)| unit_word(&format!("{name}={bytes}"))).collect();
    let service = format!(
        "{head}[Unit]\n\
         Description=Settings of windtunnel for connections with {target}\n\
         DefaultDependencies=no\n\
         RequiresMountsFor={mounts} /sys/fs/bpf\n\
         Before=network-pre.target sysinit.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={command} settings hold {target} {words}\n",
        mounts = unit_path(program),
        command = unit_word(program),
        words = words.join(" "),
    );
    let [unit, _] = paths(target);
    let wants = unit.file_name().unwrap_or_default().to_string_lossy().into_owned();
    [service, format!("{head}[Unit]\nWants={wants}\n")]
}

/// The files for what a change does to connections with targets; a note where systemd doesn't start this system.
///
/// # Errors
/// When a file that would be replaced can't be read.
pub(super) fn files(
    system: &mut dyn System,
    checkpoint: &Checkpoint,
    persisted: &mut PersistencePlan,
) -> SysResult<()> {
    let changes = || checkpoint.changes.iter().filter(|change| change.scope == ScopeName::Connection);
    let targets: BTreeSet<&String> = changes().map(|change| &change.target).collect();
    if targets.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().ok();
    let with_systemd = has_systemd(system)?;
    let Some(program) = program.as_ref().and_then(|path| path.to_str()).filter(|_| with_systemd) else {
        persisted.notes.extend(changes().map(|change| {
            let text = format!(
                "on connections with {} this ends with the next reboot. To make it stay, let your system's start run: \
                 windtunnel settings apply {}={} --to {} --yes",
                change.target, change.key, change.new, change.target
            );
            Risk::new(&change.key, text)
        }));
        return Ok(());
    };
    for target in targets {
        let rule = checkpoint.wanted.connections_with(target);
        let texts = rule.map(|rule| texts(program, target, rule).map(Some)).unwrap_or_default();
        for (path, text) in paths(target).into_iter().zip(texts) {
            let old = system.read_file(&path)?.map(|bytes| to_hex(&bytes));
            let new = text.map(|text| to_hex(text.as_bytes()));
            if old.is_some() || new.is_some() {
                persisted.files.push(FileChange { path, old, new, mode: 0o644 });
            }
        }
    }
    if let Some(text) = others_can_change(Path::new(program)) {
        persisted.notes.push(Risk::new("*", text));
    }
    Ok(())
}

/// Lets the sockets of new connections with a target have these settings, as a unit does at boot: without a checkpoint. What is
/// so already stays.
///
/// # Errors
/// [`SysError`]: what is no target or no setting of connections in bytes; what the kernel refused.
pub fn hold_connections(target: &str, settings: &[(&Knob, Value)]) -> SysResult<()> {
    let wrong = |what: String| SysError {
        doing: format!("hold settings of connections with {target}"),
        source: std::io::Error::new(std::io::ErrorKind::InvalidInput, what),
    };
    let Ok(Target::Route(address, bits)) = target.parse() else {
        return Err(wrong("it is no address and no network".to_owned()));
    };
    let bits = bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
    let mut rule = ConnectionRule::new(wt_sys::ns::network_cookie()?, masked(address, bits), bits);
    for (knob, value) in settings {
        let bytes = value.number().and_then(|bytes| u32::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| wrong(format!("{}={value} is no number of bytes", knob.name)))?;
        match knob.connection {
            Some(ConnectionKnob::Window) => rule.window = Some(bytes),
            Some(ConnectionKnob::SendBuffer) => rule.send_buffer = Some(bytes),
            Some(ConnectionKnob::UnsentLowWater) => rule.unsent_low_water = Some(bytes),
            None => return Err(wrong(format!("{} isn't set on connections", knob.name))),
        }
    }
    if rule.is_empty() {
        return Err(wrong("there is no setting".to_owned()));
    }
    rule.add()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_holds_a_targets_settings_in_bytes_and_is_started_by_a_drop_in_of_its_own() {
        let mut rule = ConnectionRule::new(1, "2001:db8::".parse().unwrap(), 48);
        (rule.window, rule.unsent_low_water) = (Some(8192), Some(16384));
        let [service, drop_in] = texts("/opt/a b/wind$tunnel", "2001:db8::/48", &rule);
        let start = service.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
        assert_eq!(
            start,
            "ExecStart=\"/opt/a b/wind$$tunnel\" settings hold 2001:db8::/48 \"rwin=8192\" \"notsent-lowat=16384\""
        );
        assert!(service.contains("RequiresMountsFor=/opt/a\\x20b/wind$tunnel /sys/fs/bpf\n"), "{service}");
        assert!(drop_in.ends_with("[Unit]\nWants=windtunnel-connections-2001:db8::-48.service\n"), "{drop_in}");
    }

    #[test]
    fn only_settings_of_connections_with_a_target_are_held() {
        let knob = |name: &str| Knob::find(name).unwrap();
        for (target, settings, what) in [
            ("eth0", vec![(knob("rwin"), Value::Number(8192))], "no address"),
            ("192.0.2.1", vec![(knob("initcwnd"), Value::Number(10))], "isn't set on connections"),
            ("192.0.2.1", vec![(knob("rwin"), Value::Auto)], "no number of bytes"),
            ("192.0.2.1", vec![], "no setting"),
        ] {
            let error = hold_connections(target, &settings).unwrap_err();
            assert!(error.source.to_string().contains(what), "{target}: {error}");
        }
    }
}
