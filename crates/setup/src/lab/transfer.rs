use crate::controls::available;
use crate::{duration_or_none, settings_of};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use wt_lab::{PORT, SERVER_V4};
use wt_load::{
    Connection, EndReport, Finish, LoadError, Request, SenderOptions, Server, ServerConfig, download, upload,
    would_grant,
};
use wt_problem::Problem;
use wt_sys::ns::{NetNs, read_net_sysctl};
use wt_sys::tcp::{fix_window, listen, window_clamp};
use wt_sys::{SysError, SysResult};
use wt_trial::{Amount, Cancel, Direction, SampleColumns};
use wt_units::{Assignment, Bytes, FullPacket, Knob, Level, Settings};

/// A transfer between the client and the server of a lab, from within it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferRequest {
    /// Which way the payload goes.
    pub direction: Direction,
    /// So many bytes of payload.
    pub size: Option<Bytes>,
    /// Or as much as goes in so long; nothing means 5 s.
    #[serde(with = "duration_or_none")]
    pub time: Option<Duration>,
    /// What the connection is set to: rwin, mss, ttl, cc, sndbuf.
    pub set: Vec<Assignment>,
}

impl Default for TransferRequest {
    fn default() -> Self {
        Self { direction: Direction::Down, size: None, time: None, set: Vec::new() }
    }
}

/// What came of a transfer, as the client's end saw it.
#[derive(Debug, Clone, Serialize)]
pub struct TransferAnswer {
    /// 1.
    pub schema_version: u32,
    /// Which way the payload went.
    pub direction: Direction,
    /// How it ended: `done`, or why not.
    pub finish: String,
    /// Payload that arrived, or was sent.
    pub bytes: u64,
    /// How long that took, µs.
    pub elapsed_us: u64,
    /// How long the handshake took, µs.
    pub connect_us: u64,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// What the kernel says that it set.
    pub granted: Settings,
    /// What it refused.
    pub refused: Vec<String>,
    /// What makes it another transfer than one might think.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Which end took the samples.
    pub end: &'static str,
    /// What TCP said over time.
    pub samples: SampleColumns,
    /// Why it is no whole transfer, if the other end or the path is at fault.
    #[serde(skip)]
    pub problem: Option<Problem>,
}

/// What runs a transfer within a lab.
const WITHIN: &str = "windtunnel lab run adsl -- windtunnel lab transfer";
/// How `ip netns` calls the lab's server, from within it.
const SERVER: &str = "server";
/// The knobs that one connection takes.
const KNOBS: [Knob; 5] = [Knob::Rwin, Knob::Mss, Knob::Ttl, Knob::Cc, Knob::Sndbuf];
/// A full packet where nothing is known of the path.
const USUAL: FullPacket = FullPacket { mtu: 1_500, mss: 1_448 };
/// How long a transfer goes on if nothing else is said.
const USUAL_TIME: Duration = Duration::from_secs(5);
/// A transfer of a size is given up after this long.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the server may take to accept.
const CONNECT: Duration = Duration::from_secs(20);

