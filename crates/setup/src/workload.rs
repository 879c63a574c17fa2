//! What each trial does, as it is written: a name, and parameters where they aren't the usual ones.

use crate::text;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_load::Scheme;
use wt_trial::{Amount, Direction, Page, Repeat, USUAL_CONNECTIONS, Workload};
use wt_units::{BitsPerSecond, Bytes, parse_duration};

/// A soak takes at least so long unless somebody says otherwise.
const SOAK: Duration = Duration::from_secs(300);
/// What "12 MB" means.
const TWELVE_MB: Bytes = Bytes(12_000_000);

/// The parameters of each workload.
const KNOWN: [(&str, &[&str], &str); 9] = [
    (
        "bulk",
        &["size"],
        "one transfer as fast as it goes, by time or of a size; --direction both runs one each way at once",
    ),
    ("download-12mb", &[], "a file of 12 MB"),
    ("soak", &[], "one transfer of 5 minutes, or as long as --trial says, judged by its thirds"),
    (
        "transactions",
        &["request", "response", "think", "count"],
        "request and answer over one connection, again and again",
    ),
    ("bursts", &["request", "blocks", "pause", "count"], "bursts of large and small answers with pauses between them"),
    ("stream", &["message", "interval"], "small messages at a steady pace: how late are they?"),
    (
        "page",
        &["size", "connections", "har", "http", "keepalive", "tls"],
        "44 objects (265 kB) over 6 cold connections; with size= one object, with har= those of a browser's HAR file, with http=2 \
         over one connection with HTTP/2, with keepalive=off over a connection for each, with tls=on through TLS",
    ),
    ("competing", &["rivals"], "one transfer beside others that have the current settings"),
    ("load", &[], "small round trips on the idle path, then beside a transfer that fills it"),
];

/// Requests of transactions and of bursts, and the answers of transactions, if nobody says it.
const REQUEST: Bytes = Bytes(200);
const RESPONSE: Bytes = Bytes(2_000);
/// The answers of a burst: a large one, small ones, one in between, and so on.
const BLOCKS: [u32; 8] = [64 * 1024, 1024, 1024, 16 * 1024, 512, 128 * 1024, 1024, 4096];
/// Between bursts, so long that the kernel takes the connection for idle.
const PAUSE: Duration = Duration::from_secs(1);
/// Bursts of a trial.
const BURSTS: u32 = 4;
/// Messages of a stream and their pace: what a feed of quotes sends.
const MESSAGE: Bytes = Bytes(200);
const INTERVAL: Duration = Duration::from_millis(10);

/// A workload as it is written: `page`, `page:size=10kB`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadRequest {
    /// As it was written.
    text: String,
    kind: &'static str,
    /// What was written beside it; checked.
    sizes: BTreeMap<&'static str, Bytes>,
    blocks: Vec<Bytes>,
    numbers: BTreeMap<&'static str, u32>,
    times: BTreeMap<&'static str, Duration>,
    /// The page of a HAR file.
    page: Option<Page>,
    /// Whether each object of a page has a connection of its own.
    close_each: bool,
    /// Whether a page is loaded through TLS where the remote host offers both.
    tls: bool,
}

impl std::str::FromStr for WorkloadRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let known = KNOWN.iter().find(|(known, ..)| *known == name.trim());
        let Some((kind, keys, _)) = known else {
            return Err(format!("there is no workload \"{name}\".\n{}", list()));
        };
        let mut wanted = Self { text: text.to_owned(), kind, ..Self::default() };
        for pair in rest.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| format!("\"{pair}\": write KEY=VALUE"))?;
            let Some(key) = keys.iter().find(|known| **known == key.trim()) else {
                let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
                return Err(format!("{kind} has no parameter \"{}\"; it has {keys}", key.trim()));
            };
            wanted.set(key, value.trim()).map_err(|why| format!("{key}={value}: {why}"))?;
        }
        if wanted.page.is_some() && wanted.sizes.contains_key("size") {
            return Err("size= and har= exclude each other".to_owned());
        }
        if wanted.is_http2() && wanted.numbers.contains_key("connections") {
            return Err("HTTP/2 has one connection: leave connections= out".to_owned());
        }
        if wanted.is_http2() && wanted.close_each {
            return Err("HTTP/2 has one connection for all objects: keepalive=off is for HTTP/1.1".to_owned());
        }
        Ok(wanted)
    }
}

impl Default for WorkloadRequest {
    /// A bulk transfer.
    fn default() -> Self {
        Self {
            text: "bulk".to_owned(),
            kind: "bulk",
            sizes: BTreeMap::new(),
            blocks: Vec::new(),
            numbers: BTreeMap::new(),
            times: BTreeMap::new(),
            page: None,
            close_each: false,
            tls: false,
        }
    }
}

