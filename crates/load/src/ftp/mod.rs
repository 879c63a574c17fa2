//! Files of FTP servers, in passive mode: the settings are those of the data connection.

/// What servers answer.
mod reply;
#[cfg(test)]
mod tests;

use crate::client::Connection;
use crate::control::ControlConnection;
use crate::error::{FetchError, LoadError, lost, refused_or_not};
use crate::fetch::{Body, Framing, intake, outflow};
use crate::intact::Reference;
use crate::job::{CONNECT, Fetch, FetchOutcome};
use crate::pattern;
use crate::tls::Tls;
use crate::transfer::{EndReport, Finish};
use crate::wire::{Wire, WireError};
use reply::{Reply, ReplyError};
use std::net::SocketAddr;
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_trial::{Amount, Cancel};
use wt_units::{Bytes, Scheme, Settings, Url};

/// Where FTP through TLS from the first byte on usually listens.
const IMPLICIT: u16 = 990;
/// The word that anonymous users give for a password: who asks.
const ANONYMOUS: (&str, &str) = ("anonymous", "windtunnel@");
/// After a transfer that we cut short, the server's word on it isn't waited for longer.
const FAREWELL: Duration = Duration::from_secs(2);
/// Behind the name of what we upload, so that nobody's file is overwritten.
const SUFFIX: &str = ".windtunnel-test";

/// Fetches a file, or a part of it: the clock runs from the command to the last byte that was wanted.
///
/// # Errors
/// [`FetchError`].
pub(crate) fn fetch(job: &Fetch<'_>, reference: &mut Reference, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let path = path_of(job.url)?;
    let mut control = Control::open(job, cancel)?;
    let length = control.size(&path)?;
    if length == Some(0) {
        return Err(FetchError::Never(format!("{} is empty", job.url)));
    }
    let mut data = control.passive(job)?;
    // FTP knows no first bytes, but last ones: so that no more is sent than is wanted.
    let skip = match (job.amount, length) {
        (Amount::Size(Bytes(wanted)), Some(length)) if wanted < length => control.restart(length - wanted)?,
        _ => 0,
    };
    let start_ns = monotonic_ns();
    control.begin(&format!("RETR {path}"))?;
    data.encrypt(job, &control)?;
    let framing = length.map_or(Framing::Close, |length| Framing::Length(length - skip));
    let version = format!("from {skip}");
    let (mut check, changed) = reference.compare(Some(version), length);
    let intake_job = job.transfer(start_ns, data.window);
    let report = intake(&mut data.wire, Body::new(framing), &[], &intake_job, &mut check);
    let report = report.map_err(LoadError::Broken)?;
    let mut notes = Vec::new();
    if changed {
        notes.push("the file on the server has another length: it is compared with its new content".to_owned());
    }
    let Data { wire, connect_time, granted, .. } = data;
    let surplus = matches!(job.amount, Amount::Size(Bytes(wanted)) if framing.may_exceed(wanted));
    let mut fetched =
        FetchOutcome { surplus, ..FetchOutcome::over(wire, connect_time, granted, report, length, notes) };
    let last_word = if ended_by_server(framing, job.amount, &fetched.report) { control.last_word() } else { Ok(()) };
    control.quit();
    if let Err(cut_short) = last_word {
        if fetched.report.bytes == 0 || matches!(cut_short, FetchError::Cancelled) {
            return Err(cut_short);
        }
        fetched.report.finish = Finish::PeerLeft(format!("after {} bytes {cut_short}", fetched.report.bytes));
    }
    if fetched.report.bytes == 0 && matches!(fetched.report.finish, Finish::PeerLeft(_)) {
        return Err(FetchError::Refused {
            why: "it closed the connection before the first byte".to_owned(),
            pause: None,
        });
    }
    Ok(fetched)
}

/// Brings so many bytes of the pattern, under a name of our own beside what was named, and deletes them again; where the
/// server forbids that, a note says so.
///
/// # Errors
/// [`FetchError`].
pub(crate) fn bring(job: &Fetch<'_>, cancel: &Cancel) -> Result<FetchOutcome, FetchError> {
    let path = path_of(job.url)? + SUFFIX;
    let mut control = Control::open(job, cancel)?;
    let brought = control.passive(job).and_then(|data| control.store(job, &path, data));
    control.quit();
    brought
}

/// Whether only the end of the data connection says that there is no more: an aborted transfer ends like a whole one.
fn ended_by_server(framing: Framing, amount: Amount, report: &EndReport) -> bool {
    let enough = match amount {
        Amount::Size(wanted) => report.bytes >= wanted.get(),
        Amount::Time(time) => report.elapsed >= time,
    };
    framing == Framing::Close && report.finish == Finish::Done && !enough
}

fn path_of(url: &Url) -> Result<String, FetchError> {
    url.ftp_path().ok_or_else(|| FetchError::Never(format!("{url} names no file")))
}

