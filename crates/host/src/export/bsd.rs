use super::file::{ExportFile, FileDraft, Files};
use super::item::{Item, ItemPlace, RouteItem};
use crate::knob::Value;
use std::collections::BTreeMap;

/// Files in the making.
#[derive(Default)]
struct Bsd {
    sysctl: BTreeMap<&'static str, String>,
    loader: BTreeMap<String, String>,
    shell: Vec<String>,
    made: FileDraft,
}

impl Bsd {
    fn set(&mut self, name: &'static str, value: impl ToString) {
        self.sysctl.insert(name, value.to_string());
    }

    fn files(self, shell: &str, interface: &str) -> Files {
        let mut files = Vec::new();
        let body = |lines: Vec<String>| format!("# Written by windtunnel settings export.\n{}\n", lines.join("\n"));
        if !self.sysctl.is_empty() {
            let lines = self.sysctl.iter().map(|(name, value)| format!("{name}={value}")).collect();
            files.push(ExportFile { path: "/etc/sysctl.conf".to_owned(), content: body(lines) });
        }
        if !self.loader.is_empty() {
            let lines = self.loader.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            files.push(ExportFile { path: "/boot/loader.conf".to_owned(), content: body(lines) });
        }
        if !self.shell.is_empty() {
            let mut lines = vec![format!("interface=${{1:-{interface}}}  # it has another name there")];
            let mut seen = std::collections::BTreeSet::new();
            lines.extend(self.shell.into_iter().filter(|line| seen.insert(line.clone())));
            let content = format!("#!/bin/sh\n{}", body(lines));
            files.push(ExportFile { path: shell.to_owned(), content });
        }
        (files, self.made.skipped)
    }

    /// A route's value that holds for all routes elsewhere.
    fn note_route(&mut self, item: &Item) {
        if matches!(&item.place, ItemPlace::Route(route) if !route.is_default()) {
            self.made.skip(item, "it holds for every connection there: there are no such values of routes");
        }
    }
}

fn bit(item: &Item) -> u8 {
    u8::from(!item.is("off"))
}

fn millis(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000)
}

/// # Source
/// FreeBSD's tcp(4), inet(4), mod_cc(4), loader.conf(5), route(8); initcwnd_segments counts segments.
pub(super) fn freebsd(items: &[Item]) -> Files {
    let mut bsd = Bsd::default();
    for item in items {
        freebsd_item(item, &mut bsd);
    }
    bsd.files("windtunnel-freebsd.sh", "em0")
}

/// What FreeBSD's connections begin with for receiving and for sending, bytes.
///
/// # Source
/// FreeBSD sys/netinet/tcp_usrreq.c: `tcp_recvspace`, `tcp_sendspace`.
const RECVSPACE: u64 = 65_536;
const SENDSPACE: u64 = 32_768;

