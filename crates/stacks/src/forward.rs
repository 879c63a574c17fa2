//! Programs of others through a stack: what connects to a local address goes on by a connection of the stack's own.

use crate::catalogue::Choice;
use crate::protocol::{AdapterDone, Arguments};
use crate::running::{AdapterEnd, AdapterProcess, connect};
use crate::tunnel::{STACK_DEVICE, STACK_V4, bring_up, forward_between};
use std::io;
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wt_lab::Folder;
use wt_trial::Cancel;

/// So many connections at once: as many as every adapter takes. Others wait.
const MOST: usize = 60;
/// How long a stack may take to connect: as long as Linux tries by default, about.
const PATIENCE: Duration = Duration::from_secs(130);

/// A listener whose connections are carried on by a stack, in this thread's network namespace; ends with this value, and with the
/// thread that made it.
#[derive(Debug)]
pub struct Forward {
    running: AdapterProcess,
    _folder: Folder,
    at: SocketAddr,
}

/// What went through a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardOutcome {
    /// What the adapter says it did, if it said so.
    pub done: Option<AdapterDone>,
    /// What went wrong with it, if anything did.
    pub trouble: Option<String>,
}

impl Forward {
    /// Starts the stack behind a TUN device in the client of a lab, with its connections going to `server`, and listens at `at`.
    ///
    /// # Errors
    /// Why it can't: no adapter, no TUN device, an address that is taken.
    pub fn start(choice: &Choice, server: SocketAddrV4, at: SocketAddr, mtu: u32) -> Result<Self, String> {
        let told = |what: &'static str| move |error: io::Error| format!("can't {what}: {error}");
        let folder = Folder::new().map_err(told("make a folder for a local socket"))?;
        let listener = TcpListener::bind(at).map_err(|error| format!("can't listen at {at}: {error}"))?;
        let at = listener.local_addr().map_err(told("ask for the local address"))?;
        forward_between().map_err(|error| error.to_string())?;
        let arguments = Arguments {
            device: STACK_DEVICE.to_owned(),
            address: STACK_V4,
            server,
            mtu: choice.mtu.unwrap_or(mtu),
            listen: folder.path().join("stack.sock"),
            mss: choice.mss,
            window: choice.window,
            options: choice.options.clone(),
        };
        let running = AdapterProcess::start(choice, &arguments, &Cancel::new())?;
        bring_up(arguments.mtu).map_err(|error| format!("its device: {error}"))?;
        let path = arguments.listen;
        std::thread::spawn(move || accept(&listener, &path));
        Ok(Self { running, _folder: folder, at })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.at
    }

    /// Settings that the stack refused, and why.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.running.ready.refused
    }

    /// Ends the stack, and says what it did.
    #[must_use]
    pub fn end(self) -> ForwardOutcome {
        let AdapterEnd { done, trouble, .. } = self.running.end();
        ForwardOutcome { done, trouble }
    }
}

/// Carries every connection on, at most [`MOST`] at once.
fn accept(listener: &TcpListener, adapter: &Path) {
    let open = Arc::new((Mutex::new(0_usize), Condvar::new()));
    for client in listener.incoming().flatten() {
        let (count, room) = &*open;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count >= MOST {
            count = room.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
        *count += 1;
        drop(count);
        let (open, adapter): (_, PathBuf) = (Arc::clone(&open), adapter.to_owned());
        std::thread::spawn(move || {
            // Who is refused by the stack sees the connection end.
            let _ = carry(&client, &adapter);
            let _ = client.shutdown(Shutdown::Both);
            *open.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            open.1.notify_one();
        });
    }
}

fn carry(client: &TcpStream, adapter: &Path) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (socket, _): (OwnedFd, _) = connect(adapter, PATIENCE)?;
    let stack = UnixStream::from(socket);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut to) = (client, &stack);
            let _ = io::copy(&mut from, &mut to);
            let _ = stack.shutdown(Shutdown::Write);
        });
        let (mut from, mut to) = (&stack, client);
        let copied = io::copy(&mut from, &mut to);
        let _ = client.shutdown(Shutdown::Write);
        if copied.is_err() {
            // Nobody reads any more: what the client still writes needn't be waited for.
            let _ = stack.shutdown(Shutdown::Both);
            let _ = client.shutdown(Shutdown::Both);
        }
    });
    Ok(())
}
