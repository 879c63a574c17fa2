//! A glance at what a stack can do, by packet scripts: the peer is ours, packet by packet, over a TUN device beside the
//! stack's own.
//!
//! A script that doesn't get as far as its question says so; a stack isn't blamed for it.

/// The peer of a script.
mod peer;

use crate::catalogue::{Availability, Choice, Stack};
use peer::{Peer, Scene, StackSegment};
use serde::{Deserialize, Serialize};
use std::net::Shutdown;
use std::time::Duration;
use wt_sys::ns::NetNs;
use wt_wire::TcpFlags;

/// Whether a stack does what a script asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It does.
    Yes,
    /// It doesn't.
    No,
    /// The script didn't get as far: why.
    #[serde(untagged)]
    Unknown(String),
}

/// What a stack can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conformance {
    /// Its SYN offers window scaling (RFC 7323 section 2).
    pub window_scaling: Answer,
    /// Its SYN permits SACK (RFC 2018 section 2).
    pub sack: Answer,
    /// Its SYN has timestamps (RFC 7323 section 3).
    pub timestamps: Answer,
    /// After a router's "too big" it sends no larger packets (RFC 1191).
    pub pmtu_discovery: Answer,
    /// It asks again and again when the window is closed, and goes on when it opens (RFC 9293 section 3.8.6.1).
    pub zero_window_probe: Answer,
    /// It obeys a reset at the place that is due, and ignores one outside of its window (RFC 5961 section 3.2).
    pub rst_handling: Answer,
    /// It keeps what comes out of order.
    pub out_of_order_reassembly: Answer,
    /// It acknowledges the other end's FIN that crosses its own (RFC 9293 section 3.6).
    pub simultaneous_close: Answer,
}

/// What a script waits for comes within this time, or not at all.
const PATIENCE: Duration = Duration::from_secs(4);
/// A probe of a closed window: 4.4BSD and what comes of it take 5 s for the first.
const PERSIST: Duration = Duration::from_secs(8);
/// What needs no timer comes sooner.
const SOON: Duration = Duration::from_secs(1);

