//! What routers said a moment ago, from one run to the next: a router that rations what it says may have spent its only
//! word on the run before, and looks like a black hole then.
//!
//! A small file of the user's, in which nothing older than some seconds counts. Where it can't be written, nothing is
//! remembered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;
use wt_units::UserFolder;

/// So long it counts, µs: most that ration say something once a second.
const LASTING_US: i64 = 10_000_000;
/// No more is remembered.
const MOST: usize = 64;
/// A longer file isn't ours.
const LONGEST: u64 = 64 << 10;
const FILE: &str = "told-mtus";

/// The path MTU that a router named, and when, by target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToldMtus(BTreeMap<IpAddr, (i64, u16)>);

impl ToldMtus {
    /// What the last runs left, and where it stands.
    pub(super) fn load() -> (Self, Option<PathBuf>) {
        let file = folder().map(|folder| folder.join(FILE));
        let short = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() < LONGEST);
        let text = file.as_ref().filter(|file| short(file)).and_then(|file| std::fs::read_to_string(file).ok());
        (Self::read(&text.unwrap_or_default(), wt_sys::clock::unix_us()), file)
    }

    fn read(text: &str, now: i64) -> Self {
        let entry = |line: &str| {
            let mut words = line.split(' ');
            let (address, at, mtu) =
                (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            // The clock may have been set meanwhile.
            (now - LASTING_US..=now).contains(&at).then_some((address, (at, mtu)))
        };
        Self(text.lines().filter_map(entry).take(MOST).collect())
    }

    /// What a router named on the way to a target a moment ago.
    pub(super) fn of(&self, target: IpAddr) -> Option<u16> {
        self.0.get(&target).map(|(_, mtu)| *mtu)
    }

    /// A router has just named it.
    pub(super) fn told(&mut self, target: IpAddr, mtu: u16, now: i64) {
        self.0.insert(target, (now, mtu));
    }

    /// Leaves it to the next run.
    pub(super) fn store(&self, file: Option<PathBuf>) {
        let (Some(file), false) = (file, self.0.is_empty()) else { return };
        // Whole, or not at all: two runs may end at once.
        let own = file.with_extension(std::process::id().to_string());
        if std::fs::write(&own, self.text()).is_err() || std::fs::rename(&own, &file).is_err() {
            let _ = std::fs::remove_file(&own);
        }
    }

    fn text(&self) -> String {
        let mut lines: Vec<_> = self.0.iter().collect();
        lines.sort_by_key(|(_, (at, _))| std::cmp::Reverse(*at));
        lines.iter().take(MOST).fold(String::new(), |mut text, (address, (at, mtu))| {
            let _ = writeln!(text, "{address} {at} {mtu}");
            text
        })
    }
}

/// The user's folder of state, or where that can't be written, one that is only his among what is temporary.
fn folder() -> Option<PathBuf> {
    let state = UserFolder::State.path(|name| std::env::var_os(name)).map(|state| state.join("windtunnel"));
    let us = wt_sys::process::effective_uid();
    let writable = |folder: &PathBuf| {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.is_ok() && std::fs::metadata(folder).is_ok_and(|data| data.uid() == us)
    };
    if let Some(state) = state.filter(writable) {
        return Some(state);
    }
    let shared = std::env::temp_dir().join(format!("windtunnel-{us}"));
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&shared);
    // Anybody could have put a link or a folder of his own there.
    let ours = |data: std::fs::Metadata| data.is_dir() && data.uid() == us && data.mode() & 0o077 == 0;
    std::fs::symlink_metadata(&shared).is_ok_and(ours).then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_counts_for_some_seconds_and_nonsense_never() {
        let (target, now) = (IpAddr::from([192, 0, 2, 7]), 1_000_000_000);
        let mut told = ToldMtus::default();
        told.told(target, 1400, now);
        let text = told.text();
        assert_eq!(ToldMtus::read(&text, now + LASTING_US).of(target), Some(1400));
        for later in [now + LASTING_US + 1, now - 1] {
            assert_eq!(ToldMtus::read(&text, later), ToldMtus::default());
        }
        for nonsense in ["", "\u{0}", "192.0.2.7", "192.0.2.7 x 1400", "192.0.2.7 1000000000 99999", "a b c d"] {
            assert_eq!(ToldMtus::read(nonsense, now), ToldMtus::default(), "{nonsense:?}");
        }
    }

    #[test]
    fn no_more_is_kept_than_one_screen_of_it() {
        let mut told = ToldMtus::default();
        (0..200u8).for_each(|last| told.told(IpAddr::from([192, 0, 2, last]), 1400, i64::from(last)));
        let read = ToldMtus::read(&told.text(), 200);
        assert_eq!((read.0.len(), read.of(IpAddr::from([192, 0, 2, 199]))), (MOST, Some(1400)));
    }
}
