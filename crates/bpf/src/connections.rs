//! Settings that sockets have and routes don't, for connections with one network: a program at the root of the control groups
//! sets them as each connection begins, as the application could by setsockopt(2).
//!
//! # What this leaves out
//! Connections that exist already, and processes in control groups beside the hierarchy that is mounted here. A program's own
//! setsockopt(2) on a connected socket wins. Of connections from outside, the first window (in the SYN-ACK) is the kernel's.

use crate::{FormatError, mount_bpffs};
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use wt_sys::bpf::{self, PROGRAM_SOCK_OPS, ProgramSpec};
use wt_sys::{SysError, SysResult};

/// The files that keep rules in force when nobody runs any more.
const FOLDER: &str = "/sys/fs/bpf/windtunnel-connections";
/// Kernels before it don't tell a program in which network namespace a connection is.
const SINCE: &str = "Linux 5.15";

/// What the sockets of new connections with a network get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionRule {
    /// The network namespace, by its cookie.
    pub namespace: u64,
    /// The network's address.
    pub address: IpAddr,
    /// Bits of the address that count.
    pub bits: u8,
    /// Greatest receive window, bytes.
    pub window: Option<u32>,
    /// Send buffer, bytes (the kernel doubles it for its own use).
    pub send_buffer: Option<u32>,
    /// Unsent bytes above which the socket isn't writable.
    pub unsent_low_water: Option<u32>,
}

impl ConnectionRule {
    /// A rule without settings for a network of a namespace.
    #[must_use]
    pub fn new(namespace: u64, address: IpAddr, bits: u8) -> Self {
        Self { namespace, address, bits, window: None, send_buffer: None, unsent_low_water: None }
    }