impl std::fmt::Display for WorkloadRequest {
    /// As it was written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

text::serde_as_text!(WorkloadRequest);

/// The names of all workloads.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(kind, ..)| *kind)
}

/// Every workload with its parameters, a line each.
#[must_use]
pub fn list() -> String {
    let lines: Vec<String> = KNOWN
        .iter()
        .map(|(kind, keys, what)| {
            let keys = if keys.is_empty() { String::new() } else { format!(" [{}]", keys.join(", ")) };
            format!("  {kind}{keys}: {what}")
        })
        .collect();
    format!("Workloads, with their parameters (NAME:KEY=VALUE,…):\n{}", lines.join("\n"))
}

impl WorkloadRequest {
    /// Whether a workload as it is written names a file, which to parse it would open. Who takes the text from elsewhere asks
    /// first: what an error then says of the file would be told to whoever sent it.
    ///
    /// # Example
    /// ```
    /// assert!(wt_setup::WorkloadRequest::names_file("page:connections=6,har=page.har"));
    /// assert!(!wt_setup::WorkloadRequest::names_file("page:size=10kB"));
    /// ```
    #[must_use]
    pub fn names_file(text: &str) -> bool {
        text.split([':', ',']).any(|part| part.split('=').next().is_some_and(|key| key.trim() == "har"))
    }

