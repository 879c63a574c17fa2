use crate::controls::{available, ours, problem};
use crate::files::write_secret;
use crate::scraped::{AskedNames, Askers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use utoipa::ToSchema;
use wt_bpf::{LoadError, RegisteredControl};
use wt_load::{Quota, Serve, ServeConfig, SharedKey};
use wt_problem::Problem;
use wt_sys::ns::read_net_sysctl;
use wt_trial::Cancel;

/// Where it listens if nobody says where: this host only.
const USUAL: [&str; 2] = ["127.0.0.1:7411", "[::1]:7411"];

/// Of a key's file no more is read: it has 64 digits and the end of a line.
const LONGEST_KEY: u64 = 4096;

/// What to try where metrics are in somebody's way.
const OTHER_METRICS: &str = "--metrics with another port";

/// What is served, and to whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeRequest {
    /// Where it listens; nothing means this host only, port 7411.
    pub listen: Vec<SocketAddr>,
    /// Tests at once; others wait for their turn.
    pub max_tests: u32,
    /// Clients that may wait.
    pub max_waiting: u32,
    /// The longest test, in seconds.
    pub max_time_s: f64,
    /// Payload that one client may have a day.
    pub quota_bytes: Option<u64>,
    /// Time of tests that one client may have a day, in seconds.
    pub quota_time_s: Option<f64>,
    /// Tests that one client may have a day.
    pub quota_tests: Option<u64>,
    /// Congestion controls that clients may ask for; nothing means those that every user of this host may use.
    pub cc: Option<Vec<String>>,
    /// Where the key is kept; nothing means the usual place.
    pub key_file: Option<PathBuf>,
    /// Replace the key.
    pub new_key: bool,
    /// The host's name in the addresses for clients; nothing means where it listens.
    pub name: Option<String>,
    /// Where questions for the metrics are answered.
    pub metrics: Option<SocketAddr>,
    /// How long running tests may take to finish when somebody cancels, in seconds.
    pub drain_s: f64,
}

impl Default for ServeRequest {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            max_tests: 1,
            max_waiting: 64,
            max_time_s: 60.0,
            quota_bytes: None,
            quota_time_s: None,
            quota_tests: None,
            cc: None,
            key_file: None,
            new_key: false,
            name: None,
            metrics: None,
            drain_s: 60.0,
        }
    }
}

/// A server that listens. Its JSON is the contract of `windtunnel serve --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServeAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// Where it listens.
    #[schema(value_type = Vec<String>)]
    pub listening: Vec<SocketAddr>,
    /// The addresses for clients, with the key, if that is new: shown this once.
    pub clients: Vec<String>,
}

/// What one client may have a day. None of something would let nobody test, which looks like a used-up quota to each client.
fn quota(request: &ServeRequest, time: Option<Duration>) -> Result<Quota, Problem> {
    let nothing = [
        ("0 bytes", request.quota_bytes == Some(0)),
        ("0 seconds", time.is_some_and(|time| time.is_zero())),
        ("0 tests", request.quota_tests == Some(0)),
    ];
    if let Some((none, _)) = nothing.iter().find(|(_, is_nothing)| *is_nothing) {
        return Err(Problem::usage(format!("a quota of {none} lets nobody test"))
            .hint("leave it out for no bound, or name what one client may have a day"));
    }
    let usual = Quota::default();
    Ok(Quota {
        bytes: request.quota_bytes.unwrap_or(usual.bytes),
        time: time.unwrap_or(usual.time),
        tests: request.quota_tests.unwrap_or(usual.tests),
    })
}

