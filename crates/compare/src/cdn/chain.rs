//! Client, edge and backend, and requests whose answers are checked.

use super::request::Proxy;
use super::servers::{self, STARTING, Server};
use super::windows::EdgeRequest;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use wt_lab::{Folder, Host, Lab};
use wt_problem::{Fault, Problem};
use wt_sys::clock::monotonic_ns;
use wt_sys::netlink::RouteMetrics;
use wt_trial::Direction;
use wt_units::Bytes;

/// Payload of a segment, bytes.
const SEGMENT: u64 = 1448;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing of what these servers say before the object is longer.
const HEAD: u64 = 16 << 10;

/// Three hosts with their servers; all of it ends when this is dropped.
pub(super) struct Chain {
    lab: Lab,
    object: Bytes,
    _servers: [Server; 2],
    _folder: Folder,
}

impl Chain {
    /// Starts both servers and fills the cache.
    pub(super) fn start(lab: Lab, object: Bytes, proxy: Proxy) -> Result<Self, Problem> {
        let ours = |error: std::io::Error| Problem::environment(format!("can't prepare the servers: {error}"));
        let folder = Folder::new().map_err(ours)?;
        let place = &folder.path();
        std::fs::create_dir(place.join("www")).map_err(ours)?;
        std::fs::write(place.join("www/object"), vec![b'x'; object.get() as usize]).map_err(ours)?;
        let edge = edge(&lab)?;
        let backend = servers::origin(&lab.server, place)?;
        let edge = match proxy {
            Proxy::Nginx => servers::nginx(edge, place, lab.server.v4),
            Proxy::Varnish => servers::varnish(edge, place, lab.server.v4),
        }?;
        let chain = Self { lab, object, _servers: [backend, edge], _folder: folder };
        chain.ask(EdgeRequest::Miss, "/object")?;
        Ok(chain)
    }

    /// RTT of the client and the edge, and of the edge and the backend, without anybody else's packets.
    pub(super) fn round_trips(&self) -> [Duration; 2] {
        let whole = Duration::from_micros(self.lab.scenario().facts(Direction::Down).rtt_us);
        let near = self.lab.scenario().links.iter().take_while(|link| link.hop.host.is_none());
        let near = near.map(|link| link.down.delay + link.up.delay).sum();
        [near, whole.saturating_sub(near)]
    }

    /// About how long a request of either kind takes: a round trip for the handshake, one for the request, and those that the
    /// windows take to grow to the object's size, on each hop that it crosses; and the time that its bytes take.
    pub(super) fn expected(&self, request: EdgeRequest, window: u32) -> Duration {
        let [near, far] = self.round_trips();
        let segments = self.object.get().div_ceil(SEGMENT).max(1);
        let rounds = (segments.div_ceil(u64::from(window)) + 1).ilog2();
        let hops = match request {
            EdgeRequest::Hit => near,
            EdgeRequest::Miss => near + far,
        };
        let rate = self.lab.scenario().facts(Direction::Down).physical_goodput_bps.unwrap_or(u64::MAX).max(1);
        hops * (2 + rounds) + Duration::from_secs_f64(self.object.get() as f64 * 8.0 / rate as f64)
    }

    /// Sets the four windows, in the order of [`WINDOWS`](super::windows::WINDOWS).
    pub(super) fn set_windows(&self, [backend, fetching, sending, client]: [u32; 4]) -> Result<(), Problem> {
        let (lab, edge) = (&self.lab, edge(&self.lab)?);
        let cwnd = |n| RouteMetrics { initcwnd: Some(n), ..RouteMetrics::default() };
        let rwnd = |n| RouteMetrics { initrwnd: Some(n), ..RouteMetrics::default() };
        for (host, target, metrics) in [
            (&lab.server, edge.v4, cwnd(backend)),
            (edge, lab.server.v4, rwnd(fetching)),
            (edge, lab.client.v4, cwnd(sending)),
            (&lab.client, edge.v4, rwnd(client)),
        ] {
            let set = host.set_route(IpAddr::V4(target), &metrics);
            set.map_err(|error| Problem::environment(error.to_string()).hint("run `windtunnel doctor`"))?;
        }
        Ok(())
    }

    /// Asks over a new connection; how long it took from the first SYN to the last byte, and what the lab has to complain of.
    pub(super) fn request(&self, request: EdgeRequest, number: u64) -> Result<(Duration, Option<String>), Problem> {
        let path = match request {
            EdgeRequest::Hit => "/object".to_owned(),
            EdgeRequest::Miss => format!("/object?{number}"),
        };
        let before = self.lab.stats();
        let took = self.ask(request, &path)?;
        let rtt = Duration::from_micros(self.lab.scenario().facts(Direction::Down).rtt_us);
        Ok((took, self.lab.stats().since(&before).complaint(rtt)))
    }

    fn ask(&self, request: EdgeRequest, path: &str) -> Result<Duration, Problem> {
        let peer = SocketAddr::new(edge(&self.lab)?.v4.into(), 80);
        let fetched = self.lab.client.run(|| fetch(peer, path));
        let failed =
            |why: &dyn std::fmt::Display| Problem::new(Fault::Remote, format!("the edge doesn't answer: {why}"));
        let (took, head, body) = fetched.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let wanted = format!("x-cache: {}", request.name());
        if !head.starts_with("http/1.1 200") || !head.contains(&wanted) || body != self.object.get() {
            let line = head.lines().next().unwrap_or_default();
            return Err(Problem::internal(format!(
                "the edge answered \"{line}\" and {body} bytes where a {} was due",
                request.name()
            )));
        }
        Ok(took)
    }
}

fn edge(lab: &Lab) -> Result<&Host, Problem> {
    lab.middle.first().ok_or_else(|| Problem::internal("the lab has no host on the way"))
}

/// One request over a cold connection: how long it took, the head, and how many bytes followed.
fn fetch(peer: SocketAddr, path: &str) -> std::io::Result<(Duration, Vec<u8>, u64)> {
    let begin = monotonic_ns();
    let mut stream = TcpStream::connect_timeout(&peer, STARTING)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n").as_bytes())?;
    let (mut head, mut body, mut done) = (Vec::new(), 0u64, false);
    let mut buffer = vec![0; 64 << 10];
    let mut last = begin;
    loop {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok((Duration::from_nanos(last.saturating_sub(begin)), head, body));
        }
        last = monotonic_ns();
        if done {
            body += len as u64;
            continue;
        }
        head.extend_from_slice(&buffer[..len]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            body = (head.len() - end - 4) as u64;
            head.truncate(end);
            done = true;
        } else if head.len() as u64 > HEAD {
            return Err(std::io::Error::other("its head never ends"));
        }
    }
}
