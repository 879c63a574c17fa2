//! A connection as `h2` wants it: whoever finds nothing is asked again after a wait, so that nobody needs to be woken.

use crate::wire::Wire;
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp;

/// The connection, for those who read and write and for those who wait.
#[derive(Debug)]
pub(crate) struct PolledConnection<'a> {
    pub(crate) wire: RefCell<Wire<'a>>,
    /// The receive window that is held, bytes, if it was set.
    window: Option<u32>,
    /// Whether the kernel takes no more.
    full: Cell<bool>,
}

impl<'a> PolledConnection<'a> {
    pub(crate) fn new(wire: Wire<'a>, window: Option<u32>) -> Rc<Self> {
        Rc::new(Self { wire: RefCell::new(wire), window, full: Cell::new(false) })
    }

    /// Waits until something may have happened, until `limit_ns` at the latest.
    pub(crate) fn wait_until(&self, limit_ns: u64) -> io::Result<()> {
        self.wire.borrow().wait_until(self.full.get(), limit_ns)
    }
}

/// What is handed to `h2`.
#[derive(Debug)]
pub(crate) struct Door<'a>(pub(crate) Rc<PolledConnection<'a>>);

fn pending_or<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Poll::Pending,
        other => Poll::Ready(other),
    }
}

impl AsyncRead for Door<'_> {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.0.wire.borrow_mut();
        // `h2` reads on as long as something comes; whoever waits sees then that it is over.
        if monotonic_ns() >= wire.give_up_ns() || wire.cancel().is_cancelled() {
            return Poll::Pending;
        }
        let read = wire.read_now(buffer.initialize_unfilled());
        if let (Ok(_), Some(window)) = (&read, self.0.window) {
            tcp::hold_window(wire.socket(), window).map_err(io::Error::other)?;
        }
        pending_or(read.map(|n| buffer.advance(n)))
    }
}

impl AsyncWrite for Door<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = pending_or(self.0.wire.borrow_mut().write_now(bytes));
        self.0.full.set(written.is_pending());
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = pending_or(self.0.wire.borrow_mut().flush_now());
        self.0.full.set(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