/// Serves until somebody cancels, and then until running tests are done; `listening` is called when it begins, `draining` when it ends.
///
/// # Errors
/// A [`Problem`] that says what is in the way, or that tests were stopped.
pub fn serve(
    request: &ServeRequest,
    listening: &mut dyn FnMut(&ServeAnswer),
    draining: &mut dyn FnMut(),
    stop: &Cancel,
) -> Result<ServeAnswer, Problem> {
    // Where that isn't allowed there are fewer connections.
    let _ = wt_sys::process::raise_descriptor_limit();
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value)
            .map_err(|_| Problem::usage(format!("{name} is out of range: allowed is a number of seconds from 0 on")))
    };
    let (longest, drain) = (seconds("max_time_s", request.max_time_s)?, seconds("drain_s", request.drain_s)?);
    let time = request.quota_time_s.map(|time| seconds("quota_time_s", time)).transpose()?;
    apart(request)?;
    let quota = quota(request, time)?;
    let (key, is_new) = key(request.key_file.as_deref(), request.new_key)?;
    let sockets = listeners(&request.listen)?;
    let in_the_way = |failure: Problem| match failure.cause {
        Some(_) => failure.hint(OTHER_METRICS),
        None => failure,
    };
    let metrics = request.metrics.map(|address| listen(address).map_err(in_the_way)).transpose()?;
    let (congestion_controls, _loaded) = controls(request.cc.as_deref())?;
    let config = ServeConfig {
        key: key.clone(),
        max_tests: request.max_tests as usize,
        max_waiting: request.max_waiting as usize,
        longest,
        quota,
        congestion_controls,
    };
    let serve = Serve::start(sockets, config).map_err(|error| Problem::environment(error.to_string()))?;
    let answer = ServeAnswer {
        schema_version: 1,
        listening: serve.addresses().to_vec(),
        clients: if is_new { for_clients(request, &serve, &key) } else { Vec::new() },
    };
    listening(&answer);
    if let Some(listener) = &metrics {
        let _ = listener.set_nonblocking(true);
    }
    let (askers, names) = (Askers::default(), request.metrics.map(AskedNames::of).unwrap_or_default());
    let all_done = std::thread::scope(|scope| {
        let look = |patience| match &metrics {
            None => drop(wt_sys::poll::wait_readable(&[], Some(patience))),
            Some(listener) => {
                if let Some(stream) = next_asker(listener, patience) {
                    askers.answer(scope, stream, &names, || serve.metrics());
                }
            }
        };
        while !stop.is_cancelled() {
            look(Duration::from_millis(500));
        }
        draining();
        // The metrics last as long as the tests do.
        let drained = scope.spawn(|| serve.drain(drain));
        while !drained.is_finished() {
            look(Duration::from_millis(20));
        }
        drained.join().unwrap_or(false)
    });
    if all_done { Ok(answer) } else { Err(Problem::stopped("stopped before all tests were done")) }
}

/// Refuses metrics where tests are served: the one would be in the way of the other.
fn apart(request: &ServeRequest) -> Result<(), Problem> {
    let Some(metrics) = request.metrics.filter(|metrics| metrics.port() != 0) else { return Ok(()) };
    let usual = || USUAL.iter().filter_map(|address| address.parse::<SocketAddr>().ok()).collect();
    let served: Vec<SocketAddr> = if request.listen.is_empty() { usual() } else { request.listen.clone() };
    // `[::]` takes what comes by IPv4, too.
    let takes = |any: &SocketAddr, one: &SocketAddr| any.ip().is_unspecified() && (any.is_ipv6() || one.is_ipv4());
    let same = |one: &&SocketAddr| {
        one.port() == metrics.port() && (one.ip() == metrics.ip() || takes(one, &metrics) || takes(&metrics, one))
    };
    served.iter().find(same).map_or(Ok(()), |one| {
        Err(Problem::usage(format!("tests are served at {one}, so metrics can't be at {metrics}")).hint(OTHER_METRICS))
    })
}

/// What clients type.
fn for_clients(request: &ServeRequest, serve: &Serve, key: &SharedKey) -> Vec<String> {
    let one_name = if request.name.is_some() { 1 } else { usize::MAX };
    serve
        .addresses()
        .iter()
        .take(one_name)
        .map(|address| format!("wt://{}@{}", key.to_hex(), shown_host(address, request.name.as_deref())))
        .collect()
}

/// Host and port as clients write them.
fn shown_host(address: &SocketAddr, name: Option<&str>) -> String {
    // To whoever pastes it, "every address" would be that of their own host.
    let own =
        || address.ip().is_unspecified().then(|| crate::machine::host_name().unwrap_or_else(|| "HOST".to_owned()));
    match name.map(ToOwned::to_owned).or_else(own) {
        Some(name) if name.contains(':') => format!("[{name}]:{}", address.port()),
        Some(name) => format!("{name}:{}", address.port()),
        None => address.to_string(),
    }
}

