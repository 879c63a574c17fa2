//! Programs that are called for every TCP socket, and write what they like of it into a file.

use super::{ATTACH_WALK, Attributes, ITER_CREATE, LINK_CREATE, bpf_object, raw};
use crate::{SysError, SysResult};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

/// A walk over the TCP sockets of a network namespace, which can be made again and again.
#[derive(Debug)]
pub struct SocketWalk(OwnedFd);

impl SocketWalk {
    /// Makes a walk of a program of [`PROGRAM_TRACING`](super::PROGRAM_TRACING).
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_PERFMON`, `EINVAL` before Linux 5.9.
    ///
    /// # Source
    /// `BPF_LINK_CREATE`: `bpf_iter_link_attach()` in kernel/bpf/bpf_iter.c.
    pub fn new(program: &impl AsFd) -> SysResult<Self> {
        let attributes = Attributes::new().u32(0, raw(program)).u32(8, ATTACH_WALK);
        // SAFETY: there are no pointers among the attributes, and the command makes a descriptor.
        unsafe { bpf_object(LINK_CREATE, &attributes, || "walk over TCP sockets".to_owned()) }.map(Self)
    }

    /// What the program writes about the sockets of the caller's network namespace, as they are now.
    ///
    /// # Errors
    /// [`SysError`].
    ///
    /// # Source
    /// `BPF_ITER_CREATE`, Documentation/bpf/bpf_iterators.rst; `bpf_iter_init_seq_net()` in fs/proc/proc_net.c.
    pub fn read(&self) -> SysResult<Vec<u8>> {
        let attributes = Attributes::new().u32(0, raw(&self.0));
        let doing = || "read TCP sockets".to_owned();
        // SAFETY: there are no pointers among the attributes, and the command makes a descriptor.
        let mut file = File::from(unsafe { bpf_object(ITER_CREATE, &attributes, doing) }?);
        let mut all = Vec::new();
        file.read_to_end(&mut all).map_err(SysError::io(doing()))?;
        Ok(all)
    }
}