/// What a reply that isn't what was hoped for means.
///
/// # Source
/// RFC 959 section 4.2.1: 4xx may change, 5xx won't.
fn refusal(reply: &Reply) -> FetchError {
    let line = format!("it answers {} {}", reply.code, reply.text);
    match reply.code {
        421 | 425 | 426 | 450 | 451 | 452 => FetchError::Refused { why: line, pause: None },
        _ => FetchError::Never(format!("the server answers {} {}", reply.code, reply.text)),
    }
}

/// Whether a transfer went well.
fn done(reply: &Reply) -> Result<(), FetchError> {
    if reply.code / 100 == 2 { Ok(()) } else { Err(refusal(reply)) }
}

/// The control connection.
struct Control<'a> {
    connection: ControlConnection<'a>,
    peer: SocketAddr,
    /// What came and isn't understood yet.
    heard: Vec<u8>,
}

impl<'a> Control<'a> {
    /// Connects, secures what is to be secured, and logs in.
    fn open(job: &Fetch<'_>, cancel: &'a Cancel) -> Result<Self, FetchError> {
        let connection = ControlConnection::open(job, cancel)?;
        let mut control = Self { connection, peer: job.peer, heard: Vec::new() };
        let secure = job.url.scheme == Scheme::Ftps;
        let implicit = secure && job.peer.port() == IMPLICIT;
        if implicit {
            control.encrypt(job.tls, &job.url.host)?;
        }
        control.expect(&[220], None)?;
        if secure && !implicit {
            control.expect(&[234], Some("AUTH TLS"))?;
            control.encrypt(job.tls, &job.url.host)?;
        }
        let (user, password) = job.url.login.as_ref().map_or(ANONYMOUS, |login| (&login.user, &login.password));
        let reply = control.expect(&[230, 331], Some(&format!("USER {user}")))?;
        if reply.code == 331 {
            control.expect(&[230, 202], Some(&format!("PASS {password}")))?;
        }
        if secure {
            control.expect(&[200], Some("PBSZ 0"))?;
            control.expect(&[200], Some("PROT P"))?;
        }
        control.expect(&[200], Some("TYPE I"))?;
        Ok(control)
    }

    fn encrypt(&mut self, tls: &Tls, host: &str) -> Result<(), FetchError> {
        // What came in the clear after the answer would be taken for something that came encrypted.
        self.heard.clear();
        self.connection.encrypt(tls, host)
    }

    fn send(&mut self, command: &str) -> Result<(), FetchError> {
        self.connection.send(format!("{command}\r\n").as_bytes())
    }

    /// The next reply.
    fn reply(&mut self, limit_ns: u64) -> Result<Reply, FetchError> {
        let mut buffer = [0; 2048];
        loop {
            let parsed = reply::parse(&self.heard);
            if let Some((length, reply)) =
                parsed.map_err(|error: ReplyError| FetchError::Protocol(error.to_string()))?
            {
                self.heard.drain(..length);
                return Ok(reply);
            }
            let read = self.connection.read(&mut buffer, limit_ns)?;
            self.heard.extend_from_slice(&buffer[..read]);
        }
    }

    /// Sends a command, if there is one, and wants one of these replies.
    fn expect(&mut self, codes: &[u16], command: Option<&str>) -> Result<Reply, FetchError> {
        if let Some(command) = command {
            self.send(command)?;
        }
        let reply = self.reply(self.connection.give_up_ns())?;
        if codes.contains(&reply.code) { Ok(reply) } else { Err(refusal(&reply)) }
    }

    /// Sends a command that begins a transfer.
    fn begin(&mut self, command: &str) -> Result<(), FetchError> {
        self.expect(&[125, 150], Some(command)).map(drop)
    }

    /// How long the file is; a server needs not know.
    fn size(&mut self, path: &str) -> Result<Option<u64>, FetchError> {
        self.send(&format!("SIZE {path}"))?;
        let reply = self.reply(self.connection.give_up_ns())?;
        match reply.code {
            213 => reply.text.trim().parse().map(Some).map_err(|_| {
                FetchError::Protocol(format!("the server says that the file's size is \"{}\"", reply.text))
            }),
            421 => Err(refusal(&reply)),
            _ => Ok(None),
        }
    }

    /// Skips the beginning; how much was skipped.
    fn restart(&mut self, skip: u64) -> Result<u64, FetchError> {
        self.send(&format!("REST {skip}"))?;
        let reply = self.reply(self.connection.give_up_ns())?;
        Ok(if reply.code == 350 { skip } else { 0 })
    }

