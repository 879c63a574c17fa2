//! bpf(2): maps, programs and links, as far as congestion controls and settings of connections need them.
//!
//! The attributes of each command are written at the offsets of `union bpf_attr` in linux/bpf.h.

/// What programs write down.
mod records;
/// Programs that walk over what the kernel has.
mod walk;

pub use records::{RecordRing, create_socket_notes};
pub use walk::SocketWalk;

use crate::{SysError, SysResult};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const PROG_LOAD: libc::c_int = 5;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const PROGRAM_BY_ID: libc::c_int = 13;
const OBJ_INFO: libc::c_int = 15;
const PROGRAM_QUERY: libc::c_int = 16;
const BTF_LOAD: libc::c_int = 18;
const MAP_FREEZE: libc::c_int = 22;
const LINK_CREATE: libc::c_int = 28;
const ITER_CREATE: libc::c_int = 33;
const LINK_DETACH: libc::c_int = 34;

/// `BPF_PROG_TYPE_STRUCT_OPS`: a member of a `struct_ops`.
pub const PROGRAM_STRUCT_OPS: u32 = 27;
/// `BPF_PROG_TYPE_SOCK_OPS`: called at moments of TCP connections.
pub const PROGRAM_SOCK_OPS: u32 = 13;
/// `BPF_PROG_TYPE_TRACING`: called for functions of the kernel.
pub const PROGRAM_TRACING: u32 = 26;
/// `BPF_TRACE_ITER`: called for each of many things.
pub const ATTACH_WALK: u32 = 28;
const ATTACH_STRUCT_OPS: u32 = 44;
/// `BPF_CGROUP_SOCK_OPS`.
const ATTACH_SOCK_OPS: u32 = 3;

/// `BPF_MAP_TYPE_ARRAY`.
pub const MAP_ARRAY: u32 = 2;
/// `BPF_MAP_TYPE_STRUCT_OPS`.
pub const MAP_STRUCT_OPS: u32 = 26;
/// `BPF_F_RDONLY_PROG`: programs only read it.
pub const READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;
/// `BPF_F_MMAPABLE`.
pub const MAPPABLE: u32 = 1 << 10;
/// `BPF_F_LINK`: registered by a link and not by writing the map; since Linux 6.4.
pub const REGISTERED_BY_LINK: u32 = 1 << 13;

/// What the verifier says at most, bytes.
const LOG_SIZE: usize = 1 << 16;

/// `union bpf_attr` as bytes.
struct Attributes([u64; 19]);

impl Attributes {
    fn new() -> Self {
        Self([0; 19])
    }

