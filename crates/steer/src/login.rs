use std::net::IpAddr;
use std::path::Path;

/// What sshd tells a session about its client.
const NAMES: [&[u8]; 2] = [b"SSH_CONNECTION=", b"SSH_CLIENT="];
/// No process has so many ancestors.
const MOST: usize = 64;

/// From where somebody is logged in who runs this process: sshd tells it to the session's first process, and sudo, which takes it
/// out of the environment, runs within that.
pub(crate) fn administrators() -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut process = std::process::id();
    for _ in 0..MOST {
        let folder = format!("/proc/{process}");
        let environment = std::fs::read(Path::new(&folder).join("environ")).unwrap_or_default();
        if let Some(address) = address(&environment).filter(|address| !found.contains(address)) {
            found.push(address);
        }
        match std::fs::read_to_string(Path::new(&folder).join("stat")).ok().as_deref().and_then(parent) {
            Some(parent) if parent > 1 => process = parent,
            _ => break,
        }
    }
    found
}

/// The client's address among the variables of a process.
fn address(environment: &[u8]) -> Option<IpAddr> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|one| NAMES.iter().find_map(|name| one.strip_prefix(*name)))?;
    let text = std::str::from_utf8(value).ok()?.split(' ').next()?;
    // An address of a link has its device behind it.
    text.split('%').next()?.parse().ok()
}

/// The parent in a line of /proc/PID/stat: what stands behind the name, which may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_of_a_session_is_read_from_what_sshd_tells_it() {
        let of = |text: &str| address(text.replace(' ', "\0").replace('_', " ").replace("SSH ", "SSH_").as_bytes());
        assert_eq!(of("PATH=/bin SSH_CONNECTION=192.0.2.9_51000_192.0.2.1_22 TERM=x"), Some([192, 0, 2, 9].into()));
        assert_eq!(of("SSH_CLIENT=fe80::1%eth0_51000_22"), Some("fe80::1".parse().unwrap()));
        assert_eq!((of("PATH=/bin"), of("SSH_CONNECTION=nobody_1"), of("")), (None, None, None));
        assert_eq!(parent("12 (a ) b) S 34 12 12 0"), Some(34));
        assert_eq!(parent("nonsense"), None);
    }
}
