//! Experiments on a server's own connections: a program at the root of the control groups assigns each new connection of this
//! network namespace to an arm, sets what the arm says, and records what became of it.
//!
//! Nothing is pinned: the program is gone when this process is, however it ends. Connections that it has assigned keep what
//! they were given, and are served as before.
//!
//! # What this leaves out
//! Connections that exist already; connections whose listener was made in a control group beside the hierarchy that is mounted
//! here, or in another network namespace; and what a response took on a connection that goes on: the record is of the connection,
//! with the time in which nothing was outstanding apart.

/// What the program and we share.
mod layout;
/// Programs of others that see the same connections.
mod others;

pub use others::{OtherProgram, other_programs};

pub use layout::{ArmOptions, MAX_ARMS, MAX_PORTS, TrafficCounts, TrafficRecord};

use crate::btf::Btf;
use crate::elf::Elf;
use crate::registration::{KERNEL_BTF, LoadError, rejected};
use crate::relocate::{accesses, apply};
use crate::{Malformed, connections};
use layout::{name_words, word};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use wt_sys::bpf::{self, MapSpec, ProgramSpec, RecordRing, SharedWords};
use wt_sys::{SysError, clock, process};

include!(concat!(env!("OUT_DIR"), "/traffic_object.rs"));

/// So it is called in errors and by bpftool.
const NAME: &str = "wt_traffic";
/// Room for some 15,000 connections that end between two looks.
const RING: u32 = 1 << 21;
/// Bytes of `struct note`.
const NOTE: u32 = 5 * 8 + 4 * 4 + 8 + 16;
/// `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_MAP_VALUE` of linux/bpf.h.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;

/// Which connections are drawn, and how.
#[derive(Debug, Clone)]
pub struct TrafficRules {
    /// Local ports, 1 to 8 of them.
    pub ports: Vec<u16>,
    /// What each arm's connections get, 1 to 8 of them.
    pub arms: Vec<ArmOptions>,
    /// Whether every connection is drawn by itself and not each prefix of clients.
    pub by_connection: bool,
    /// Whether clients at link-local and private addresses are left alone.
    pub skip_private: bool,
    /// Whether clients on this host are left alone.
    pub skip_loopback: bool,
    /// The key of the draw.
    pub key: [u64; 2],
    /// Another one, for what is recorded of a client.
    pub tag_key: [u64; 2],
    /// So long after the last [`beat`](TrafficProgram::beat) nothing more is assigned, ns.
    pub patience_ns: u64,
}

/// The program in the kernel, until dropped.
#[derive(Debug)]
pub struct TrafficProgram {
    control: SharedWords,
    ring: RecordRing,
    patience_ns: u64,
    knows_idle: bool,
    _link: OwnedFd,
}

/// What [`TrafficProgram::attach`] needs and this process lacks; `CAP_SYS_ADMIN` stands for the first.
#[must_use]
pub fn missing_traffic_capabilities() -> Vec<&'static str> {
    let has = process::has_capability;
    let mut missing = Vec::new();
    if !has(process::CAP_BPF) && !has(process::CAP_SYS_ADMIN) {
        missing.push("CAP_BPF");
    }
    if !has(process::CAP_NET_ADMIN) {
        missing.push("CAP_NET_ADMIN");
    }
    missing
}

/// Why records can't say for how long a connection had nothing outstanding; `None` where they can.
#[must_use]
pub fn idle_unknown() -> Option<&'static str> {
    let has = process::has_capability;
    match () {
        () if !has(process::CAP_PERFMON) && !has(process::CAP_SYS_ADMIN) => Some("CAP_PERFMON is missing"),
        () if !std::path::Path::new(KERNEL_BTF).exists() => Some("this kernel has no BTF"),
        () => None,
    }
}

/// The program that knows idle times, and the kernel's types, where both are to be had.
fn idle_program() -> Option<(&'static [u8], Btf)> {
    let object = IDLE_OBJECT.filter(|_| idle_unknown().is_none())?;
    Some((object, Btf::parse(std::fs::read(KERNEL_BTF).ok()?).ok()?))
}

