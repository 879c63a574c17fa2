use super::config::is_private;
use super::connection::{Connection, Setup};
use super::decide::{Decision, DecisionReason, Verdict, decide, may_be_lawful};
use super::reading::{End, Reading};
use super::segment::{Incoming, Outgoing, SynAck};
use super::session::{Head, Session};
use crate::Time;
use std::net::IpAddr;
use std::time::Duration;
use wt_units::Url;

/// No host gets more probes, those after a redirect included.
pub const MOST_PROBES: usize = 6;
/// Probes of one resource.
const PROBES_EACH: usize = 4;
/// A later probe keeps this distance, so that the same burst of losses doesn't hit it.
const APART: Duration = Duration::from_secs(1);
/// The same on networks that aren't public: what disturbs there is this survey itself, or this machine, and passes sooner.
const APART_PRIVATE: Duration = Duration::from_millis(200);

/// What is asked for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// The name for `Host:` and TLS, without a port.
    pub host: String,
    /// Path and query.
    pub path: String,
}

impl Goal {
    /// `Host:`'s value.
    #[must_use]
    pub fn authority(&self) -> String {
        let bracketed = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { bracketed } else { format!("{bracketed}:{}", self.port) }
    }

    /// Where a redirect leads, if it stays on this host.
    #[must_use]
    pub fn redirected(&self, location: &str) -> Option<Self> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(Self { path: clean(location)?, ..self.clone() });
        }
        let Url { scheme, host, port, path, .. } = location.parse().ok()?;
        let goal = Self { tls: scheme.is_encrypted(), port, path, ..self.clone() };
        (scheme.is_web() && host.eq_ignore_ascii_case(&self.host) && goal != *self).then_some(goal)
    }
}

/// Only what may stand in a request line, without the fragment.
fn clean(path: &str) -> Option<String> {
    let path = path.split('#').next().unwrap_or("/");
    path.bytes().all(|byte| byte.is_ascii_graphic()).then(|| path.to_owned())
}

/// Makes the other end's application for a goal.
pub trait Opener {
    /// A new session.
    fn open(&self, goal: &Goal) -> Box<dyn Session>;
}

impl<O: Opener> Opener for &O {
    fn open(&self, goal: &Goal) -> Box<dyn Session> {
        (**self).open(goal)
    }
}

/// A segment to send to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Send {
    /// To which address.
    pub address: IpAddr,
    /// To which port.
    pub port: u16,
    /// From which of our ports, counted from 0.
    pub from: usize,
    /// What.
    pub segment: Outgoing,
}

/// What was found out about one host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostResult {
    /// What is claimed.
    pub decision: Decision,
    /// What the SYN-ACK said, of the probe that offered most.
    pub syn_ack: Option<SynAck>,
    /// Whether that probe offered SACK, timestamps, ECN and Fast Open.
    pub offered_all: bool,
    /// How the path was changed by a redirect, where what it leads to answered.
    pub goal: Goal,
    /// The port that refused a connection.
    pub refused: Option<u16>,
    /// What each probe has shown.
    pub readings: Vec<Reading>,
    /// Packets sent.
    pub packets: u32,
    /// From the first SYN to the verdict.
    pub time: Duration,
    /// Until when packets of its may still be under way.
    pub quiet_at: Time,
}

impl HostResult {
    /// Of a host that has refused before and isn't asked again.
    #[must_use]
    pub fn refused(goal: Goal, now: Time) -> Self {
        Self {
            decision: Decision { why: DecisionReason::Refused, ..decide(&[]) },
            syn_ack: None,
            offered_all: false,
            refused: Some(goal.port),
            goal,
            readings: Vec::new(),
            packets: 0,
            time: Duration::ZERO,
            quiet_at: now,
        }
    }
}

/// Two connections to one host, and more where those don't agree.
#[derive(Debug)]
pub struct Host {
    goal: Goal,
    /// The sizes to offer, in order.
    sizes: [u16; 2],
    /// All connections; the first is for local port 0, and so on.
    connections: Vec<(u16, Connection)>,
    /// The first connection for the present goal.
    first: usize,
    isn: u32,
    /// The shortest RTT to its network, if known.
    net_rtt: Option<Duration>,
    begun: Time,
    /// When the next probe begins, with which MSS, and whether it offers all options.
    next_at: Option<(Time, u16, bool)>,
    /// What was asked for before a redirect.
    redirected: Option<Goal>,
    found: Option<HostResult>,
}