    /// Writes 32 bits at a byte offset.
    fn u32(mut self, offset: usize, value: u32) -> Self {
        self.bytes()[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, offset: usize, value: u64) -> Self {
        self.bytes()[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn pointer<T>(self, offset: usize, value: *const T) -> Self {
        self.u64(offset, value as usize as u64)
    }

    /// A name of at most 15 bytes.
    fn name(mut self, offset: usize, name: &str) -> Self {
        let name = &name.as_bytes()[..name.len().min(15)];
        self.bytes()[offset..offset + name.len()].copy_from_slice(name);
        self
    }

    fn bytes(&mut self) -> &mut [u8; 152] {
        // SAFETY: 19 words are 152 bytes, for which every pattern is valid and no alignment is asked.
        unsafe { &mut *(&raw mut self.0).cast() }
    }
}

/// Calls bpf(2).
///
/// # Safety
/// Every pointer among the attributes must be live and as long as the command assumes.
unsafe fn bpf(command: libc::c_int, attributes: &Attributes, doing: impl FnOnce() -> String) -> SysResult<libc::c_int> {
    let size = size_of_val(&attributes.0);
    // SAFETY: the caller vouches for the pointers within; the attributes themselves are live and `size` bytes long.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.0.as_ptr(), size) };
    if result < 0 { Err(SysError::last(doing())) } else { Ok(result as libc::c_int) }
}

/// Calls a command of bpf(2) whose result is a new descriptor.
///
/// # Safety
/// As [`bpf`]; and the command must be one that makes a descriptor.
unsafe fn bpf_object(
    command: libc::c_int,
    attributes: &Attributes,
    doing: impl FnOnce() -> String,
) -> SysResult<OwnedFd> {
    // SAFETY: the caller vouches for the pointers within.
    let fd = unsafe { bpf(command, attributes, doing) }?;
    // SAFETY: the kernel has just given us this descriptor, and it belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn raw(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().unsigned_abs()
}

/// A map with one element, whose key has 32 bits.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    value_size: usize,
}

impl AsFd for Map {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A map to be made. Keys are 32 bits, and there is one.
#[derive(Debug, Clone, Copy)]
pub struct MapSpec<'a> {
    /// `BPF_MAP_TYPE_…`.
    pub kind: u32,
    /// For bpftool; at most 15 letters count.
    pub name: &'a str,
    /// Bytes of its value.
    pub value_size: u32,
    /// `BPF_F_…`.
    pub flags: u32,
    /// The type of its value in the kernel's BTF, for `struct_ops`; else 0.
    pub kernel_type: u32,
}

/// Makes a map with one element.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_BPF`, `EINVAL` where the kernel doesn't know a flag.
///
/// # Source
/// `BPF_MAP_CREATE`, bpf(2); `map_create()` in kernel/bpf/syscall.c, which wants some BTF beside a kernel type.
pub fn create_map(spec: &MapSpec<'_>) -> SysResult<Map> {
    let btf = if spec.kernel_type == 0 { None } else { Some(load_btf()?) };
    let attributes = Attributes::new()
        .u32(0, spec.kind)
        .u32(4, 4)
        .u32(8, spec.value_size)
        .u32(12, 1)
        .u32(16, spec.flags)
        .name(28, spec.name)
        .u32(48, btf.as_ref().map_or(0, raw))
        .u32(60, spec.kernel_type);
    // SAFETY: there are no pointers among the attributes.
    let fd = unsafe { bpf_object(MAP_CREATE, &attributes, || format!("create the BPF map {}", spec.name)) }?;
    Ok(Map { fd, value_size: spec.value_size as usize })
}

/// Loads the smallest BTF that there is: one integer.
fn load_btf() -> SysResult<OwnedFd> {
    const STRINGS: &[u8; 5] = b"\0int\0";
    let mut blob = Vec::new();
    blob.extend_from_slice(&0xEB9F_u16.to_ne_bytes());
    blob.extend_from_slice(&[1, 0]);
    // header length, types at and long, strings at and long; then the type: name, INT (kind 1), size, signed 32 bits
    for word in [24, 0, 16, 16, STRINGS.len() as u32, 1, 1 << 24, 4, 1 << 24 | 32] {
        blob.extend_from_slice(&word.to_ne_bytes());
    }
    blob.extend_from_slice(STRINGS);
    let attributes = Attributes::new().pointer(0, blob.as_ptr()).u32(16, blob.len() as u32);
    // SAFETY: the pointer is to a live buffer of the length told.
    unsafe { bpf_object(BTF_LOAD, &attributes, || "load BTF".to_owned()) }
}

/// Writes the one element of a map.
///
/// # Errors
/// [`SysError`]; for `struct_ops` without a link this registers it: `EEXIST` when the name is taken.
///
/// # Panics
/// When the value isn't as long as the map says.
pub fn write_map(map: &Map, value: &[u8]) -> SysResult<()> {
    assert_eq!(value.len(), map.value_size, "a map's value has its size");
    let key = 0_u32;
    let attributes = Attributes::new().u32(0, raw(map)).pointer(8, &raw const key).pointer(16, value.as_ptr());
    // SAFETY: key and value are live, and the value has the size with which the map was made.
    unsafe { bpf(MAP_UPDATE, &attributes, || "write a BPF map".to_owned()) }.map(drop)
}

/// Takes the one element of a map away; that unregisters a `struct_ops` which was registered without a link.
///
/// # Errors
/// [`SysError`].
pub fn clear_map(map: &Map) -> SysResult<()> {
    let key = 0_u32;
    let attributes = Attributes::new().u32(0, raw(map)).pointer(8, &raw const key);
    // SAFETY: the key is live and has 32 bits, as every `Map`'s has.
    unsafe { bpf(MAP_DELETE, &attributes, || "clear a BPF map".to_owned()) }.map(drop)
}

/// Makes a map unchangeable from user space, so that the verifier may take its values for constants.
///
/// # Errors
/// [`SysError`].
pub fn freeze_map(map: &impl AsFd) -> SysResult<()> {
    let attributes = Attributes::new().u32(0, raw(map));
    // SAFETY: there are no pointers among the attributes.
    unsafe { bpf(MAP_FREEZE, &attributes, || "freeze a BPF map".to_owned()) }.map(drop)
}

/// A program to be loaded.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSpec<'a> {
    /// `BPF_PROG_TYPE_…`.
    pub kind: u32,
    /// For bpftool; at most 15 letters count.
    pub name: &'a str,
    /// Instructions of 8 bytes.
    pub instructions: &'a [u8],
    /// As the kernel compares it with its list of GPL-compatible ones.
    pub license: &'a str,
    /// Of a `struct_ops`, the operations' type in the kernel's BTF; of a [`PROGRAM_TRACING`], the function; else 0.
    pub operations: u32,
    /// Of a `struct_ops`, which member of it; of a [`PROGRAM_TRACING`], how it is attached; else 0.
    pub member: u32,
}

/// A program that wasn't loaded.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct RejectedProgram {
    /// What the kernel said.
    #[source]
    pub source: SysError,
    /// What the verifier said; empty if it never saw the program.
    pub log: String,
}