    /// Whether it sets nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.settings().all(|(_, value)| value.is_none())
    }

    /// Settings with the letter that stands for each in names.
    fn settings(&self) -> impl Iterator<Item = (char, Option<u32>)> {
        [('w', self.window), ('s', self.send_buffer), ('l', self.unsent_low_water)].into_iter()
    }

    fn octets(&self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let mut words = name.split('-');
        let namespace = u64::from_str_radix(words.next()?, 16).ok()?;
        let hex = words.next()?;
        let digits = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let octets: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect::<Option<_>>()?;
        let v4 = <[u8; 4]>::try_from(octets.as_slice()).map(IpAddr::from).ok();
        let address = v4.or_else(|| <[u8; 16]>::try_from(octets.as_slice()).map(IpAddr::from).ok())?;
        let bits = words.next()?.parse().ok().filter(|bits: &u8| usize::from(*bits) <= octets.len() * 8)?;
        let mut rule = Self::new(namespace, address, bits);
        for word in words {
            let value = word.get(1..)?.parse().ok()?;
            match word.as_bytes()[0] {
                b'w' => rule.window = Some(value),
                b's' => rule.send_buffer = Some(value),
                b'l' => rule.unsent_low_water = Some(value),
                _ => return None,
            }
        }
        Some(rule)
    }

    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(self.to_string())
    }

    /// Puts it in force for new connections, also after this process. Nothing happens if it is so already.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN` in the first user namespace.
    pub fn add(&self) -> SysResult<()> {
        let path = self.path();
        if path.exists() {
            return Ok(());
        }
        let cgroup = control_groups().ok_or_else(|| missing("attach a BPF program to connections"))?;
        let cgroup = File::open(&cgroup).map_err(SysError::io(format!("open {}", cgroup.display())))?;
        bpf::raise_locked_memory();
        let instructions = self.instructions();
        let spec = ProgramSpec {
            kind: PROGRAM_SOCK_OPS,
            name: "wt_connections",
            instructions: &instructions,
            license: "Dual MIT/GPL",
            operations: 0,
            member: 0,
        };
        let program = bpf::load_program(&spec).map_err(|rejected| rejected.source)?;
        let is_full = |error: &SysError| error.source.kind() == std::io::ErrorKind::ArgumentListTooLong;
        let link = match bpf::link_sock_ops(&program, &cgroup) {
            // Programs of namespaces that have ended are still called, and take the room of others.
            Err(error) if is_full(&error) && Self::remove_orphans() > 0 => bpf::link_sock_ops(&program, &cgroup),
            attached => attached,
        };
        let link = link.map_err(|error| match is_full(&error) {
            true => {
                SysError { doing: format!("{} beside the 64 that there may be (ours: {FOLDER})", error.doing), ..error }
            }
            false => error,
        })?;
        mount_bpffs()?;
        std::fs::create_dir_all(FOLDER).map_err(SysError::io(format!("create {FOLDER}")))?;
        bpf::pin(&link, &path)
    }

    /// Takes it out of force for new connections; those that it has set keep their settings. Nothing happens if it isn't in force.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn remove(&self) -> SysResult<()> {
        let path = self.path();
        if !path.exists() {
            return Ok(());
        }
        bpf::detach_link(&bpf::open_pinned(&path)?)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SysError { doing: format!("remove {}", path.display()), source: error })
            }
            _ => {
                // The folder goes with the last one.
                let _ = std::fs::remove_dir(FOLDER);
                Ok(())
            }
        }
    }

    /// Removes the rules of network namespaces that are no more; how many those were. None are, where it isn't known which there are.
    pub fn remove_orphans() -> usize {
        // First the rules: namespaces of later ones may be missing among those that are looked for then.
        let rules = Self::all();
        let Ok(alive) = wt_sys::namespaces::live_network_cookies() else { return 0 };
        let orphans = rules.into_iter().filter(|rule| !alive.contains(&rule.namespace));
        orphans.filter(|rule| rule.remove().is_ok()).count()
    }

    /// The rules that are in force in a network namespace.
    #[must_use]
    pub fn in_force(namespace: u64) -> Vec<Self> {
        Self::all().into_iter().filter(|rule| rule.namespace == namespace).collect()
    }

    fn all() -> Vec<Self> {
        let Ok(folder) = std::fs::read_dir(FOLDER) else { return Vec::new() };
        let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Self::parse(&name)).collect()
    }

    /// Why there can't be any here; `None` where there can, privileges apart.
    #[must_use]
    pub fn unavailable() -> Option<String> {
        if !wt_sys::ns::is_first_user_namespace() {
            return Some("BPF programs can't be attached to connections from within a user namespace".to_owned());
        }
        if control_groups().is_none() {
            return Some(
                "no hierarchy of control groups of version 2 is mounted, to which a BPF program could be attached"
                    .to_owned(),
            );
        }
        let old = wt_sys::ns::network_cookie().is_err();
        old.then(|| format!("this kernel doesn't tell BPF programs where a connection is ({SINCE} does)"))
    }

    /// The program for this rule.
    ///
    /// # Source
    /// `struct bpf_sock_ops` and `enum` of its operations in linux/bpf.h; `tcp_connect()`, `tcp_init_transfer()` and
    /// `tcp_established_options()` of the kernel call it. The last one is called before every segment, also an
    /// acknowledgement: Linux since 6.11 moves the clamp when it learns how much memory a segment takes, so it is set again there.
    fn instructions(&self) -> Vec<u8> {
        const CONNECT: i32 = 3;
        const ACCEPTED: i32 = 5;
        const BEFORE_SEGMENT: i32 = 14;
        const WRITE_OPTIONS: i32 = 1 << 6;
        const SOCKET: i32 = 1;
        const TCP: i32 = 6;
        const SNDBUF: i32 = 7;
        const RCVBUF: i32 = 8;
        const WINDOW_CLAMP: i32 = 10;
        const NOTSENT_LOWAT: i32 = 25;
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let mut program = Program::default();
        program.copy(6, 1);
        program.load(7, 6, context::OPERATION);
        for operation in [CONNECT, ACCEPTED, BEFORE_SEGMENT] {
            program.jump_if_equal(7, operation, Label::Matching);
        }
        program.jump(Label::End);
        program.place(Label::Matching);
        program.copy(1, 6);
        program.call(helper::NETWORK_COOKIE);
        program.constant(2, self.namespace);
        program.jump_if_registers_differ(0, 2, Label::End);
        self.match_address(&mut program);
        if let Some(window) = self.window {
            program.set_option(TCP, WINDOW_CLAMP, number(window));
        }
        program.jump_if_equal(7, BEFORE_SEGMENT, Label::End);
        if let Some(window) = self.window {
            // Room for twice the window, as in trials: it never fills, and autotuning is off.
            program.set_option(SOCKET, RCVBUF, number(window.saturating_mul(2)));
            program.set_option(TCP, WINDOW_CLAMP, number(window));
            program.load(2, 6, context::FLAGS);
            program.or(2, WRITE_OPTIONS);
            program.copy(1, 6);
            program.call(helper::SET_FLAGS);
        }
        if let Some(bytes) = self.send_buffer {
            program.set_option(SOCKET, SNDBUF, number(bytes));
        }
        if let Some(bytes) = self.unsent_low_water {
            program.set_option(TCP, NOTSENT_LOWAT, number(bytes));
        }
        program.place(Label::End);
        program.number(0, 1);
        program.exit();
        program.finish()
    }

    /// Jumps to the end unless the remote address lies in the network. IPv4 may come over a socket of IPv6.
    fn match_address(&self, program: &mut Program) {
        const AF_INET: i32 = 2;
        let words = |octets: &[u8]| -> Vec<u32> {
            octets.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect()
        };
        let (octets, bits) = (self.octets(), u32::from(self.bits));
        program.load(8, 6, context::FAMILY);
        if octets.len() == 4 {
            program.jump_if_equal(8, AF_INET, Label::Version4);
            for (at, word) in [(0, 0), (1, 0), (2, 0xffff)] {
                program.compare_word(context::REMOTE_V6 + at * 4, u32::MAX, word);
            }
            program.place(Label::Version4);
            program.compare_word(context::REMOTE_V4, mask(bits), words(&octets)[0]);
        } else {
            program.jump_if_equal(8, AF_INET, Label::End);
            for (at, word) in (0_u32..).zip(words(&octets)) {
                let offset = context::REMOTE_V6 + i16::try_from(at).unwrap_or(0) * 4;
                program.compare_word(offset, mask(bits.saturating_sub(at * 32).min(32)), word);
            }
        }
    }
}