fn freebsd_item(item: &Item, bsd: &mut Bsd) {
    match (item.key, &item.value) {
        ("initcwnd", Value::Number(segments)) => {
            bsd.set("net.inet.tcp.initcwnd_segments", segments);
            bsd.note_route(item);
        }
        ("cc", Value::Word(name)) => freebsd_cc(item, name, bsd),
        ("sack", _) => bsd.set("net.inet.tcp.sack.enable", bit(item)),
        ("window-scaling" | "timestamps", _) => freebsd_1323(item, bsd),
        ("ecn", Value::Word(word)) => match word.as_str() {
            "on" => bsd.set("net.inet.tcp.ecn.enable", 1),
            "off" => bsd.set("net.inet.tcp.ecn.enable", 0),
            "passive" => bsd.set("net.inet.tcp.ecn.enable", 2),
            _ => bsd.made.skip(item, "tcp(4) has no such value of ecn.enable"),
        },
        ("mtu-probing", _) => bsd.set("net.inet.tcp.pmtud_blackhole_detection", bit(item)),
        ("pmtud", _) => bsd.set("net.inet.tcp.path_mtu_discovery", bit(item)),
        ("base-mss", Value::Number(mss)) => bsd.set("net.inet.tcp.pmtud_blackhole_mss", mss),
        ("ttl", Value::Number(ttl)) => {
            bsd.set("net.inet.ip.ttl", ttl);
            bsd.note_route(item);
        }
        // What connections begin with bounds them as long as it isn't grown: a smaller maximum alone would change nothing.
        ("rwin", Value::Number(window)) => {
            bsd.set("net.inet.tcp.recvspace", window.min(&RECVSPACE));
            bsd.set("net.inet.tcp.recvbuf_max", window);
        }
        ("tcp-rmem", Value::Three([_, _, greatest])) => bsd.set("net.inet.tcp.recvbuf_max", greatest),
        ("sndbuf", Value::Number(size)) => {
            bsd.set("net.inet.tcp.sendspace", size.min(&SENDSPACE));
            bsd.set("net.inet.tcp.sendbuf_max", size);
        }
        ("tcp-wmem", Value::Three([_, _, greatest])) => bsd.set("net.inet.tcp.sendbuf_max", greatest),
        ("rmem-max" | "wmem-max", Value::Number(size)) => bsd.set("kern.ipc.maxsockbuf", size),
        ("quickack", Value::Word(_)) => {
            bsd.set("net.inet.tcp.delayed_ack", u8::from(item.is("off")));
            bsd.note_route(item);
        }
        ("offload-tso", _) => bsd.set("net.inet.tcp.tso", bit(item)),
        ("moderate-rcvbuf", _) => bsd.set("net.inet.tcp.recvbuf_auto", bit(item)),
        ("min-snd-mss", Value::Number(mss)) => bsd.set("net.inet.tcp.minmss", mss),
        ("no-metrics-save", _) => bsd.set("net.inet.tcp.hostcache.enable", u8::from(item.is("off"))),
        ("keepalive-time", Value::Number(seconds)) => bsd.set("net.inet.tcp.keepidle", millis(*seconds)),
        ("keepalive-intvl", Value::Number(seconds)) => bsd.set("net.inet.tcp.keepintvl", millis(*seconds)),
        ("keepalive-probes", Value::Number(count)) => bsd.set("net.inet.tcp.keepcnt", count),
        ("fin-timeout", Value::Number(seconds)) => bsd.set("net.inet.tcp.finwait2_timeout", millis(*seconds)),
        ("syncookies", Value::Number(level)) => bsd.set("net.inet.tcp.syncookies", u64::from(*level > 0)),
        ("somaxconn", Value::Number(count)) => bsd.set("kern.ipc.soacceptqueue", count),
        ("rto-min", Value::Number(millis)) => {
            bsd.set("net.inet.tcp.rexmit_min", millis);
            bsd.note_route(item);
        }
        ("mtu", Value::Number(mtu)) => match &item.place {
            ItemPlace::Route(route) => {
                bsd.shell.push(route_command(route, *mtu));
            }
            _ => bsd.shell.push(format!("ifconfig \"$interface\" mtu {mtu}")),
        },
        ("mss", _) => bsd
            .made
            .skip(item, "the MSS follows from the MTU; net.inet.tcp.mssdflt holds only where no MSS option comes"),
        _ => bsd.made.skip(item, "FreeBSD has no documented setting for it"),
    }
}

/// A route's MTU. One that is there is changed; one that we would add is added.
fn route_command(route: &RouteItem, mtu: u64) -> String {
    let family = if route.route.is_v6() { "-inet6 " } else { "" };
    if route.is_default() {
        return format!("route change {family}default -mtu {mtu}");
    }
    let change = format!("route change {family}-net {} -mtu {mtu}", route.network);
    match route.gateway {
        Some(gateway) => format!("{change} || route add {family}-net {} {gateway} -mtu {mtu}", route.network),
        None => change,
    }
}

/// Window scaling and timestamps are one switch.
fn freebsd_1323(item: &Item, bsd: &mut Bsd) {
    let value = bit(item).to_string();
    match bsd.sysctl.get("net.inet.tcp.rfc1323") {
        Some(other) if *other != value => {
            bsd.sysctl.remove("net.inet.tcp.rfc1323");
            bsd.made.skip(item, "window scaling and timestamps are one switch there (net.inet.tcp.rfc1323)");
        }
        _ => bsd.set("net.inet.tcp.rfc1323", value),
    }
}

