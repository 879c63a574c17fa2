use crate::protocol::{AdapterDone, CONNECTED, Ready};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use wt_sys::poll::wait_writable;

/// Bytes that are carried at once.
pub(super) const AT_ONCE: usize = 64 * 1024;

/// Listens where it was told, and says that it does.
///
/// # Errors
/// What can't be done.
pub(super) fn begin(path: &Path, ready: &Ready) -> Result<UnixListener, String> {
    let failed = |error: io::Error| format!("can't listen on {}: {error}", path.display());
    let listener = UnixListener::bind(path).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    super::say(ready);
    Ok(listener)
}

/// Somebody who wants a connection, if there is one now.
pub(super) fn accept(listener: &UnixListener) -> Option<UnixStream> {
    listener.accept().ok().map(|(stream, _)| stream)
}

/// Whether whoever started us has gone, or wants us to.
pub(super) fn is_over() -> bool {
    let mut byte = [0; 64];
    let stdin = io::stdin();
    matches!(stdin.lock().read(&mut byte), Ok(0) | Err(_))
}

/// Tells the one who waits that the stack's connection stands.
pub(super) fn tell_connected(mut stream: &UnixStream) -> io::Result<()> {
    stream.write_all(&[CONNECTED])
}

/// Writes what goes now; how much that was.
pub(super) fn write_some(mut stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

/// Waits until a local socket takes bytes again, but not for long.
pub(super) fn wait_for_room(stream: &UnixStream) {
    let _ = wait_writable(&[stream.as_fd()], Some(Duration::from_millis(1)));
}

/// Nothing was carried yet.
pub(super) fn nothing_done() -> AdapterDone {
    AdapterDone { done: true, connections: 0, bytes_in: 0, bytes_out: 0 }
}

/// Devices end with this process. To take one away before may wait for others that change theirs, and the last line would come late.
pub(super) fn leave_to_the_kernel<T>(devices: T) {
    std::mem::forget(devices);
}
