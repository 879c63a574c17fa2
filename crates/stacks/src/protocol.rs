//! The stack adapter protocol, version 1: what an adapter is told on its command line, and the lines it writes.
//!
//! An adapter is a program. Started as `ADAPTER --describe` it writes one line of JSON, a [`Description`], and ends.
//! Otherwise it
//!
//! 1. makes the TUN device `--device` in the network namespace in which it was started, and brings its stack up behind it with
//!    the address, MTU and settings that it was told; it needn't set the kernel's side of the device up, nor routes;
//! 2. listens on the local stream socket `--listen`, then writes a [`Ready`] line to its standard output;
//! 3. for each connection to that socket opens one connection of its stack to `--server`, writes the byte [`CONNECTED`] into the
//!    local one when the handshake is done (or closes it when it can't be), and then carries the bytes both ways. An end
//!    of one direction is carried too;
//! 4. when its standard input ends, writes a [`AdapterDone`] line and ends with code 0.
//!
//! A stack that isn't TCP says `far_end` in its description. Its adapter is then also started in the server, as
//! `ADAPTER --far-end ADDRESS:PORT`. There it listens at that address for its own protocol, writes a [`Ready`] line, and carries
//! the bytes of each connection to and from a TCP connection of its own to the same address, until its standard input ends.
//!
//! A setting that the stack doesn't have is named in [`Ready::refused`], never ignored silently.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// What an adapter writes into a local connection when the stack's own stands.
pub const CONNECTED: u8 = b'+';
/// Asks an adapter what it is.
pub const DESCRIBE: &str = "--describe";

/// Makes an adapter the peer of its own connections: `ADAPTER --far-end ADDRESS:PORT`.
pub const FAR_END: &str = "--far-end";

/// What an adapter is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// [`VERSION`].
    pub protocol: u32,
    /// The stack's name.
    pub name: String,
    /// The stack's version.
    pub version: String,
    /// What can be set beyond address, MTU, MSS and window.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether its connections aren't TCP's, so that it needs a peer of its own: the same program, started with [`FAR_END`].
    #[serde(default)]
    pub far_end: bool,
}

/// The adapter can take connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Always true: tells this line from others.
    pub ready: bool,
    /// The stack's name.
    pub name: String,
    /// The stack's version.
    pub version: String,
    /// What was set.
    #[serde(default)]
    pub granted: BTreeMap<String, serde_json::Value>,
    /// Settings that this stack doesn't have, and why.
    #[serde(default)]
    pub refused: Vec<String>,
}

/// The adapter ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterDone {
    /// Always true.
    pub done: bool,
    /// Connections that it opened.
    #[serde(default)]
    pub connections: u64,
    /// Bytes that it carried from the stack to the local sockets.
    #[serde(default)]
    pub bytes_in: u64,
    /// The same the other way.
    #[serde(default)]
    pub bytes_out: u64,
}

/// What an adapter is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// The TUN device to make.
    pub device: String,
    /// The stack's own address.
    pub address: Ipv4Addr,
    /// Where its connections go.
    pub server: SocketAddrV4,
    /// The MTU of its device, bytes.
    pub mtu: u32,
    /// The local socket to listen on.
    pub listen: PathBuf,
    /// The MSS to announce, bytes, if not what follows from the MTU.
    pub mss: Option<u32>,
    /// The receive window, bytes, if not the stack's own.
    pub window: Option<u32>,
    /// Whatever else: `cc=reno`.
    pub options: BTreeMap<String, String>,
}

/// Why an adapter's command line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A flag that isn't known.
    #[error("there is no flag {0}")]
    Unknown(String),
    /// A flag without its value, or with one that is invalid.
    #[error("{0} needs {1}")]
    Value(&'static str, &'static str),
}