    /// Takes a value, within what makes sense.
    fn set(&mut self, key: &'static str, value: &str) -> Result<(), String> {
        let size = |text: &str| -> Result<Bytes, String> {
            let size: Bytes = text.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
            if (1..=1 << 40).contains(&size.get()) {
                Ok(size)
            } else {
                Err("out of range: allowed is 1B to 1TiB".to_owned())
            }
        };
        match key {
            "connections" | "count" | "rivals" => {
                let most = if key == "count" { 1_000_000 } else { 60 };
                let number: u32 = value.parse().map_err(|_| "write a whole number".to_owned())?;
                if !(1..=most).contains(&number) {
                    return Err(format!("out of range: allowed is 1 to {most}"));
                }
                self.numbers.insert(key, number);
            }
            "http" => {
                let version = value.parse().ok().filter(|version| (1..=2).contains(version));
                self.numbers.insert(key, version.ok_or_else(|| "write 1 or 2".to_owned())?);
            }
            "keepalive" | "tls" => {
                let on = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err("write on or off".to_owned()),
                };
                if key == "tls" {
                    self.tls = on;
                } else {
                    self.close_each = !on;
                }
            }
            "har" => self.page = Some(crate::har::read(std::path::Path::new(value))?),
            "pause" | "think" | "interval" => {
                let time = parse_duration(value).map_err(|error| error.to_string())?;
                let least = if key == "interval" { Duration::from_micros(100) } else { Duration::ZERO };
                if !(least..=Duration::from_secs(60)).contains(&time) {
                    return Err("out of range: allowed is at most 60s, and between messages at least 100us".to_owned());
                }
                self.times.insert(key, time);
            }
            "blocks" => {
                self.blocks = value.split('+').map(size).collect::<Result<_, _>>()?;
                if self.blocks.len() > 1000 {
                    return Err("at most 1000 blocks".to_owned());
                }
            }
            // What goes as one piece through one connection.
            "request" | "response" | "message" => {
                let size = size(value)?;
                if size.get() > 1 << 30 {
                    return Err("out of range: at most 1GiB".to_owned());
                }
                self.sizes.insert(key, size);
            }
            _ => {
                self.sizes.insert(key, size(value)?);
            }
        }
        Ok(())
    }

    /// Whether it is a page.
    pub fn is_page(&self) -> bool {
        self.kind == "page"
    }

    /// Whether others run beside what is judged.
    pub fn has_rivals(&self) -> bool {
        self.kind == "competing"
    }

    /// Whether it is loaded over HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.numbers.get("http") == Some(&2)
    }

    /// Whether it is one transfer whose amount follows from the path and the budget.
    pub fn is_plain(&self) -> bool {
        self.kind == "bulk" && self.sizes.is_empty()
    }

    /// Whether it can be run at a remote host that speaks this.
    ///
    /// # Errors
    /// Why not, and what would do.
    pub fn check(&self, scheme: Scheme) -> Result<(), String> {
        match (self.kind, scheme) {
            ("page", scheme) if self.is_http2() && scheme != Scheme::Https => {
                Err("HTTP/2 is agreed upon in the handshake of TLS: name an https:// server that speaks it".to_owned())
            }
            ("page", Scheme::Http) if self.tls => Err("the address says http://: name an https:// server".to_owned()),
            ("page", Scheme::Wt) if self.tls => {
                Err("windtunnel serve speaks no TLS: name an https:// server".to_owned())
            }
            ("page", Scheme::Wt) if self.close_each => {
                Err("windtunnel serve keeps its connections: name an http:// or https:// server".to_owned())
            }
            (_, Scheme::Wt) | ("bulk" | "download-12mb" | "soak", _) | ("page", Scheme::Http | Scheme::Https) => Ok(()),
            ("page", _) => Err("a page is loaded over http://, https:// or wt://".to_owned()),
            (kind, _) => Err(format!("{kind} needs windtunnel serve, wt://KEY@HOST")),
        }
    }

    /// The same both ways at once.
    ///
    /// # Errors
    /// What can't be run so.
    pub fn both(&self, time: Duration) -> Result<Workload, String> {
        if self.kind == "bulk" && self.sizes.is_empty() {
            return Ok(Workload::Duplex { time });
        }
        let this = if self.kind == "bulk" { "those of a size" } else { self.kind };
        Err(format!("--direction both is for bulk transfers by time, not for {this}"))
    }

    /// Which way its payload goes if this way is asked for: what a workload fetches goes down anyhow, and of transactions the
    /// larger part decides.
    #[must_use]
    pub fn direction(&self, asked: Direction) -> Direction {
        self.workload(asked, Duration::ZERO).direction()
    }

    /// Whether there is an upload of it, where that is what is asked for.
    ///
    /// # Errors
    /// What goes down only.
    pub fn check_direction(&self, asked: Direction) -> Result<(), String> {
        match (self.kind, asked) {
            ("page" | "bursts" | "download-12mb", Direction::Up) => Err(format!(
                "the payload of {} goes down, from the server to the client: there is no upload of it",
                self.kind
            )),
            _ => Ok(()),
        }
    }

    /// How long a trial takes if nobody says it, where that isn't a matter of the path.
    pub fn usual_time(&self) -> Option<Duration> {
        (self.kind == "soak").then_some(SOAK)
    }

    /// The workload; `time` is how long a trial takes where that can be chosen.
    pub fn workload(&self, direction: Direction, time: Duration) -> Workload {
        let size_of = |key| self.sizes.get(key).copied();
        let time_of = |key| self.times.get(key).copied();
        let size = size_of("size");
        let count = self.numbers.get("count").copied();
        match self.kind {
            "transactions" => Workload::Transactions {
                request: size_of("request").unwrap_or(REQUEST),
                response: size_of("response").unwrap_or(RESPONSE),
                think: time_of("think").unwrap_or_default(),
                amount: count.map_or(Repeat::Time(time), Repeat::Count),
            },
            "bursts" => Workload::Bursts {
                request: size_of("request").unwrap_or(REQUEST),
                blocks: match self.blocks.as_slice() {
                    [] => BLOCKS.iter().map(|size| Bytes(u64::from(*size))).collect(),
                    blocks => blocks.to_vec(),
                },
                pause: time_of("pause").unwrap_or(PAUSE),
                amount: Repeat::Count(count.unwrap_or(BURSTS)),
            },
            "stream" => Workload::Stream {
                direction,
                message: size_of("message").unwrap_or(MESSAGE),
                interval: time_of("interval").unwrap_or(INTERVAL),
                time,
            },
            "competing" => {
                Workload::Competing { direction, rivals: self.numbers.get("rivals").copied().unwrap_or(1), time }
            }
            "load" => Workload::Load { direction, time },
            "download-12mb" => Workload::Bulk { direction: Direction::Down, amount: Amount::Size(TWELVE_MB) },
            "soak" => Workload::Soak { direction, time },
            "page" => {
                let har = || self.page.clone().unwrap_or_else(Page::built_in);
                let mut page = size.map_or_else(har, Page::single);
                if let Some(connections) = self.numbers.get("connections") {
                    page.connections = *connections;
                } else if size.is_none() {
                    page.connections = USUAL_CONNECTIONS;
                }
                (page.close_each, page.tls) = (self.close_each, self.tls);
                if self.is_http2() {
                    (page.http2, page.connections) = (true, 1);
                }
                Workload::Page { page }
            }
            _ => Workload::Bulk { direction, amount: size.map_or(Amount::Time(time), Amount::Size) },
        }
    }
}

