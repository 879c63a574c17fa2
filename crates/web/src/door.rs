use crate::error::ApiError;
use crate::guest::GuestId;
use crate::secret::Secret;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Wrong passwords in a row that one address may give at once.
const BURST: f64 = 5.0;
/// From then on, one more in so many seconds.
const REFILL_S: f64 = 10.0;
/// All addresses together, which keeps down those who have many.
const BURST_OF_ALL: f64 = 100.0;
/// As [`REFILL_S`], for all together.
const REFILL_OF_ALL_S: f64 = 1.0;
/// So many addresses are remembered; those that are let in anyway are forgotten first.
const MOST_ADDRESSES: usize = 4096;
/// What browsers are told, so that they ask (RFC 7617). The name doesn't matter.
const CHALLENGE: &str = "Basic realm=\"windtunnel\", charset=\"UTF-8\"";

/// The password, and who guesses at it.
#[derive(Debug)]
pub(crate) struct Door {
    password: Secret,
    guesses: Mutex<Guesses>,
}

/// Wrong guesses, as buckets that empty with time.
#[derive(Debug, Default)]
struct Guesses {
    by: HashMap<GuestId, Bucket>,
    all: Bucket,
}

/// How full a bucket was, and when.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    level: f64,
    at_ns: u64,
}

impl Bucket {
    fn at(self, now_ns: u64, refill_s: f64) -> f64 {
        (self.level - now_ns.saturating_sub(self.at_ns) as f64 / 1e9 / refill_s).max(0.0)
    }

    fn add(&mut self, now_ns: u64, refill_s: f64) {
        *self = Self { level: self.at(now_ns, refill_s) + 1.0, at_ns: now_ns };
    }

    /// Seconds until one more guess is allowed; 0 if it is now.
    fn wait_s(self, now_ns: u64, burst: f64, refill_s: f64) -> f64 {
        ((self.at(now_ns, refill_s) + 1.0 - burst) * refill_s).max(0.0)
    }
}

impl Guesses {
    fn wait_s(&self, who: GuestId, now_ns: u64) -> f64 {
        let own = self.by.get(&who).copied().unwrap_or_default();
        own.wait_s(now_ns, BURST, REFILL_S).max(self.all.wait_s(now_ns, BURST_OF_ALL, REFILL_OF_ALL_S))
    }

    fn add(&mut self, who: GuestId, now_ns: u64) {
        if self.by.len() >= MOST_ADDRESSES && !self.by.contains_key(&who) {
            self.by.retain(|_, bucket| bucket.at(now_ns, REFILL_S) > 0.0);
            let least = self.by.iter().min_by(|a, b| a.1.at(now_ns, REFILL_S).total_cmp(&b.1.at(now_ns, REFILL_S)));
            if let Some(least) = least.map(|(who, _)| *who).filter(|_| self.by.len() >= MOST_ADDRESSES) {
                self.by.remove(&least);
            }
        }
        self.by.entry(who).or_default().add(now_ns, REFILL_S);
        self.all.add(now_ns, REFILL_OF_ALL_S);
    }
}

impl Door {
    pub(crate) fn new(password: Secret) -> Self {
        Self { password, guesses: Mutex::default() }
    }

    /// Lets in whoever knows the password.
    ///
    /// # Errors
    /// The answer for everybody else: 401, or 429 after too many wrong ones, whether this one is right or not.
    pub(crate) fn knock(&self, from: IpAddr, headers: &HeaderMap) -> Result<(), Box<Response>> {
        self.knock_at(from, headers, wt_sys::clock::monotonic_ns())
    }

    fn knock_at(&self, from: IpAddr, headers: &HeaderMap, now_ns: u64) -> Result<(), Box<Response>> {
        // Accounts of this host share one: one more costs nothing to make.
        let who = GuestId::of(from, None);
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return Err(closed(ApiError::new(StatusCode::UNAUTHORIZED, "this server asks for its password")));
        };
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        let wait_s = guesses.wait_s(who, now_ns);
        if wait_s > 0.0 {
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords")
                .hint(format!("wait for {} s", wait_s.ceil()));
            let mut response = error.into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_s.ceil() as u64));
            return Err(Box::new(response));
        }
        if password(given).is_some_and(|given| self.password.is(&given)) {
            return Ok(());
        }
        guesses.add(who, now_ns);
        Err(closed(ApiError::new(StatusCode::UNAUTHORIZED, "that isn't the password of this server")))
    }
}

fn closed(error: ApiError) -> Box<Response> {
    let mut response = error.hint("any name, and the password that it was started with").into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    Box::new(response)
}

/// The password of `Authorization: Basic …` (RFC 7617): all behind the first colon.
fn password(header: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, coded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = STANDARD.decode(coded.trim()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn door() -> Door {
        Door::new(Secret::new("correct:horse").unwrap())
    }

    fn basic(pair: &str) -> HeaderMap {
        let value = format!("Basic {}", STANDARD.encode(pair));
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap())])
    }

    fn status(door: &Door, from: &str, headers: &HeaderMap, at_s: u64) -> u16 {
        door.knock_at(from.parse().unwrap(), headers, at_s * SECOND).map_or_else(|no| no.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_the_password_opens() {
        let door = door();
        assert_eq!(status(&door, "192.0.2.1", &basic("anybody:correct:horse"), 1), 200);
        assert_eq!(status(&door, "192.0.2.1", &HeaderMap::new(), 1), 401);
        for (address, pair) in [("192.0.2.2", "x:correct"), ("192.0.2.3", "x:"), ("192.0.2.4", "correct:horse")] {
            assert_eq!(status(&door, address, &basic(pair), 1), 401, "{pair}");
        }
        for text in ["Basic", "Basic !!!", "Bearer Y29ycmVjdDpob3JzZQ=="] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(text))]);
            assert_eq!(status(&door, "192.0.2.9", &headers, 1), 401, "{text}");
        }
    }

    #[test]
    fn after_a_few_wrong_ones_even_the_right_one_has_to_wait() {
        let (door, right, wrong) = (door(), basic("x:correct:horse"), basic("x:guess"));
        let guess = |from: &str, at_s| status(&door, from, &wrong, at_s);
        assert_eq!([0; 5].map(|_| guess("192.0.2.1", 100)), [401; 5]);
        assert_eq!(guess("192.0.2.1", 100), 429);
        assert_eq!(status(&door, "192.0.2.1", &right, 101), 429);
        assert_eq!(status(&door, "192.0.2.2", &right, 101), 200, "nobody else is kept out");
        assert_eq!(status(&door, "192.0.2.1", &right, 111), 200);
        // Over a day one guess in ten seconds.
        let tried = (0..86_400).filter(|second| guess("192.0.2.7", 1_000 + second) == 401).count();
        assert!(tried < 8_700, "{tried}");
    }

    #[test]
    fn one_network_of_ipv6_is_one_who_guesses_and_many_addresses_are_bounded() {
        let (door, wrong) = (door(), basic("x:guess"));
        let guess = |from: String| status(&door, &from, &wrong, 100);
        assert_eq!((0..8).filter(|n| guess(format!("2001:db8::{n}")) == 401).count(), 5);
        let let_try = (0..20_000).filter(|n| guess(format!("10.{}.{}.1", n / 256, n % 256)) == 401).count();
        assert!(let_try <= 100, "{let_try}");
        for n in 0..10_000_u32 {
            door.guesses.lock().unwrap().add(GuestId::of(IpAddr::from(n.to_be_bytes()), None), 100 * SECOND);
        }
        assert!(door.guesses.lock().unwrap().by.len() <= MOST_ADDRESSES);
    }
}
