use std::io;

/// A system call that failed: what was being done, on what, and what the kernel said.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}")]
pub struct SysError {
    /// What was being done, with its object: `open /dev/net/tun`.
    pub doing: String,
    /// What the kernel said.
    #[source]
    pub source: io::Error,
}

/// What the functions of this crate return.
pub type SysResult<T> = Result<T, SysError>;

impl SysError {
    /// An error from `errno`.
    #[must_use]
    pub fn last(doing: impl Into<String>) -> Self {
        Self { doing: doing.into(), source: io::Error::last_os_error() }
    }

    /// An error from an [`io::Error`].
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self { doing, source }
    }

    /// The number that the kernel gave, if it gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Turns −1 into the error that `errno` tells.
pub(crate) fn check(result: libc::c_int, doing: impl FnOnce() -> String) -> SysResult<libc::c_int> {
    if result < 0 { Err(SysError::last(doing())) } else { Ok(result) }
}