/// Modules of mod_cc(4). Ours are named after them, with what they are like behind an `@`.
fn freebsd_cc(item: &Item, name: &str, bsd: &mut Bsd) {
    let plain = name.strip_prefix("wt_").unwrap_or(name);
    let (base, like) = plain.split_once(['@', '_']).unwrap_or((plain, ""));
    let module = match base {
        "reno" | "newreno" => "newreno",
        "cubic" | "htcp" | "vegas" | "dctcp" | "cdg" | "chd" | "hd" => base,
        "bbr" => {
            bsd.loader.insert("tcp_bbr_load".to_owned(), "YES".to_owned());
            bsd.set("net.inet.tcp.functions_default", "bbr");
            return;
        }
        _ => return bsd.made.skip(item, "FreeBSD has no such congestion control"),
    };
    // Their thresholds are ticks of this clock.
    if let Some(hz) = ["1000", "100"].iter().find(|hz| like.ends_with(&format!("hz{hz}"))) {
        bsd.loader.insert("kern.hz".to_owned(), (*hz).to_owned());
    }
    bsd.loader.insert(format!("cc_{module}_load"), "YES".to_owned());
    bsd.set("net.inet.tcp.cc.algorithm", module);
}

/// # Source
/// macOS's `sysctl net.inet` as Apple's xnu declares it (bsd/netinet), networksetup(8).
pub(super) fn macos(items: &[Item]) -> Files {
    let mut bsd = Bsd::default();
    for item in items {
        macos_item(item, &mut bsd);
    }
    bsd.files("windtunnel-macos.sh", "en0")
}

fn macos_item(item: &Item, bsd: &mut Bsd) {
    match (item.key, &item.value) {
        ("sack", _) => bsd.set("net.inet.tcp.sack", bit(item)),
        ("window-scaling" | "timestamps", _) => {
            bsd.made.skip(item, "macOS always has them (net.inet.tcp.rfc1323 is gone)")
        }
        ("mtu-probing", _) => bsd.set("net.inet.tcp.pmtud_blackhole_detection", bit(item)),
        ("pmtud", _) => bsd.set("net.inet.tcp.path_mtu_discovery", bit(item)),
        ("ttl", Value::Number(ttl)) => {
            bsd.set("net.inet.ip.ttl", ttl);
            bsd.note_route(item);
        }
        ("rwin", Value::Number(window)) => bsd.set("net.inet.tcp.autorcvbufmax", window),
        ("tcp-rmem", Value::Three([_, _, greatest])) => bsd.set("net.inet.tcp.autorcvbufmax", greatest),
        ("sndbuf", Value::Number(size)) => bsd.set("net.inet.tcp.autosndbufmax", size),
        ("tcp-wmem", Value::Three([_, _, greatest])) => bsd.set("net.inet.tcp.autosndbufmax", greatest),
        ("rmem-max" | "wmem-max", Value::Number(size)) => bsd.set("kern.ipc.maxsockbuf", size),
        ("ecn", Value::Word(word)) => {
            bsd.set("net.inet.tcp.ecn_initiate_out", u8::from(word == "on"));
            bsd.set("net.inet.tcp.ecn_negotiate_in", u8::from(word != "off"));
        }
        ("keepalive-time", Value::Number(seconds)) => bsd.set("net.inet.tcp.keepidle", millis(*seconds)),
        ("keepalive-intvl", Value::Number(seconds)) => bsd.set("net.inet.tcp.keepintvl", millis(*seconds)),
        ("keepalive-probes", Value::Number(count)) => bsd.set("net.inet.tcp.keepcnt", count),
        ("somaxconn", Value::Number(count)) => bsd.set("kern.ipc.somaxconn", count),
        ("min-snd-mss", Value::Number(mss)) => bsd.set("net.inet.tcp.minmss", mss),
        ("mtu", Value::Number(mtu)) => match &item.place {
            ItemPlace::Route(route) => bsd.shell.push(route_command(route, *mtu)),
            _ => bsd.shell.push(format!("networksetup -setMTU \"$interface\" {mtu}")),
        },
        ("initcwnd" | "initrwnd", _) => bsd.made.skip(item, "macOS has no setting for it"),
        ("mss", _) => bsd
            .made
            .skip(item, "the MSS follows from the MTU; net.inet.tcp.mssdflt holds only where no MSS option comes"),
        _ => bsd.made.skip(item, "macOS has no documented setting for it"),
    }
}
