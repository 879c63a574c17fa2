use crate::error::FetchError;
use crate::tls::Tls;
use crate::transfer::{EndReport, Job};
use crate::wire::Wire;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use wt_sys::tcp;
use wt_trial::{Amount, Direction};
use wt_units::{Settings, Url};

/// No connection takes longer to stand.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// What is fetched, or brought, and how.
#[derive(Debug)]
pub struct Fetch<'a> {
    /// What.
    pub url: &'a Url,
    /// Where the name led to.
    pub peer: SocketAddr,
    /// What is set on the socket.
    pub settings: &'a Settings,
    /// How much.
    pub amount: Amount,
    /// After this long it is given up.
    pub deadline: Duration,
    /// The trust anchors, for what goes through TLS.
    pub tls: &'a Tls,
}

impl Fetch<'_> {
    /// The transfer itself, whose clock began at `start_ns`.
    pub(crate) fn transfer(&self, start_ns: u64, window: Option<u32>) -> Job {
        Job::alone(self.amount, start_ns, self.deadline, window)
    }
}

/// What came of it.
#[derive(Debug)]
pub struct FetchOutcome {
    /// What this end saw.
    pub report: EndReport,
    /// From the first SYN until the connection stood.
    pub connect_time: Duration,
    /// What the kernel says it set.
    pub granted: Settings,
    /// How many bytes there are in all, if that is known.
    pub length: Option<u64>,
    /// Whether the server had more to send than was asked for: what was under way at the end came in vain.
    pub surplus: bool,
    /// What a person should know.
    pub notes: Vec<String>,
    /// What the peer says of itself.
    pub far: Option<PeerReport>,
    /// What windtunnel serve saw.
    pub other: Option<EndReport>,
}

impl FetchOutcome {
    /// What came over a connection, which ends at once, so that nothing of this trial lingers on the path.
    pub(crate) fn over(
        wire: Wire<'_>,
        connect_time: Duration,
        granted: Settings,
        report: EndReport,
        length: Option<u64>,
        notes: Vec<String>,
    ) -> Self {
        let _ = tcp::reset_on_close(wire.socket());
        drop(wire);
        Self { report, connect_time, granted, length, surplus: false, notes, far: None, other: None }
    }
}

/// What a peer that speaks of itself says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerReport {
    /// Segments that it retransmitted.
    pub retransmits: Option<u64>,
    /// What it used to send.
    pub congestion_control: Option<String>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// A transfer as fast as it goes.
    Transfer {
        /// Which way.
        direction: Direction,
        /// How much.
        amount: Amount,
        /// Whether it has the settings that are tried, or the current ones.
        tried: bool,
    },
    /// Both take turns for so long at most.
    Talk {
        /// How long.
        time: Duration,
    },
}

/// A connection that is ready for its purpose: what comes next on it is the workload's.
#[derive(Debug)]
pub struct OpenedConnection {
    /// The connection.
    pub stream: TcpStream,
    /// The window that this end holds, if it was set.
    pub window: Option<u32>,
    /// From the first SYN until the connection stood.
    pub connect_time: Duration,
    /// What the kernel says it set on this socket.
    pub granted: Settings,
    /// Under which the peer keeps its side.
    pub token: u64,
}

/// Somebody who speaks our protocol.
pub trait RemoteEnd: Sync {
    /// Opens the connection with this number, 0 being the first one.
    ///
    /// # Errors
    /// [`FetchError`].
    fn open(&self, number: u32, leg: &Leg) -> Result<OpenedConnection, FetchError>;
}
