//! One load of a page, from the browser's events.

use super::devtools::Browser;
use super::film::{self, Film, Frame};
use super::sent;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use wt_problem::{Fault, Problem};
use wt_sys::clock::monotonic_ns;

/// So many requests of a page are kept.
const MOST: usize = 5_000;
/// After the load event others may still end.
const AFTER: Duration = Duration::from_millis(300);
/// So long after the load event a film waits for its first picture: a busy machine may paint late.
const FIRST_PICTURE: Duration = Duration::from_secs(5);

/// One request of a load; times are ms after the first request.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LoadedResource {
    /// What was asked for.
    pub url: String,
    /// When it was asked for.
    pub start_ms: f64,
    /// When the request left: until then it waited in the browser, for a free connection or for a new one. Nothing where that isn't known.
    pub sent_ms: Option<f64>,
    /// Over which connection it came, numbered from 0 in the order of their first requests. Nothing where that isn't known.
    pub connection: Option<u32>,
    /// When the first byte came.
    pub first_byte_ms: Option<f64>,
    /// When the last byte came.
    pub end_ms: Option<f64>,
    /// Bytes that were transferred.
    pub bytes: Option<f64>,
    /// The status of the answer.
    pub status: Option<u64>,
    /// The protocol, as the browser names it.
    pub protocol: Option<String>,
    /// Why it broke off or never came, in the browser's word: `net::ERR_EMPTY_RESPONSE`. Nothing where it ended well, and where the page
    /// itself gave it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the answer's head took and says of its body, and what came of that: the browser may tell of the end before it has
    /// counted all.
    #[serde(skip)]
    pub(super) counted: BodyCount,
}

impl LoadedResource {
    /// Why it isn't there: it broke off, or an error was answered.
    pub(super) fn failure(&self) -> Option<String> {
        let status = self.status.filter(|status| *status >= 400);
        self.error.clone().or_else(|| status.map(|status| format!("HTTP status {status}")))
    }
}

/// What is known of an answer's bytes while it comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BodyCount {
    head: f64,
    /// By the head.
    body: f64,
    /// What came so far.
    came: f64,
    /// Nothing of it came over the network.
    kept: bool,
}

/// One load; times are ms after the first request.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PageLoad {
    /// The first byte of all.
    pub first_byte_ms: Option<f64>,
    /// The event DOMContentLoaded.
    pub dom_content_loaded_ms: Option<f64>,
    /// The event load.
    pub load_ms: f64,
    /// How many requests there were.
    pub requests: usize,
    /// How many of those that began before the event load broke off or were answered with an error.
    pub failed: usize,
    /// Bytes that were transferred.
    pub bytes: f64,
    /// The requests.
    pub resources: Vec<LoadedResource>,
}

/// What has been seen of a load so far; times are the browser's, seconds.
#[derive(Default)]
struct LoadTimes {
    begin: Option<f64>,
    dom: Option<f64>,
    load: Option<f64>,
    resources: Vec<LoadedResource>,
    places: HashMap<String, usize>,
    /// The number of the request for the page itself, redirects included.
    document: Option<String>,
}

/// Loads a page in a new tab of a new browser.
pub(super) fn load(browser: &mut Browser, url: &str, deadline: Duration) -> Result<PageLoad, Problem> {
    follow(browser, url, deadline, None)
}

/// The same with its pictures, which cost it time.
pub(super) fn filmed(browser: &mut Browser, url: &str, deadline: Duration) -> Result<(PageLoad, Vec<Frame>), Problem> {
    let mut film = Film::default();
    let load = follow(browser, url, deadline, Some(&mut film))?;
    Ok((load, film.frames()))
}