/// Loads a program.
///
/// # Errors
/// [`RejectedProgram`]; `EPERM` without `CAP_BPF` and `CAP_PERFMON`, `EACCES` or `EINVAL` with a log when the verifier rejects it.
///
/// # Source
/// `BPF_PROG_LOAD`, bpf(2).
pub fn load_program(spec: &ProgramSpec<'_>) -> Result<OwnedFd, RejectedProgram> {
    let doing = || format!("load the BPF program {}", spec.name);
    let license = CString::new(spec.license).unwrap_or_default();
    let mut log = Vec::new();
    let mut attempt = |level: u32| {
        log.resize(if level == 0 { 0 } else { LOG_SIZE }, 0_u8);
        let attributes = Attributes::new()
            .u32(0, spec.kind)
            .u32(4, (spec.instructions.len() / 8) as u32)
            .pointer(8, spec.instructions.as_ptr())
            .pointer(16, license.as_ptr())
            .u32(24, level)
            .u32(28, log.len() as u32)
            .pointer(32, if level == 0 { std::ptr::null() } else { log.as_mut_ptr().cast_const() })
            .name(48, spec.name)
            .u32(68, spec.member)
            .u32(108, spec.operations);
        // SAFETY: instructions, licence and log are live and as long as told; the kernel writes only into the log, which
        // nothing else looks at meanwhile.
        unsafe { bpf_object(PROG_LOAD, &attributes, doing) }
    };
    // The log costs time and may overflow, so it is asked for only after a failure.
    let source = match attempt(0) {
        Ok(program) => return Ok(program),
        Err(source) => source,
    };
    let second = attempt(1);
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    match second {
        Ok(program) => Ok(program),
        Err(_) => Err(RejectedProgram { source, log: String::from_utf8_lossy(&log[..end]).into_owned() }),
    }
}

/// Registers a `struct_ops` for as long as the link is open or pinned.
///
/// # Errors
/// [`SysError`]; `EEXIST` when the name is taken.
pub fn link_struct_ops(map: &impl AsFd) -> SysResult<OwnedFd> {
    let attributes = Attributes::new().u32(0, raw(map)).u32(8, ATTACH_STRUCT_OPS);
    // SAFETY: there are no pointers among the attributes.
    unsafe { bpf_object(LINK_CREATE, &attributes, || "register a BPF congestion control".to_owned()) }
}

