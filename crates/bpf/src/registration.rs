use crate::btf::Btf;
use crate::elf::Elf;
use crate::relocate::{accesses, apply};
use crate::{FormatError, Pins};
use std::os::fd::OwnedFd;
use wt_cc::{Choice, SharedState};
use wt_sys::bpf::{self, Map, MapSpec, ProgramSpec, SharedWords};
use wt_sys::{SysError, process};

/// Where the kernel shows its types.
pub(crate) const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";
/// `TCP_CONG_NON_RESTRICTED` of net/tcp.h: any user may choose it.
///
/// Restricted ones are dangerous: naming one in a namespace's `tcp_congestion_control` fails and leaks a reference, so that
/// it can't be unloaded until the next boot.
const NON_RESTRICTED: u32 = 1;
/// Sections of programs: `struct_ops/` and the operation.
const PROGRAM_SECTION: &str = "struct_ops/";
/// `BPF_PSEUDO_MAP_VALUE` of linux/bpf.h: the address of a map's value.
const MAP_VALUE: u8 = 2;

/// Why a congestion control isn't loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// This binary was built without clang.
    #[error("this windtunnel was built without clang, so it has no BPF congestion controls")]
    NotBuilt,
    /// The kernel shows no types.
    #[error("this kernel has no BTF ({KERNEL_BTF}): it was built without CONFIG_DEBUG_INFO_BTF")]
    NoBtf,
    /// The process may not.
    #[error("loading a congestion control needs {}, in the first user namespace", missing.join(" and "))]
    Capabilities {
        /// Which capabilities are missing.
        missing: Vec<&'static str>,
    },
    /// Another one has the name.
    #[error("the kernel already has a congestion control named {name}")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The verifier says no.
    #[error("the kernel's verifier rejects {name} ({operation}): {reason}")]
    Rejected {
        /// Which congestion control.
        name: String,
        /// Which of its programs.
        operation: String,
        /// The last line that the verifier wrote.
        reason: String,
        /// All that it wrote.
        log: String,
    },
    /// The object and this kernel don't fit.
    #[error("{name} can't be made to fit this kernel: {source}")]
    Misfit {
        /// Which congestion control.
        name: String,
        /// What is missing.
        source: FormatError,
    },
    /// More than a program has room for.
    #[error("there is room for {most} {what}, and not for {asked}")]
    Room {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
    /// A system call failed.
    #[error(transparent)]
    System(#[from] SysError),
}

/// The capabilities that loading needs and this process lacks. `CAP_SYS_ADMIN` stands for both.
///
/// # Source
/// capabilities(7).
#[must_use]
pub fn missing_capabilities() -> Vec<&'static str> {
    if process::has_capability(process::CAP_SYS_ADMIN) {
        return Vec::new();
    }
    let needed = [(process::CAP_BPF, "CAP_BPF"), (process::CAP_PERFMON, "CAP_PERFMON")];
    needed.iter().filter(|(number, _)| !process::has_capability(*number)).map(|(_, name)| *name).collect()
}

/// How it is registered.
#[derive(Debug)]
enum RegistrationKind {
    /// As long as the link is open or pinned: since Linux 6.4.
    Link(OwnedFd),
    /// Until the map is cleared. A kill of this process leaves it behind.
    Map,
}

/// A congestion control in the kernel, until dropped or as long as it is pinned.
#[derive(Debug)]
pub struct RegisteredControl {
    name: String,
    operations: Map,
    held: RegistrationKind,
    pinned: bool,
    shared: SharedWords,
}

impl RegisteredControl {
    /// Loads and registers it under [`Choice::kernel_name`].
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(choice: &Choice) -> Result<Self, LoadError> {
        Self::load_as(choice, choice.kernel_name())
    }

