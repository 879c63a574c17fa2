//! The one thread that accepts, authenticates and lets wait. It never blocks on a client.

use super::groups::TestPlace;
use super::key::{HELLO, Secure, TAG, welcome};
use super::message::{ANSWER, ASK, Answer, Ask, PIECE, report_to_json};
use super::metrics::Metrics;
use super::queue::{Queue, client_of};
use super::{ServerState, lock, now};
use crate::error::is_out_of_descriptors;
use crate::proto::Request;
use crate::transfer::{EndReport, Job};
use crate::wire::Wire;
use crate::work::answer;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_many;
use wt_sys::tcp;
use wt_trial::{Amount, Direction};

/// Connections that haven't shown the key yet, in all and of one client; half-open ones are forgotten after a while. They never
/// have more than half of this process's descriptors: tests need some.
const MOST_FRESH: usize = 4096;
const MOST_FRESH_OF_ONE: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(5);
/// Greetings that are remembered, so that a recorded one is worth nothing.
const MOST_HELLOS: usize = 100_000;
/// How often those who wait are told so.
const TELL: Duration = Duration::from_secs(1);
/// Connections accepted before others get their turn.
const AT_ONCE: usize = 256;
/// Reports that are sent at once.
const MOST_REPORTING: u64 = 1024;
/// A thread of a test needs little.
const STACK: usize = 256 * 1024;
/// No test takes longer than what it asked for and this on top.
const GRACE: Duration = Duration::from_secs(10);

/// How long nobody is let in when descriptors have run out.
const NO_DESCRIPTORS: Duration = Duration::from_millis(250);

/// What a client is told whose quota is used up.
const USED_UP: &str = "your quota of today is used up";

/// What a client is told while the server finishes what runs, and when to ask again: another one may listen there by then.
const STOPPING: &str = "the server is about to stop";
const STOPPED: Duration = Duration::from_secs(1);

/// How far a connection has come.
enum Stage {
    /// Nothing is known of it.
    Hello,
    /// It has the key, and says what it wants.
    Ask(Secure),
}

/// A connection that hasn't said what it wants.
struct Fresh {
    stream: TcpStream,
    client: IpAddr,
    since: Duration,
    stage: Stage,
    heard: Vec<u8>,
}

/// A client that waits for its turn.
struct WaitingClient {
    stream: TcpStream,
    secure: Secure,
    request: Request,
    /// Both take turns, rather than one transfer.
    talk: bool,
    told: Duration,
}

/// What became of a connection that was heard.
enum HeardRequest {
    More(Fresh),
    Test(IpAddr, Box<WaitingClient>),
    Gone,
}

