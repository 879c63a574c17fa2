//! Experiments on a server's own connections: a program at the root of the control groups assigns each new connection of this
//! network namespace to an arm, sets what the arm says, and records what became of it.
//!
//! Nothing is pinned: the program is gone when this process is, however it ends. Connections that it has assigned keep what
//! they were given, and are served as before.
//!
//! # What this leaves out
//! Connections that exist already, and connections whose listener was made in a control group beside the hierarchy that is mounted
//! here, or in another network namespace. Before Linux 6.15 also what each response took: the record is of the connection then, with
//! the time in which nothing was outstanding apart.

/// What the program and we share.
mod layout;
/// Programs of others that see the same connections.
mod others;

pub use others::{OtherProgram, other_programs};

pub use layout::{
    ArmOptions, LastResponse, MAX_ADMINISTRATORS, MAX_ARMS, MAX_OWN_ADDRESSES, MAX_PORTS, ResponseRecord,
    TrafficCounts, TrafficRecord, TrafficRecords,
};

use crate::btf::Btf;
use crate::elf::Elf;
use crate::registration::{KERNEL_BTF, LoadError, rejected};
use crate::relocate::{accesses, apply};
use crate::{FormatError, connections};
use layout::{address_words, mask_bit, name_words, word};
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use wt_sys::bpf::{self, Map, MapSpec, ProgramSpec, RecordRing, SharedWords, SocketWalk};
use wt_sys::{SysError, clock, process};

include!(concat!(env!("OUT_DIR"), "/traffic_object.rs"));

/// So it is called in errors and by bpftool.
const NAME: &str = "wt_traffic";
/// Room for some 15,000 connections that end between two looks.
const RING: u32 = 1 << 21;
/// Bytes of `struct note`.
const NOTE: u32 = 5 * 8 + 4 * 2 + 2 * 4 + 8 + 16 + 3 * 8 + 4 * 4;
/// Bytes of the table of notes: `struct place` for 8,192 connections.
const TABLE: u32 = 8_192 * (8 + NOTE);
/// `BPF_PSEUDO_MAP_FD`, `BPF_PSEUDO_MAP_VALUE` and `BPF_PSEUDO_KFUNC_CALL` of linux/bpf.h.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;
const KERNEL_FUNCTION: u8 = 2;

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
    /// Whether clients on this host are left alone: on loopback, at the address that they connect to, and at those of
    /// [`TrafficProgram::leave_own_alone`].
    pub skip_loopback: bool,
    /// Whether sockets with a congestion control of their own are left alone, if arms differ in theirs.
    pub skip_own_cc: bool,
    /// Clients that are left alone, whatever else; the first [`MAX_ADMINISTRATORS`] count.
    pub administrators: Vec<IpAddr>,
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
    knows: TrafficKnowledge,
    walk: Option<SocketWalk>,
    _link: OwnedFd,
}

/// What records say besides what every kernel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficKnowledge {
    /// The connection as a whole.
    Connection,
    /// For how long a connection had nothing outstanding, and what of those is known that are still open.
    Idle,
    /// Also each response by itself.
    Responses,
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

/// The programs that know more than the first one, the one that knows most first.
const KNOWING: [(TrafficKnowledge, Option<&[u8]>); 2] =
    [(TrafficKnowledge::Responses, RESPONSES_OBJECT), (TrafficKnowledge::Idle, IDLE_OBJECT)];

