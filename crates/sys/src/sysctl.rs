use crate::{SysError, SysResult};
use std::io::{Read as _, Write as _};

/// The longest value that is read; the kernel's are far shorter.
const LONGEST: u64 = 64 * 1024;

/// The file of a kernel setting: `net.ipv4.tcp_sack` is `/proc/sys/net/ipv4/tcp_sack`.
///
/// If the first separator is a slash, dots stay as they are: `net/ipv4/conf/eth0.100/mtu`.
///
/// # Source
/// sysctl.d(5).
#[must_use]
pub fn path(name: &str) -> String {
    let first = name.find(['.', '/']).and_then(|at| name.as_bytes().get(at));
    let file: String = if first == Some(&b'/') {
        name.to_owned()
    } else {
        name.chars()
            .map(|c| {
                if c == '.' {
                    '/'
                } else if c == '/' {
                    '.'
                } else {
                    c
                }
            })
            .collect()
    };
    format!("/proc/sys/{file}")
}

/// The value of a kernel setting as the kernel writes it, without the final newline; `None` where the kernel doesn't have it.
///
/// Settings under `net` are those of this thread's network namespace.
///
/// # Errors
/// [`SysError`] with the file; some settings may only be read by root.
pub fn read(name: &str) -> SysResult<Option<String>> {
    let path = path(name);
    let failed = |error| SysError::io(format!("read {path}"))(error);
    let file = match std::fs::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text.trim_end_matches('\n').to_owned()))
}

/// Writes a kernel setting with one system call, as the kernel wants it.
///
/// # Errors
/// [`SysError`] with the file: `EACCES` or `EPERM` without `CAP_NET_ADMIN` over the network namespace, `EINVAL` for a
/// value that the kernel doesn't take, `ENOENT` where the kernel doesn't have the setting.
pub fn write(name: &str, value: &str) -> SysResult<()> {
    let path = path(name);
    let doing = || format!("write {value:?} to {path}");
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).map_err(|e| SysError::io(doing())(e))?;
    let text = format!("{value}\n");
    match file.write(text.as_bytes()) {
        Ok(written) if written == text.len() => Ok(()),
        Ok(_) => Err(SysError { doing: doing(), source: std::io::Error::from(std::io::ErrorKind::WriteZero) }),
        Err(error) => Err(SysError::io(doing())(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::{path, read, write};

    #[test]
    fn names_become_files_as_sysctl_does_it() {
        assert_eq!(path("net.ipv4.tcp_sack"), "/proc/sys/net/ipv4/tcp_sack");
        assert_eq!(path("net/ipv4/conf/eth0.100/mtu"), "/proc/sys/net/ipv4/conf/eth0.100/mtu");
        assert_eq!(path("net.ipv4.conf.eth0/100.mtu"), "/proc/sys/net/ipv4/conf/eth0.100/mtu");
    }

    #[test]
    fn what_the_kernel_lacks_reads_as_none_and_cannot_be_written() {
        assert_eq!(read("net.ipv4.no_such_setting").unwrap(), None);
        assert_eq!(write("net.ipv4.no_such_setting", "1").unwrap_err().errno(), Some(libc::ENOENT));
        assert!(read("kernel.osrelease").unwrap().is_some_and(|release| release.contains('.')));
    }
}
