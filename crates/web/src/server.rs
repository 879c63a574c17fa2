use crate::api::{self, App};
use crate::command::Program;
use crate::guard::Names;
use crate::runs::Runs;
use axum::serve::ListenerExt as _;
use std::io::Read as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How the server is started.
#[derive(Debug)]
pub struct Config {
    /// Where it listens: a loopback address and a port, such as `127.0.0.1:7878`; port 0 takes a free one.
    pub listen: String,
    /// The program whose commands are run.
    pub exe: PathBuf,
}

/// A server that listens.
#[derive(Debug)]
pub struct Ready {
    /// Where.
    pub address: SocketAddr,
    /// What a request must carry to change this host.
    pub token: String,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address makes no sense.
    #[error("{listen} is no address to listen on: {reason}")]
    Address {
        /// What was given.
        listen: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Others could reach it.
    #[error("{0} can be reached by others, and the page has neither TLS nor a password yet")]
    NotLoopback(SocketAddr),
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
}

/// Listens and answers until SIGINT or SIGTERM; `ready` is told when it listens. All that it started ends with it.
///
/// # Errors
/// [`ServeError`].
pub fn serve(config: Config, ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    let address = loopback(&config.listen)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(run(config, address, ready));
    // Nobody's download keeps us.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

async fn run(config: Config, address: SocketAddr, ready: impl FnOnce(&Ready)) -> Result<(), ServeError> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let listener = TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })?;
    let address = listener.local_addr()?;
    // An event is sent at once, and doesn't wait for the acknowledgement of the one before it.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let token = random_hex(16)?;
    let app = Arc::new(App {
        program: Program::new(config.exe),
        runs: Runs::default(),
        names: Names::of(address),
        token: token.clone(),
    });
    let router = api::router(Arc::clone(&app));
    ready(&Ready { address, token });
    let served = tokio::select! {
        served = axum::serve(listener, router) => served.map_err(ServeError::System),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    app.runs.stop_all().await;
    served
}

/// The address, if only this machine can reach it.
fn loopback(listen: &str) -> Result<SocketAddr, ServeError> {
    let wrong = |reason: &str| ServeError::Address { listen: listen.to_owned(), reason: reason.to_owned() };
    let address = match listen.parse::<SocketAddr>() {
        Ok(address) => address,
        // A name other than this one would have to be looked up elsewhere.
        Err(_) => match listen.strip_prefix("localhost:") {
            Some(_) => listen.to_socket_addrs().ok().and_then(|mut all| all.next()),
            None => None,
        }
        .ok_or_else(|| wrong("write an address and a port, such as 127.0.0.1:7878"))?,
    };
    if address.ip().is_loopback() { Ok(address) } else { Err(ServeError::NotLoopback(address)) }
}

/// Random bytes in hexadecimal digits.
///
/// # Errors
/// Where the system has no random numbers.
pub(crate) fn random_hex(bytes: usize) -> std::io::Result<String> {
    use std::fmt::Write as _;
    let mut random = vec![0; bytes];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_listened_on() {
        for listen in ["127.0.0.1:7878", "127.8.9.10:0", "[::1]:7878", "localhost:7878"] {
            assert!(loopback(listen).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:7878", "[::]:7878", "192.0.2.1:80"] {
            assert!(matches!(loopback(listen), Err(ServeError::NotLoopback(_))), "{listen}");
        }
        for listen in ["", "7878", "127.0.0.1", "example.org:80", "127.0.0.1:99999", "localhost:x"] {
            assert!(matches!(loopback(listen), Err(ServeError::Address { .. })), "{listen}");
        }
    }

    #[test]
    fn tokens_differ() {
        let (a, b) = (random_hex(16).unwrap(), random_hex(16).unwrap());
        assert!(a.len() == 32 && a != b && a.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