/// The kernel's types, without which nothing more can be known; none where they aren't to be had.
fn kernel_types() -> Option<Btf> {
    idle_unknown().is_none().then(|| Btf::parse(std::fs::read(KERNEL_BTF).ok()?).ok()).flatten()
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
    /// [`LoadError`]; with more arms or ports than there is room for, too.
    pub fn attach(rules: &TrafficRules) -> Result<Self, LoadError> {
        for (what, asked, most) in [("arms", rules.arms.len(), MAX_ARMS), ("ports", rules.ports.len(), MAX_PORTS)] {
            if asked > most {
                return Err(LoadError::Room { what, asked, most });
            }
        }
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
        let table = bpf::create_map(&MapSpec { name: "wt_table", value_size: TABLE, ..spec })?;
        let control = SharedWords::new(&map, word::ALL)?;
        write_rules(&control, rules)?;
        let notes = bpf::create_socket_notes("wt_notes", NOTE)?;
        let ring = RecordRing::new("wt_records", RING)?;
        let maps = Maps { control: &map, table: &table, notes: &notes, records: &ring };
        let best = kernel_types().and_then(|kernel| {
            KNOWING.iter().find_map(|(knows, object)| {
                let program = maps.load((*object)?, SOCK_OPS, Some(&kernel)).ok()?;
                Some((program, *knows, maps.walk((*object)?, &kernel).ok()))
            })
        });
        let (program, knows, walk) = match best {
            Some(loaded) => loaded,
            None => (maps.load(object, SOCK_OPS, None)?, TrafficKnowledge::Connection, None),
        };
        let link = bpf::link_sock_ops(&program, &cgroup)?;
        Ok(Self { control, ring, patience_ns: rules.patience_ns, knows, walk, _link: link })
    }

    /// What its records say.
    #[must_use]
    pub fn knows(&self) -> TrafficKnowledge {
        self.knows
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

    /// From now on clients at these addresses of this host are left alone, with [`TrafficRules::skip_loopback`]; the first
    /// [`MAX_OWN_ADDRESSES`] count.
    pub fn leave_own_alone(&self, own: &[IpAddr]) {
        self.control.write(word::OWN_ADDRESSES, 0);
        let mut mask = 0;
        for (at, address) in own.iter().take(MAX_OWN_ADDRESSES).enumerate() {
            let words = address_words(*address);
            mask |= mask_bit(words);
            for (half, value) in words.into_iter().enumerate() {
                self.control.write(word::OWN + 2 * at + half, value);
            }
        }
        self.control.write(word::OWN_MASK, mask);
        self.control.write(word::OWN_ADDRESSES, own.len().min(MAX_OWN_ADDRESSES) as u64);
    }

    /// From now on this congestion control is the host's: with [`TrafficRules::skip_own_cc`] sockets that have another one are left
    /// alone. At first it is what the host had when the program was attached.
    pub fn expect_host_cc(&self, name: &str) {
        write_usual_cc(&self.control, name);
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

    /// What has become of connections and responses since the last call.
    pub fn records(&mut self) -> TrafficRecords {
        let mut found = TrafficRecords::default();
        self.ring.drain(|bytes| match bytes.len() {
            TrafficRecord::SIZE => found.connections.extend(TrafficRecord::parse(bytes)),
            ResponseRecord::SIZE => found.responses.extend(ResponseRecord::parse(bytes)),
            other => debug_assert!(false, "a record of {other} bytes"),
        });
        found
    }

    /// The connections that are still open, as they are now, each with the response that ended last; none where the kernel doesn't
    /// list them.
    ///
    /// # Errors
    /// [`SysError`] where it should and doesn't.
    pub fn still_open(&self) -> Result<TrafficRecords, SysError> {
        let Some(walk) = &self.walk else { return Ok(TrafficRecords::default()) };
        let mut found = TrafficRecords::default();
        for both in walk.read()?.chunks_exact(ResponseRecord::SIZE + TrafficRecord::SIZE) {
            let (before, now) = both.split_at(ResponseRecord::SIZE);
            found.responses.extend(ResponseRecord::parse(before).filter(|response| response.took_ns > 0));
            found.connections.extend(TrafficRecord::parse(now));
        }
        Ok(found)
    }
}

/// The section of the program that sees connections, and of the one that lists those that are open.
const SOCK_OPS: &str = "sockops";
const WALK: &str = "iter";
/// What the kernel calls for every TCP socket of the namespace.
const WALK_FUNCTION: &str = "bpf_iter_tcp";

/// What the programs share.
#[derive(Clone, Copy)]
struct Maps<'a> {
    control: &'a Map,
    table: &'a Map,
    notes: &'a Map,
    records: &'a RecordRing,
}

impl Maps<'_> {
    fn load(&self, object: &[u8], section: &str, kernel: Option<&Btf>) -> Result<OwnedFd, LoadError> {
        let references = [
            ("control", self.control.as_fd().as_raw_fd(), MAP_VALUE),
            ("table", self.table.as_fd().as_raw_fd(), MAP_VALUE),
            ("notes", self.notes.as_fd().as_raw_fd(), MAP),
            ("records", self.records.as_fd().as_raw_fd(), MAP),
        ];
        let misfit = |source| LoadError::Misfit { name: NAME.to_owned(), source };
        let (code, license) = placed(object, section, &references, kernel).map_err(misfit)?;
        let (kind, member, operations) = if section == WALK {
            let function = kernel.and_then(|kernel| kernel.find_function(WALK_FUNCTION));
            let function =
                function.ok_or_else(|| misfit(FormatError::new(format!("this kernel has no {WALK_FUNCTION}"))))?;
            (bpf::PROGRAM_TRACING, bpf::ATTACH_WALK, function)
        } else {
            (bpf::PROGRAM_SOCK_OPS, 0, 0)
        };
        let spec = ProgramSpec { kind, name: NAME, instructions: &code, license, operations, member };
        bpf::load_program(&spec).map_err(|error| rejected(NAME, section, error))
    }

    fn walk(&self, object: &[u8], kernel: &Btf) -> Result<SocketWalk, LoadError> {
        Ok(SocketWalk::new(&self.load(object, WALK, Some(kernel))?)?)
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
    control.write(word::VARIES_CC, u64::from(varies_cc));
    control.write(word::SKIP_OWN_CC, u64::from(varies_cc && rules.skip_own_cc));
    let asks_rwnd = rules.arms.iter().any(|arm| arm.initrwnd.is_some());
    let asks_ecn = rules.arms.iter().any(|arm| arm.accepts_ecn);
    control.write(word::ASKS_REQUESTS, u64::from(asks_rwnd) | u64::from(asks_ecn) << 1);
    for (at, address) in rules.administrators.iter().take(MAX_ADMINISTRATORS).enumerate() {
        for (half, value) in address_words(*address).into_iter().enumerate() {
            control.write(word::ADMINISTRATOR + 2 * at + half, value);
        }
    }
    control.write(word::ADMINISTRATORS, rules.administrators.len().min(MAX_ADMINISTRATORS) as u64);
    if varies_cc {
        write_usual_cc(control, &wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control")?);
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

fn write_usual_cc(control: &SharedWords, name: &str) {
    for (at, value) in name_words(name.trim()).into_iter().enumerate() {
        control.write(word::USUAL_CC + at, value);
    }
}

/// A program's code with descriptors of its maps in their places, accesses to the kernel's structs and calls of its functions in
/// theirs; its licence.
fn placed<'a>(
    object: &'a [u8],
    section: &str,
    maps: &[(&str, i32, u8)],
    kernel: Option<&Btf>,
) -> Result<(Vec<u8>, &'a str), FormatError> {
    /// A call.
    const CALL: u8 = 0x85;
    let elf = Elf::parse(object)?;
    let at = elf.sections.iter().position(|one| one.name == section);
    let at = at.ok_or_else(|| FormatError::new(format!("the object has no program {section}")))?;
    // Only the program that times responses has a table.
    let size = |name: &str| elf.section(name).map_or(0, |section| section.size);
    for (name, expected) in [(".bss", (word::ALL * 8) as u64), (".bss.table", u64::from(TABLE))] {
        if size(name) != expected && (size(name) > 0 || name == ".bss") {
            return Err(FormatError::new(format!("the object has {} bytes of {name}, and not {expected}", size(name))));
        }
    }
    let mut code = elf.sections[at].data.to_vec();
    if let Some(kernel) = kernel {
        let data = |name: &str| elf.section(name).ok_or_else(|| FormatError::new(format!("the object has no {name}")));
        let own = Btf::parse(data(".BTF")?.data.to_vec())?;
        for access in accesses(data(".BTF.ext")?.data, &own)?.iter().filter(|access| access.section == section) {
            apply(access, &mut code, &own, kernel)?;
        }
    }
    for relocation in elf.relocations(at)? {
        let symbol = elf.symbols.get(relocation.symbol).ok_or_else(|| FormatError::new("a reference to nothing"))?;
        let outside = || FormatError::new("a reference from outside of its section");
        let instruction = code.get_mut(relocation.offset..relocation.offset + 8).ok_or_else(outside)?;
        if instruction[0] == CALL {
            // The kernel's own functions are called by their number among its types.
            let function = kernel.and_then(|kernel| kernel.find_function(symbol.name));
            let function = function.ok_or_else(|| FormatError::new(format!("this kernel has no {}", symbol.name)))?;
            instruction[1] = instruction[1] & 0x0F | KERNEL_FUNCTION << 4;
            instruction[2..4].fill(0);
            instruction[4..8].copy_from_slice(&function.to_ne_bytes());
            continue;
        }
        let found = maps.iter().find(|(name, ..)| *name == symbol.name);
        let (_, fd, kind) = found.ok_or_else(|| FormatError::new(format!("no map is named {}", symbol.name)))?;
        let pair = code.get_mut(relocation.offset..relocation.offset + 16).filter(|pair| pair[0] == 0x18);
        let pair = pair.ok_or_else(|| FormatError::new("a reference from an instruction that loads no address"))?;
        // The place within the value was the instruction's number, and goes into its second half.
        let place: [u8; 4] = if *kind == MAP_VALUE { [pair[4], pair[5], pair[6], pair[7]] } else { [0; 4] };
        pair[1] = pair[1] & 0x0F | kind << 4;
        pair[4..8].copy_from_slice(&fd.to_ne_bytes());
        pair[12..16].copy_from_slice(&place);
    }
    let license = elf.section("license").ok_or_else(|| FormatError::new("the object has no licence"))?;
    Ok((code, crate::text_at(license.data, 0)?))
}