impl std::fmt::Display for ConnectionRule {
    /// The whole rule as the name of a file: names in a bpf file system have no dots.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}-", self.namespace)?;
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, "-{}", self.bits)?;
        let mut settings = self.settings().filter_map(|(letter, value)| Some((letter, value?)));
        settings.try_for_each(|(letter, value)| write!(f, "-{letter}{value}"))
    }
}

impl std::str::FromStr for ConnectionRule {
    type Err = FormatError;

    /// Reads what [`Display`](std::fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::parse(text).ok_or_else(|| FormatError::new(format!("\"{text}\" is no rule for connections")))
    }
}

/// The highest bits of a word.
fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

pub(crate) fn missing(doing: &str) -> SysError {
    SysError { doing: doing.to_owned(), source: std::io::Error::from(std::io::ErrorKind::Unsupported) }
}

/// Where the control groups of version 2 are mounted. `ip netns exec` mounts another /sys over them, for itself alone: then they are
/// where the first process sees them, if that may be looked at.
pub(crate) fn control_groups() -> Option<PathBuf> {
    ["thread-self", "1"].iter().find_map(|process| {
        let mounts = std::fs::read_to_string(format!("/proc/{process}/mounts")).ok()?;
        let root = if *process == "1" { "/proc/1/root" } else { "" };
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (place, kind) = (fields.next()?, fields.next()?);
            let place = PathBuf::from(format!("{root}{place}"));
            (kind == "cgroup2" && place.join("cgroup.controllers").exists()).then_some(place)
        })
    })
}

/// Offsets within `struct bpf_sock_ops`.
mod context {
    pub(super) const OPERATION: i16 = 0;
    pub(super) const FAMILY: i16 = 20;
    pub(super) const REMOTE_V4: i16 = 24;
    pub(super) const REMOTE_V6: i16 = 32;
    pub(super) const FLAGS: i16 = 84;
}

/// Numbers of functions that programs call: `enum bpf_func_id`.
mod helper {
    pub(super) const SETSOCKOPT: i32 = 49;
    pub(super) const SET_FLAGS: i32 = 59;
    pub(super) const NETWORK_COOKIE: i32 = 122;
}

/// A place in the program that is jumped to, always forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Matching,
    Version4,
    End,
}

/// Instructions in the making: `struct bpf_insn`, 8 bytes each.
#[derive(Debug, Default)]
struct Program {
    code: Vec<[u8; 8]>,
    jumps: Vec<(usize, Label)>,
}

impl Program {
    fn push(&mut self, code: u8, target: u8, source: u8, offset: i16, number: i32) {
        // Registers share a byte: the first field is in the lower half where the lower byte comes first.
        let registers = if cfg!(target_endian = "big") { target << 4 | source } else { source << 4 | target };
        let ([o0, o1], [n0, n1, n2, n3]) = (offset.to_ne_bytes(), number.to_ne_bytes());
        self.code.push([code, registers, o0, o1, n0, n1, n2, n3]);
    }

