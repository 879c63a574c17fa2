use crate::api;
use crate::door::Door;
use crate::guest::{GuestId, Owner, account};
use crate::inside::Inside;
use crate::names::Names;
use crate::peer::Peer;
use crate::places::Places;
use crate::remembered::RememberedAnswers;
use crate::runs::Runs;
use crate::secret::{NoRandom, Secret, random_hex};
use crate::state::App;
use crate::tls::{Tls, TlsError};
use crate::watched::WatchedStream;
use crate::worker::Program;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tower_service::Service as _;

/// A head that isn't there by then won't come any more; connections that rest are closed, too.
const HEAD_BY: Duration = Duration::from_secs(30);
/// A handshake of TLS takes no longer.
const HANDSHAKE_BY: Duration = Duration::from_secs(10);
/// A connection this old answers what it was asked, and then closes; an event stream goes on.
const AGE: Duration = Duration::from_secs(600);
/// Bytes of a connection that wait to be sent, here and in the kernel; and the longest head.
const BUFFER: usize = 32 << 10;
const MOST_HEADERS: usize = 64;
/// Where no connection can be accepted (no descriptors left), this long is waited.
const PAUSE: Duration = Duration::from_millis(100);

/// How the server is started.
#[derive(Debug)]
pub struct Config {
    /// Where it listens: an address and a port, such as `127.0.0.1:7878`; port 0 takes a free one.
    pub listen: String,
    /// The program whose commands are run.
    pub exe: PathBuf,
    /// Files of the certificate chain and of its key, PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// What everybody must know who asks for anything.
    pub password: Option<Secret>,
    /// Further names by which it may be asked for, beside addresses.
    pub names: Vec<String>,
    /// A journal of many hosts in PostgreSQL, which is read instead of this host's own.
    pub journal: Option<PathBuf>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Ready {
    /// Where.
    pub address: SocketAddr,
    /// Where the page is.
    pub url: String,
    /// What a request must carry to change this host.
    pub token: String,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is invalid.
    #[error("{listen} is no address to listen on: {reason}")]
    Address {
        /// What was given.
        listen: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Others could reach it, and it isn't safe enough for that.
    #[error("{address} can be reached by others, and {lacks}")]
    Open {
        /// Where it would listen.
        address: SocketAddr,
        /// What it lacks.
        lacks: &'static str,
    },
    /// The certificate or its key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refuses.
    #[error("can't listen on {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Something else that a server needs.
    #[error("the server can't run: {0}")]
    System(#[from] std::io::Error),
    /// The system has no random numbers.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// Whether others than this machine could reach a server there.
///
/// # Errors
/// [`ServeError::Address`].
pub fn is_open(listen: &str) -> Result<bool, ServeError> {
    Ok(!address(listen)?.ip().is_loopback())
}

/// Listens and answers until SIGINT or SIGTERM; `ready` is told when it listens. All that it started ends with it.
///
/// # Errors
/// [`ServeError`]; [`ServeError::Open`] for an address that others can reach without both TLS and a password.
pub fn serve(config: Config, ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    let address = address(&config.listen)?;
    let lacks = match (&config.tls, &config.password) {
        (None, None) => Some("there is neither TLS nor a password"),
        (None, Some(_)) => Some("without TLS everybody on the way reads along"),
        (Some(_), None) => Some("without a password everybody may use it"),
        (Some(_), Some(_)) => None,
    };
    if let Some(lacks) = lacks.filter(|_| !address.ip().is_loopback()) {
        return Err(ServeError::Open { address, lacks });
    }
    let tls = config.tls.as_ref().map(|(certificate, key)| Tls::new(certificate, key)).transpose()?;
    wt_sys::process::give_memory_back();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(run(config, address, tls, ready));
    // Nobody's download keeps us.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

async fn run(
    config: Config,
    address: SocketAddr,
    tls: Option<Tls>,
    ready: impl FnOnce(&Ready),
) -> Result<(), ServeError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    let address = listener.local_addr()?;
    let token = random_hex(16)?;
    let names = Names::of(address, &config.names, tls.is_some());
    let url = names.url();
    let app = Arc::new(App {
        program: Program::new(config.exe),
        inside: Inside::new(config.journal),
        runs: Runs::default(),
        names,
        token: Secret::new(&token)?,
        door: config.password.map(Door::new),
        owner: Owner::here(),
        room: Arc::default(),
        remembered: RememberedAnswers::default(),
    });
    let router = api::router(Arc::clone(&app));
    ready(&Ready { address, url, token });
    tokio::select! {
        () = accept(listener, &app, router, tls) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    app.runs.stop_all().await;
    Ok(())
}

/// Accepts connections for ever, each on a task of its own.
async fn accept(listener: TcpListener, app: &App, router: Router, tls: Option<Tls>) {
    let places = Arc::new(Places::default());
    loop {
        let (stream, theirs) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                places.make_room();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let account = stream.local_addr().ok().and_then(|ours| account(theirs, ours));
        let who = GuestId::of(theirs.ip(), account);
        let place = places.take(who);
        let peer = Peer { ip: theirs.ip(), who, own: app.owner.is(account), seat: Arc::clone(&place.seat) };
        let (router, tls) = (router.clone(), tls.clone());
        tokio::spawn(async move {
            let seat = Arc::clone(&place.seat);
            tokio::select! {
                () = connection(stream, peer, router, tls) => {}
                () = seat.given_up() => {}
            }
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, peer: Peer, router: Router, tls: Option<Tls>) {
    // An event is sent at once, and doesn't wait for the acknowledgement of the one before it.
    let _ = stream.set_nodelay(true);
    let _ = wt_sys::tcp::set_unsent_low_water(&stream, BUFFER as u32);
    let stream = WatchedStream::new(stream, Arc::clone(&peer.seat));
    match tls {
        None => answer(stream, peer, router).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_BY, tls.accept(stream)).await {
                answer(stream, peer, router).await;
            }
        }
    }
}

/// Answers the requests of one connection. What is wrong with it is the other's business.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, peer: Peer, router: Router) {
    let service = service_fn(move |request: Request<Incoming>| {
        peer.seat.moved();
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer.clone());
        // A router is always ready.
        router.clone().call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_BY).max_buf_size(BUFFER).max_headers(MOST_HEADERS);
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    if tokio::time::timeout(AGE, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// The address. Names other than `localhost` would have to be looked up elsewhere.
fn address(listen: &str) -> Result<SocketAddr, ServeError> {
    let wrong = |reason: &str| ServeError::Address { listen: listen.to_owned(), reason: reason.to_owned() };
    match listen.parse::<SocketAddr>() {
        Ok(address) => Ok(address),
        Err(_) => match listen.strip_prefix("localhost:") {
            Some(_) => listen.to_socket_addrs().ok().and_then(|mut all| all.next()),
            None => None,
        }
        .ok_or_else(|| wrong("write an address and a port, such as 127.0.0.1:7878")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_can_reach_is_known() {
        for listen in ["127.0.0.1:7878", "127.8.9.10:0", "[::1]:7878", "localhost:7878"] {
            assert!(matches!(is_open(listen), Ok(false)), "{listen}");
        }
        for listen in ["0.0.0.0:7878", "[::]:7878", "192.0.2.1:80"] {
            assert!(matches!(is_open(listen), Ok(true)), "{listen}");
        }
        for listen in ["", "7878", "127.0.0.1", "example.org:80", "127.0.0.1:99999", "localhost:x"] {
            assert!(matches!(is_open(listen), Err(ServeError::Address { .. })), "{listen}");
        }
    }

    #[test]
    fn an_open_address_needs_both_tls_and_a_password() {
        let key = || Some((PathBuf::from("/nonexistent/cert"), PathBuf::from("/nonexistent/key")));
        let password = || Secret::new("secret").ok();
        for (tls, password) in [(None, None), (key(), None), (None, password())] {
            let listen = "0.0.0.0:0".to_owned();
            let config = Config { listen, exe: PathBuf::new(), tls, password, names: Vec::new(), journal: None };
            assert!(matches!(serve(config, |_| panic!("it listens")), Err(ServeError::Open { .. })));
        }
    }
}