    /// Loads and registers it under its usual name or, when that is taken, under one that nobody else has: for an experiment,
    /// which must not share its counters and seeds with another one.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_privately(choice: &Choice) -> Result<Self, LoadError> {
        /// So many names of one's own are tried.
        const NAMES: u32 = 16;
        let mut result = Self::load(choice);
        for attempt in 0..NAMES {
            if !matches!(result, Err(LoadError::NameTaken { .. })) {
                break;
            }
            let salt = std::process::id().wrapping_add(attempt.wrapping_mul(0x9E37_79B9));
            result = Self::load_as(choice, choice.private_name(salt));
        }
        result
    }

    /// Loads and registers it under a name of 1 to 15 letters, digits and underscores.
    fn load_as(choice: &Choice, name: String) -> Result<Self, LoadError> {
        let object = choice.algorithm.object().ok_or(LoadError::NotBuilt)?;
        Self::load_object(choice, name, object)
    }

    /// Loads an object that clang made of the algorithm's source, and registers it under this name.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load_object(choice: &Choice, name: String, object: &[u8]) -> Result<Self, LoadError> {
        let missing = missing_capabilities();
        if !missing.is_empty() {
            return Err(LoadError::Capabilities { missing });
        }
        let kernel = std::fs::read(KERNEL_BTF).map_err(|_| LoadError::NoBtf)?;
        bpf::raise_locked_memory();
        let misfit = |source| LoadError::Misfit { name: name.clone(), source };
        let kernel = Btf::parse(kernel).map_err(misfit)?;
        let image = Image::new(object, &kernel).map_err(misfit)?;
        image.load(choice, &name, &kernel).map_err(|error| match error {
            LoadError::System(error) if error.errno() == Some(1) => {
                LoadError::Capabilities { missing: vec!["CAP_BPF", "CAP_PERFMON"] }
            }
            other => other,
        })
    }

    /// What the kernel calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has counted since it was loaded.
    #[must_use]
    pub fn counted(&self) -> SharedState {
        SharedState::from_words(|word| self.shared.read(word))
    }

    /// Seeds the random choices of connections that begin from now on, and counts them from zero.
    pub fn seed(&self, seed: u64) {
        self.shared.write(SharedState::SEED, seed);
        self.shared.write(SharedState::SEED + 1, 0);
    }

    /// Whether it goes with this process even when that is killed, unless pinned.
    #[must_use]
    pub fn goes_with_process(&self) -> bool {
        matches!(self.held, RegistrationKind::Link(_))
    }

    /// Keeps it in the kernel when this process has ended.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn pin(&mut self, pins: &Pins) -> Result<(), SysError> {
        pins.prepare()?;
        let path = pins.path(&self.name);
        match &self.held {
            RegistrationKind::Link(link) => bpf::pin(link, &path)?,
            RegistrationKind::Map => bpf::pin(&self.operations, &path)?,
        }
        self.pinned = true;
        Ok(())
    }
}

impl Drop for RegisteredControl {
    fn drop(&mut self) {
        if matches!(self.held, RegistrationKind::Map) && !self.pinned {
            let _ = bpf::clear_map(&self.operations);
        }
    }
}

/// A program before it has its maps.
struct Program<'a> {
    operation: &'a str,
    code: Vec<u8>,
    /// Which instruction refers to which of the two maps, and where in it.
    references: Vec<(usize, Data)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    Constants,
    Counters,
}

/// An object whose accesses fit the running kernel.
struct Image<'a> {
    programs: Vec<Program<'a>>,
    license: &'a str,
    constants: &'a [u8],
    counters: u64,
}

impl<'a> Image<'a> {
    fn new(object: &'a [u8], kernel: &Btf) -> Result<Self, FormatError> {
        let elf = Elf::parse(object)?;
        let section =
            |name: &str| elf.section(name).ok_or_else(|| FormatError::new(format!("the object has no {name}")));
        let own = Btf::parse(section(".BTF")?.data.to_vec())?;
        let accesses = accesses(section(".BTF.ext")?.data, &own)?;
        let mut programs = Vec::new();
        for (index, section) in elf.sections.iter().enumerate() {
            let Some(operation) = section.name.strip_prefix(PROGRAM_SECTION) else { continue };
            let mut code = section.data.to_vec();
            for access in accesses.iter().filter(|access| access.section == section.name) {
                apply(access, &mut code, &own, kernel)?;
            }
            let references = references(&elf, index, &mut code)?;
            programs.push(Program { operation, code, references });
        }
        let license = crate::text_at(section("license")?.data, 0)?;
        Ok(Self { programs, license, constants: section(".rodata")?.data, counters: section(".bss")?.size })
    }

