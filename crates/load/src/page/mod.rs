//! Loading a page: its first object alone, then the others over several cold connections at once, each taking the next one
//! that nobody has asked for. How an object is brought is the business of a [`PageConnection`]: [`http`] has that of HTTP/1.1.
//!
//! What this leaves out: what a browser does between objects (parsing, scripts), and priorities.

/// Objects over HTTP/1.1.
mod http;
/// Objects over HTTP/2.
mod http2;
/// Objects over our own protocol.
mod talk;

pub use http::{HttpPage, PageMemory};
pub use http2::load_page_http2;
use talk::TalkPage;

use crate::error::FetchError;
use crate::transfer::Finish;
use crate::work::RemoteEnd;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::TcpInfo;
use wt_trial::{Cancel, ObjectTime, Page, PageObject};
use wt_units::Settings;

/// Why an object didn't come.
#[derive(Debug)]
pub enum PageStop {
    /// It broke off, was late, or isn't what it should be.
    Finish(Finish),
    /// So many bytes are missing from a byte on.
    Missing {
        /// From which.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// The peer refuses, or there is nothing of the kind.
    Fetch(FetchError),
}

impl PageStop {
    /// How a load ended, and how many bytes were missing.
    fn told(stop: Option<Self>) -> Result<(Finish, Option<u64>), FetchError> {
        match stop {
            None => Ok((Finish::Done, None)),
            Some(Self::Finish(finish)) => Ok((finish, None)),
            Some(Self::Missing { at, bytes }) => Ok((Finish::Corrupt(at), Some(bytes))),
            Some(Self::Fetch(error)) => Err(error),
        }
    }
}

impl From<FetchError> for PageStop {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Cancelled => Self::Finish(Finish::Cancelled),
            FetchError::Silence(_) => Self::Finish(Finish::Deadline),
            FetchError::Protocol(why) => Self::Finish(Finish::Garbage(why)),
            other => Self::Fetch(other),
        }
    }
}

/// What came of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedObject {
    /// When the first byte of the answer came, ns of the monotonic clock.
    pub first_byte_ns: u64,
    /// When the last one came.
    pub done_ns: u64,
    /// Bytes of the object.
    pub bytes: u64,
    /// Whether the connection can bring another one.
    pub open: bool,
}

/// What is known of a connection at its end.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionEnd {
    /// From the first SYN until it stood.
    pub connect_time: Duration,
    /// What the kernel says it set on this socket.
    pub granted: Settings,
    /// The kernel's view when the last object had come.
    pub info: TcpInfo,
}

/// One connection over which objects are brought, one after the other.
pub trait PageConnection {
    /// Brings an object, and checks that it is what it should be.
    ///
    /// # Errors
    /// [`PageStop`].
    fn bring(&mut self, object: &PageObject) -> Result<FetchedObject, PageStop>;

    /// Says that nothing more will be asked, and waits for nothing.
    fn leave(&mut self) {}

    /// Closes it.
    fn close(self: Box<Self>) -> ConnectionEnd;
}

/// Opens the connection with this number: each has its own, in the order in which they are opened.
pub type Open<'a> = dyn Fn(u32) -> Result<Box<dyn PageConnection + 'a>, PageStop> + Sync + 'a;

/// What came of a page.
#[derive(Debug)]
pub struct PageLoad {
    /// How it ended: the first trouble, if there was one.
    pub finish: Finish,
    /// How many bytes are missing where one isn't what was sent, if what came is what stands behind them.
    pub missing_bytes: Option<u64>,
    /// From before the first connection until the last byte of the last object; until the trouble, if there was one.
    pub elapsed: Duration,
    /// Bytes of the objects that came whole.
    pub bytes: u64,
    /// Each object that came, in the order in which they were asked for.
    pub objects: Vec<ObjectTime>,
    /// Each connection, in no order.
    pub connections: Vec<ConnectionEnd>,
}

/// What the connections of a load share.
struct SharedLoad<'a> {
    page: &'a Page,
    open: &'a Open<'a>,
    start_ns: u64,
    next: AtomicUsize,
    /// Connections that were opened so far.
    opened: AtomicU32,
    state: Mutex<State>,
    /// The first object has come, or the last, or there is trouble.
    turn: Condvar,
}

#[derive(Default)]
struct State {
    first_done: bool,
    trouble: Option<PageStop>,
    objects: Vec<ObjectTime>,
    connections: Vec<ConnectionEnd>,
}

