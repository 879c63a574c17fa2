//! Programs that are called for the note of every socket, and write what they like of it into a file.

use super::{ATTACH_WALK, Attributes, ITER_CREATE, LINK_CREATE, bpf_object, raw};
use crate::{SysError, SysResult};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

/// A walk over the notes of sockets, which can be made again and again.
#[derive(Debug)]
pub struct NoteWalk(OwnedFd);

impl NoteWalk {
    /// Joins a program of [`PROGRAM_TRACING`](super::PROGRAM_TRACING) to a map of notes.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_PERFMON`, `EINVAL` before Linux 5.9.
    ///
    /// # Source
    /// `BPF_LINK_CREATE` with `iter_info`: `bpf_iter_link_attach()` in kernel/bpf/bpf_iter.c.
    pub fn new(program: &impl AsFd, notes: &impl AsFd) -> SysResult<Self> {
        // `union bpf_iter_link_info`: the map is its first word.
        let info = [raw(notes), 0, 0, 0];
        let attributes = Attributes::new()
            .u32(0, raw(program))
            .u32(8, ATTACH_WALK)
            .pointer(16, info.as_ptr())
            .u32(24, size_of_val(&info) as u32);
        // SAFETY: the pointer is to a live array of the length told.
        unsafe { bpf_object(LINK_CREATE, &attributes, || "walk over the notes of sockets".to_owned()) }.map(Self)
    }

    /// What the program writes about all sockets that have a note now.
    ///
    /// # Errors
    /// [`SysError`].
    ///
    /// # Source
    /// `BPF_ITER_CREATE`, Documentation/bpf/bpf_iterators.rst.
    pub fn read(&self) -> SysResult<Vec<u8>> {
        let attributes = Attributes::new().u32(0, raw(&self.0));
        let doing = || "read the notes of sockets".to_owned();
        // SAFETY: there are no pointers among the attributes, and the command makes a descriptor.
        let mut file = File::from(unsafe { bpf_object(ITER_CREATE, &attributes, doing) }?);
        let mut all = Vec::new();
        file.read_to_end(&mut all).map_err(SysError::io(doing()))?;
        Ok(all)
    }
}