impl TrafficProgram {
    /// Why it can't be attached here; `None` where it can, privileges apart.
    #[must_use]
    pub fn unavailable() -> Option<String> {
        if OBJECT.is_none() {
            return Some("this windtunnel was built without clang, so it has no program for connections".to_owned());
        }
        crate::ConnectionRule::unavailable()
    }

    /// Loads and attaches it; nothing is assigned before the first [`set_epoch`](Self::set_epoch).
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// With more arms or ports than there is room for.
    pub fn attach(rules: &TrafficRules) -> Result<Self, LoadError> {
        assert!(rules.arms.len() <= MAX_ARMS && rules.ports.len() <= MAX_PORTS, "room for 8 arms and 8 ports");
        let object = OBJECT.ok_or(LoadError::NotBuilt)?;
        let missing = missing_traffic_capabilities();
        if !missing.is_empty() {
            return Err(LoadError::Capabilities { missing });
        }
        let cgroup = connections::control_groups().ok_or_else(|| connections::missing("attach a BPF program"))?;
        let cgroup = File::open(&cgroup).map_err(SysError::io(format!("open {}", cgroup.display())))?;
        bpf::raise_locked_memory();
        let size = (word::ALL * 8) as u32;
        let kind = bpf::MAP_ARRAY;
        let spec = MapSpec { kind, name: "wt_control", value_size: size, flags: bpf::MAPPABLE, kernel_type: 0 };
        let map = bpf::create_map(&spec)?;
        let control = SharedWords::new(&map, word::ALL)?;
        write_rules(&control, rules)?;
        let notes = bpf::create_socket_notes("wt_notes", NOTE)?;
        let ring = RecordRing::new("wt_records", RING)?;
        let misfit = |source| LoadError::Misfit { name: NAME.to_owned(), source };
        let fds =
            [("control", &map.as_fd(), MAP_VALUE), ("notes", &notes.as_fd(), MAP), ("records", &ring.as_fd(), MAP)];
        let references = fds.map(|(name, fd, kind)| (name, fd.as_raw_fd(), kind));
        let load = |object, kernel: Option<&Btf>| {
            let (code, license) = placed(object, &references, u64::from(size), kernel).map_err(misfit)?;
            let kind = bpf::PROGRAM_SOCK_OPS;
            let spec = ProgramSpec { kind, name: NAME, instructions: &code, license, operations: 0, member: 0 };
            bpf::load_program(&spec).map_err(|error| rejected(NAME, "sockops", error))
        };
        let with_idle = idle_program().and_then(|(object, kernel)| load(object, Some(&kernel)).ok());
        let knows_idle = with_idle.is_some();
        let program = with_idle.map_or_else(|| load(object, None), Ok)?;
        let link = bpf::link_sock_ops(&program, &cgroup)?;
        Ok(Self { control, ring, patience_ns: rules.patience_ns, knows_idle, _link: link })
    }

    /// Whether records say for how long nothing was outstanding.
    #[must_use]
    pub fn knows_idle(&self) -> bool {
        self.knows_idle
    }

    /// Says that somebody is there: without it nothing is assigned after a while.
    pub fn beat(&self) {
        self.control.write(word::HEARTBEAT, clock::monotonic_ns());
    }

    /// From now on connections belong to this epoch, and to these arms: `below[i]` is where the draws of arm `i` end, of
    /// 2³²; what lies above the last one is in no arm.
    pub fn set_epoch(&self, epoch: u64, below: &[u64]) {
        // Nothing is drawn by halves: whoever comes between is in no arm.
        self.pause();
        self.control.write(word::EPOCH, epoch);
        for (arm, end) in below.iter().take(MAX_ARMS).enumerate() {
            self.control.write(word::BELOW + arm, *end);
        }
        self.control.write(word::ARMS, below.len().min(MAX_ARMS) as u64);
        self.beat();
        self.control.write(word::PATIENCE, self.patience_ns);
    }

    /// Nothing more is assigned until the next epoch; what runs is still recorded.
    pub fn pause(&self) {
        self.control.write(word::PATIENCE, 0);
        self.control.write(word::HEARTBEAT, 0);
    }

