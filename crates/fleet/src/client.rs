//! A connection to a server of PostgreSQL that waits for nobody for ever: a server that accepts and doesn't answer is away.

use crate::tls;
use postgres::types::{ToSql, Type};
use postgres::{Config, Connection, Error, NoTls, Row};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;
use tokio::time::{Instant, Sleep};
use wt_sys::clock::monotonic_ns;

/// How long a transaction of this host's own may take without a word: a migration, or a large journal that is thrown away.
const WORK: Duration = Duration::from_secs(600);
/// How long to wait at the end until a farewell is sent.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a server has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// To let one in.
    pub(crate) entry: Duration,
    /// For each answer.
    pub(crate) answer: Duration,
}

/// A connection over which one call follows the other.
pub(crate) struct Client {
    // It goes first: the connection ends once nobody can ask any more.
    client: postgres::Client,
    session: Session,
}

impl Client {
    /// Greets the server over a stream of bytes, with TLS to a host of that name if there is a connector, and logs in.
    ///
    /// # Errors
    /// What TLS, the login or the server says; an error of input and output where it says nothing.
    pub(crate) fn greet<S>(
        config: &Config,
        open: impl Future<Output = io::Result<S>>,
        security: Option<(&tls::Connector, &str)>,
        patience: Patience,
    ) -> Result<Self, GreetingError>
    where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let silence = Arc::new(Silence::new(patience.answer));
        let (client, link) = runtime.block_on(async {
            let greeted = async {
                let stream = WatchedStream::new(open.await?, Arc::clone(&silence));
                Ok(match security {
                    None => linked(config.connect_raw(stream, NoTls).await?),
                    Some((connector, name)) => {
                        let host = connector.to_host(name).map_err(io::Error::other)?;
                        linked(config.connect_raw(stream, host).await?)
                    }
                })
            };
            let late = |_| Err(GreetingError::System(unanswered(patience.entry)));
            tokio::time::timeout(patience.entry, greeted).await.unwrap_or_else(late)
        })?;
        Ok(Self { client, session: Session { runtime, link: Some(link), silence } })
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// What the server says, or that it says nothing.
    pub(crate) fn query_typed(&mut self, sql: &str, parameters: &[TypedValue<'_>]) -> Result<Vec<Row>, Error> {
        self.session.wait(self.client.query_typed(sql, parameters))
    }

    /// The one row of a statement.
    ///
    /// # Errors
    /// As [`Client::query_typed`]; that it isn't one row.
    pub(crate) fn query_typed_one(&mut self, sql: &str, parameters: &[TypedValue<'_>]) -> Result<Row, Error> {
        self.session.wait(self.client.query_typed_one(sql, parameters))
    }

    /// How many rows a statement changed.
    ///
    /// # Errors
    /// As [`Client::query_typed`].
    pub(crate) fn execute_typed(&mut self, sql: &str, parameters: &[TypedValue<'_>]) -> Result<u64, Error> {
        self.session.wait(self.client.execute_typed(sql, parameters))
    }

    /// Runs statements one after the other.
    ///
    /// # Errors
    /// As [`Client::query_typed`].
    pub(crate) fn batch_execute(&mut self, sql: &str) -> Result<(), Error> {
        self.session.wait(self.client.batch_execute(sql))
    }

    /// Begins what is done as a whole or not at all.
    ///
    /// # Errors
    /// As [`Client::query_typed`].
    pub(crate) fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.batch_execute("BEGIN")?;
        Ok(Transaction { client: self, is_over: false })
    }

    /// Begins what may take long without a word from the server.
    ///
    /// # Errors
    /// As [`Client::query_typed`].
    pub(crate) fn long_transaction(&mut self) -> Result<Transaction<'_>, Error> {
        let transaction = self.transaction()?;
        transaction.client.session.silence.allow(WORK);
        Ok(transaction)
    }
}

/// A parameter of a statement with its type.
pub(crate) type TypedValue<'a> = (&'a (dyn ToSql + Sync), Type);

/// Why a server that was connected to isn't one to work with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GreetingError {
    /// It can't be connected to, or says nothing.
    #[error("error connecting to server: {0}")]
    System(#[from] io::Error),
    /// It says so.
    #[error("{}", said(.0))]
    Server(#[from] Error),
}

/// An error of the driver with its causes, in one line.
pub(crate) fn said(error: &Error) -> String {
    if let Some(server) = error.as_db_error() {
        return server.message().to_owned();
    }
    let mut parts = vec![error.to_string()];
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        if !parts.iter().any(|part| part.contains(&cause.to_string())) {
            parts.push(cause.to_string());
        }
        next = cause.source();
    }
    parts.join(": ")
}

/// What is done as a whole or, unless [`Transaction::commit`] is called, not at all.
pub(crate) struct Transaction<'a> {
    client: &'a mut Client,
    is_over: bool,
}