type Script = fn(&Scene<'_>) -> Result<bool, String>;

impl Conformance {
    /// Runs all scripts, each with a fresh adapter. The process must have entered the lab's user namespace.
    #[must_use]
    pub fn of(choice: &Choice) -> Self {
        let mut choice = choice.clone();
        // The kernel itself is that behind the adapter.
        if choice.stack.built() == Availability::Direct
            && let Some(linux) = Stack::of("linux")
        {
            choice.stack = linux;
        }
        let choice = &choice;
        if choice.stack.described().is_some_and(|told| told.far_end) {
            return Self::all(&Answer::Unknown("it isn't TCP".to_owned()));
        }
        let run = |script: Script| match play(choice, script) {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(why) => Answer::Unknown(why),
        };
        std::thread::scope(|scope| {
            let scripts: [Script; 8] =
                [scaling, sack, timestamps, pmtu, zero_window, resets, out_of_order, simultaneous_close];
            let started = scripts.map(|script| scope.spawn(move || run(script)));
            let mut answers =
                started.map(|one| one.join().unwrap_or_else(|_| Answer::Unknown("the script broke".to_owned())));
            let mut take = |at: usize| std::mem::replace(&mut answers[at], Answer::No);
            Self {
                window_scaling: take(0),
                sack: take(1),
                timestamps: take(2),
                pmtu_discovery: take(3),
                zero_window_probe: take(4),
                rst_handling: take(5),
                out_of_order_reassembly: take(6),
                simultaneous_close: take(7),
            }
        })
    }
}

impl Conformance {
    /// The same answer to everything.
    fn all(answer: &Answer) -> Self {
        Self {
            window_scaling: answer.clone(),
            sack: answer.clone(),
            timestamps: answer.clone(),
            pmtu_discovery: answer.clone(),
            zero_window_probe: answer.clone(),
            rst_handling: answer.clone(),
            out_of_order_reassembly: answer.clone(),
            simultaneous_close: answer.clone(),
        }
    }
}

/// Plays a script in a namespace of its own.
fn play(choice: &Choice, script: Script) -> Result<bool, String> {
    let ns = NetNs::create().map_err(|error| error.to_string())?;
    ns.run(|| Scene::with(choice, script)).map_err(|error| error.to_string())?
}

fn scaling(scene: &Scene<'_>) -> Result<bool, String> {
    scene.syn().map(|syn| syn.scale)
}

fn sack(scene: &Scene<'_>) -> Result<bool, String> {
    scene.syn().map(|syn| syn.sack)
}

fn timestamps(scene: &Scene<'_>) -> Result<bool, String> {
    scene.syn().map(|syn| syn.timestamps)
}

fn pmtu(scene: &Scene<'_>) -> Result<bool, String> {
    let mut peer = Peer::open(scene, 60_000)?;
    peer.write(&[1; 3000])?;
    let large = |heard: &StackSegment| heard.packet.len() > 1000 && !heard.payload.is_empty();
    let first = peer.hear_that(SOON, large).ok_or("it sends no large packet")?;
    if !first.dont_fragment {
        return Ok(false);
    }
    peer.too_big(&first.packet, 600)?;
    let again = |heard: &StackSegment| heard.seq == first.seq && !heard.payload.is_empty() && heard.packet.len() <= 600;
    Ok(peer.hear_that(PATIENCE, again).is_some())
}

fn zero_window(scene: &Scene<'_>) -> Result<bool, String> {
    let mut peer = Peer::open(scene, 1000)?;
    peer.write(&[2; 3000])?;
    // What has come fills the window.
    peer.window = 0;
    if !peer.takes(1000, PATIENCE) {
        return Err("it doesn't fill the window".to_owned());
    }
    // Whatever it sends now is its own idea: nothing of ours is on its way.
    if peer.hear_that(PERSIST, |_| true).is_none() {
        return Ok(false);
    }
    peer.window = 60_000;
    peer.say(TcpFlags::ACK, &[], 0);
    Ok(peer.takes(2000, PATIENCE))
}

fn resets(scene: &Scene<'_>) -> Result<bool, String> {
    let mut peer = Peer::open(scene, 60_000)?;
    peer.say(TcpFlags::RST | TcpFlags::ACK, &[], 0x1000_0000);
    peer.say(TcpFlags::ACK | TcpFlags::PSH, &[3; 10], 0);
    peer.seq = peer.seq.wrapping_add(10);
    if peer.read(10, SOON).as_deref() != Some(&[3; 10]) {
        return Ok(false);
    }
    peer.say(TcpFlags::RST | TcpFlags::ACK, &[], 0);
    Ok(peer.read_end(SOON))
}

fn out_of_order(scene: &Scene<'_>) -> Result<bool, String> {
    let mut peer = Peer::open(scene, 60_000)?;
    peer.say(TcpFlags::ACK | TcpFlags::PSH, &[5; 100], 100);
    peer.say(TcpFlags::ACK | TcpFlags::PSH, &[4; 100], 0);
    let both = [[4; 100], [5; 100]].concat();
    Ok(peer.read(200, SOON).is_some_and(|read| read == both))
}

fn simultaneous_close(scene: &Scene<'_>) -> Result<bool, String> {
    let mut peer = Peer::open(scene, 60_000)?;
    peer.near.shutdown(Shutdown::Write).map_err(|error| error.to_string())?;
    let fin = peer.hear_that(SOON, |heard| heard.flags.has(TcpFlags::FIN)).ok_or("it sends no FIN")?;
    // Ours crosses it: it acknowledges everything before.
    peer.ack = fin.seq;
    peer.say(TcpFlags::FIN | TcpFlags::ACK, &[], 0);
    let due = peer.seq.wrapping_add(1);
    Ok(peer.hear_that(PATIENCE, |heard| heard.flags.has(TcpFlags::ACK) && heard.ack == due).is_some())
}