    /// Makes the maps, loads the programs and registers them.
    fn load(mut self, choice: &Choice, name: &str, kernel: &Btf) -> Result<RegisteredControl, LoadError> {
        let misfit = |source| LoadError::Misfit { name: name.to_owned(), source };
        let constants = self.constants(choice, name)?;
        let counters = array(name, self.counters as u32, bpf::MAPPABLE)?;
        let layout = Layout::new(kernel).map_err(misfit)?;
        let mut programs = Vec::new();
        for program in &mut self.programs {
            for (at, data) in &program.references {
                use std::os::fd::{AsFd as _, AsRawFd as _};
                let map = if *data == Data::Constants { &constants } else { &counters };
                program.code[at + 4..at + 8].copy_from_slice(&map.as_fd().as_raw_fd().to_ne_bytes());
            }
            let Some((member, offset)) = layout.member(kernel, program.operation).map_err(misfit)? else {
                return Err(misfit(FormatError::new(format!("there is no operation {}", program.operation))));
            };
            let spec = ProgramSpec {
                kind: bpf::PROGRAM_STRUCT_OPS,
                name: program.operation,
                instructions: &program.code,
                license: self.license,
                operations: layout.operations,
                member,
            };
            let loaded = bpf::load_program(&spec).map_err(|error| rejected(name, program.operation, error))?;
            programs.push((offset, loaded));
        }
        let value = layout.value(kernel, name, &programs).map_err(misfit)?;
        let shared = SharedWords::new(&counters, SharedState::WORDS)?;
        let (operations, held) = register(name, &layout, &value)?;
        Ok(RegisteredControl { name: name.to_owned(), operations, held, pinned: false, shared })
    }

    /// The map of parameters, which nobody can change any more.
    fn constants(&self, choice: &Choice, name: &str) -> Result<Map, LoadError> {
        let mut value = self.constants.to_vec();
        let words = choice.values.iter().flat_map(|value| value.to_ne_bytes());
        if value.len() < choice.values.len() * 4 {
            let source = FormatError::new("the object has fewer parameters than the table");
            return Err(LoadError::Misfit { name: name.to_owned(), source });
        }
        for (byte, word) in value.iter_mut().zip(words) {
            *byte = word;
        }
        let map = array(name, value.len() as u32, bpf::READ_ONLY_FOR_PROGRAMS)?;
        bpf::write_map(&map, &value)?;
        bpf::freeze_map(&map)?;
        Ok(map)
    }
}

fn array(name: &str, value_size: u32, flags: u32) -> Result<Map, SysError> {
    bpf::create_map(&MapSpec { kind: bpf::MAP_ARRAY, name, value_size, flags, kernel_type: 0 })
}

/// Finds what a section's instructions refer to, and writes the place within the map into each.
fn references(elf: &Elf<'_>, section: usize, code: &mut [u8]) -> Result<Vec<(usize, Data)>, FormatError> {
    let mut found = Vec::new();
    for relocation in elf.relocations(section)? {
        let at = relocation.offset;
        let symbol = elf.symbols.get(relocation.symbol).ok_or_else(|| FormatError::new("a reference to nothing"))?;
        let target = elf.sections.get(symbol.section).map_or("", |section| section.name);
        let data = match target {
            ".rodata" => Data::Constants,
            ".bss" => Data::Counters,
            _ => {
                return Err(FormatError::new(format!("a reference to {}, which this loader can't place", symbol.name)));
            }
        };
        let wide = code.get(at..at + 16).filter(|pair| pair[0] == 0x18);
        let pair = wide.ok_or_else(|| FormatError::new("a reference from an instruction that loads no address"))?;
        let place = crate::u32_at(pair, 4)? + symbol.value as u32;
        code[at + 1] = code[at + 1] & 0x0F | MAP_VALUE << 4;
        code[at + 12..at + 16].copy_from_slice(&place.to_ne_bytes());
        found.push((at, data));
    }
    Ok(found)
}