/// Greetings that were seen.
#[derive(Default)]
struct Hellos {
    known: HashSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl Hellos {
    /// Whether this one is new.
    fn is_new(&mut self, hello: &[u8; HELLO]) -> bool {
        let key: [u8; 32] = std::array::from_fn(|i| hello[i]);
        if !self.known.insert(key) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > MOST_HELLOS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

pub(super) struct Gate {
    listeners: Vec<TcpListener>,
    shared: Arc<ServerState>,
    fresh: Vec<Fresh>,
    waiting: Queue<WaitingClient>,
    hellos: Hellos,
    /// Until when nobody is let in, since there are no descriptors.
    shut_until: Duration,
    /// Connections that may not have shown the key yet.
    most_fresh: usize,
}

impl Gate {
    pub(super) fn new(listeners: Vec<TcpListener>, shared: Arc<ServerState>) -> Self {
        Self {
            listeners,
            shared,
            fresh: Vec::new(),
            waiting: Queue::new(),
            hellos: Hellos::default(),
            shut_until: Duration::ZERO,
            most_fresh: MOST_FRESH.min(wt_sys::process::descriptor_limit() / 2).max(1),
        }
    }

    pub(super) fn run(mut self) {
        while !self.shared.cancel.is_cancelled() {
            self.listen_and_hear();
            self.look_after_those_who_wait();
            self.begin_tests();
        }
    }

    /// Waits until something happens, then accepts and hears.
    fn listen_and_hear(&mut self) {
        let mut fds: Vec<BorrowedFd<'_>> = vec![self.shared.wake.as_fd()];
        // A connection that can't be accepted makes its listener ready for ever.
        let listening = if now() < self.shut_until { 0 } else { self.listeners.len() };
        fds.extend(self.listeners.iter().take(listening).map(|listener| listener.as_fd()));
        fds.extend(self.fresh.iter().map(|fresh| fresh.stream.as_fd()));
        let ready = wait_many(&fds, Some(Duration::from_millis(250))).unwrap_or_default();
        let own = 1 + listening;
        self.shared.wake.clear();
        let heard: HashSet<usize> = ready.iter().filter_map(|at| at.checked_sub(own)).collect();
        let at = now();
        let mut kept = Vec::with_capacity(self.fresh.len());
        for (number, fresh) in std::mem::take(&mut self.fresh).into_iter().enumerate() {
            let fresh = if heard.contains(&number) { self.hear(fresh) } else { HeardRequest::More(fresh) };
            match fresh {
                HeardRequest::More(fresh) if at.saturating_sub(fresh.since) < PATIENCE => kept.push(fresh),
                HeardRequest::Test(client, waiting) => self.waiting.push(client, *waiting),
                HeardRequest::More(_) => Metrics::add(&self.shared.metrics.strangers, 1),
                HeardRequest::Gone => {}
            }
        }
        self.fresh = kept;
        if ready.iter().any(|at| (1..own).contains(at)) {
            self.accept();
        }
    }

    fn accept(&mut self) {
        let mut of_one: HashMap<IpAddr, usize> = HashMap::new();
        for fresh in &self.fresh {
            *of_one.entry(fresh.client).or_default() += 1;
        }
        for listener in &self.listeners {
            for _ in 0..AT_ONCE {
                let (stream, peer) = match listener.accept() {
                    Ok(accepted) => accepted,
                    Err(error) if !is_out_of_descriptors(&error) => break,
                    // Those who are served make room in time.
                    Err(_) => {
                        self.shut_until = now() + NO_DESCRIPTORS;
                        break;
                    }
                };
                Metrics::add(&self.shared.metrics.connections, 1);
                let client = client_of(peer.ip());
                let own = of_one.entry(client).or_default();
                let usable = stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
                if *own >= MOST_FRESH_OF_ONE || !usable {
                    Metrics::add(&self.shared.metrics.strangers, 1);
                    continue;
                }
                *own += 1;
                if self.fresh.len() >= self.most_fresh {
                    // The one that has been silent longest makes room, of the client that has most.
                    let most = of_one.iter().max_by_key(|(_, count)| **count).map(|(client, _)| *client);
                    let at = self.fresh.iter().position(|fresh| Some(fresh.client) == most).unwrap_or(0);
                    let gone = self.fresh.remove(at);
                    of_one.entry(gone.client).and_modify(|count| *count -= 1);
                    Metrics::add(&self.shared.metrics.strangers, 1);
                }
                self.fresh.push(Fresh { stream, client, since: now(), stage: Stage::Hello, heard: Vec::new() });
            }
        }
    }

    /// Reads what came of one connection, and answers if it is understood.
    fn hear(&mut self, mut fresh: Fresh) -> HeardRequest {
        let wanted = match fresh.stage {
            Stage::Hello => HELLO,
            Stage::Ask(_) => ASK + TAG,
        };
        let mut buffer = [0; HELLO + ASK + TAG];
        match fresh.stream.read(&mut buffer[..wanted - fresh.heard.len()]) {
            Ok(n) if n > 0 => fresh.heard.extend_from_slice(&buffer[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return HeardRequest::More(fresh);
            }
            _ => return self.stranger(),
        }
        if fresh.heard.len() < wanted {
            return HeardRequest::More(fresh);
        }
        let heard = std::mem::take(&mut fresh.heard);
        match fresh.stage {
            Stage::Hello => {
                let Ok(hello) = <[u8; HELLO]>::try_from(heard.as_slice()) else { return self.stranger() };
                let Ok((secure, answer)) = welcome(&self.shared.config.key, &hello) else { return self.stranger() };
                if !self.hellos.is_new(&hello) || !matches!(fresh.stream.write(&answer), Ok(HELLO)) {
                    return self.stranger();
                }
                HeardRequest::More(Fresh { stage: Stage::Ask(secure), ..fresh })
            }
            Stage::Ask(mut secure) => {
                let asked = secure.open(&heard).ok().and_then(|text| Ask::from_bytes(&text));
                match asked {
                    Some(Ask::Test(request, talk)) => self.asked(fresh.stream, fresh.client, secure, request, talk),
                    Some(Ask::Side(request, talk)) => {
                        self.side(fresh.stream, fresh.client, secure, request, talk);
                        HeardRequest::Gone
                    }
                    Some(Ask::Report(token)) => {
                        self.report(fresh.stream, secure, token);
                        HeardRequest::Gone
                    }
                    None => self.stranger(),
                }
            }
        }
    }

    fn stranger(&self) -> HeardRequest {
        Metrics::add(&self.shared.metrics.strangers, 1);
        HeardRequest::Gone
    }

    /// Lets a client wait, or says why not.
    fn asked(
        &self,
        mut stream: TcpStream,
        client: IpAddr,
        mut secure: Secure,
        request: Request,
        talk: bool,
    ) -> HeardRequest {
        if let Some((why, pause)) = self.objection(client, &request) {
            Metrics::add(&self.shared.metrics.refused, 1);
            say(&mut stream, &mut secure, &Answer::Refused { why, pause });
            return HeardRequest::Gone;
        }
        let told = now();
        HeardRequest::Test(client, Box::new(WaitingClient { stream, secure, request, talk, told }))
    }

    fn objection(&self, client: IpAddr, request: &Request) -> Option<(String, Option<Duration>)> {
        let config = &self.shared.config;
        if self.shared.draining.load(Ordering::Acquire) {
            return Some((STOPPING.to_owned(), Some(STOPPED)));
        }
        if let Some(pause) = lock(&self.shared.accounts).exhausted(client, now()) {
            return Some((USED_UP.to_owned(), Some(pause)));
        }
        // Those for whom there is a place already don't wait.
        let free = (config.max_tests as u64).saturating_sub(self.shared.metrics.running());
        if self.waiting.len() as u64 >= config.max_waiting as u64 + free {
            return Some(("too many are waiting".to_owned(), Some(Duration::from_secs(30))));
        }
        self.objection_to(request).map(|why| (why, None))
    }

    /// What a request asks that nobody may.
    fn objection_to(&self, request: &Request) -> Option<String> {
        let config = &self.shared.config;
        if let Amount::Time(time) = request.amount
            && time > config.longest
        {
            return Some(format!("a test may take {:.0} s at most", config.longest.as_secs_f64()));
        }
        let name = request.sender.congestion_control.as_ref();
        let name = name.filter(|name| !config.congestion_controls.contains_key(name.as_str()))?;
        Some(format!("congestion control {name} isn't allowed here"))
    }

    /// Serves one more connection of a test that is under way, if it is this client's. It shares that test's place: nobody
    /// waits for it, what it moves is counted, and the place is taken until it has ended, too.
    fn side(&self, mut stream: TcpStream, client: IpAddr, mut secure: Secure, request: Request, talk: bool) {
        let shared = Arc::clone(&self.shared);
        let refused = |why: String| Answer::Refused { why, pause: None };
        let place = match shared.groups.enter(client, request.token) {
            None => Err(refused("there is no such test".to_owned())),
            Some(place) if place.most.is_used_up(monotonic_ns()) => {
                let left = lock(&shared.accounts).renewed(client, now());
                Err(used_up(left))
            }
            Some(place) => self.objection_to(&request).map_or(Ok(place), |why| Err(refused(why))),
        };
        let place = match place {
            Ok(place) => place,
            Err(answer) => {
                Metrics::add(&shared.metrics.refused, 1);
                say(&mut stream, &mut secure, &answer);
                return;
            }
        };
        let waiting = WaitingClient { stream, secure, request, talk, told: now() };
        let run = move || {
            run_test(waiting, &place, &shared);
            drop(place);
        };
        // Without a thread the place is given back as it is dropped.
        let _ = std::thread::Builder::new().stack_size(STACK).spawn(run);
    }

    /// Sends a report, on a thread of its own: it may not have arrived yet.
    fn report(&self, stream: TcpStream, mut secure: Secure, token: u64) {
        if self.shared.reporting.load(Ordering::Acquire) >= MOST_REPORTING {
            return;
        }
        let shared = Arc::clone(&self.shared);
        shared.reporting.fetch_add(1, Ordering::AcqRel);
        let send = move || {
            let report = shared.take_report(token, PATIENCE);
            let _ = send_report(stream, &mut secure, report.as_ref(), &shared);
            shared.reporting.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().stack_size(STACK).spawn(send).is_err() {
            self.shared.reporting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Tells those who wait how many are before them, and notices who has left.
    fn look_after_those_who_wait(&mut self) {
        let (at, draining) = (now(), self.shared.draining.load(Ordering::Acquire));
        self.waiting.retain(|place, waiting| {
            if draining {
                let refused = Answer::Refused { why: STOPPING.to_owned(), pause: Some(STOPPED) };
                say(&mut waiting.stream, &mut waiting.secure, &refused);
                return false;
            }
            if at.saturating_sub(waiting.told) < TELL {
                return true;
            }
            waiting.told = at;
            let gone = match waiting.stream.read(&mut [0]) {
                Err(error) => error.kind() != ErrorKind::WouldBlock,
                // It has nothing to say now; if it does, or if it left, it isn't served.
                Ok(_) => true,
            };
            let before = u32::try_from(place + 1).unwrap_or(u32::MAX);
            !gone && say(&mut waiting.stream, &mut waiting.secure, &Answer::Queued(before))
        });
        self.shared.metrics.waiting.store(self.waiting.len() as u64, Ordering::Release);
    }

    fn begin_tests(&mut self) {
        while self.shared.metrics.running() < self.shared.config.max_tests as u64 {
            let next = self.waiting.pop(&lock(&self.shared.accounts));
            let Some((client, mut waiting)) = next else { return };
            let at = now();
            let most = {
                let mut accounts = lock(&self.shared.accounts);
                if let Some(left) = accounts.exhausted(client, at) {
                    drop(accounts);
                    Metrics::add(&self.shared.metrics.refused, 1);
                    say(&mut waiting.stream, &mut waiting.secure, &used_up(left));
                    continue;
                }
                accounts.begin(client, at)
            };
            Metrics::add(&self.shared.metrics.tests, 1);
            let place = TestPlace::take(&self.shared, client, at, most);
            let shared = Arc::clone(&self.shared);
            let token = waiting.request.token;
            shared.groups.begin(client, token, &place);
            let test = move || {
                run_test(waiting, &place, &shared);
                shared.groups.end(client, token);
                drop(place);
            };
            if std::thread::Builder::new().stack_size(STACK).spawn(test).is_err() {
                self.shared.groups.end(client, token);
            }
        }
    }
}

/// The answer to a client whose quota begins anew after this.
fn used_up(left: Duration) -> Answer {
    Answer::Refused { why: USED_UP.to_owned(), pause: Some(left) }
}

/// Says something short; false if that can't be said, for then nobody listens.
fn say(stream: &mut TcpStream, secure: &mut Secure, answer: &Answer) -> bool {
    let Ok(sealed) = secure.seal(&answer.to_bytes()) else { return false };
    debug_assert_eq!(sealed.len(), ANSWER + TAG);
    matches!(stream.write(&sealed), Ok(n) if n == sealed.len())
}

/// Runs one connection of a test.
fn run_test(mut waiting: WaitingClient, place: &TestPlace, shared: &ServerState) {
    if !say(&mut waiting.stream, &mut waiting.secure, &Answer::Go) {
        return;
    }
    let WaitingClient { mut stream, request, talk, .. } = waiting;
    // From the beginning: if this process is killed, nothing shall go on without it and hold its congestion control.
    let _ = tcp::reset_on_close(&stream);
    let Ok(report) = transfer(&mut stream, &request, talk, place, shared) else { return };
    let counter = match request.direction {
        Direction::Down => &shared.metrics.sent_bytes,
        Direction::Up => &shared.metrics.received_bytes,
    };
    Metrics::add(counter, report.bytes);
    shared.store(request.token, report);
}

/// How long a connection may take that begins so long after its test: one that joins late has little more time than the test's first one.
pub(super) fn deadline_of(amount: Amount, longest: Duration, after: Duration) -> Duration {
    let asked = if let Amount::Time(time) = amount { time.min(longest) } else { longest };
    (asked + GRACE).min((longest + 2 * GRACE).saturating_sub(after))
}

fn transfer(
    stream: &mut TcpStream,
    request: &Request,
    talk: bool,
    place: &TestPlace,
    shared: &ServerState,
) -> std::io::Result<EndReport> {
    let after = now().saturating_sub(place.begun);
    let deadline = deadline_of(request.amount, shared.config.longest, after);
    let job = Job {
        amount: request.amount,
        start_ns: monotonic_ns(),
        deadline,
        window: request.window,
        most: place.most.clone(),
        turns: Some(Arc::clone(&shared.turns)),
    };
    let mut request = request.clone();
    match &mut request.sender.congestion_control {
        Some(name) => {
            if let Some(kernel_name) = shared.config.congestion_controls.get(name) {
                name.clone_from(kernel_name);
            }
        }
        // A route may hold another one, which stays.
        None if request.direction == Direction::Down => {
            drop(shared.usual.as_ref().map(|name| tcp::set_congestion_control(stream, name)));
        }
        None => {}
    }
    answer(stream, &request, talk, &job, &shared.cancel)
}

fn send_report(
    stream: TcpStream,
    secure: &mut Secure,
    report: Option<&EndReport>,
    shared: &ServerState,
) -> Result<(), crate::wire::WireError> {
    let give_up = monotonic_ns() + PATIENCE.as_nanos() as u64;
    let mut wire = Wire::new(stream, give_up, &shared.cancel)?;
    let json = report.map(report_to_json).unwrap_or_default();
    let broken = |_| std::io::Error::from(ErrorKind::InvalidData);
    let answer = Answer::Report(u32::try_from(json.len()).unwrap_or(0));
    wire.write_all(&secure.seal(&answer.to_bytes()).map_err(broken)?)?;
    for piece in json.chunks(PIECE) {
        wire.write_all(&secure.seal(piece).map_err(broken)?)?;
    }
    Ok(())
}