/// The key, and whether it is new: from its file, or made if there is none or another one is wanted.
///
/// # Errors
/// An environment [`Problem`] that names the file.
fn key(file: Option<&Path>, renew: bool) -> Result<(SharedKey, bool), Problem> {
    let path = match file {
        Some(path) => path.to_owned(),
        None => state_directory()?.join("serve.key"),
    };
    let named = |error: &dyn std::fmt::Display| {
        Problem::environment(format!("{}: {error}", path.display())).hint("another --key-file")
    };
    match text_of_a_key(&path) {
        Ok(text) if !renew => {
            let key = text.parse().map_err(|error| named(&error).hint("--new-key makes a new one"))?;
            Ok((key, false))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound && !renew => Err(named(&error)),
        _ => {
            let key = SharedKey::generate().map_err(|error| named(&error))?;
            keep(&path, &key)?;
            Ok((key, true))
        }
    }
}

/// What stands in the file of a key: no more is read than a key can be long, since a device would give bytes without end.
fn text_of_a_key(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_KEY).read_to_string(&mut text)?;
    Ok(text)
}

/// The key in a file that must be there.
///
/// # Errors
/// A usage [`Problem`] that names the file.
pub fn read_key(path: &Path) -> Result<SharedKey, Problem> {
    let named = |error: &dyn std::fmt::Display| Problem::usage(format!("{}: {error}", path.display()));
    let text = text_of_a_key(path).map_err(|error| {
        named(&error).hint("write a file with the key alone: what windtunnel serve showed before the @ of its address")
    })?;
    text.parse()
        .map_err(|error| named(&error).hint("the file holds the key and nothing else, as windtunnel serve keeps it"))
}

fn state_directory() -> Result<PathBuf, Problem> {
    // systemd gives a service a directory of its own.
    let own = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || wt_units::UserFolder::State.path(|name| std::env::var_os(name));
    let state = own.or_else(|| home().map(|home| home.join("windtunnel")));
    state.ok_or_else(|| {
        Problem::environment("there is no place for the key: neither XDG_STATE_HOME nor HOME is an absolute path")
            .hint("name a file with --key-file")
    })
}

/// Writes the key where only its owner can read it, whole or not at all.
fn keep(path: &Path, key: &SharedKey) -> Result<(), Problem> {
    let failed = |error: &dyn std::fmt::Display| {
        Problem::environment(format!("{}: {error}", path.display())).hint("another --key-file")
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
    }
    write_secret(path, format!("{}\n", key.to_hex()).as_bytes()).map_err(|error| failed(&error.source))
}

/// What clients may ask for, with the kernel's names; and those of ours among them, loaded until this ends.
///
/// # Errors
/// A [`Problem`] if one isn't there or can't be loaded.
fn controls(names: Option<&[String]>) -> Result<(BTreeMap<String, String>, Vec<RegisteredControl>), Problem> {
    let Some(names) = names else {
        let allowed = read_net_sysctl("ipv4/tcp_allowed_congestion_control").unwrap_or_default();
        return Ok((allowed.split_whitespace().map(|name| (name.to_owned(), name.to_owned())).collect(), Vec::new()));
    };
    let (mut allowed, mut loaded) = (BTreeMap::new(), Vec::new());
    for name in names {
        let kernel_name = match ours(name).transpose()? {
            Some(choice) => {
                match RegisteredControl::load(&choice) {
                    Ok(control) => loaded.push(control),
                    // Somebody else holds the very same one: its name tells all its parameters.
                    Err(LoadError::NameTaken { .. }) => {}
                    Err(error) => return Err(problem(&error, &choice)),
                }
                choice.kernel_name()
            }
            None if available().contains(name) => name.clone(),
            None => {
                return Err(Problem::usage(format!("this kernel has no congestion control {name}"))
                    .hint(format!("it has {}; windtunnel cc list shows ours", available().join(", "))));
            }
        };
        allowed.insert(name.clone(), kernel_name.clone());
        allowed.insert(kernel_name.clone(), kernel_name);
    }
    Ok((allowed, loaded))
}

/// Listens on an address.
///
/// # Errors
/// An environment [`Problem`] that says who is in the way.
pub fn listen(address: SocketAddr) -> Result<TcpListener, Problem> {
    wt_sys::tcp::listen(address).map_err(|error| {
        let failure = Problem::environment(error.to_string());
        match error.source.kind() {
            std::io::ErrorKind::AddrInUse => {
                failure.because("another program listens there").hint("--listen with another port")
            }
            std::io::ErrorKind::PermissionDenied => failure.hint("a port above 1023"),
            _ => failure.hint("an address of this host, as ip address shows them"),
        }
    })
}

