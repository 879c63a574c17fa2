use wt_problem::Problem;
use wt_units::{HostPort, UrlError};

/// Hosts in one request, at most.
const MOST_HOSTS: usize = 10_000;

/// The hosts of a list: one a line, perhaps with a provider's name behind it, and with comments after `#`.
#[must_use]
pub fn hosts_of(text: &str) -> Vec<String> {
    words_of(text).map(|(_, host)| host.to_owned()).collect()
}

/// The hosts of a list, and the lines that begin with none, from 1: of those why not.
#[must_use]
pub fn listed_hosts(text: &str) -> (Vec<String>, Vec<(u32, Problem)>) {
    let (mut hosts, mut wrong) = (Vec::new(), Vec::new());
    for (line, host) in words_of(text) {
        match split_port(host, 0) {
            Ok(_) => hosts.push(host.to_owned()),
            Err(problem) => wrong.push((line, problem)),
        }
    }
    (hosts, wrong)
}

/// The first word of each line that has one, and the line's number.
fn words_of(text: &str) -> impl Iterator<Item = (u32, &str)> {
    // Some editors begin a file with the mark of its bytes' order.
    let lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    lines.filter_map(|(number, line)| Some((number, line.split('#').next()?.split_whitespace().next()?)))
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
    use super::{hosts_of, listed_hosts, split_port};

    #[test]
    fn a_list_has_a_host_a_line_whatever_it_begins_with() {
        assert_eq!(hosts_of("\u{feff}a\r\n# b\r\n\r\nc # d\n"), ["a", "c"]);
    }

    #[test]
    fn a_line_that_is_no_host_is_told_by_its_number_and_takes_no_other_with_it() {
        let (hosts, wrong) = listed_hosts("# ours\n10.1.3.2 Acme Inc.\nserver:http\n\nhttp://x/\n[fd00::1]:443 # d\n");
        assert_eq!(hosts, ["10.1.3.2", "[fd00::1]:443"]);
        let lines: Vec<u32> = wrong.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 5], "{wrong:?}");
        assert!(wrong[0].1.what.contains("\"server:http\""), "{wrong:?}");
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