fn follow(
    browser: &mut Browser,
    url: &str,
    deadline: Duration,
    mut film: Option<&mut Film>,
) -> Result<PageLoad, Problem> {
    let target = browser.ask(None, "Target.createTarget", &json!({ "url": "about:blank" }))?;
    let attached =
        browser.ask(None, "Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }))?;
    let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
    let session = Some(session.as_str());
    for domain in ["Page.enable", "Network.enable"] {
        browser.ask(session, domain, &json!({}))?;
    }
    browser.ask(session, "Network.setCacheDisabled", &json!({ "cacheDisabled": true }))?;
    browser.ask(session, "Target.setAutoAttach", &auto_attach())?;
    if film.is_some() {
        let (method, how) = film::request();
        browser.ask(session, method, &how)?;
    }
    let navigation = browser.send(session, "Page.navigate", &json!({ "url": url }))?;
    let mut seen = LoadTimes::default();
    let mut end = monotonic_ns() + deadline.as_nanos() as u64;
    while let Some(message) = browser.receive(end)? {
        if message["id"] == navigation
            && let Some(why) = message["result"]["errorText"].as_str().filter(|why| !why.is_empty())
        {
            return Err(refused(url, why));
        }
        let was_loaded = seen.load.is_some();
        seen.take(&message);
        answer(browser, &message)?;
        if let Some(why) = seen.broken_off() {
            return Err(refused(url, why));
        }
        let picture = film.as_mut().and_then(|film| film.take(&message));
        if let Some(picture) = picture {
            browser.send(session, "Page.screencastFrameAck", &json!({ "sessionId": picture }))?;
        }
        if seen.load.is_some() && (!was_loaded || picture.is_some()) {
            let after = if film.as_ref().is_some_and(|film| film.is_empty()) { FIRST_PICTURE } else { AFTER };
            end = end.min(monotonic_ns() + after.as_nanos() as u64);
        }
    }
    // Some of its objects may be missing; without the page itself nothing is timed that anybody wants.
    if let Some(status) = seen.document_status().filter(|status| *status >= 400) {
        return Err(Problem::new(Fault::Remote, format!("{url} is answered with HTTP status {status}"))
            .because("an error page says nothing of how long the page takes")
            .hint("look at the address and at the server's log"));
    }
    seen.finish().ok_or_else(|| {
        Problem::new(Fault::Remote, format!("{url} wasn't loaded within {}", in_seconds(deadline)))
            .hint("give it more time: --deadline")
    })
}

/// `60 s`; what isn't whole seconds as it is written on a command line.
fn in_seconds(deadline: Duration) -> String {
    if deadline.subsec_nanos() == 0 { format!("{} s", deadline.as_secs()) } else { wt_units::format_duration(deadline) }
}

/// How frames of other sites and workers are come by: they are targets of their own, wait until they are listened to, and their events
/// come over the same pipe.
///
/// # Source
/// Chrome DevTools Protocol, `Target.setAutoAttach`: it holds for what the session's own target opens, so each gets it again.
fn auto_attach() -> Value {
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })
}

/// Answers what a page would wait for for ever: a target that waits to be listened to, and a dialog.
fn answer(browser: &mut Browser, message: &Value) -> Result<(), Problem> {
    for (session, method, params) in answers(message) {
        browser.send(session.as_deref(), method, &params)?;
    }
    Ok(())
}

/// The commands that answer an event: to which session, which, and how.
fn answers(message: &Value) -> Vec<(Option<String>, &'static str, Value)> {
    let session = |of: &Value| of["sessionId"].as_str().map(str::to_owned);
    match message["method"].as_str().unwrap_or_default() {
        "Target.attachedToTarget" => {
            let of = session(&message["params"]);
            let commands = [
                ("Network.enable", json!({})),
                ("Network.setCacheDisabled", json!({ "cacheDisabled": true })),
                ("Target.setAutoAttach", auto_attach()),
                ("Runtime.runIfWaitingForDebugger", json!({})),
            ];
            commands.into_iter().filter(|_| of.is_some()).map(|(method, how)| (of.clone(), method, how)).collect()
        }
        "Page.javascriptDialogOpening" => {
            vec![(session(message), "Page.handleJavaScriptDialog", json!({ "accept": true }))]
        }
        _ => Vec::new(),
    }
}