impl SharedLoad<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns) / 1000
    }

    /// Brings objects over one connection (or its successors, where one end closes after each) until there is none left.
    fn work(&self, cancel: &Cancel) -> Result<(), PageStop> {
        let mut connection: Option<(u32, Box<dyn PageConnection + '_>)> = None;
        // Nobody waits for the peer to close, too, before the next one is opened; by the time that it is done, it has.
        let mut left: Option<Box<dyn PageConnection + '_>> = None;
        loop {
            if cancel.is_cancelled() {
                return Err(PageStop::Finish(Finish::Cancelled));
            }
            if self.lock().trouble.is_some() {
                break;
            }
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(object) = self.page.objects.get(at) else { break };
            let (number, mut open) = match connection.take() {
                Some(open) => open,
                None => {
                    let number = self.opened.fetch_add(1, Ordering::Relaxed);
                    (number, (self.open)(number)?)
                }
            };
            let asked_us = self.since(monotonic_ns());
            let brought = open.bring(object)?;
            let mut state = self.lock();
            state.objects.push(ObjectTime {
                object: u32::try_from(at).unwrap_or(u32::MAX),
                connection: number,
                asked_us,
                sent_us: None,
                first_byte_us: self.since(brought.first_byte_ns),
                done_us: self.since(brought.done_ns),
                bytes: brought.bytes,
            });
            state.first_done = true;
            if at == 0 || state.objects.len() == self.page.objects.len() {
                self.turn.notify_all();
            }
            drop(state);
            if brought.open && !self.page.close_each {
                connection = Some((number, open));
            } else {
                open.leave();
                left.replace(open).into_iter().for_each(|before| self.end(before));
            }
        }
        left.into_iter().for_each(|before| self.end(before));
        if let Some((_, open)) = connection {
            // As a browser does, so that nobody's connection is the first to go while others are still made.
            let waiting = |state: &mut State| state.objects.len() < self.page.objects.len() && state.trouble.is_none();
            drop(self.turn.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner));
            self.end(open);
        }
        Ok(())
    }

    fn end(&self, connection: Box<dyn PageConnection + '_>) {
        let end = connection.close();
        self.lock().connections.push(end);
    }

    /// Works, and tells of trouble; all but the first worker wait for the first object.
    fn run(&self, worker: u32, cancel: &Cancel) {
        if worker > 0 {
            let waiting = |state: &mut State| !state.first_done && state.trouble.is_none();
            let state = self.turn.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
            drop(state);
        }
        if let Err(trouble) = self.work(cancel) {
            self.lock().trouble.get_or_insert(trouble);
        }
        // Without a first object nobody shall wait for ever.
        self.turn.notify_all();
    }
}

/// Loads a page over our own protocol: requests and answers of the same sizes as over HTTP; the numbers of the connections
/// that were used.
///
/// # Errors
/// [`FetchError`] when the peer refuses; a load that broke off is a result.
pub fn load_page_from(
    far: &dyn RemoteEnd,
    page: &Page,
    deadline: Duration,
    cancel: &Cancel,
) -> Result<(PageLoad, BTreeSet<u32>), FetchError> {
    let over = TalkPage { far, deadline };
    let loaded = load_page(page, &|number| over.open(number, cancel), cancel)?;
    let used = loaded.objects.iter().map(|object| object.connection).collect();
    Ok((loaded, used))
}

/// Loads a page; the clock runs from before the first connection until the last byte.
///
/// # Errors
/// [`FetchError`] when the peer refuses; a load that broke off is a result.
pub fn load_page<'a>(page: &'a Page, open: &'a Open<'a>, cancel: &Cancel) -> Result<PageLoad, FetchError> {
    let shared = SharedLoad {
        page,
        open,
        start_ns: monotonic_ns(),
        next: AtomicUsize::new(0),
        opened: AtomicU32::new(0),
        state: Mutex::default(),
        turn: Condvar::new(),
    };
    let connections = page.connections.clamp(1, u32::try_from(page.objects.len().max(1)).unwrap_or(u32::MAX));
    std::thread::scope(|scope| {
        for worker in 1..connections {
            let shared = &shared;
            scope.spawn(move || shared.run(worker, cancel));
        }
        shared.run(0, cancel);
    });
    let start_ns = shared.start_ns;
    let State { trouble, mut objects, connections, .. } =
        shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    objects.sort_by_key(|object| object.object);
    let last = objects.iter().map(|object| object.done_us).max().map(Duration::from_micros);
    let (finish, missing_bytes) = PageStop::told(trouble)?;
    let elapsed = match &finish {
        Finish::Done => last.unwrap_or_default(),
        _ => Duration::from_nanos(monotonic_ns().saturating_sub(start_ns)),
    };
    let bytes = objects.iter().map(|object| object.bytes).sum();
    Ok(PageLoad { finish, missing_bytes, elapsed, bytes, objects, connections })
}
