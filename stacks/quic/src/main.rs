//! QUIC behind a stack adapter: carries bytes between local stream sockets and QUIC connections over a TUN device.
//!
//! The stack is quinn's protocol machine, which touches no socket: IPv4 and UDP are written here, onto the device. Its remote end
//! is this program, too: started with `--far-end ADDRESS:PORT` it takes QUIC connections there, and carries each to the TCP
//! server of the same address. The protocol is told in docs/guide/stacks.md and crates/stacks/src/protocol.rs.
//!
//! What this leaves out: several streams in one connection and 0-RTT, which QUIC has and the workloads, made for TCP, don't ask
//! for; ECN; certificates that anybody checks.

/// Carrying bytes.
mod carry;
/// Certificates that nobody checks.
mod crypto;
/// What adapters are told and tell: the very file of the program that starts them.
#[path = "../../../crates/stacks/src/protocol.rs"]
#[allow(dead_code, reason = "the other side uses the rest")]
mod protocol;
/// Where datagrams come from and go to.
mod wire;

use carry::{Carrier, Role};
use protocol::{Arguments, DESCRIBE, Description, FAR_END, Ready, VERSION};
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{ClientConfig, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::Arc;
use wire::{DeviceWire, SocketWire, Wire};

const NAME: &str = "quic";
/// IPv4 and UDP.
const HEADERS: u32 = 28;
/// What QUIC's datagrams must at least fit into, of UDP payload (RFC 9000 section 14).
const SMALLEST: u32 = 1200;
/// What a sender may have on its way or waiting, bytes: as the kernel's tcp_wmem.
const SEND_WINDOW: u64 = 4 << 20;
/// What an adapter ends with when it can't do what it was told.
const REFUSED: u8 = 3;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    let first = args.peek().and_then(|first| first.to_str()).unwrap_or_default().to_owned();
    let ran = match first.as_str() {
        DESCRIBE => {
            say(&Description {
                protocol: VERSION,
                name: NAME.to_owned(),
                version: version(),
                options: vec!["cc".to_owned()],
                far_end: true,
            });
            Ok(())
        }
        FAR_END => {
            let at = args.nth(1).and_then(|text| text.to_str()?.parse().ok());
            at.ok_or_else(|| format!("{FAR_END} needs ADDRESS:PORT")).and_then(far_end)
        }
        _ => Arguments::parse(args).map_err(|error| error.to_string()).and_then(|arguments| adapter(&arguments)),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr().lock(), "{why}");
            ExitCode::from(REFUSED)
        }
    }
}

/// The version of quinn-proto that is locked.
fn version() -> String {
    let lock = include_str!("../Cargo.lock");
    let at = lock.find("name = \"quinn-proto\"").unwrap_or(0);
    let line = lock[at..].lines().nth(1).unwrap_or_default();
    format!("quinn-proto {}", line.trim_start_matches("version = ").trim_matches('"'))
}

/// One line of JSON for whoever started us.
pub(crate) fn say(line: &impl serde::Serialize) {
    let text = serde_json::to_string(line).unwrap_or_default();
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What both ends have in common.
fn transport(largest: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(u16::try_from(largest).unwrap_or(u16::MAX));
    transport.mtu_discovery_config(Some(discovery)).send_window(SEND_WINDOW);
    transport
}

fn adapter(arguments: &Arguments) -> Result<(), String> {
    let largest = arguments.mtu.saturating_sub(HEADERS).min(65_507);
    if largest < SMALLEST {
        return Err(format!("QUIC needs an MTU of {} bytes at least (RFC 9000 section 14)", SMALLEST + HEADERS));
    }
    let mut transport = transport(largest);
    let mut granted: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    let mut refused = Vec::new();
    granted.insert("mtu".to_owned(), json!(arguments.mtu));
    if arguments.mss.is_some() {
        refused.push("quic has no MSS: the MTU limits its datagrams".to_owned());
    }
    if let Some(window) = arguments.window {
        transport.stream_receive_window(VarInt::from_u32(window)).receive_window(VarInt::from_u32(window));
        granted.insert("rwin".to_owned(), json!(window));
    }
    for (key, value) in &arguments.options {
        match (key.as_str(), value.as_str()) {
            ("cc", "cubic") => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
            ("cc", "reno") => transport.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
            ("cc", "bbr") => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
            ("cc", other) => return Err(format!("quic has no congestion control {other}; it has cubic, reno and bbr")),
            _ => {
                refused.push(format!("quic has no option {key}"));
                continue;
            }
        };
        granted.insert(key.clone(), json!(value));
    }
    let mut config = ClientConfig::new(Arc::new(crypto::client()?));
    config.transport_config(Arc::new(transport));
    let wire = DeviceWire::new(&arguments.device, arguments.address, arguments.server)?;
    let failed = |error: std::io::Error| format!("can't listen on {}: {error}", arguments.listen.display());
    let listener = UnixListener::bind(&arguments.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    say(&Ready { ready: true, name: NAME.to_owned(), version: version(), granted, refused });
    let role = Role::Near { listener, config, server: SocketAddr::V4(arguments.server) };
    serve(role, Wire::Device(wire), largest)
}

/// The other end of every connection: QUIC there, TCP to the server of the same address here.
fn far_end(at: SocketAddrV4) -> Result<(), String> {
    let wire = SocketWire::new(at)?;
    // Datagrams of any MTU: the client says what it takes.
    let largest = 65_507;
    let (certificates, key) = crypto::own()?;
    let config = ServerConfig::with_single_cert(certificates, key).map_err(|error| error.to_string())?;
    let mut config = config;
    config.transport_config(Arc::new(transport(largest)));
    say(&Ready {
        ready: true,
        name: NAME.to_owned(),
        version: version(),
        granted: BTreeMap::new(),
        refused: Vec::new(),
    });
    serve(Role::Far { config, server: SocketAddr::V4(at) }, Wire::Socket(wire), largest)
}

fn serve(role: Role, wire: Wire, largest: u32) -> Result<(), String> {
    let mut carrier = Carrier::new(role, wire, largest)?;
    carrier.run()?;
    say(&carrier.done);
    Ok(())
}