/// Moves payload between the client and the server, from within a lab. It is one trial's transfer, by the same client and
/// server, checked byte by byte.
///
/// # Errors
/// A usage [`Problem`] for an invalid request, a remote one where there is no server: this isn't within a lab.
pub fn transfer(request: &TransferRequest, cancel: &Cancel) -> Result<TransferAnswer, Problem> {
    let settings = settings_of(&request.set, USUAL)?;
    if let Some((knob, _)) = settings.iter().find(|(knob, _)| !KNOBS.contains(knob)) {
        return Err(Problem::usage(format!("{knob} belongs to no single connection"))
            .hint("set here: rwin, mss, ttl, cc, sndbuf; windtunnel tune --lab varies the others"));
    }
    let (amount, deadline) = match (request.size, request.time) {
        (Some(_), Some(_)) => return Err(Problem::usage("a transfer has a size or a time, not both")),
        (Some(size), _) if size.get() == 0 => return Err(Problem::usage("size 0: there is nothing to transfer")),
        (Some(size), _) => (Amount::Size(size), LONGEST),
        (None, time) => (Amount::Time(time.unwrap_or(USUAL_TIME)), time.unwrap_or(USUAL_TIME) + CONNECT),
    };
    if own_address().is_some_and(|own| !is_of_a_lab(own)) {
        // Whatever answers there from outside, a proxy say, is no server of ours.
        return Err(Problem::remote(format!("there is no way from this host to a lab's server, {SERVER_V4}"))
            .because("this isn't within a lab")
            .hint(WITHIN));
    }
    let direction = request.direction;
    let load = load_request(direction, amount, &settings);
    // What the sender sets, the server is told; this end sets its own.
    let not_ours: &[Knob] = if direction == Direction::Up { &[Knob::Rwin] } else { &[Knob::Cc, Knob::Sndbuf] };
    let own = settings.iter().filter(|(knob, _)| !not_ours.contains(knob));
    let own = own.map(|(knob, level)| (knob, level.clone())).collect();
    let windowed = load.window.map(|window| (window, WindowedServer::start(window)));
    let own_server = windowed.as_ref().and_then(|(_, started)| started.as_ref().ok());
    let lab_server = SocketAddr::new(SERVER_V4.into(), PORT);
    let peer = own_server.map_or(lab_server, |windowed| windowed.server.address());
    let connection = Connection::open_with_all(&peer, &own, CONNECT).map_err(|error| problem(&error))?;
    let (connect_time, mut granted) = (connection.connect_time, connection.granted.clone());
    let mut notes = Vec::new();
    if let Some((asked, started)) = &windowed {
        let window = started.as_ref().map_or(*asked, |windowed| windowed.granted);
        granted.set(Knob::Rwin, Level::Number(window.into()));
        notes.extend(started.as_ref().err().map(|why| late_window(*asked, why)));
    }
    if direction == Direction::Down {
        // The server falls back on its own, and says so to nobody here: but both hosts have one kernel.
        let far = settings.iter().filter(|(knob, _)| not_ours.contains(knob));
        let far = far.map(|(knob, level)| (knob, level.clone())).collect();
        let far = would_grant(&peer, &far).map_err(|error| problem(&error))?;
        far.iter().for_each(|(knob, level)| granted.set(knob, level.clone()));
    }
    let usual = read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default();
    let asked = settings.name(Knob::Cc).filter(|_| direction == Direction::Down);
    notes.extend(asked.and_then(|name| still_paced(usual.trim(), name)));
    let report = match direction {
        Direction::Down => download(connection, &load, deadline, cancel),
        Direction::Up => upload(connection, &load, deadline, cancel),
    };
    report.map(|report| answer(direction, report, connect_time, granted, notes)).map_err(|error| problem(&error))
}

/// A server beside the lab's own, in the same host: the window of a connection is promised with its SYN-ACK, so the socket that listens
/// must have it. `tune` has a route for that, which would hold for everybody in the lab, and outlive this process if it is killed.
struct WindowedServer {
    server: Server,
    /// The window that the kernel says it set, bytes.
    granted: u32,
}

impl WindowedServer {
    /// Listens on a port that the kernel chooses, with a window of so many bytes.
    ///
    /// # Errors
    /// [`SysError`]: the server's namespace can't be found or entered from here.
    ///
    /// # Source
    /// `tcp_openreq_init_rwin()` of net/ipv4/tcp_minisocks.c takes the listener's window clamp before the route's.
    fn start(window: u32) -> SysResult<Self> {
        let listener = NetNs::named(SERVER)?.run(|| {
            let listener = listen(SocketAddr::new(SERVER_V4.into(), 0))?;
            fix_window(&listener, window)?;
            Ok(listener)
        })??;
        let granted = window_clamp(&listener)?;
        Ok(Self { server: Server::start(listener, ServerConfig::default())?, granted })
    }
}

/// What is said of a window that the server sets once it has read what is wanted.
fn late_window(asked: u32, why: &SysError) -> String {
    format!(
        "rwin={asked} came late: the connection began with the server's usual window, whose first bytes don't wait for it ({why})"
    )
}