/// The page itself didn't come, for this reason in the browser's word.
fn refused(url: &str, why: &str) -> Problem {
    let never = |because: &str, hint: &str| {
        Problem::new(Fault::Remote, format!("{url} can't be loaded: {why}")).because(because).hint(hint)
    };
    let is = |names: &[&str]| names.iter().any(|name| why.starts_with(&format!("net::ERR_{name}")));
    if is(&["NAME_"]) {
        never(
            "no address is known here for the host's name",
            "check how it is spelt; getent hosts HOST asks the system",
        )
    } else if is(&["CONNECTION_REFUSED"]) {
        never("nobody listens there, or a firewall refuses it", "check the port, and that the server runs")
    } else if is(&["CONNECTION_TIMED_OUT", "ADDRESS_UNREACHABLE", "INTERNET_DISCONNECTED", "NETWORK_ACCESS_DENIED"]) {
        never(
            "no way leads there from here, or nobody answers",
            "check the address; windtunnel path HOST shows the way to it",
        )
    } else if is(&["CERT_"]) {
        never("the browser doesn't believe the server's certificate", "--insecure believes every certificate")
    } else if is(&["SSL_"]) {
        never("the server doesn't speak TLS as the browser does", "check the port, and whether it is http:// there")
    } else if is(&["UNSAFE_PORT"]) {
        never("browsers refuse this port, whoever listens there", "have the server listen on another one")
    } else {
        Problem::new(Fault::Remote, format!("{url} broke off before it was loaded: {why}"))
            .because(
                "the server, or something on the way to it, ended the page before its end, and no event load follows",
            )
            .hint("look at the server's log; curl -v with the same address shows what comes")
    }
}

/// What a browser says, each message ended by a zero byte, read to its end; and the load as it is drawn.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    let (mut seen, mut film) = (LoadTimes::default(), Film::default());
    for message in bytes.split(|byte| *byte == 0) {
        let message = serde_json::from_slice(message).unwrap_or(Value::Null);
        seen.take(&message);
        film.take(&message);
    }
    assert!(seen.resources.len() <= MOST && seen.places.len() <= MOST);
    if let Some(load) = seen.finish() {
        assert!(load.load_ms >= 0.0);
        let _ = super::waterfall::waterfall("http://x/", &load);
        let _ = film::strips(&[(String::new(), load.load_ms, &film.frames())]);
    }
}

/// How long a head says that the body is, as it is transferred; names of fields are written as servers like.
fn length_of(headers: &Value) -> Option<f64> {
    let named = |(name, _): &(&String, &Value)| name.eq_ignore_ascii_case("content-length");
    headers.as_object()?.iter().find(named)?.1.as_str()?.trim().parse::<u64>().ok().map(|length| length as f64)
}