/// Lets a program see the TCP connections of all processes in a cgroup and below, in every network namespace, for as long as
/// the link is open or pinned.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_NET_ADMIN`, or where a program that allows no others is attached.
///
/// # Source
/// `BPF_LINK_CREATE` on a cgroup, since Linux 5.7: `cgroup_bpf_link_attach()` in kernel/bpf/cgroup.c.
pub fn link_sock_ops(program: &impl AsFd, cgroup: &impl AsFd) -> SysResult<OwnedFd> {
    let attributes = Attributes::new().u32(0, raw(program)).u32(4, raw(cgroup)).u32(8, ATTACH_SOCK_OPS);
    // SAFETY: there are no pointers among the attributes.
    unsafe { bpf_object(LINK_CREATE, &attributes, || "attach a BPF program to connections".to_owned()) }
}

/// The numbers of the programs that see TCP connections of processes in a cgroup, whether attached to it or above, in the order
/// in which they are called; 64 at most.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_NET_ADMIN`.
///
/// # Source
/// `BPF_PROG_QUERY` with `BPF_F_QUERY_EFFECTIVE`: `__cgroup_bpf_query()` in kernel/bpf/cgroup.c.
pub fn attached_sock_ops(cgroup: &impl AsFd) -> SysResult<Vec<u32>> {
    const EFFECTIVE: u32 = 1;
    /// Where the kernel writes how many there are.
    const COUNT: usize = 24;
    let mut ids = [0_u32; 64];
    let mut attributes = Attributes::new()
        .u32(0, raw(cgroup))
        .u32(4, ATTACH_SOCK_OPS)
        .u32(8, EFFECTIVE)
        .pointer(16, ids.as_mut_ptr().cast_const())
        .u32(COUNT, ids.len() as u32);
    let size = size_of_val(&attributes.0);
    // SAFETY: the attributes are live and `size` bytes long, and the kernel writes the count among them and at most as many
    // numbers as told into a live array.
    let result = unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_QUERY, attributes.0.as_mut_ptr(), size) };
    let error = SysError::last("list BPF programs of connections".to_owned());
    // With more than there is room for it writes the first ones.
    if result < 0 && error.errno() != Some(libc::ENOSPC) {
        return Err(error);
    }
    let count = attributes.bytes()[COUNT..COUNT + 4].try_into().map_or(0, u32::from_ne_bytes);
    Ok(ids[..ids.len().min(count as usize)].to_vec())
}

/// The name of a program.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_SYS_ADMIN`, `ENOENT` when it is gone.
pub fn program_name(id: u32) -> SysResult<String> {
    /// Where `struct bpf_prog_info` has it.
    const NAME: usize = 64;
    let doing = || format!("look at BPF program {id}");
    // SAFETY: there are no pointers among the attributes, and the command makes a descriptor.
    let program = unsafe { bpf_object(PROGRAM_BY_ID, &Attributes::new().u32(0, id), doing) }?;
    let mut info = [0_u64; 10];
    let size = size_of_val(&info) as u32;
    let attributes = Attributes::new().u32(0, raw(&program)).u32(4, size).pointer(8, info.as_mut_ptr().cast_const());
    // SAFETY: the kernel writes at most as many bytes as told into a live array.
    unsafe { bpf(OBJ_INFO, &attributes, doing) }?;
    let bytes: Vec<u8> = info[NAME / 8..].iter().flat_map(|word| word.to_ne_bytes()).take_while(|b| *b != 0).collect();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Ends what a link does, at once: a link that is only closed ends a little later.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `BPF_LINK_DETACH`, since Linux 5.9.
pub fn detach_link(link: &impl AsFd) -> SysResult<()> {
    let attributes = Attributes::new().u32(0, raw(link));
    // SAFETY: there are no pointers among the attributes.
    unsafe { bpf(LINK_DETACH, &attributes, || "detach a BPF program".to_owned()) }.map(drop)
}

fn path_text(path: &Path, doing: &str) -> SysResult<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| SysError {
        doing: doing.to_owned(),
        source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
    })
}

