use crate::connections::control_groups;
use std::fs::File;
use wt_sys::SysError;
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

/// The programs of others at the root of the control groups, in the order in which the kernel calls them. One of them may set
/// on a connection what an arm has set, as bpftune does; none where this process may not ask.
///
/// # What this leaves out
/// Programs in control groups below: they are called before ours, and what they set, ours sets again.
#[must_use]
pub fn other_programs() -> Vec<OtherProgram> {
    let all = || -> Result<Vec<u32>, SysError> {
        let root = control_groups().ok_or_else(|| crate::connections::missing("find control groups"))?;
        let root = File::open(&root).map_err(SysError::io(format!("open {}", root.display())))?;
        bpf::attached_sock_ops(&root)
    };
    let named = |id| OtherProgram { id, name: bpf::program_name(id).unwrap_or_default() };
    let all = all().unwrap_or_default().into_iter().map(named);
    all.filter(|program| !OURS.contains(&program.name.as_str())).collect()
}