impl Host {
    /// Opens two connections, with these sizes of segments; `net_rtt` is the shortest RTT to the host's network, if known.
    #[must_use]
    pub fn start(
        goal: Goal,
        sizes: [u16; 2],
        isn: u32,
        net_rtt: Option<Duration>,
        opener: &dyn Opener,
        now: Time,
    ) -> Self {
        let mut host = Self {
            goal,
            sizes,
            connections: Vec::with_capacity(2),
            first: 0,
            isn,
            net_rtt,
            begun: now,
            next_at: None,
            redirected: None,
            found: None,
        };
        host.open_both(opener, now);
        host
    }

    /// What was found out, once that is so.
    #[must_use]
    pub fn found(&self) -> Option<&HostResult> {
        self.found.as_ref()
    }

    /// Takes a segment from a port of the host to one of ours.
    pub fn handle(&mut self, now: Time, port: u16, to: usize, segment: &Incoming<'_>, opener: &dyn Opener) {
        if let Some((_, connection)) = self.connections.get_mut(to).filter(|(theirs, _)| *theirs == port) {
            connection.handle(now, segment);
            self.step(now, opener);
        }
    }

    /// How long the handshake of the connection from this port of ours took, if that is known.
    #[must_use]
    pub fn handshake(&self, to: usize) -> Option<Duration> {
        self.connections.get(to)?.1.handshake()
    }

    /// What to do when the deadline has passed.
    pub fn wake(&mut self, now: Time, opener: &dyn Opener) {
        for (_, connection) in &mut self.connections {
            if connection.deadline().is_some() {
                connection.wake(now);
            }
        }
        if let Some((_, mss, full)) = self.next_at.take_if(|(at, ..)| *at <= now) {
            self.open(mss, full, opener, now);
        }
        self.step(now, opener);
    }

