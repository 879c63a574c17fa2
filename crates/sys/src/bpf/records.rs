//! What programs write down: notes that go with their socket, and a ring of records that we read without a system call.

use super::{Attributes, BTF_LOAD, MAP_CREATE, Map, bpf_object, raw};
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAP_SOCKET_STORAGE: u32 = 24;
const MAP_RING: u32 = 27;
const WITHOUT_PREALLOCATION: u32 = 1;

/// Makes a map that keeps one value with each socket for which a program asks, as long as the socket lives.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_BPF`, `EINVAL` before Linux 5.2.
///
/// # Source
/// `BPF_MAP_TYPE_SK_STORAGE`: `bpf_local_storage_map_alloc_check()` in kernel/bpf/bpf_local_storage.c wants types of key and
/// value, of which it reads the size alone.
pub fn create_socket_notes(name: &str, value_size: u32) -> SysResult<Map> {
    const STRINGS: &[u8; 5] = b"\0int\0";
    let mut blob = Vec::new();
    blob.extend_from_slice(&0xEB9F_u16.to_ne_bytes());
    blob.extend_from_slice(&[1, 0]);
    // Header length, types at and long, strings at and long; type 1: INT, 4 bytes, signed; type 2: STRUCT without members.
    for word in [24, 0, 28, 28, STRINGS.len() as u32, 1, 1 << 24, 4, 1 << 24 | 32, 0, 4 << 24, value_size] {
        blob.extend_from_slice(&word.to_ne_bytes());
    }
    blob.extend_from_slice(STRINGS);
    let attributes = Attributes::new().pointer(0, blob.as_ptr()).u32(16, blob.len() as u32);
    // SAFETY: the pointer is to a live buffer of the length told.
    let types = unsafe { bpf_object(BTF_LOAD, &attributes, || "load BTF".to_owned()) }?;
    let attributes = Attributes::new()
        .u32(0, MAP_SOCKET_STORAGE)
        .u32(4, 4)
        .u32(8, value_size)
        .u32(16, WITHOUT_PREALLOCATION)
        .name(28, name)
        .u32(48, raw(&types))
        .u32(52, 1)
        .u32(56, 2);
    // SAFETY: there are no pointers among the attributes.
    let fd = unsafe { bpf_object(MAP_CREATE, &attributes, || format!("create the BPF map {name}")) }?;
    Ok(Map { fd, value_size: value_size as usize })
}

/// A ring that programs write records into and one reader takes them out of.
#[derive(Debug)]
pub struct RecordRing {
    fd: OwnedFd,
    consumed: *mut AtomicU64,
    /// The producer's page, and after it the content, twice in a row.
    produced: *const AtomicU64,
    page: usize,
    size: usize,
}

// SAFETY: the positions are only touched by atomic operations, and the content is read by `&mut self` alone.
unsafe impl Send for RecordRing {}

impl AsFd for RecordRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl RecordRing {
    /// Makes a ring of `size` bytes: a power of two and whole pages.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` before Linux 5.8 and for another size.
    ///
    /// # Source
    /// `BPF_MAP_TYPE_RINGBUF`; how it is mapped: `ringbuf_map_mmap_kern()` and `struct bpf_ringbuf` in kernel/bpf/ringbuf.c.
    pub fn new(name: &str, size: u32) -> SysResult<Self> {
        let attributes = Attributes::new().u32(0, MAP_RING).u32(12, size).name(28, name);
        // SAFETY: there are no pointers among the attributes.
        let fd = unsafe { bpf_object(MAP_CREATE, &attributes, || format!("create the BPF map {name}")) }?;
        // SAFETY: sysconf takes a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let size = size as usize;
        let map = |length: usize, protection: libc::c_int, at: usize| {
            // SAFETY: a new mapping of an open descriptor; the result is checked.
            let place = unsafe {
                let (file, offset) = (fd.as_raw_fd(), at as libc::off_t);
                libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file, offset)
            };
            if place == libc::MAP_FAILED { Err(SysError::last("map a BPF ring into memory")) } else { Ok(place) }
        };
        let consumed = map(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let produced = match map(page + 2 * size, libc::PROT_READ, page) {
            Ok(place) => place,
            Err(error) => {
                // SAFETY: unmaps exactly what has just been mapped.
                unsafe { libc::munmap(consumed, page) };
                return Err(error);
            }
        };
        Ok(Self { fd, consumed: consumed.cast(), produced: produced.cast_const().cast(), page, size })
    }

    /// Gives each record that is complete to `take`, in order, and makes room; how many there were.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        /// `BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT` and `BPF_RINGBUF_HDR_SZ` of linux/bpf.h.
        const BUSY: u32 = 1 << 31;
        const DISCARDED: u32 = 1 << 30;
        const HEADER: usize = 8;
        // SAFETY: both positions are at the start of pages that are mapped as long as `self` lives.
        let (consumed, produced) = unsafe { (&*self.consumed, &*self.produced) };
        let mut at = consumed.load(Ordering::Relaxed);
        let mut count = 0;
        while at < produced.load(Ordering::Acquire) {
            let place = self.page + (at as usize & (self.size - 1));
            // SAFETY: within the mapping, where a header begins: the kernel aligns them to 8 bytes.
            let header = unsafe { &*self.produced.byte_add(place).cast::<AtomicU32>() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let length = ((header & !DISCARDED) as usize).min(self.size);
            if header & DISCARDED == 0 {
                // SAFETY: the content is mapped twice in a row, so that a record of at most `size` bytes has no break; the
                // program that wrote it has let go of it, and nobody writes there before `consumed` moves.
                take(unsafe { std::slice::from_raw_parts(self.produced.byte_add(place + HEADER).cast(), length) });
                count += 1;
            }
            at += (length + HEADER).next_multiple_of(8) as u64;
            consumed.store(at, Ordering::Release);
        }
        count
    }
}

impl Drop for RecordRing {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; nobody holds a reference any more.
        unsafe {
            libc::munmap(self.consumed.cast(), self.page);
            libc::munmap(self.produced.cast_mut().cast(), self.page + 2 * self.size);
        }
    }
}
