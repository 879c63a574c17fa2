use super::config::is_private;
use super::connection::{Connection, Setup};
use super::decide::{Decision, DecisionReason, Verdict, decide, may_be_lawful, uncut_size};
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
        let goal = if has_scheme(location) || location.starts_with("//") {
            let scheme = if self.tls { "https:" } else { "http:" };
            let whole = if has_scheme(location) { location.to_owned() } else { format!("{scheme}{location}") };
            let Url { scheme, host, port, path, .. } = whole.parse().ok()?;
            let here = scheme.is_web() && host.eq_ignore_ascii_case(&self.host);
            here.then(|| Self { tls: scheme.is_encrypted(), port, path, ..self.clone() })?
        } else {
            Self { path: self.path_to(location)?, ..self.clone() }
        };
        (goal != *self).then_some(goal)
    }

    /// The path that a reference without a host leads to.
    ///
    /// # Source
    /// RFC 3986 section 5.2: `merge` and `remove_dot_segments`.
    fn path_to(&self, reference: &str) -> Option<String> {
        let reference = clean(reference)?;
        let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
        let (own, own_query) = self.path.split_at(self.path.find('?').unwrap_or(self.path.len()));
        if path.is_empty() {
            let query = if query.is_empty() { own_query } else { query };
            return Some(format!("{own}{query}"));
        }
        let folder = own.rfind('/').map_or("/", |end| &own[..=end]);
        let merged = if path.starts_with('/') { path.to_owned() } else { format!("{folder}{path}") };
        Some(format!("{}{query}", without_dots(&merged)))
    }

    /// It as a URL.
    fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Where a response leads, as a URL; `None` where that is nothing to show.
    #[must_use]
    pub fn leads_to(&self, head: &Head) -> Option<String> {
        const LONGEST: usize = 200;
        let location = head.location.as_deref().filter(|_| (300..400).contains(&head.status))?;
        let scheme = if self.tls { "https:" } else { "http:" };
        let url = match location {
            _ if has_scheme(location) => clean(location)?,
            _ if location.starts_with("//") => format!("{scheme}{}", clean(location)?),
            _ => Self { path: self.path_to(location)?, ..self.clone() }.url(),
        };
        (url.len() <= LONGEST && url != self.url()).then_some(url)
    }
}

/// Whether a reference begins with a scheme (RFC 3986 section 3.1).
fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split([':', '/', '?', '#']).next().unwrap_or("");
    let letters = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    reference[scheme.len()..].starts_with(':') && letters && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A path without `.` and `..` (RFC 3986 section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for segment in &segments {
        match *segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let folder = segments.last().is_some_and(|last| matches!(*last, "." | ".."));
    let end = if folder && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
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
    /// Where a response leads that was too short, and that wasn't followed or led nowhere.
    pub redirect: Option<String>,
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
            redirect: None,
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
        let head = redirect_of(&self.connections[self.first..])?;
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
        if let Some(mss) = uncut_size(&readings) {
            return Some((mss, false));
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
        let mut shown = self.first..self.connections.len();
        if let (Verdict::Unknown, Some(goal)) = (decision.verdict, self.redirected.take()) {
            // Where the redirect leads nothing was found out, but before.
            shown = 0..self.first;
            decision = decide(&readings_of(&self.connections[..self.first]));
            self.goal = goal;
        }
        let redirect = redirect_of(&self.connections[shown]).and_then(|head| self.goal.leads_to(&head));
        self.close(now);
        self.next_at = None;
        let told = || self.connections.iter().filter(|(_, c)| c.syn_ack().is_some());
        let best = told().find(|(_, c)| c.setup().full).or_else(|| told().next());
        self.found = Some(HostResult {
            decision,
            syn_ack: best.and_then(|(_, c)| c.syn_ack()),
            offered_all: best.is_some_and(|(_, c)| c.setup().full),
            redirect: redirect.filter(|_| decision.why == DecisionReason::ShortResponse),
            goal: self.goal.clone(),
            refused: self.connections.iter().find(|(_, c)| c.reading().end == End::Refused).map(|(port, _)| *port),
            readings: readings_of(&self.connections),
            packets: self.connections.iter().map(|(_, c)| c.packets()).sum(),
            time: now.saturating_sub(self.begun),
            quiet_at: self.connections.iter().map(|(_, c)| c.quiet_at()).max().unwrap_or(now),
        });
    }
}

/// The head of a response that leads elsewhere.
fn redirect_of(connections: &[(u16, Connection)]) -> Option<Head> {
    let mut heads = connections.iter().filter_map(|(_, connection)| Head::read(connection.response()));
    heads.find(|head| (300..400).contains(&head.status))
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
        for location in ["http://example.org/", "https://other.example/", "ftp://example.org/x", "//other.example/x"] {
            assert_eq!(here.redirected(location), None, "{location}");
        }
        for location in ["/a b", "/", "#top", "", "mailto:x", "."] {
            assert_eq!(here.redirected(location), None, "{location}");
        }
    }

    #[test]
    fn a_reference_leads_where_the_law_of_references_says() {
        let host = "example.org".to_owned();
        let address = IpAddr::from([192, 0, 2, 1]);
        // The base and some of the examples of RFC 3986 section 5.4.
        let here = Goal { address, port: 80, tls: false, host, path: "/b/c/d;p?q".to_owned() };
        for (reference, path) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("//example.org/x", "/x"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("g#s", "/b/c/g"),
            (";x", "/b/c/;x"),
            ("g;x=1/../y", "/b/c/y"),
            (".", "/b/c/"),
            ("..", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../../g", "/g"),
            ("/./g", "/g"),
            ("g.", "/b/c/g."),
        ] {
            let found = here.redirected(reference).map(|goal| goal.path);
            assert_eq!(found.as_deref(), Some(path), "{reference}");
        }
    }

    #[test]
    fn where_a_response_leads_is_told_as_a_url_without_what_would_disturb_a_terminal() {
        let host = "example.org".to_owned();
        let address = IpAddr::from([192, 0, 2, 1]);
        let here = Goal { address, port: 81, tls: true, host, path: "/a/b".to_owned() };
        let to =
            |location: &str| here.leads_to(&Head { status: 302, location: Some(location.to_owned()), length: None });
        assert_eq!(to("http://other.example/").as_deref(), Some("http://other.example/"));
        assert_eq!(to("//other.example/x").as_deref(), Some("https://other.example/x"));
        assert_eq!(to("big").as_deref(), Some("https://example.org:81/a/big"));
        assert_eq!((to("http://x/\u{1b}[2J"), to(&"x".repeat(300))), (None, None));
        assert_eq!(to("/a/b"), None, "who is sent to where he asks is sent nowhere");
        assert_eq!(here.leads_to(&Head { status: 200, location: Some("/x".to_owned()), length: None }), None);
    }
}
