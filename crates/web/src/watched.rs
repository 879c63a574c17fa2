use crate::places::Seat;
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Whoever has something to read and takes less than this within that time has gone.
const LEAST: usize = 16 << 10;
const WITHIN: Duration = Duration::from_secs(20);

/// A connection whose other end has to take what it asked for.
pub(crate) struct WatchedStream<S> {
    stream: S,
    seat: Arc<Seat>,
    timer: Pin<Box<Sleep>>,
    stall: Stall,
}

/// From the first time that something couldn't be written, until enough is.
#[derive(Debug, Default)]
struct Stall {
    /// By when, in ns, while something waits to be written.
    until_ns: Option<u64>,
    taken: usize,
}

impl Stall {
    /// The other end took so much.
    fn took(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= LEAST {
            self.until_ns = None;
        }
    }

    /// It takes nothing now; by when it must have taken enough.
    fn stuck(&mut self, now_ns: u64) -> u64 {
        *self.until_ns.get_or_insert_with(|| {
            self.taken = 0;
            now_ns + WITHIN.as_nanos() as u64
        })
    }

    /// Nothing waits to be written.
    fn idle(&mut self) {
        self.until_ns = None;
    }
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, seat: Arc<Seat>) -> Self {
        Self { stream, seat, timer: Box::pin(tokio::time::sleep(WITHIN)), stall: Stall::default() }
    }

    fn wrote(&mut self, result: Poll<io::Result<usize>>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(n)) => {
                self.stall.took(n);
                self.seat.moved();
                Poll::Ready(Ok(n))
            }
            Poll::Pending => {
                let now_ns = wt_sys::clock::monotonic_ns();
                let left = self.stall.stuck(now_ns).saturating_sub(now_ns);
                self.timer.as_mut().reset(Instant::now() + Duration::from_nanos(left));
                match self.timer.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                    Poll::Pending => Poll::Pending,
                }
            }
            failed => failed,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.stall.idle();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// When it is given up that so many bytes are taken each second; None if it isn't within an hour.
    fn gone_after_s(bytes_a_second: usize) -> Option<u64> {
        let mut stall = Stall::default();
        (0..3600).find(|second| {
            let now = second * SECOND;
            stall.took(bytes_a_second);
            stall.stuck(now) <= now
        })
    }

    #[test]
    fn who_reads_nothing_or_drips_is_gone_in_time_and_who_reads_slowly_stays() {
        for bytes in [0, 1, 100, 800] {
            assert_eq!(gone_after_s(bytes), Some(20), "{bytes} bytes/s");
        }
        for bytes in [900, 7_000, 1_000_000] {
            assert_eq!(gone_after_s(bytes), None, "{bytes} bytes/s");
        }
    }

    #[test]
    fn where_nothing_is_to_be_read_nobody_is_late() {
        let mut stall = Stall::default();
        assert_eq!(stall.stuck(SECOND), 21 * SECOND);
        stall.idle();
        assert_eq!(stall.stuck(1000 * SECOND), 1020 * SECOND, "an event stream that was quiet begins anew");
    }
}