/// How long something without a fixed time takes, roughly: what the path carries, and what is waited for.
pub fn expected(workload: &Workload, rtt: Duration, rate: BitsPerSecond) -> Duration {
    let size = workload.size().unwrap_or(Bytes(0));
    let round_trips = match workload {
        Workload::Page { page } if page.http2 => 8,
        Workload::Page { page } => {
            let each = if page.close_each { 2 } else { 1 };
            4 + page.objects.len() * each / page.connections.max(1) as usize
        }
        Workload::Transactions { amount: Repeat::Count(count), .. } => *count as usize,
        Workload::Bursts { blocks, amount: Repeat::Count(count), .. } => blocks.len() * *count as usize,
        // Slow start.
        _ => 10,
    };
    let waits = rtt.saturating_mul(u32::try_from(round_trips).unwrap_or(u32::MAX));
    let pauses = match workload {
        Workload::Bursts { pause, amount: Repeat::Count(count), .. } => pause.saturating_mul(*count),
        Workload::Transactions { think, amount: Repeat::Count(count), .. } => think.saturating_mul(*count),
        _ => Duration::ZERO,
    };
    (size / rate) + waits + pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Result<WorkloadRequest, String> {
        text.parse()
    }

    #[test]
    fn workloads_are_names_with_parameters() {
        let time = Duration::from_secs(3);
        let of = |text: &str| wanted(text).unwrap().workload(Direction::Up, time);
        assert_eq!(of("bulk"), Workload::Bulk { direction: Direction::Up, amount: Amount::Time(time) });
        assert_eq!(of("bulk:size=1MB").size(), Some(Bytes(1_000_000)));
        assert_eq!(of("download-12mb").size(), Some(TWELVE_MB));
        assert_eq!(of("page"), Workload::Page { page: Page::built_in() });
        let Workload::Page { page } = of("page:size=10kB,connections=2") else { panic!("no page") };
        assert_eq!((page.objects.len(), page.size(), page.connections), (1, Bytes(10_000), 2));
        let Workload::Page { page } = of("page:keepalive=off") else { panic!("no page") };
        assert_eq!((page.close_each, page.connections, page.objects.len()), (true, 6, 44));
        assert_eq!(of("page:keepalive=on"), of("page"));
        assert_eq!(of("soak"), Workload::Soak { direction: Direction::Up, time });
        let Workload::Transactions { request, response, think, amount } = of("transactions:response=10kB,think=5ms")
        else {
            panic!("no transactions")
        };
        assert_eq!(
            (request, response, think, amount),
            (REQUEST, Bytes(10_000), Duration::from_millis(5), Repeat::Time(time))
        );
        let Workload::Bursts { blocks, amount, .. } = of("bursts:blocks=64KiB+1KiB,count=3") else {
            panic!("no bursts")
        };
        assert_eq!((blocks, amount), (vec![Bytes(65_536), Bytes(1024)], Repeat::Count(3)));
        let Workload::Stream { interval, .. } = of("stream:interval=20ms") else { panic!("no stream") };
        assert_eq!(interval, Duration::from_millis(20));
        assert_eq!(wanted("bulk").unwrap().both(time), Ok(Workload::Duplex { time }));
        assert!(wanted("page").unwrap().both(time).is_err());
    }

    #[test]
    fn an_upload_is_refused_of_what_is_fetched_and_of_transactions_the_larger_part_decides() {
        let large = "transactions:request=10kB,response=200B";
        for name in names().chain([large]) {
            let workload = wanted(name).unwrap();
            let fetched = ["page", "bursts", "download-12mb"].contains(&name);
            assert_eq!(workload.check_direction(Direction::Up).is_err(), fetched, "{name}");
            assert_eq!(workload.check_direction(Direction::Down), Ok(()), "{name}");
            let up = if fetched || name == "transactions" { Direction::Down } else { Direction::Up };
            let down = if name == large { Direction::Up } else { Direction::Down };
            assert_eq!([Direction::Up, Direction::Down].map(|asked| workload.direction(asked)), [up, down], "{name}");
        }
    }

    #[test]
    fn mistakes_name_what_there_is() {
        for (text, part) in [
            ("pages", "page"),
            ("help", "download-12mb"),
            ("page:colour=red", "connections"),
            ("page:http=3", "1 or 2"),
            ("page:http=2,connections=6", "one connection"),
            ("page:connections=0", "1 to 60"),
            ("page:keepalive=no", "on or off"),
            ("page:tls=1", "on or off"),
            ("page:http=2,keepalive=off", "HTTP/1.1"),
            ("stream:interval=1us", "100us"),
            ("transactions:think=1h", "60s"),
            ("bursts:blocks=64KiB+x", "x"),
            ("page:size", "KEY=VALUE"),
            ("bulk:size=0", "1B"),
        ] {
            let error = wanted(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