impl Transaction<'_> {
    /// Makes it last.
    ///
    /// # Errors
    /// As [`Client::query_typed`]; then it isn't known whether it does.
    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.is_over = true;
        self.client.batch_execute("COMMIT")
    }
}

impl Deref for Transaction<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.client.session.silence.usual();
        if !self.is_over {
            let _ = self.client.batch_execute("ROLLBACK");
        }
    }
}

/// What moves bytes while somebody waits for an answer.
struct Session {
    runtime: Runtime,
    /// Nothing once it has failed: what is asked afterwards fails, too.
    link: Option<Box<dyn Link>>,
    silence: Arc<Silence>,
}

impl Session {
    /// Waits for an answer, as long as something is heard.
    fn wait<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let (link, mut answer) = (&mut self.link, pin!(answer));
        self.silence.heard();
        self.runtime.block_on(poll_fn(|cx| {
            match link.as_mut().map(|link| link.poll_end(cx)) {
                None | Some(Poll::Pending) => {}
                Some(Poll::Ready(end)) => {
                    *link = None;
                    if let Err(error) = end {
                        return Poll::Ready(Err(error));
                    }
                }
            }
            answer.as_mut().poll(cx)
        }))
    }
}

impl Drop for Session {
    /// Says goodbye.
    fn drop(&mut self) {
        let Some(link) = &mut self.link else { return };
        self.silence.heard();
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(FAREWELL, poll_fn(|cx| link.poll_end(cx))).await;
        });
    }
}

/// The driver's connection, over TLS or not.
trait Link: Send {
    /// Moves what can be moved; ready when the connection has ended.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>>;
}

impl<S, T> Link for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match ready!(self.poll_message(cx)) {
                // Notices are the server's small talk.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}

fn linked<S, T>((client, link): (postgres::Client, Connection<S, T>)) -> (postgres::Client, Box<dyn Link>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    (client, Box::new(link))
}

/// Since when nothing was heard of the server, and how long that may last.
struct Silence {
    since_ns: AtomicU64,
    /// Usually, ns.
    usual_ns: u64,
    /// Just now, ns.
    allowed_ns: AtomicU64,
}

impl Silence {
    fn new(usual: Duration) -> Self {
        let usual_ns = nanos(usual);
        Self { since_ns: AtomicU64::new(monotonic_ns()), usual_ns, allowed_ns: AtomicU64::new(usual_ns) }
    }

    fn heard(&self) {
        self.since_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// Lets it last so long, unless it may anyway.
    fn allow(&self, time: Duration) {
        self.allowed_ns.fetch_max(nanos(time), Ordering::Relaxed);
    }

    fn usual(&self) {
        self.allowed_ns.store(self.usual_ns, Ordering::Relaxed);
    }

    /// How long it may still last.
    fn left(&self) -> Duration {
        let until = self.since_ns.load(Ordering::Relaxed).saturating_add(self.allowed_ns.load(Ordering::Relaxed));
        Duration::from_nanos(until.saturating_sub(monotonic_ns()))
    }

    fn error(&self) -> io::Error {
        unanswered(Duration::from_nanos(self.allowed_ns.load(Ordering::Relaxed)))
    }
}

fn unanswered(time: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("the server hasn't answered for {} s", time.as_secs_f64()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A stream that fails once nothing has moved for too long.
///
/// What is written counts while the other end acknowledges it: a slow uplink takes a while for a few megabytes.
struct WatchedStream<S> {
    stream: S,
    silence: Arc<Silence>,
    alarm: Pin<Box<Sleep>>,
    /// What wasn't acknowledged when somebody looked last, bytes.
    unacknowledged: u32,
}

impl<S: AsFd> WatchedStream<S> {
    fn new(stream: S, silence: Arc<Silence>) -> Self {
        silence.heard();
        let alarm = Box::pin(tokio::time::sleep(silence.left()));
        Self { stream, silence, alarm, unacknowledged: 0 }
    }

    /// Passes on what the stream says, and counts for how long it says nothing.
    fn judge<T>(&mut self, cx: &mut Context<'_>, said: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if said.is_ready() {
            self.silence.heard();
            return said;
        }
        loop {
            let left = self.silence.left();
            if left.is_zero() {
                let unacknowledged = wt_sys::tcp::unacknowledged(&self.stream).unwrap_or(0);
                if unacknowledged == 0 || unacknowledged == self.unacknowledged {
                    return Poll::Ready(Err(self.silence.error()));
                }
                self.unacknowledged = unacknowledged;
                self.silence.heard();
                continue;
            }
            self.alarm.as_mut().reset(Instant::now() + left);
            ready!(self.alarm.as_mut().poll(cx));
        }
    }
}

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.judge(cx, said)
    }
}

impl<S: AsyncWrite + AsFd + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, said)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
