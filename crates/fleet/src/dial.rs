//! Connects to the first of a server's hosts that answers, as libpq does.

use crate::client::{Client, GreetingError, Patience};
use crate::tls;
use postgres::Config;
use postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::KeepAlive;

/// PostgreSQL's port.
const PORT: u16 = 5432;

/// One host of an address.
enum Place {
    /// Where to connect to, and the name that its certificate has to have.
    Tcp { to: String, name: String, port: u16 },
    /// The file of its socket.
    Unix(PathBuf),
}

/// Connects to the first that lets one in.
///
/// # Errors
/// What the last one says, or that it says nothing.
///
/// # Source
/// PostgreSQL 16, libpq, "Parameter Key Words": `hostaddr`, `target_session_attrs`, `load_balance_hosts`.
pub(crate) fn connect(
    config: &Config,
    connector: Option<&tls::Connector>,
    patience: Patience,
) -> Result<Client, String> {
    let mut last = GreetingError::System(io::Error::other("it has no address"));
    for place in places(config) {
        match enter(config, &place, connector, patience) {
            Ok(client) => return Ok(client),
            Err(error) => last = error,
        }
    }
    Err(last.to_string())
}

/// The hosts of an address in the order in which they are asked.
fn places(config: &Config) -> Vec<Place> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let place = |i: usize| {
        let port = ports.get(i).or(ports.first()).copied().unwrap_or(PORT);
        let name = match hosts.get(i) {
            Some(Host::Unix(folder)) if addresses.get(i).is_none() => {
                return Some(Place::Unix(folder.join(format!(".s.PGSQL.{port}"))));
            }
            Some(Host::Tcp(name)) => name.clone(),
            _ => String::new(),
        };
        let to = addresses.get(i).map_or_else(|| name.clone(), IpAddr::to_string);
        (!to.is_empty()).then_some(Place::Tcp { to, name, port })
    };
    in_order(config, (0..hosts.len().max(addresses.len())).filter_map(place).collect())
}

/// Begins with another one each time where the address says so.
fn in_order<T>(config: &Config, mut all: Vec<T>) -> Vec<T> {
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random && !all.is_empty() {
        let places = all.len() as u64;
        all.rotate_left(usize::try_from(monotonic_ns() / 1000 % places).unwrap_or(0));
    }
    all
}

/// Connects to one of a host's addresses, and logs in.
fn enter(
    config: &Config,
    place: &Place,
    connector: Option<&tls::Connector>,
    patience: Patience,
) -> Result<Client, GreetingError> {
    let (to, name, port) = match place {
        Place::Tcp { to, name, port } => (to, name, *port),
        Place::Unix(socket) => {
            let open = tokio::net::UnixStream::connect(socket);
            return Client::greet(config, open, None, patience).and_then(|client| fit(config, client));
        }
    };
    let mut last = GreetingError::System(io::Error::other("it has no address"));
    for address in in_order(config, addresses(to, port, patience.entry)?) {
        let security = connector.map(|connector| (connector, name.as_str()));
        let open = async { tokio::net::TcpStream::from_std(begin(config, address, patience.entry)?) };
        match Client::greet(config, open, security, patience).and_then(|client| fit(config, client)) {
            Ok(client) => return Ok(client),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The addresses of a name.
fn addresses(host: &str, port: u16, patience: Duration) -> io::Result<Vec<SocketAddr>> {
    wt_sys::outside::addresses(host, port, patience)
        .map_err(|error| io::Error::other(format!("failed to lookup address information: {error}")))
}

/// A connection to an address, as the driver takes it.
fn begin(config: &Config, address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    // From a lab, too, whose network has no way to it.
    let stream = wt_sys::outside::connect(&address, patience).map_err(|error| error.source)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let keep_alive = config.get_keepalives().then(|| KeepAlive {
        idle: config.get_keepalives_idle(),
        interval: config.get_keepalives_interval(),
        probes: config.get_keepalives_retries(),
    });
    let tended = wt_sys::tcp::set_liveness(&stream, config.get_tcp_user_timeout().copied(), keep_alive);
    tended.map(|()| stream).map_err(|error| error.source)
}

/// Refuses a server that only reads where one is needed that writes, and the other way round.
fn fit(config: &Config, mut client: Client) -> Result<Client, GreetingError> {
    let (wanted, why) = match config.get_target_session_attrs() {
        TargetSessionAttrs::ReadWrite => ("off", "database does not allow writes"),
        TargetSessionAttrs::ReadOnly => ("on", "database is not read only"),
        _ => return Ok(client),
    };
    let sql = "SELECT current_setting('transaction_read_only')";
    let said: String = client.query_typed_one(sql, &[])?.try_get(0)?;
    if said == wanted { Ok(client) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into()) }
}