impl LoadTimes {
    fn take(&mut self, message: &Value) {
        let params = &message["params"];
        let id = params["requestId"].as_str().unwrap_or_default();
        let at = params["timestamp"].as_f64();
        match message["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => self.request(id, params),
            "Network.responseReceived" => {
                let response = &params["response"];
                let timing = &response["timing"];
                let head = timing["requestTime"].as_f64().zip(timing["receiveHeadersEnd"].as_f64());
                let first = head.map(|(begin, headers)| begin + headers / 1e3).or(at);
                let first = first.and_then(|at| self.since(at));
                let sent = sent::sent_at(response).and_then(|at| self.since(at));
                if let Some(resource) = self.resource(id) {
                    resource.first_byte_ms = first;
                    let answered = |sent: &f64| first.is_none_or(|first| *sent <= first);
                    resource.sent_ms = sent.map(|sent| sent.max(resource.start_ms)).filter(answered);
                    resource.connection = sent::connection_of(response);
                    resource.status = response["status"].as_u64();
                    resource.protocol = response["protocol"].as_str().map(str::to_owned);
                    resource.counted.head = response["encodedDataLength"].as_f64().unwrap_or(0.0);
                    resource.counted.body = length_of(&response["headers"]).unwrap_or(0.0);
                    resource.counted.kept |= response["fromDiskCache"] == true;
                }
            }
            "Network.requestServedFromCache" => {
                if let Some(resource) = self.resource(id) {
                    resource.counted.kept = true;
                }
            }
            "Network.dataReceived" => {
                if let Some(resource) = self.resource(id) {
                    resource.counted.came += params["encodedDataLength"].as_f64().unwrap_or(0.0).max(0.0);
                }
            }
            "Network.loadingFinished" => {
                let ended = at.and_then(|at| self.since(at));
                if let Some(resource) = self.resource(id) {
                    let BodyCount { head, body, came, kept } = resource.counted;
                    let whole = if kept { 0.0 } else { head + body.max(came) };
                    resource.end_ms = ended;
                    resource.bytes = params["encodedDataLength"].as_f64().map(|told| told.max(whole));
                }
            }
            "Network.loadingFailed" => {
                let ended = at.and_then(|at| self.since(at));
                let why = params["errorText"].as_str().filter(|why| !why.is_empty() && params["canceled"] != true);
                if let Some(resource) = self.resource(id) {
                    resource.end_ms = ended;
                    resource.bytes = params["encodedDataLength"].as_f64();
                    resource.error = why.map(str::to_owned);
                }
            }
            "Page.domContentEventFired" if self.begin.is_some() => self.dom = self.dom.or(at),
            "Page.loadEventFired" if self.begin.is_some() => self.load = self.load.or(at),
            _ => {}
        }
    }

    fn request(&mut self, id: &str, params: &Value) {
        let Some(at) = params["timestamp"].as_f64() else { return };
        self.begin.get_or_insert(at);
        let url = params["request"]["url"].as_str().unwrap_or_default();
        if self.resources.len() >= MOST || url.starts_with("data:") {
            return;
        }
        let start_ms = self.since(at).unwrap_or(0.0);
        // A frame of another site may say again what the page around it has said.
        let is_known = |one: &LoadedResource| one.url == url && params["redirectResponse"].is_null();
        if self.places.get(id).and_then(|place| self.resources.get(*place)).is_some_and(is_known) {
            return;
        }
        self.document.get_or_insert_with(|| id.to_owned());
        // A redirect has the number of the request that led to it.
        self.places.insert(id.to_owned(), self.resources.len());
        self.resources.push(LoadedResource { url: url.to_owned(), start_ms, ..LoadedResource::default() });
    }

    fn resource(&mut self, id: &str) -> Option<&mut LoadedResource> {
        self.resources.get_mut(*self.places.get(id)?)
    }

    /// How the page itself was answered.
    fn document_status(&self) -> Option<u64> {
        self.page()?.status
    }

    /// Why the page itself broke off: from then on the browser waits for nothing of it, and says no more that it is loaded.
    fn broken_off(&self) -> Option<&str> {
        self.page().filter(|_| self.load.is_none())?.error.as_deref()
    }

    /// The request for the page itself, the last of its redirects.
    fn page(&self) -> Option<&LoadedResource> {
        self.resources.get(*self.places.get(self.document.as_ref()?)?)
    }

    fn since(&self, at: f64) -> Option<f64> {
        Some(((at - self.begin?) * 1e3).max(0.0))
    }