    /// Opens a data connection with the settings that are tried.
    fn passive(&mut self, job: &Fetch<'_>) -> Result<Data<'a>, FetchError> {
        self.send("EPSV")?;
        let reply = self.reply(self.connection.give_up_ns())?;
        let port = match reply.code {
            229 => reply::extended_port(&reply.text)
                .ok_or_else(|| FetchError::Protocol("the server's answer to EPSV names no port".to_owned()))?,
            421 => return Err(refusal(&reply)),
            _ if self.peer.is_ipv4() => self.old_passive()?,
            _ => return Err(refusal(&reply)),
        };
        let peer = SocketAddr::new(self.peer.ip(), port);
        let connection = Connection::open_with_all(&peer, job.settings, CONNECT.min(job.deadline));
        let connection = connection.map_err(refused_or_not)?;
        let wire = Wire::new(connection.stream, self.connection.give_up_ns(), self.connection.wire.cancel());
        Ok(Data {
            wire: wire.map_err(LoadError::Broken)?,
            window: connection.window,
            connect_time: connection.connect_time,
            granted: connection.granted,
        })
    }

    /// The port by `PASV`. An address of somebody else's is refused: we would be made to attack them.
    fn old_passive(&mut self) -> Result<u16, FetchError> {
        let reply = self.expect(&[227], Some("PASV"))?;
        let (ip, port) = reply::passive_address(&reply.text)
            .ok_or_else(|| FetchError::Protocol("the server's answer to PASV names no address".to_owned()))?;
        if ip != self.peer.ip() {
            return Err(FetchError::Never(format!(
                "the server wants us to connect to {ip}, which isn't itself ({}): refused",
                self.peer.ip()
            )));
        }
        Ok(port)
    }

    /// Stores so many bytes of the pattern under a name, and deletes them again, also where they didn't arrive well.
    fn store(&mut self, job: &Fetch<'_>, path: &str, mut data: Data<'_>) -> Result<FetchOutcome, FetchError> {
        if let Err(refused) = self.begin(&format!("STOR {path}")) {
            return Err(self.kept(path, refused));
        }
        let mut cut_short = true;
        let report = self.upload(job, &mut data, &mut cut_short);
        let Data { wire, connect_time, granted, .. } = data;
        // Either way the data connection ends here: before that the server has no word on the transfer.
        let mut brought =
            report.map(|report| FetchOutcome::over(wire, connect_time, granted, report, None, Vec::new()));
        let kept = self.tidy_up(path, cut_short);
        if let Ok(brought) = &mut brought {
            brought.notes.extend(kept);
        }
        brought
    }

    /// Sends the payload; `cut_short` is false once the server has said what it thinks of it.
    fn upload(&mut self, job: &Fetch<'_>, data: &mut Data<'_>, cut_short: &mut bool) -> Result<EndReport, FetchError> {
        data.encrypt(job, self)?;
        let outflow_job = job.transfer(monotonic_ns(), None);
        let report = outflow(&mut data.wire, &outflow_job, &pattern::at).map_err(LoadError::Broken)?;
        if report.finish == Finish::Done {
            // The end of the file is the end of the connection.
            data.wire.finish_writing().map_err(|error| lost(error, job.deadline, false))?;
            let reply = self.reply(self.connection.give_up_ns())?;
            *cut_short = false;
            done(&reply)?;
        }
        Ok(report)
    }

    /// What the server says of a transfer that it ended.
    fn last_word(&mut self) -> Result<(), FetchError> {
        done(&self.reply(self.connection.give_up_ns())?)
    }

    /// Deletes what we brought. A server that forbids that keeps it, and what it answers is told.
    fn tidy_up(&mut self, path: &str, cut_short: bool) -> Option<String> {
        self.send(&format!("DELE {path}")).ok()?;
        let limit = self.limit();
        if cut_short {
            // The word on the transfer comes first.
            self.reply(limit).ok()?;
        }
        let Reply { code, text } = self.reply(limit).ok()?;
        let kept = || format!("{path} stays on the server, which answers {code} {text} to DELE: have it deleted there");
        (code / 100 != 2).then(kept)
    }

    /// What it means that an upload is refused: an earlier one may still be there.
    fn kept(&mut self, path: &str, refused: FetchError) -> FetchError {
        let FetchError::Never(why) = &refused else { return refused };
        match self.size(path) {
            Ok(Some(_)) => FetchError::Kept {
                why: format!("{why}: {path} is there already, from an earlier upload"),
                cause: "it lets nobody delete or overwrite what was uploaded",
                remedy: "have that file deleted there, and name a folder in which files may be deleted: each trial uploads one",
            },
            _ => refused,
        }
    }

    /// Takes leave; a transfer that was cut short is commented before.
    fn quit(mut self) {
        if self.send("QUIT").is_ok() {
            let limit = self.limit();
            while let Ok(reply) = self.reply(limit)
                && reply.code != 221
            {}
        }
    }

    fn limit(&self) -> u64 {
        self.connection.give_up_ns().min(monotonic_ns() + FAREWELL.as_nanos() as u64)
    }
}

/// The data connection.
struct Data<'a> {
    wire: Wire<'a>,
    window: Option<u32>,
    connect_time: Duration,
    granted: Settings,
}

impl Data<'_> {
    fn encrypt(&mut self, job: &Fetch<'_>, control: &Control<'_>) -> Result<(), FetchError> {
        if job.url.scheme != Scheme::Ftps {
            return Ok(());
        }
        self.wire
            .encrypt(job.tls, &job.url.host)
            .map_err(|error: WireError| lost(error, control.connection.patience, true))
    }
}

/// Reads bytes as everything that a server may say.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_all(bytes: &[u8]) {
    if let Ok(Some((used, _))) = reply::parse(bytes) {
        assert!(used <= bytes.len());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (reply::extended_port(text), reply::passive_address(text));
    }
}
