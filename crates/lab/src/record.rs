//! Packets as they pass the ends of links, into a pcapng file.
//!
//! The engine never waits for the disk: what it can't hand over is counted as not recorded.

use crate::scenario::Scenario;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_link::Time;
use wt_wire::{CapturedPacket, Direction, Interface, LinkType, PcapngWriter};

/// Packets and bytes that wait for the disk at most.
const MOST_WAITING: (usize, u64) = (1 << 16, 64 << 20);
/// Packets are put in the order of time as far as they come within this of each other.
const REORDER_NS: u64 = 200_000_000;

/// One end of a link: the interface of whoever stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkEnd {
    /// The link, counted from the client.
    pub link: usize,
    /// The server's side of it, or else the client's.
    pub server_side: bool,
}

impl LinkEnd {
    /// Its name in the file: `dsl (client side)`.
    #[must_use]
    pub fn name(&self, scenario: &Scenario) -> String {
        let side = if self.server_side { "server" } else { "client" };
        let link = scenario.links.get(self.link).map_or("?", |link| link.name.as_str());
        format!("{link} ({side} side)")
    }

    /// The client's device and the server's.
    #[must_use]
    pub fn outer(scenario: &Scenario) -> Vec<Self> {
        vec![
            Self { link: 0, server_side: false },
            Self { link: scenario.links.len().saturating_sub(1), server_side: true },
        ]
    }

    /// Both ends of every link.
    #[must_use]
    pub fn all(scenario: &Scenario) -> Vec<Self> {
        let both = |link| [false, true].map(|server_side| Self { link, server_side });
        (0..scenario.links.len()).flat_map(both).collect()
    }

    /// The number of the hop at which it is.
    pub(crate) fn node(&self) -> usize {
        self.link + usize::from(self.server_side)
    }
}

/// What to record, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The file.
    pub file: PathBuf,
    /// Which ends of links.
    pub ends: Vec<LinkEnd>,
}

/// What a recording has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordingCounts {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the disk was too slow for.
    pub missed: u64,
}

/// A packet at an end of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shot {
    /// The number of the end, in the order of [`Recording::ends`].
    pub(crate) end: u32,
    pub(crate) at: Time,
    pub(crate) inbound: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The engine's end of a recording.
#[derive(Debug)]
pub(crate) struct Shooter {
    shots: SyncSender<(u64, Shot)>,
    waiting: Arc<AtomicU64>,
    missed: Arc<AtomicU64>,
    /// Wall clock at zero of the monotonic one, ns since the epoch.
    epoch_ns: u64,
}

impl Shooter {
    /// Hands a packet over; `start_ns` is what the monotonic clock showed at the packet's time zero.
    pub(crate) fn shoot(&self, start_ns: u64, shot: Shot) {
        let (wall, len) = (self.epoch_ns + start_ns + shot.at.0, shot.bytes.len() as u64);
        let full = self.waiting.load(Relaxed) + len > MOST_WAITING.1;
        if full || self.shots.try_send((wall, shot)).is_err() {
            self.missed.fetch_add(1, Relaxed);
        } else {
            self.waiting.fetch_add(len, Relaxed);
        }
    }
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: PathBuf,
    thread: JoinHandle<io::Result<u64>>,
    missed: Arc<AtomicU64>,
}

impl Recorder {
    /// Begins a file. A regular file gets its name when it is complete; until then it has `.part` behind it.
    pub(crate) fn start(recording: &Recording, scenario: &Scenario) -> io::Result<(Self, Shooter)> {
        let direct = recording.file.metadata().is_ok_and(|known| !known.is_file());
        let mut part = recording.file.clone().into_os_string();
        part.push(".part");
        let path = if direct { recording.file.clone() } else { PathBuf::from(part) };
        let out = if direct { File::options().write(true).open(&path)? } else { File::create(&path)? };
        let application = concat!("windtunnel ", env!("CARGO_PKG_VERSION"));
        let mut writer = PcapngWriter::new(BufWriter::new(out), application)?;
        for end in &recording.ends {
            let interface = Interface { name: &end.name(scenario), link_type: LinkType::Raw, snap_len: 0 };
            writer.add_interface(&interface)?;
        }
        let (shots, receiver) = sync_channel(MOST_WAITING.0);
        let (waiting, missed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counter = Arc::clone(&waiting);
        let target = (!direct).then(|| recording.file.clone());
        let thread = std::thread::Builder::new().name("wt-record".to_owned()).spawn(move || {
            let written = write(writer, &receiver, &counter);
            if written.is_err() && target.is_some() {
                // Half a recording is none.
                let _ = std::fs::remove_file(&path);
            }
            let written = written?;
            if let Some(target) = target {
                std::fs::rename(&path, target)?;
            }
            Ok(written)
        })?;
        let wall_ns = u64::try_from(wt_sys::clock::unix_us()).unwrap_or(0).saturating_mul(1000);
        let epoch_ns = wall_ns.saturating_sub(wt_sys::clock::monotonic_ns());
        let shooter = Shooter { shots, waiting, missed: Arc::clone(&missed), epoch_ns };
        Ok((Self { file: recording.file.clone(), thread, missed }, shooter))
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Waits until everything is written; the engine must have ended.
    pub(crate) fn finish(self) -> io::Result<RecordingCounts> {
        let packets = self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the writer died")))?;
        Ok(RecordingCounts { packets, missed: self.missed.load(Relaxed) })
    }
}

/// Packets in the order of time, as far as they are known.
#[derive(PartialEq, Eq)]
struct Late(u64, u64, Shot);

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

fn write(
    mut writer: PcapngWriter<BufWriter<File>>,
    shots: &Receiver<(u64, Shot)>,
    waiting: &AtomicU64,
) -> io::Result<u64> {
    let (mut held, mut newest, mut number) = (BinaryHeap::<Reverse<Late>>::new(), 0, 0);
    let mut put = |Late(wall, _, shot): Late| {
        waiting.fetch_sub(shot.bytes.len() as u64, Relaxed);
        writer.write(&CapturedPacket {
            interface: shot.end,
            at: Duration::from_nanos(wall),
            direction: if shot.inbound { Direction::Inbound } else { Direction::Outbound },
            original_len: shot.bytes.len(),
            bytes: &shot.bytes,
        })
    };
    while let Ok((wall, shot)) = shots.recv() {
        newest = newest.max(wall);
        held.push(Reverse(Late(wall, number, shot)));
        number += 1;
        while held.peek().is_some_and(|first| first.0.0 + REORDER_NS < newest) {
            if let Some(Reverse(first)) = held.pop() {
                put(first)?;
            }
        }
    }
    while let Some(Reverse(first)) = held.pop() {
        put(first)?;
    }
    writer.finish()?;
    Ok(number)
}

/// Whether a file can be recorded into: its folder is there.
///
/// # Errors
/// What is wrong with it.
pub fn check_target(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.metadata() {
        Ok(known) if known.is_dir() && !file.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::NotADirectory, "is a folder, or lies in none")),
        Err(error) => Err(error),
    }
}