impl Arguments {
    /// As a command line.
    #[must_use]
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |flag: &str, value: OsString| args.extend([flag.into(), value]);
        add("--device", self.device.clone().into());
        add("--address", self.address.to_string().into());
        add("--server", self.server.to_string().into());
        add("--mtu", self.mtu.to_string().into());
        add("--listen", self.listen.clone().into());
        for (flag, number) in [("--mss", self.mss), ("--window", self.window)] {
            if let Some(number) = number {
                add(flag, number.to_string().into());
            }
        }
        for (key, value) in &self.options {
            add("--option", format!("{key}={value}").into());
        }
        args
    }

    /// Reads a command line.
    ///
    /// # Errors
    /// [`ArgumentError`].
    pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, ArgumentError> {
        let mut values: BTreeMap<&'static str, OsString> = BTreeMap::new();
        let mut options = BTreeMap::new();
        let mut args = args;
        while let Some(flag) = args.next() {
            const FLAGS: [&str; 8] =
                ["--device", "--address", "--server", "--mtu", "--listen", "--mss", "--window", "--option"];
            let known = FLAGS.into_iter().find(|known| flag == *known);
            let Some(known) = known else {
                return Err(ArgumentError::Unknown(flag.to_string_lossy().into_owned()));
            };
            let value = args.next().ok_or(ArgumentError::Value(known, "a value"))?;
            if known == "--option" {
                let text = value.into_string().unwrap_or_default();
                let (key, value) = text.split_once('=').ok_or(ArgumentError::Value("--option", "KEY=VALUE"))?;
                options.insert(key.to_owned(), value.to_owned());
            } else {
                values.insert(known, value);
            }
        }
        Ok(Self {
            device: text(&values, "--device", "a device's name")?,
            address: text(&values, "--address", "an IPv4 address")?,
            server: text(&values, "--server", "an IPv4 address and a port")?,
            mtu: text(&values, "--mtu", "a number of bytes")?,
            listen: values.get("--listen").ok_or(ArgumentError::Value("--listen", "a path"))?.into(),
            mss: number(&values, "--mss")?,
            window: number(&values, "--window")?,
            options,
        })
    }
}

fn text<T: std::str::FromStr>(
    values: &BTreeMap<&'static str, OsString>,
    flag: &'static str,
    what: &'static str,
) -> Result<T, ArgumentError> {
    let text = values.get(flag).and_then(|value| value.to_str());
    text.and_then(|text| text.parse().ok()).ok_or(ArgumentError::Value(flag, what))
}

fn number(values: &BTreeMap<&'static str, OsString>, flag: &'static str) -> Result<Option<u32>, ArgumentError> {
    if values.contains_key(flag) { text(values, flag, "a number of bytes").map(Some) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> Arguments {
        Arguments {
            device: "wts0".to_owned(),
            address: Ipv4Addr::new(198, 18, 0, 2),
            server: SocketAddrV4::new(Ipv4Addr::new(198, 19, 0, 1), 7411),
            mtu: 1500,
            listen: PathBuf::from("/tmp/x"),
            mss: Some(536),
            window: None,
            options: [("cc".to_owned(), "reno".to_owned())].into(),
        }
    }

    #[test]
    fn a_command_line_reads_back() {
        for arguments in [arguments(), Arguments { mss: None, window: Some(8192), ..arguments() }] {
            assert_eq!(Arguments::parse(arguments.to_args().into_iter()), Ok(arguments));
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let parse = |args: &[&str]| Arguments::parse(args.iter().map(OsString::from)).unwrap_err().to_string();
        assert!(parse(&["--colour", "red"]).contains("--colour"));
        assert!(parse(&["--device", "wts0", "--address", "here"]).contains("--address"));
        assert!(parse(&["--option", "cc"]).contains("KEY=VALUE"));
        assert!(parse(&["--mtu"]).contains("--mtu"));
        let mut args = arguments().to_args();
        args.drain(6..8);
        assert!(Arguments::parse(args.into_iter()).unwrap_err().to_string().contains("--mtu"));
    }
}
