//! The text of a drop-in of sysctl.d(5).

use crate::read::chain::assignments;
use std::collections::BTreeMap;
use std::path::Path;

/// A file of kernel settings with some lines replaced, added or (`None`) taken out.
#[must_use]
pub(crate) fn merged(base: &[u8], set: &BTreeMap<&str, Option<&str>>) -> Vec<u8> {
    let mut left = set.clone();
    let mut text = Vec::new();
    for line in base.split_inclusive(|byte| *byte == b'\n') {
        let name = assignments(&String::from_utf8_lossy(line), Path::new("")).pop().map(|line| line.name);
        match name.as_deref().and_then(|name| set.get(name).map(|value| (name, value))) {
            // Of any encoding.
            None => text.extend([line.strip_suffix(b"\n").unwrap_or(line), b"\n"].concat()),
            // The first of several lines is replaced, the others go.
            Some((name, _)) => {
                if let Some(Some(value)) = left.remove(name) {
                    text.extend(assignment(name, value).into_bytes());
                }
            }
        }
    }
    for (name, value) in left {
        if let Some(value) = value {
            text.extend(assignment(name, value).into_bytes());
        }
    }
    text
}

/// One line of it.
#[must_use]
pub(crate) fn assignment(name: &str, value: &str) -> String {
    format!("{name} = {}\n", value.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::merged;
    use std::collections::BTreeMap;

    #[test]
    fn lines_are_replaced_added_and_taken_out_and_others_kept() {
        let base = b"# mine, caf\xe9\nnet.ipv4.tcp_sack = 1\nkernel.x = 5\nnet/ipv4/tcp_sack=0";
        let set = BTreeMap::from([
            ("net.ipv4.tcp_sack", Some("0")),
            ("net.ipv4.tcp_rmem", Some("1\t2\t3")),
            ("kernel.y", None),
        ]);
        let text = merged(base, &set);
        assert_eq!(text, b"# mine, caf\xe9\nnet.ipv4.tcp_sack = 0\nkernel.x = 5\nnet.ipv4.tcp_rmem = 1 2 3\n");
        let back = merged(&text, &BTreeMap::from([("net.ipv4.tcp_sack", Some("1")), ("net.ipv4.tcp_rmem", None)]));
        assert_eq!(back, b"# mine, caf\xe9\nnet.ipv4.tcp_sack = 1\nkernel.x = 5\n");
    }
}