/// Keeps a map or link alive by a file in a bpf file system.
///
/// # Errors
/// [`SysError`]; `EPERM` where the path isn't in a bpf file system, `EEXIST` when the file exists.
pub fn pin(object: &impl AsFd, path: &Path) -> SysResult<()> {
    let doing = format!("pin {}", path.display());
    let text = path_text(path, &doing)?;
    let attributes = Attributes::new().pointer(0, text.as_ptr()).u32(8, raw(object));
    // SAFETY: the path is a live C string.
    unsafe { bpf(OBJ_PIN, &attributes, || doing) }.map(drop)
}

/// Opens what is pinned.
///
/// # Errors
/// [`SysError`].
pub fn open_pinned(path: &Path) -> SysResult<OwnedFd> {
    let doing = format!("open {}", path.display());
    let text = path_text(path, &doing)?;
    let attributes = Attributes::new().pointer(0, text.as_ptr());
    // SAFETY: the path is a live C string.
    unsafe { bpf_object(OBJ_GET, &attributes, || doing) }
}

/// Opens a pinned map whose key has 32 bits, as those of every map of ours have; `None` where something else is pinned.
///
/// # Errors
/// [`SysError`] when it can't be opened.
///
/// # Source
/// `BPF_OBJ_GET_INFO_BY_FD`, bpf(2); `struct bpf_map_info` begins with type, id, size of the key, size of the value.
pub fn open_pinned_map(path: &Path) -> SysResult<Option<Map>> {
    let fd = open_pinned(path)?;
    // Links and programs have a description too, and are told apart by what the kernel says that a descriptor is.
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    if !kind.is_ok_and(|kind| kind.as_os_str() == "anon_inode:bpf-map") {
        return Ok(None);
    }
    let mut info = [0_u32; 4];
    let size = u32::try_from(size_of_val(&info)).unwrap_or(0);
    let attributes = Attributes::new().u32(0, raw(&fd)).u32(4, size).pointer(8, info.as_mut_ptr().cast_const());
    // SAFETY: the kernel writes at most as many bytes as told into a live array.
    unsafe { bpf(OBJ_INFO, &attributes, || format!("describe {}", path.display())) }?;
    let [_, _, key_size, value_size] = info;
    Ok((key_size == 4).then_some(Map { fd, value_size: value_size as usize }))
}

/// Lets this process lock as much memory as it may: kernels before 5.11 count BPF's as locked.
pub fn raise_locked_memory() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads a live struct. It may fail without CAP_SYS_RESOURCE, and newer kernels don't need it.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

/// The value of a mappable array map as words that programs and we share.
#[derive(Debug)]
pub struct SharedWords {
    words: *const AtomicU64,
    count: usize,
    size: usize,
}

// SAFETY: the memory is only touched by atomic operations and lives until the last owner drops it.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps the first `count` words of a map made with [`MAPPABLE`] and at least so large.
    ///
    /// # Errors
    /// [`SysError`].
    ///
    /// # Panics
    /// When the map is smaller.
    pub fn new(map: &Map, count: usize) -> SysResult<Self> {
        assert!(count * 8 <= map.value_size, "the map holds so many words");
        // SAFETY: sysconf takes a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let size = (count.max(1) * 8).next_multiple_of(page);
        // SAFETY: a new mapping of an open descriptor; the result is checked.
        let at = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, map.as_fd().as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(SysError::last("map a BPF map into memory"));
        }
        Ok(Self { words: at.cast_const().cast(), count, size })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.count, "word {index} of {}", self.count);
        // SAFETY: within the mapping, whose pages lie within the map's own, page-aligned, alive as long as `self`, and only used atomically.
        unsafe { &*self.words.add(index) }
    }

    /// A word.
    ///
    /// # Panics
    /// When there is no such word.
    #[must_use]
    pub fn read(&self, index: usize) -> u64 {
        self.word(index).load(Ordering::Relaxed)
    }

    /// Sets a word.
    ///
    /// # Panics
    /// When there is no such word.
    pub fn write(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; nobody holds a reference any more.
        unsafe { libc::munmap(self.words.cast_mut().cast(), self.size) };
    }
}