    fn copy(&mut self, target: u8, source: u8) {
        self.push(0xbf, target, source, 0, 0);
    }

    fn number(&mut self, target: u8, number: i32) {
        self.push(0xb7, target, 0, 0, number);
    }

    fn or(&mut self, target: u8, number: i32) {
        self.push(0x47, target, 0, 0, number);
    }

    /// 64 bits take two instructions.
    fn constant(&mut self, target: u8, value: u64) {
        let halves = [value as u32, (value >> 32) as u32].map(u32::cast_signed);
        self.push(0x18, target, 0, 0, halves[0]);
        self.push(0, 0, 0, 0, halves[1]);
    }

    /// Loads 32 bits.
    fn load(&mut self, target: u8, source: u8, offset: i16) {
        self.push(0x61, target, source, offset, 0);
    }

    fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    fn exit(&mut self) {
        self.push(0x95, 0, 0, 0, 0);
    }

    fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, 0, 0, 0, 0);
    }

    fn jump_if_equal(&mut self, register: u8, number: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x15, register, 0, 0, number);
    }

    fn jump_if_registers_differ(&mut self, a: u8, b: u8, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x5d, a, b, 0, 0);
    }

    /// Jumps to the end unless the context's word, which is in network order, has these bits.
    fn compare_word(&mut self, offset: i16, mask: u32, value: u32) {
        if mask == 0 {
            return;
        }
        self.load(2, 6, offset);
        // The lower half of a register alone: or else the mask's sign would be spread over the upper one.
        self.push(0x54, 2, 0, 0, mask.to_be().cast_signed());
        self.constant(3, u64::from((value & mask).to_be()));
        self.jump_if_registers_differ(2, 3, Label::End);
    }

    /// `setsockopt` of the connection's socket; a refusal leaves the socket as it was.
    fn set_option(&mut self, level: i32, option: i32, value: i32) {
        self.push(0x62, 10, 0, -4, value);
        self.copy(1, 6);
        self.number(2, level);
        self.number(3, option);
        self.copy(4, 10);
        self.push(0x07, 4, 0, 0, -4);
        self.number(5, 4);
        self.call(helper::SETSOCKOPT);
    }

    /// Here is where jumps to a label land.
    fn place(&mut self, label: Label) {
        let here = self.code.len();
        for (at, _) in self.jumps.iter().filter(|(_, to)| *to == label) {
            let distance = i16::try_from(here - at - 1).unwrap_or(i16::MAX);
            self.code[*at][2..4].copy_from_slice(&distance.to_ne_bytes());
        }
        self.jumps.retain(|(_, to)| *to != label);
    }

    fn finish(self) -> Vec<u8> {
        self.code.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionRule;

    #[test]
    fn a_rule_is_read_from_its_file_name() {
        for (address, bits) in [("192.0.2.0", 24), ("2001:db8::1", 128), ("0.0.0.0", 0)] {
            let mut rule = ConnectionRule::new(0x1_0000_0007, address.parse().unwrap(), bits);
            for (window, send_buffer) in [(Some(8_192), None), (Some(1), Some(u32::MAX)), (None, None)] {
                (rule.window, rule.send_buffer) = (window, send_buffer);
                let name = rule.to_string();
                assert!(!name.contains('.') && name.len() < 128, "{name}");
                assert_eq!(name.parse(), Ok(rule.clone()), "{name}");
            }
        }
        for name in ["", "x", "1-c000", "1-c0000200-33", "1-c0000200-24-", "1-c0000200-24-q5", "1-ü0000200-24"] {
            assert!(name.parse::<ConnectionRule>().is_err(), "{name}");
        }
    }

    #[test]
    fn every_jump_has_found_its_label() {
        for (address, bits) in [("192.0.2.0", 24), ("2001:db8::1", 77)] {
            let mut rule = ConnectionRule::new(1, address.parse().unwrap(), bits);
            (rule.window, rule.send_buffer, rule.unsent_low_water) = (Some(8_192), Some(65_536), Some(16_384));
            let code = rule.instructions();
            let jumps: Vec<usize> = code
                .chunks_exact(8)
                .enumerate()
                .filter(|(_, one)| matches!(one[0], 0x05 | 0x15 | 0x5d))
                .map(|(at, one)| at + 1 + usize::from(u16::from_ne_bytes([one[2], one[3]])))
                .collect();
            assert!(jumps.len() > 6 && jumps.iter().all(|to| *to < code.len() / 8), "{jumps:?}");
        }
    }
}