/// What is said of a congestion control that the server gives a connection which has begun with the usual one.
///
/// # Source
/// `bbr_init()` of net/ipv4/tcp_bbr.c switches pacing on for a socket; nothing switches it off again.
fn still_paced(usual: &str, asked: &str) -> Option<String> {
    (usual == "bbr" && asked != "bbr").then(|| {
        format!(
            "cc={asked} is paced: the connection began with the default, bbr, whose pacing stays; \
             windtunnel lab run --cc {asked} begins with {asked}"
        )
    })
}

fn load_request(direction: Direction, amount: Amount, settings: &Settings) -> Request {
    let small = |knob| settings.number(knob).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    Request {
        direction,
        amount,
        token: wt_sys::clock::monotonic_ns(),
        sender: SenderOptions {
            congestion_control: settings.name(Knob::Cc).map(str::to_owned),
            send_buffer: small(Knob::Sndbuf),
            ..SenderOptions::default()
        },
        window: if direction == Direction::Up { small(Knob::Rwin) } else { None },
    }
}

/// The address from which packets to the lab's server would come; nothing where no way leads there.
fn own_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((SERVER_V4, PORT)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(own) => Some(own),
        IpAddr::V6(_) => None,
    }
}

/// Whether hosts of labs have such addresses: 198.18.0.0/15, which is kept for measurements (RFC 2544, appendix C.2.2).
fn is_of_a_lab(own: Ipv4Addr) -> bool {
    matches!(own.octets(), [198, 18 | 19, ..])
}

fn problem(error: &LoadError) -> Problem {
    match error {
        LoadError::Refused { knob: Knob::Cc, .. } => {
            Problem::usage(error.to_string()).because(format!("this kernel has {}", available().join(", ")))
        }
        LoadError::Refused { .. } | LoadError::Request(_) => Problem::usage(error.to_string()),
        LoadError::Connect(_) => Problem::remote(error.to_string())
            .because("this isn't within a lab, or the path lets nothing through")
            .hint(WITHIN),
        LoadError::Broken(_) => Problem::remote(error.to_string()),
    }
}

fn answer(
    direction: Direction,
    report: EndReport,
    connect_time: Duration,
    granted: Settings,
    notes: Vec<String>,
) -> TransferAnswer {
    let seconds = report.elapsed.as_secs_f64();
    let failed =
        matches!(report.finish, Finish::PeerLeft(_) | Finish::Garbage(_) | Finish::Lost(_) | Finish::Corrupt(_));
    let finish = match report.finish {
        Finish::Done => "done".to_owned(),
        Finish::Deadline => "the deadline came first".to_owned(),
        Finish::Cancelled => "stopped".to_owned(),
        Finish::PeerLeft(why) | Finish::Garbage(why) | Finish::Lost(why) => why,
        Finish::Corrupt(at) => format!("the byte at {at} isn't what was sent"),
    };
    let problem = failed.then(|| {
        Problem::remote(format!("the transfer failed: {finish}"))
            .because("the other end isn't the lab's server, or it ended, or the path broke")
            .hint(WITHIN)
    });
    TransferAnswer {
        schema_version: 1,
        problem,
        notes,
        direction,
        finish,
        bytes: report.bytes,
        elapsed_us: report.elapsed.as_micros() as u64,
        connect_us: connect_time.as_micros() as u64,
        goodput_bps: if seconds > 0.0 { report.bytes as f64 * 8.0 / seconds } else { 0.0 },
        granted,
        refused: report.refused,
        end: if direction == Direction::Up { "sender" } else { "receiver" },
        samples: SampleColumns::of(&report.samples),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_an_address_of_its_own_is_in_no_lab() {
        for (own, is) in
            [([198, 18, 0, 1], true), ([198, 19, 0, 1], true), ([192, 0, 2, 2], false), ([198, 20, 0, 1], false)]
        {
            assert_eq!(is_of_a_lab(own.into()), is, "{own:?}");
        }
    }

    #[test]
    fn only_what_begins_with_bbr_and_goes_on_with_another_one_is_said_to_be_paced() {
        for (usual, asked, paced) in [("bbr", "cubic", true), ("bbr", "bbr", false), ("cubic", "reno", false)] {
            assert_eq!(still_paced(usual, asked).is_some(), paced, "{usual}, {asked}");
        }
    }
}