    /// When it wants to be woken.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let next = self.next_at.map(|(at, ..)| at);
        self.connections.iter().filter_map(|(_, connection)| connection.deadline()).chain(next).min()
    }

    /// The next segment to send.
    pub fn poll(&mut self) -> Option<Send> {
        let address = self.goal.address;
        self.connections.iter_mut().enumerate().find_map(|(from, (port, connection))| {
            connection.poll().map(|segment| Send { address, port: *port, from, segment })
        })
    }

    /// Ends all connections, whatever is known.
    pub fn give_up(&mut self, now: Time) {
        if self.found.is_none() {
            self.finish(now);
        }
    }

    fn open_both(&mut self, opener: &dyn Opener, now: Time) {
        self.first = self.connections.len();
        self.open(self.sizes[0], false, opener, now);
        self.open(self.sizes[1], true, opener, now);
    }

    fn open(&mut self, mss: u16, full: bool, opener: &dyn Opener, now: Time) {
        let number = self.connections.len() as u32;
        let setup =
            Setup { mss, full, isn: self.isn.wrapping_add(number.wrapping_mul(0x9E37_79B9)), net_rtt: self.net_rtt };
        self.connections.push((self.goal.port, Connection::open(setup, opener.open(&self.goal), now)));
    }

    fn step(&mut self, now: Time, opener: &dyn Opener) {
        if self.found.is_some() || self.next_at.is_some() {
            return;
        }
        let present = || self.connections[self.first..].iter().map(|(_, connection)| connection);
        let refused = |c: &Connection| c.is_over() && matches!(c.reading().end, End::Refused);
        if present().any(refused) {
            return self.finish(now);
        }
        if !present().all(|c| c.is_held() || c.is_over()) {
            return;
        }
        if self.decision().verdict == Verdict::Exact {
            return self.finish(now);
        }
        let mut waiting = false;
        for (_, connection) in &mut self.connections[self.first..] {
            let reading = connection.reading();
            if connection.is_held() && !reading.exhausted && !(reading.sure && reading.more) {
                connection.verify(now);
                waiting |= !connection.is_over();
            }
        }
        if waiting {
            return;
        }
        if self.decision().verdict == Verdict::Exact {
            return self.finish(now);
        }
        self.go_on(opener, now);
    }

    /// Two probes didn't suffice.
    fn go_on(&mut self, opener: &dyn Opener, now: Time) {
        self.close(now);
        if let Some(goal) = self.redirect() {
            self.redirected = Some(std::mem::replace(&mut self.goal, goal));
            return self.open_both(opener, now);
        }
        match self.next_size() {
            Some((mss, full)) => {
                let least = if is_private(self.goal.address) { APART_PRIVATE } else { APART };
                // Hosts that share their trouble don't come back all at once.
                let apart = least + least.mul_f64(f64::from(self.isn % 512) / 1024.0);
                self.next_at = Some((now + apart, mss, full));
            }
            None => self.finish(now),
        }
    }

    /// Where the response leads, if it isn't long enough and leads somewhere on this host.
    fn redirect(&self) -> Option<Goal> {
        let responses = self.connections[self.first..].iter().map(|(_, connection)| connection.response());
        let head = responses.filter_map(Head::read).find(|head| (300..400).contains(&head.status))?;
        self.redirected.is_none().then(|| self.goal.redirected(&head.location?)).flatten()
    }

    /// The size of the next probe, and whether it offers all options, if another one could decide.
    fn next_size(&self) -> Option<(u16, bool)> {
        let readings = self.readings();
        let count = readings.len();
        if count >= PROBES_EACH || self.connections.len() >= MOST_PROBES {
            return None;
        }
        if !readings.iter().any(|r| r.end == End::Flight) {
            return None;
        }
        // Only with SACK a server shows that it was the window that stopped it.
        if let Some(mss) = may_be_lawful(&readings) {
            return Some((mss, true));
        }
        let used = |mss: u16| readings.iter().any(|r| r.mss == mss);
        // Short segments fill a window with few bytes.
        let short = readings.iter().any(|r| r.exhausted);
        let floor = readings.iter().filter(|r| r.mss < 128).any(|r| r.exhausted);
        if short && floor {
            return None;
        }
        let sizes = if short { [88, 104, 72] } else { [536, 88, 1000] };
        sizes.into_iter().find(|mss| !used(*mss)).map(|mss| (mss, false))
    }

    fn readings(&self) -> Vec<Reading> {
        readings_of(&self.connections[self.first..])
    }

    fn decision(&self) -> Decision {
        decide(&self.readings())
    }

    fn close(&mut self, now: Time) {
        for (_, connection) in &mut self.connections {
            connection.close(now);
        }
    }

    fn finish(&mut self, now: Time) {
        let mut decision = self.decision();
        if let (Verdict::Unknown, Some(goal)) = (decision.verdict, self.redirected.take()) {
            // Where the redirect leads nothing was found out, but before.
            decision = decide(&readings_of(&self.connections[..self.first]));
            self.goal = goal;
        }
        self.close(now);
        self.next_at = None;
        let told = || self.connections.iter().filter(|(_, c)| c.syn_ack().is_some());
        let best = told().find(|(_, c)| c.setup().full).or_else(|| told().next());
        self.found = Some(HostResult {
            decision,
            syn_ack: best.and_then(|(_, c)| c.syn_ack()),
            offered_all: best.is_some_and(|(_, c)| c.setup().full),
            goal: self.goal.clone(),
            refused: self.connections.iter().find(|(_, c)| c.reading().end == End::Refused).map(|(port, _)| *port),
            readings: readings_of(&self.connections),
            packets: self.connections.iter().map(|(_, c)| c.packets()).sum(),
            time: now.saturating_sub(self.begun),
            quiet_at: self.connections.iter().map(|(_, c)| c.quiet_at()).max().unwrap_or(now),
        });
    }
}

fn readings_of(connections: &[(u16, Connection)]) -> Vec<Reading> {
    connections.iter().map(|(_, connection)| connection.reading()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_followed_where_it_stays_on_its_host() {
        let host = "example.org".to_owned();
        let here = Goal { address: IpAddr::from([192, 0, 2, 1]), port: 80, tls: false, host, path: "/".to_owned() };
        for (location, port, tls, path) in [
            ("/a?b#c", 80, false, "/a?b"),
            ("https://example.org", 443, true, "/"),
            ("http://EXAMPLE.org:8080/x", 8080, false, "/x"),
        ] {
            let wanted = Goal { port, tls, path: path.to_owned(), ..here.clone() };
            assert_eq!(here.redirected(location), Some(wanted), "{location}");
        }
        for location in
            ["http://example.org/", "https://other.example/", "ftp://example.org/x", "//example.org/x", "x", "/a b"]
        {
            assert_eq!(here.redirected(location), None, "{location}");
        }
    }
}