    fn finish(mut self) -> Option<PageLoad> {
        let load_ms = self.since(self.load?)?;
        let used = self.resources.iter().filter_map(|one| Some((one.sent_ms.unwrap_or(one.start_ms), one.connection?)));
        let numbers = sent::numbers_of(used.collect());
        for one in &mut self.resources {
            one.connection = one.connection.and_then(|id| numbers.get(&id).copied());
        }
        Some(PageLoad {
            first_byte_ms: self.resources.iter().find_map(|resource| resource.first_byte_ms),
            dom_content_loaded_ms: self.dom.and_then(|at| self.since(at)),
            load_ms,
            requests: self.resources.len(),
            failed: self.resources.iter().filter(|one| one.start_ms <= load_ms && one.failure().is_some()).count(),
            bytes: self.resources.iter().filter_map(|resource| resource.bytes).sum(),
            resources: self.resources,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_times_after_the_first_request() {
        let mut seen = LoadTimes::default();
        for message in [
            json!({"method": "Page.loadEventFired", "params": {"timestamp": 99.0}}),
            json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": "1", "timestamp": 100.0, "request": {"url": "http://x/"}}}),
            json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": "2", "timestamp": 100.25, "request": {"url": "data:abc"}}}),
            json!({"method": "Network.responseReceived", "params": {"requestId": "1", "timestamp": 100.2, "response":
                {"status": 200, "protocol": "h2", "timing": {"requestTime": 100.0, "receiveHeadersEnd": 125.0}}}}),
            json!({"method": "Network.loadingFinished", "params":
                {"requestId": "1", "timestamp": 100.5, "encodedDataLength": 1234}}),
            json!({"method": "Page.domContentEventFired", "params": {"timestamp": 100.75}}),
            json!({"method": "Page.loadEventFired", "params": {"timestamp": 101.0}}),
            json!({"nonsense": [1, 2]}),
        ] {
            seen.take(&message);
        }
        assert_eq!(seen.document_status(), Some(200));
        let load = seen.finish().unwrap();
        assert_eq!((load.first_byte_ms, load.dom_content_loaded_ms, load.load_ms), (Some(125.0), Some(750.0), 1000.0));
        assert_eq!(load.resources.len(), 1);
        assert_eq!((load.resources[0].end_ms, load.resources[0].bytes), (Some(500.0), Some(1234.0)));
        assert!(LoadTimes::default().finish().is_none());
    }

    #[test]
    fn bytes_are_whole_though_the_browser_tells_of_the_end_before_it_has_counted_them() {
        let bytes = |between: &[Value], told: f64| {
            let mut seen = LoadTimes::default();
            seen.take(&json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": "1", "timestamp": 100.0, "request": {"url": "http://x/"}}}));
            between.iter().for_each(|message| seen.take(message));
            seen.take(&json!({"method": "Network.loadingFinished", "params":
                {"requestId": "1", "timestamp": 100.5, "encodedDataLength": told}}));
            seen.resources[0].bytes
        };
        let head = |headers: Value| {
            json!({"method": "Network.responseReceived", "params": {"requestId": "1", "timestamp": 100.2, "response":
                {"status": 200, "encodedDataLength": 244, "headers": headers}}})
        };
        let came = |bytes: i64| json!({"method": "Network.dataReceived", "params": {"requestId": "1", "encodedDataLength": bytes}});
        assert_eq!(bytes(&[head(json!({"content-Length": "9000"})), came(3856)], 3856.0), Some(9244.0));
        assert_eq!(
            bytes(&[head(json!({})), came(3000), came(-1), came(856)], 3000.0),
            Some(4100.0),
            "nobody says how long it is"
        );
        assert_eq!(bytes(&[head(json!({"Content-Length": "9000"}))], 9244.0), Some(9244.0));
        assert_eq!(bytes(&[head(json!({"Content-Length": "many"}))], 12.0), Some(244.0));
        let kept = json!({"method": "Network.requestServedFromCache", "params": {"requestId": "1"}});
        assert_eq!(bytes(&[kept, head(json!({"Content-Length": "9000"}))], 0.0), Some(0.0));
    }

    /// What a browser says of requests, each with why it broke off.
    fn broken(requests: &[(&str, f64, Option<&str>, bool)]) -> LoadTimes {
        let mut seen = LoadTimes::default();
        for (id, at, why, canceled) in requests {
            let url = format!("http://x/{id}");
            seen.take(&json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": id, "timestamp": at, "request": {"url": url}}}));
            if let Some(why) = why {
                seen.take(&json!({"method": "Network.loadingFailed", "params":
                    {"requestId": id, "timestamp": at + 0.1, "errorText": why, "canceled": canceled}}));
            }
        }
        seen
    }

    #[test]
    fn a_page_that_breaks_off_is_told_at_once_and_one_that_was_given_up_or_loaded_is_not() {
        let short = "net::ERR_CONTENT_LENGTH_MISMATCH";
        assert_eq!(broken(&[("1", 1.0, Some(short), false)]).broken_off(), Some(short));
        // Another page was opened in its place, or an object of it broke off.
        assert_eq!(broken(&[("1", 1.0, Some("net::ERR_ABORTED"), true)]).broken_off(), None);
        assert_eq!(broken(&[("1", 1.0, None, false), ("2", 1.1, Some(short), false)]).broken_off(), None);
        let mut loaded = broken(&[("1", 1.0, None, false)]);
        loaded.take(&json!({"method": "Page.loadEventFired", "params": {"timestamp": 2.0}}));
        loaded.take(&json!({"method": "Network.loadingFailed", "params":
            {"requestId": "1", "timestamp": 2.1, "errorText": short, "canceled": false}}));
        assert_eq!(loaded.broken_off(), None);
    }

    #[test]
    fn requests_of_the_load_that_failed_are_counted_and_each_says_why() {
        let gone = "net::ERR_EMPTY_RESPONSE";
        let mut seen = broken(&[
            ("1", 1.0, None, false),
            ("2", 1.1, Some(gone), false),
            ("3", 1.1, None, false),
            ("4", 1.1, Some("net::ERR_ABORTED"), true),
            // After the event load: the browser's own wish for an icon.
            ("5", 2.1, Some(gone), false),
        ]);
        seen.take(&json!({"method": "Network.responseReceived", "params":
            {"requestId": "3", "timestamp": 1.2, "response": {"status": 404}}}));
        seen.take(&json!({"method": "Page.loadEventFired", "params": {"timestamp": 2.0}}));
        let load = seen.finish().unwrap();
        assert_eq!((load.requests, load.failed), (5, 2));
        let why: Vec<Option<String>> = load.resources.iter().map(LoadedResource::failure).collect();
        let error = "HTTP status 404".to_owned();
        assert_eq!(why, [None, Some(gone.to_owned()), Some(error), None, Some(gone.to_owned())]);
    }

    #[test]
    fn frames_of_other_sites_and_workers_are_listened_to_before_they_begin_and_no_request_counts_twice() {
        let attached = json!({"method": "Target.attachedToTarget", "sessionId": "page", "params":
            {"sessionId": "worker", "targetInfo": {"type": "worker"}, "waitingForDebugger": true}});
        let said = answers(&attached);
        let methods: Vec<&str> = said.iter().map(|(_, method, _)| *method).collect();
        assert!(said.iter().all(|(session, ..)| session.as_deref() == Some("worker")), "{said:?}");
        assert_eq!((methods[0], methods[3]), ("Network.enable", "Runtime.runIfWaitingForDebugger"));
        let dialog =
            json!({"method": "Page.javascriptDialogOpening", "sessionId": "page", "params": {"type": "alert"}});
        assert_eq!(
            answers(&dialog),
            [(Some("page".to_owned()), "Page.handleJavaScriptDialog", json!({"accept": true}))]
        );
        assert_eq!(answers(&json!({"method": "Target.attachedToTarget"})), []);

        // The page asks for the frame; the frame's own session says so again, and that it has come.
        let asked = |session: &str, url: &str, from: Value| {
            json!({"method": "Network.requestWillBeSent", "sessionId": session, "params":
                {"requestId": "F", "timestamp": 100.0, "request": {"url": url}, "redirectResponse": from}})
        };
        let mut seen = LoadTimes::default();
        seen.take(&asked("page", "http://y/", Value::Null));
        seen.take(&asked("frame", "http://y/", Value::Null));
        seen.take(&json!({"method": "Network.loadingFinished", "sessionId": "frame", "params":
            {"requestId": "F", "timestamp": 100.5, "encodedDataLength": 7}}));
        assert_eq!((seen.resources.len(), seen.resources[0].bytes), (1, Some(7.0)));
        // Sent on to itself, as with a cookie, it is another one.
        seen.take(&asked("frame", "http://y/", json!({"status": 302})));
        assert_eq!(seen.resources.len(), 2);
    }

    #[test]
    fn why_a_page_never_came_has_a_cause_of_its_own() {
        for (why, told) in [
            ("net::ERR_NAME_NOT_RESOLVED", "spelt"),
            ("net::ERR_CONNECTION_REFUSED", "nobody listens"),
            ("net::ERR_CERT_AUTHORITY_INVALID", "--insecure"),
            ("net::ERR_SSL_PROTOCOL_ERROR", "http://"),
            ("net::ERR_UNSAFE_PORT", "another one"),
            ("net::ERR_EMPTY_RESPONSE", "broke off before it was loaded"),
        ] {
            let problem = refused("http://x/", why);
            assert!(problem.to_string().contains(told) && problem.what.contains(why), "{why}: {problem}");
            assert_eq!(problem.to_string().contains("before its end"), told.starts_with("broke"), "{why}");
        }
    }

    #[test]
    fn a_deadline_below_a_second_is_told_as_it_is() {
        let told = [60_000, 1_500, 1].map(|ms| in_seconds(Duration::from_millis(ms)));
        assert_eq!(told, ["60 s", "1.5s", "1ms"]);
    }

    #[test]
    fn what_waits_in_the_browser_is_sent_after_it_was_asked_for_and_before_it_is_answered() {
        let mut seen = LoadTimes::default();
        // The last one's events don't fit: nothing is said of when it was sent.
        for (id, connection, sent) in [("1", 11, 0.5), ("2", 12, 1094.0), ("3", 11, 90.0), ("4", 13, 5_000.0)] {
            seen.take(&json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": id, "timestamp": 100.0, "request": {"url": format!("http://x/{id}")}}}));
            let timing = json!({"requestTime": 99.999, "sendStart": sent, "receiveHeadersEnd": 1139.0});
            seen.take(&json!({"method": "Network.responseReceived", "params": {"requestId": id, "timestamp": 102.0,
                "response": {"status": 200, "connectionId": connection, "timing": timing}}}));
        }
        seen.take(&json!({"method": "Page.loadEventFired", "params": {"timestamp": 103.0}}));
        let load = seen.finish().unwrap();
        let told = |one: &LoadedResource| (one.start_ms, one.sent_ms.map(f64::round), one.connection);
        let expected = [(Some(0.0), Some(0)), (Some(1093.0), Some(2)), (Some(89.0), Some(0)), (None, Some(1))];
        assert_eq!(load.resources.iter().map(told).collect::<Vec<_>>(), expected.map(|(sent, over)| (0.0, sent, over)));
    }

    #[test]
    fn the_status_is_that_of_the_page_behind_its_redirects() {
        let mut seen = LoadTimes::default();
        assert_eq!(seen.document_status(), None);
        let asked = |id: &str, url: &str| {
            json!({"method": "Network.requestWillBeSent", "params":
                {"requestId": id, "timestamp": 100.0, "request": {"url": url}}})
        };
        let answered = |id: &str, status: u64| {
            json!({"method": "Network.responseReceived", "params":
                {"requestId": id, "timestamp": 100.1, "response": {"status": status}}})
        };
        seen.take(&asked("1", "http://x/"));
        seen.take(&asked("1", "https://x/"));
        seen.take(&answered("1", 404));
        seen.take(&asked("2", "https://x/icon"));
        seen.take(&answered("2", 200));
        assert_eq!(seen.document_status(), Some(404));
    }
}
