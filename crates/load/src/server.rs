use crate::allowance::Allowance;
use crate::error::is_out_of_descriptors;
use crate::http;
use crate::proto::{MAGIC, REQUEST_LEN, Request, is_talk};
use crate::tls::ServerTls;
use crate::transfer::{EndReport, Job};
use crate::work::answer;
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_sys::arrival::{note_arrivals, read_with_arrival};
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::{Waker, wait_readable};
use wt_sys::{SysError, SysResult, tcp};
use wt_trial::{Amount, Cancel};

/// How long nobody is let in when descriptors have run out.
const NO_DESCRIPTORS: Duration = Duration::from_millis(250);

/// Bounds of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Connections at once; more are closed at once.
    pub max_connections: usize,
    /// How long a client may take to say what it wants.
    pub patience: Duration,
    /// No transfer takes longer than what it asked for and this on top.
    pub grace: Duration,
    /// Reports that are kept until somebody asks for them; the oldest go first.
    pub max_reports: usize,
    /// What is shown to those who come through TLS; they are turned away without it.
    pub tls: Option<ServerTls>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_connections: 256,
            patience: Duration::from_secs(30),
            grace: Duration::from_secs(600),
            max_reports: 1024,
            tls: None,
        }
    }
}

/// What all threads of a server share.
#[derive(Debug)]
struct ServerState {
    config: ServerConfig,
    cancel: Cancel,
    active: AtomicUsize,
    reports: Mutex<Reports>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Reports {
    by_token: HashMap<u64, EndReport>,
    order: std::collections::VecDeque<u64>,
}

/// A server that answers transfers of ours and plain HTTP requests on one port, until it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerState>,
    stop: Arc<Waker>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to accept on a socket that listens already, in this thread's network namespace or any other.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn start(listener: TcpListener, config: ServerConfig) -> SysResult<Self> {
        let address = listener.local_addr().map_err(SysError::io("read the server's address"))?;
        listener.set_nonblocking(true).map_err(SysError::io("prepare the server's socket"))?;
        note_arrivals(&listener, true)?;
        let shared = Arc::new(ServerState {
            config,
            cancel: Cancel::new(),
            active: AtomicUsize::new(0),
            reports: Mutex::default(),
            arrived: Condvar::new(),
        });
        let stop = Arc::new(Waker::new()?);
        let (own, stopped) = (Arc::clone(&shared), Arc::clone(&stop));
        let acceptor = std::thread::spawn(move || accept(&listener, &own, &stopped));
        Ok(Self { shared, stop, address, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's side of the transfer with this token, once it has ended; `None` if it doesn't in time.
    #[must_use]
    pub fn take_report(&self, token: u64, timeout: Duration) -> Option<EndReport> {
        let reports = self.shared.lock();
        let (mut reports, _) = self
            .shared
            .arrived
            .wait_timeout_while(reports, timeout, |reports| !reports.by_token.contains_key(&token))
            .unwrap_or_else(PoisonError::into_inner);
        reports.order.retain(|known| *known != token);
        reports.by_token.remove(&token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.cancel.cancel();
        self.stop.wake();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl ServerState {
    fn lock(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, token: u64, report: EndReport) {
        let mut reports = self.lock();
        while reports.order.len() >= self.config.max_reports {
            if let Some(oldest) = reports.order.pop_front() {
                reports.by_token.remove(&oldest);
            }
        }
        reports.order.push_back(token);
        reports.by_token.insert(token, report);
        drop(reports);
        self.arrived.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ServerState>, stop: &Waker) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.cancel.is_cancelled() {
        match listener.accept() {
            Ok((stream, _)) => {
                threads.retain(|thread| !thread.is_finished());
                if shared.active.load(Ordering::Relaxed) >= shared.config.max_connections {
                    continue;
                }
                shared.active.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(shared);
                threads.push(std::thread::spawn(move || {
                    serve(stream, &shared);
                    shared.active.fetch_sub(1, Ordering::Relaxed);
                }));
            }
            Err(error) => drop(wait_to_accept(&error, listener, stop)),
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Waits until another try to accept may go better; how many of the two were ready. A connection for which there is no descriptor
/// makes its listener ready for ever, so that then only those who are served make room in time.
fn wait_to_accept(error: &std::io::Error, listener: &TcpListener, stop: &Waker) -> SysResult<u128> {
    if is_out_of_descriptors(error) {
        return wait_readable(&[stop.as_fd()], Some(NO_DESCRIPTORS));
    }
    wait_readable(&[listener.as_fd(), stop.as_fd()], Some(Duration::from_millis(500)))
}

/// One connection from its first byte to its last.
fn serve(mut stream: TcpStream, shared: &ServerState) {
    let mut head = [0; REQUEST_LEN];
    if read_head(&mut stream, &mut head[..MAGIC.len()], shared).is_none() {
        return;
    }
    if head[..MAGIC.len()] != MAGIC {
        let ServerConfig { tls, patience, .. } = &shared.config;
        let served = http::serve(stream, &head[..MAGIC.len()], tls.as_ref(), *patience, &shared.cancel);
        if let Some((token, report)) = served {
            shared.store(token, report);
        }
        return;
    }
    // The clock begins when the request has come, not when this thread gets to it: meanwhile an upload goes on.
    let Some(start) = read_head(&mut stream, &mut head[MAGIC.len()..], shared) else { return };
    let _ = note_arrivals(&stream, false);
    let Ok(request) = Request::from_bytes(&head) else { return };
    // From the beginning: if this process is killed, nothing shall go on without it and hold its congestion control.
    let _ = tcp::reset_on_close(&stream);
    if let Ok(report) = transfer(&mut stream, &request, is_talk(&head), start, shared) {
        shared.store(request.token, report);
    }
}

fn transfer(
    stream: &mut TcpStream,
    request: &Request,
    talk: bool,
    start: u64,
    shared: &ServerState,
) -> std::io::Result<EndReport> {
    let asked = if let Amount::Time(time) = request.amount { time } else { Duration::ZERO };
    let deadline = asked + shared.config.grace;
    let job = Job {
        amount: request.amount,
        start_ns: start,
        deadline,
        window: request.window,
        most: Allowance::endless(),
        turns: None,
    };
    answer(stream, request, talk, &job, &shared.cancel)
}

/// Fills `head`, and says when the last of it came, or gives up when the client takes too long, leaves, or the server is to stop.
fn read_head(stream: &mut TcpStream, head: &mut [u8], shared: &ServerState) -> Option<u64> {
    stream.set_nonblocking(true).ok()?;
    let give_up = monotonic_ns() + shared.config.patience.as_nanos() as u64;
    let (mut filled, mut came) = (0, monotonic_ns());
    while filled < head.len() {
        if shared.cancel.is_cancelled() || monotonic_ns() >= give_up {
            return None;
        }
        match read_with_arrival(stream, &mut head[filled..]) {
            Ok((0, _)) => return None,
            Ok((n, at)) => (filled, came) = (filled + n, at),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                wait_readable(&[stream.as_fd()], Some(Duration::from_millis(50))).ok()?;
            }
            Err(_) => return None,
        }
    }
    Some(came)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_connection_without_a_descriptor_wakes_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _pending = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stop = Waker::new().unwrap();
        stop.wake();
        let ready = |error| wait_to_accept(&error, &listener, &stop).unwrap();
        assert_eq!(ready(Error::from(ErrorKind::WouldBlock)), 0b11);
        for number in [23, 24] {
            assert_eq!(ready(Error::from_raw_os_error(number)), 0b1, "only the one that stops it");
        }
    }
}