    /// How many connections there were.
    #[must_use]
    pub fn counts(&self) -> TrafficCounts {
        TrafficCounts::read(&self.control)
    }

    /// What has become of connections since the last call.
    pub fn records(&mut self) -> Vec<TrafficRecord> {
        let mut found = Vec::new();
        self.ring.drain(|bytes| {
            debug_assert_eq!(bytes.len(), TrafficRecord::SIZE, "the program's record");
            found.extend(TrafficRecord::parse(bytes));
        });
        found
    }
}

fn write_rules(control: &SharedWords, rules: &TrafficRules) -> Result<(), SysError> {
    control.write(word::NAMESPACE, wt_sys::ns::network_cookie()?);
    for at in 0..2 {
        control.write(word::KEY + at, rules.key[at]);
        control.write(word::TAG_KEY + at, rules.tag_key[at]);
    }
    control.write(word::BY_CONNECTION, u64::from(rules.by_connection));
    control.write(word::SKIP_PRIVATE, u64::from(rules.skip_private));
    control.write(word::SKIP_LOOPBACK, u64::from(rules.skip_loopback));
    let varies_cc = rules.arms.iter().any(|arm| arm.congestion_control.is_some());
    control.write(word::SKIP_OWN_CC, u64::from(varies_cc));
    if varies_cc {
        let usual = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control")?;
        for (at, value) in name_words(usual.trim()).into_iter().enumerate() {
            control.write(word::USUAL_CC + at, value);
        }
    }
    for (at, port) in rules.ports.iter().enumerate() {
        control.write(word::PORT + at, u64::from(*port));
    }
    control.write(word::PORTS, rules.ports.len() as u64);
    for (at, arm) in rules.arms.iter().enumerate() {
        arm.write(control, at);
    }
    Ok(())
}

/// The program's code with descriptors of its maps in their places, and accesses to the kernel's structs in theirs; its licence.
fn placed<'a>(
    object: &'a [u8],
    maps: &[(&str, i32, u8)],
    control: u64,
    kernel: Option<&Btf>,
) -> Result<(Vec<u8>, &'a str), Malformed> {
    let elf = Elf::parse(object)?;
    let at = elf.sections.iter().position(|section| section.name == "sockops");
    let at = at.ok_or_else(|| Malformed::new("the object has no program"))?;
    let memory = elf.section(".bss").ok_or_else(|| Malformed::new("the object has no memory"))?.size;
    if memory != control {
        return Err(Malformed::new(format!("the object shares {memory} bytes, and not {control}")));
    }
    let mut code = elf.sections[at].data.to_vec();
    if let Some(kernel) = kernel {
        let section = |name: &str| elf.section(name).ok_or_else(|| Malformed::new(format!("the object has no {name}")));
        let own = Btf::parse(section(".BTF")?.data.to_vec())?;
        for access in accesses(section(".BTF.ext")?.data, &own)?.iter().filter(|access| access.section == "sockops") {
            apply(access, &mut code, &own, kernel)?;
        }
    }
    for relocation in elf.relocations(at)? {
        let symbol = elf.symbols.get(relocation.symbol).ok_or_else(|| Malformed::new("a reference to nothing"))?;
        let found = maps.iter().find(|(name, ..)| *name == symbol.name);
        let (_, fd, kind) = found.ok_or_else(|| Malformed::new(format!("no map is named {}", symbol.name)))?;
        let pair = code.get_mut(relocation.offset..relocation.offset + 16).filter(|pair| pair[0] == 0x18);
        let pair = pair.ok_or_else(|| Malformed::new("a reference from an instruction that loads no address"))?;
        // The place within the value was the instruction's number, and goes into its second half.
        let place: [u8; 4] = if *kind == MAP_VALUE { [pair[4], pair[5], pair[6], pair[7]] } else { [0; 4] };
        pair[1] = pair[1] & 0x0F | kind << 4;
        pair[4..8].copy_from_slice(&fd.to_ne_bytes());
        pair[12..16].copy_from_slice(&place);
    }
    let license = elf.section("license").ok_or_else(|| Malformed::new("the object has no licence"))?;
    Ok((code, crate::text_at(license.data, 0)?))
}