/// Where the kernel wants what.
struct Layout {
    /// `struct tcp_congestion_ops`.
    operations: u32,
    /// The struct around it, which a map holds.
    value_type: u32,
    value_size: u32,
    /// Where the operations are in it, bytes.
    data: usize,
}

impl Layout {
    fn new(kernel: &Btf) -> Result<Self, FormatError> {
        let find = |name: &str| {
            kernel.find_struct(name).ok_or_else(|| FormatError::new(format!("this kernel has no struct {name}")))
        };
        let operations = find("tcp_congestion_ops")?;
        let value_type = find("bpf_struct_ops_tcp_congestion_ops")?;
        let data = kernel.member(value_type, "data")?.ok_or_else(|| FormatError::new("struct_ops without data"))?;
        let value_size = kernel.size(value_type)?;
        Ok(Self { operations, value_type, value_size, data: data.bit_offset as usize / 8 })
    }

    /// An operation's number, and where its program goes in the value.
    fn member(&self, kernel: &Btf, name: &str) -> Result<Option<(u32, usize)>, FormatError> {
        let number = kernel.member_names(self.operations)?.iter().position(|member| *member == name);
        let field = kernel.member(self.operations, name)?;
        let place = |bit_offset: u32| self.data + bit_offset as usize / 8;
        Ok(number.zip(field).map(|(number, field)| (number as u32, place(field.bit_offset))))
    }

    /// The value that registers the programs under a name.
    fn value(&self, kernel: &Btf, name: &str, programs: &[(usize, OwnedFd)]) -> Result<Vec<u8>, FormatError> {
        use std::os::fd::AsRawFd as _;
        let mut value = vec![0_u8; self.value_size as usize];
        let mut put = |at: usize, bytes: &[u8]| {
            let room = value.get_mut(at..at + bytes.len());
            room.map(|room| room.copy_from_slice(bytes))
                .ok_or_else(|| FormatError::new("a struct shorter than its members"))
        };
        let place = |member: &str| {
            let found = self.member(kernel, member)?;
            found.map(|(_, at)| at).ok_or_else(|| FormatError::new(format!("tcp_congestion_ops without {member}")))
        };
        put(place("name")?, name.as_bytes())?;
        put(place("flags")?, &NON_RESTRICTED.to_ne_bytes())?;
        for (at, program) in programs {
            // The kernel reads the number of the descriptor where the pointer will be.
            put(*at, &u64::from(program.as_raw_fd().unsigned_abs()).to_ne_bytes())?;
        }
        Ok(value)
    }
}

/// Registers by a link where the kernel has that, and else by the map itself.
fn register(name: &str, layout: &Layout, value: &[u8]) -> Result<(Map, RegistrationKind), LoadError> {
    let taken = |error: SysError| match error.errno() {
        Some(17) => LoadError::NameTaken { name: name.to_owned() },
        _ => LoadError::System(error),
    };
    let spec = |flags| MapSpec {
        kind: bpf::MAP_STRUCT_OPS,
        name,
        value_size: layout.value_size,
        flags,
        kernel_type: layout.value_type,
    };
    match bpf::create_map(&spec(bpf::REGISTERED_BY_LINK)) {
        Ok(map) => {
            bpf::write_map(&map, value).map_err(taken)?;
            let link = bpf::link_struct_ops(&map).map_err(taken)?;
            Ok((map, RegistrationKind::Link(link)))
        }
        // EINVAL: the flag is of Linux 6.4.
        Err(error) if error.errno() == Some(22) => {
            let map = bpf::create_map(&spec(0))?;
            bpf::write_map(&map, value).map_err(taken)?;
            Ok((map, RegistrationKind::Map))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn rejected(name: &str, operation: &str, error: bpf::RejectedProgram) -> LoadError {
    if error.log.trim().is_empty() {
        return LoadError::System(error.source);
    }
    let said = |line: &&str| !line.trim().is_empty() && !line.starts_with("processed ");
    let reason = error.log.lines().rev().find(said).unwrap_or_default().trim().to_owned();
    LoadError::Rejected { name: name.to_owned(), operation: operation.to_owned(), reason, log: error.log }
}
