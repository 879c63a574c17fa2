use wt_problem::Problem;
use wt_units::{HostPort, UrlError};

/// Hosts in one request, at most.
const MOST_HOSTS: usize = 10_000;

/// The hosts of a list: one a line, with comments after `#`.
#[must_use]
pub fn hosts_of(text: &str) -> Vec<String> {
    // Some editors begin a file with the mark of its bytes' order.
    let lines = text.trim_start_matches('\u{feff}').lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Refuses lists without hosts, and too long ones.
pub(crate) fn check_count(hosts: usize) -> Result<(), Problem> {
    match hosts {
        0 => Err(Problem::usage("there is no host in the file")),
        n if n > MOST_HOSTS => Err(Problem::usage(format!("{n} hosts are too many: at most {MOST_HOSTS} at once"))),
        _ => Ok(()),
    }
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT` or a bare IPv6 address.
pub(crate) fn split_port(text: &str, default_port: u16) -> Result<(String, u16), Problem> {
    let usage = |error: UrlError| {
        let what = Problem::usage(format!("\"{text}\" is not a valid host")).because(error.to_string());
        match text.split_once("://") {
            // Of a URL only its host is on the path.
            Some((_, rest)) => {
                what.hint(format!("write the URL's host alone: {}", rest.split('/').next().unwrap_or(rest)))
            }
            None => what.hint("write HOST, HOST:PORT or [IPV6]:PORT"),
        }
    };
    let HostPort { host, port } = text.parse().map_err(usage)?;
    Ok((host, port.unwrap_or(default_port)))
}

#[cfg(test)]
mod tests {
    use super::{hosts_of, split_port};

    #[test]
    fn a_list_has_a_host_a_line_whatever_it_begins_with() {
        assert_eq!(hosts_of("\u{feff}a\r\n# b\r\n\r\nc # d\n"), ["a", "c"]);
    }

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, host, port) in [
            ("server", "server", 80),
            ("server:443", "server", 443),
            ("10.0.0.1:8080", "10.0.0.1", 8080),
            ("fd00::1", "fd00::1", 80),
            ("[fd00::1]", "fd00::1", 80),
            ("[fd00::1]:443", "fd00::1", 443),
        ] {
            assert_eq!(split_port(text, 80).unwrap(), (host.to_owned(), port), "{text}");
        }
        let url = split_port("http://server:81/file", 80).unwrap_err();
        assert!(url.hint.unwrap().ends_with("alone: server:81"));
        for text in ["", ":80", "server:http", "server:0", "server:70000", "[fd00::1]80", "a b"] {
            assert_eq!(split_port(text, 80).unwrap_err().fault.code(), 2, "{text}");
        }
    }
}
