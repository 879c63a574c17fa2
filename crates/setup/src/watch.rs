//! The connections that pass a device, while they pass.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_flow::{CaptureAnswer, CaptureRequest, Filter, Tracker};
use wt_problem::Problem;
use wt_sys::clock::monotonic_ns;
use wt_sys::watch::{Watch, WatchedPacket, device_name};
use wt_trial::Cancel;

/// How long to wait at most before somebody who cancels is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Which packets are watched, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchRequest {
    /// The device, as `ip link` names it; `any` is all of them.
    pub device: String,
    /// Only these packets, in tcpdump's words.
    pub filter: Option<String>,
    /// So many connections, those with the most payload.
    pub connections: usize,
    /// Ends after this time, in seconds; nothing means when somebody cancels.
    pub time_s: Option<f64>,
    /// Ends after so many packets that the filter takes.
    pub packets: Option<u64>,
}

impl Default for WatchRequest {
    fn default() -> Self {
        Self { device: "any".to_owned(), filter: None, connections: 10_000, time_s: None, packets: None }
    }
}

/// Watches until the time or the packets are over, or somebody cancels; `begun` is called when it begins.
///
/// # Errors
/// A [`Problem`] when packets of the device can't be had.
pub fn watch(request: &WatchRequest, begun: &mut dyn FnMut(), cancel: &Cancel) -> Result<CaptureAnswer, Problem> {
    let filter = request.filter.as_deref().map(str::parse::<Filter>).transpose();
    let filter = filter.map_err(|error| Problem::usage(error.to_string()))?;
    let longest = request.time_s.map(Duration::try_from_secs_f64).transpose();
    let longest =
        longest.map_err(|_| Problem::usage("time_s is out of range: allowed is a number of seconds above 0"))?;
    let mut watch = Watch::open(&request.device).map_err(|error| refused(&request.device, &error))?;
    begun();
    let mut tracker = CaptureRequest { filter, connections: request.connections }.tracker();
    let mut places: HashMap<i32, usize> = HashMap::new();
    let mut devices = Vec::new();
    let begin = monotonic_ns();
    let mut broken = None;
    loop {
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(begin));
        let left = longest.map_or(TICK, |time| time.saturating_sub(passed));
        let enough = |tracker: &Tracker| request.packets.is_some_and(|most| tracker.packets() >= most);
        if enough(&tracker) {
            break;
        }
        // What came before the end is looked at, too.
        let over = cancel.is_cancelled() || left.is_zero();
        let mut seen = 0u32;
        let see = |packet: &WatchedPacket<'_>,
                   tracker: &mut Tracker,
                   places: &mut HashMap<i32, usize>,
                   devices: &mut Vec<i32>| {
            let place = *places.entry(packet.device).or_insert_with(|| {
                devices.push(packet.device);
                devices.len() - 1
            });
            match wt_wire::ip_behind_ethertype(packet.ethertype, packet.bytes) {
                Some(ip) => {
                    let before = packet.bytes.len() - ip.len().min(packet.bytes.len());
                    tracker.packet(place, packet.at_ns, ip, packet.original_len.saturating_sub(before));
                }
                None => tracker.no_ip(),
            }
        };
        // Now and then the clock and the user are looked at, however much comes.
        while seen < 4096
            && !enough(&tracker)
            && watch.receive(&mut |packet: &WatchedPacket<'_>| see(packet, &mut tracker, &mut places, &mut devices))
        {
            seen += 1;
        }
        if over {
            break;
        }
        if seen == 0 {
            broken = watch.broken();
            if broken.is_some() {
                break;
            }
            let _ = wt_sys::poll::wait_readable(&[watch.as_fd()], Some(left.min(TICK)));
        }
    }
    let names: Vec<String> = devices.iter().map(|device| device_name(*device)).collect();
    let broken = broken.as_ref().map(|error| error as &dyn std::fmt::Display);
    tracker.listened_until(u64::try_from(wt_sys::clock::unix_us()).unwrap_or(0).saturating_mul(1000));
    let analysis = tracker.finish(&names);
    Ok(CaptureAnswer::of_device(analysis, &request.device, names, watch.take_drops(), broken))
}

fn refused(device: &str, error: &wt_sys::SysError) -> Problem {
    let message = error.to_string();
    match error.source.kind() {
        std::io::ErrorKind::PermissionDenied => Problem::environment(format!("can't watch {device}: {message}"))
            .because("listening to a device's packets needs CAP_NET_RAW")
            .hint(format!(
                "sudo windtunnel watch {device}; or sudo setcap cap_net_raw+ep $(command -v windtunnel); or analyse a capture"
            )),
        _ => {
            Problem::usage(format!("can't watch {device}: {message}")).hint("ip link lists the devices; any means all")
        }
    }
}
