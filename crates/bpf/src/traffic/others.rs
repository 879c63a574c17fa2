use crate::connections::control_groups;
use std::fs::File;
use std::path::Path;
use wt_sys::bpf;

/// A sockops program that isn't ours and sees connections of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherProgram {
    /// Its number, as `bpftool prog show id` takes it.
    pub id: u32,
    /// Its name, 15 letters at most; empty where this process may not know it.
    pub name: String,
}

impl std::fmt::Display for OtherProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "program {}", self.id),
            name => write!(f, "{name} (program {})", self.id),
        }
    }
}

/// What our own programs are called.
const OURS: [&str; 2] = ["wt_traffic", "wt_connections"];

/// The programs of others that see connections of this host: at the root of the control groups, in the order in which the kernel
/// calls them, and then those of groups below. One of them may set on a connection what an arm has set, as bpftune does, also
/// long after it began; none where this process may not ask.
#[must_use]
pub fn other_programs() -> Vec<OtherProgram> {
    let Some(root) = control_groups() else { return Vec::new() };
    let mut ids = of_group(&root);
    let (mut groups, mut looked) = (vec![root], 0);
    while let Some(group) = groups.pop().filter(|_| looked < MOST_GROUPS) {
        let below = std::fs::read_dir(&group).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            looked += 1;
            for id in of_group(&entry.path()) {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            groups.push(entry.path());
        }
    }
    let named = ids.into_iter().map(|id| OtherProgram { id, name: bpf::program_name(id).unwrap_or_default() });
    named.filter(|program| !OURS.contains(&program.name.as_str())).collect()
}

/// More control groups than that aren't looked at: a look takes a system call or two each.
const MOST_GROUPS: usize = 20_000;

/// The programs that see the connections of one control group, those of the groups above among them.
fn of_group(group: &Path) -> Vec<u32> {
    File::open(group).ok().and_then(|group| bpf::attached_sock_ops(&group).ok()).unwrap_or_default()
}