/// Listens on all of these; if none is named on both loopback addresses, of which a host without IPv6 has only one.
///
/// # Errors
/// As for [`listen`].
fn listeners(asked: &[SocketAddr]) -> Result<Vec<TcpListener>, Problem> {
    if !asked.is_empty() {
        return asked.iter().map(|address| listen(*address)).collect();
    }
    let mut listeners = Vec::new();
    let mut last = Problem::internal("there is no address to listen on");
    for address in USUAL {
        match address.parse().map_err(|_| Problem::internal("an address of ours doesn't parse")).and_then(listen) {
            Ok(listener) => listeners.push(listener),
            Err(failure) => last = failure,
        }
    }
    if listeners.is_empty() { Err(last) } else { Ok(listeners) }
}

/// Who asks for the metrics, if somebody does in time.
fn next_asker(listener: &TcpListener, patience: Duration) -> Option<TcpStream> {
    use std::os::fd::AsFd as _;
    let ready = wt_sys::poll::wait_readable(&[listener.as_fd()], Some(patience));
    if !matches!(ready, Ok(n) if n != 0) {
        return None;
    }
    let accepted = listener.accept();
    if accepted.is_err() {
        // Where descriptors have run out the listener stays ready: a pause, and not in a busy loop.
        let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(250)));
    }
    accepted.ok().map(|(stream, _)| stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_where_tests_are_served_are_refused_by_the_name_of_their_own_option() {
        let told = |listen: &[&str], metrics: &str| {
            let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
            let request = ServeRequest { listen, metrics: Some(metrics.parse().unwrap()), ..ServeRequest::default() };
            apart(&request).map_err(|problem| problem.hint.unwrap_or_default())
        };
        for (listen, metrics) in [
            (&["127.0.0.1:7000"][..], "127.0.0.1:7000"),
            (&["127.0.0.1:1", "0.0.0.0:7000"], "127.0.0.1:7000"),
            (&["127.0.0.1:7000"], "0.0.0.0:7000"),
            (&["[::]:7000"], "127.0.0.1:7000"),
            (&["[::1]:7000"], "[::]:7000"),
            (&[], USUAL[0]),
        ] {
            assert_eq!(told(listen, metrics).unwrap_err(), OTHER_METRICS, "{listen:?} {metrics}");
        }
        for (listen, metrics) in [
            (&["127.0.0.1:7000"][..], "127.0.0.2:7000"),
            (&["127.0.0.1:0"], "127.0.0.1:0"),
            (&["[::1]:7000"], "0.0.0.0:7000"),
        ] {
            assert_eq!(told(listen, metrics), Ok(()), "{listen:?} {metrics}");
        }
    }

    #[test]
    fn a_quota_of_nothing_is_refused() {
        let told = |change: &dyn Fn(&mut ServeRequest)| {
            let mut request = ServeRequest::default();
            change(&mut request);
            let time = request.quota_time_s.map(Duration::from_secs_f64);
            quota(&request, time).map(|quota| (quota.bytes, quota.tests)).map_err(|problem| problem.what)
        };
        let usual = Quota::default();
        assert_eq!(told(&|_| ()), Ok((usual.bytes, usual.tests)));
        assert_eq!(told(&|request| request.quota_tests = Some(1)), Ok((usual.bytes, 1)));
        assert_eq!(
            told(&|request| request.quota_tests = Some(0)),
            Err("a quota of 0 tests lets nobody test".to_owned())
        );
        assert_eq!(
            told(&|request| request.quota_bytes = Some(0)),
            Err("a quota of 0 bytes lets nobody test".to_owned())
        );
        assert_eq!(
            told(&|request| request.quota_time_s = Some(0.0)),
            Err("a quota of 0 seconds lets nobody test".to_owned())
        );
    }

    #[test]
    fn a_device_without_end_is_no_key_and_a_pipe_may_hold_one() {
        for path in ["/dev/zero", "/dev/full"].map(Path::new) {
            assert!(read_key(path).unwrap_err().what.starts_with("/dev/"));
            assert!(key(Some(path), false).is_err());
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        let told = SharedKey::generate().unwrap();
        std::io::Write::write_all(&mut writer, format!("{}\n", told.to_hex()).as_bytes()).unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_key(Path::new(&path)).unwrap().to_hex(), told.to_hex());
    }

    #[test]
    fn clients_are_shown_an_address_that_leads_here() {
        let shown = |address: &str, name| shown_host(&address.parse().unwrap(), name);
        assert_eq!(shown("192.0.2.1:7411", None), "192.0.2.1:7411");
        assert_eq!(shown("0.0.0.0:7411", Some("2001:db8::1")), "[2001:db8::1]:7411");
        let every = shown("[::]:7411", None);
        assert!(every.ends_with(":7411") && !every.starts_with('['), "{every}");
    }
}
