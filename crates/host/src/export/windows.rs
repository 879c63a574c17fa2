use super::file::{ExportFile, FileDraft, Files};
use super::item::{Item, ItemPlace};
use crate::knob::Value;
use crate::read::Survey;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PARAMETERS: &str = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
/// Stands for the interface, which has another name on every machine.
const INTERFACE: &str = "{INTERFACE-GUID}";

/// Values of the registry; those of the interface apart.
#[derive(Default)]
struct Values {
    global: BTreeMap<&'static str, u64>,
    interface: BTreeMap<&'static str, u64>,
}

impl Values {
    fn set(&mut self, name: &'static str, value: u64) {
        self.global.insert(name, value);
    }

    fn set_interface(&mut self, name: &'static str, value: u64) {
        self.interface.insert(name, value);
    }
}

/// # Source
/// Microsoft's "TCP/IP and NBT configuration parameters": Windows 2000, XP and 2003 under `Tcpip\Parameters` and its
/// interfaces, all values `REG_DWORD`. Vista and later ignore the window and the options of RFC 1323.
pub(super) fn registry(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let mut values = Values::default();
    let mut options_1323 = options_now(survey);
    let mut has_1323 = false;
    for item in items {
        let number = item.number();
        match (item.key, number) {
            ("mtu", Some(mtu)) => values.set_interface("MTU", mtu),
            ("rwin", Some(window)) => {
                values.set("TcpWindowSize", window);
                values.set("GlobalMaxTcpWindowSize", window);
            }
            ("ttl", Some(ttl)) => values.set("DefaultTTL", ttl),
            ("pmtud", None) => values.set("EnablePMTUDiscovery", u64::from(item.is("on"))),
            ("mtu-probing", None) => values.set("EnablePMTUBHDetect", u64::from(!item.is("off"))),
            ("sack", None) => values.set("SackOpts", u64::from(item.is("on"))),
            ("window-scaling", None) => {
                (options_1323.0, has_1323) = (item.is("on"), true);
            }
            ("timestamps", None) => {
                (options_1323.1, has_1323) = (!item.is("off"), true);
            }
            ("syn-retries", Some(count)) => values.set("TcpMaxConnectRetransmissions", count),
            ("retries2", Some(count)) => values.set("TcpMaxDataRetransmissions", count),
            ("reordering", Some(count @ 1..=3)) => values.set("TcpMaxDupAcks", count),
            ("keepalive-time", Some(seconds)) => values.set("KeepAliveTime", milliseconds(seconds)),
            ("keepalive-intvl", Some(seconds)) => values.set("KeepAliveInterval", milliseconds(seconds)),
            ("mss", _) => made.skip(item, "the registry has no MSS: it follows from the MTU (MTU - 40)"),
            ("initcwnd", _) => made.skip(item, "no value of the registry sets it; see --to windows-powershell"),
            _ => made.skip(item, "the registry has no documented value for it"),
        }
        if let (ItemPlace::Route(route), true) = (&item.place, known(&values, item.key))
            && !route.is_default()
        {
            made.skip(item, "the registry knows no routes: it holds for all of them there");
        }
    }
    if has_1323 {
        values.set("Tcp1323Opts", u64::from(options_1323.0) | u64::from(options_1323.1) << 1);
    }
    (registry_file(&values).into_iter().collect(), made.skipped)
}

fn milliseconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000).min(u64::from(u32::MAX))
}

/// Whether a setting became a value.
fn known(values: &Values, key: &str) -> bool {
    let name = match key {
        "mtu" => return values.interface.contains_key("MTU"),
        "rwin" => "TcpWindowSize",
        "ttl" => "DefaultTTL",
        _ => return false,
    };
    values.global.contains_key(name)
}

/// Window scaling and timestamps share a value, so the one that isn't named is taken as it is here.
fn options_now(survey: &Survey) -> (bool, bool) {
    let on = |name: &str| survey.snapshot.sysctls.get(name).is_none_or(|text| text.trim() != "0");
    (on("net.ipv4.tcp_window_scaling"), on("net.ipv4.tcp_timestamps"))
}

fn registry_file(values: &Values) -> Option<ExportFile> {
    if values.global.is_empty() && values.interface.is_empty() {
        return None;
    }
    // The first line and the ends of lines are what regedit asks for.
    let mut text =
        "Windows Registry Editor Version 5.00\r\n\r\n; Written by windtunnel settings export.\r\n".to_owned();
    let mut key = |name: &str, values: &BTreeMap<&str, u64>| {
        let _ = write!(text, "[{name}]\r\n");
        for (name, number) in values {
            let _ = write!(text, "\"{name}\"=dword:{number:08x}\r\n");
        }
        text.push_str("\r\n");
    };
    if !values.global.is_empty() {
        key(PARAMETERS, &values.global);
    }
    if !values.interface.is_empty() {
        key(&format!(r"{PARAMETERS}\Interfaces\{INTERFACE}"), &values.interface);
    }
    Some(ExportFile { path: "windtunnel.reg".to_owned(), content: text })
}

const MSTCP: &str = r"HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\VxD\MSTCP";
/// The binding of TCP/IP to an adapter, which has another number on every machine.
const BINDING: &str = r"HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\Class\NetTrans\0000";

/// # Source
/// Microsoft Knowledge Base Q158474 (values of `VxD\MSTCP`, strings in Windows 98 and ME), Q188307 (SACK). The MTU is of the
/// binding in `Class\NetTrans` whose `DriverDesc` is TCP/IP. A `-` deletes a value: the way back is the first file's.
pub(super) fn registry_98(items: &[Item], survey: &Survey) -> Files {
    let mut made = FileDraft::default();
    let (mut mstcp, mut binding) = (BTreeMap::new(), BTreeMap::new());
    let (mut options_1323, mut has_1323) = (options_now(survey), false);
    let switch = |on: bool| u64::from(on);
    for item in items {
        match (item.key, item.number()) {
            ("mtu", Some(mtu)) => drop(binding.insert("MaxMTU", mtu)),
            ("rwin", Some(window)) => drop(mstcp.insert("DefaultRcvWindow", window)),
            ("ttl", Some(ttl)) => drop(mstcp.insert("DefaultTTL", ttl)),
            ("pmtud", None) => drop(mstcp.insert("PMTUDiscovery", switch(item.is("on")))),
            ("mtu-probing", None) => drop(mstcp.insert("PMTUBlackHoleDetect", switch(!item.is("off")))),
            ("sack", None) => drop(mstcp.insert("SackOpts", switch(item.is("on")))),
            ("window-scaling", None) => (options_1323.0, has_1323) = (item.is("on"), true),
            ("timestamps", None) => (options_1323.1, has_1323) = (!item.is("off"), true),
            ("reordering", Some(count @ 1..=3)) => drop(mstcp.insert("MaxDupAcks", count)),
            ("mss", _) => made.skip(item, "the registry has no MSS: it follows from the MTU (MTU - 40)"),
            _ => made.skip(item, "the registry of Windows 98 has no documented value for it"),
        }
    }
    if has_1323 {
        mstcp.insert("Tcp1323Opts", u64::from(options_1323.0) | u64::from(options_1323.1) << 1);
    }
    if mstcp.is_empty() && binding.is_empty() {
        return (Vec::new(), made.skipped);
    }
    let file = |path: &str, note: &str, value: &dyn Fn(u64) -> String| {
        let mut text = format!("REGEDIT4\r\n\r\n; Written by windtunnel settings export. {note}\r\n");
        for (key, values) in [(MSTCP, &mstcp), (BINDING, &binding)].iter().filter(|(_, values)| !values.is_empty()) {
            let _ = write!(text, "[{key}]\r\n");
            for (name, number) in values.iter() {
                let _ = write!(text, "\"{name}\"={}\r\n", value(*number));
            }
            text.push_str("\r\n");
        }
        ExportFile { path: path.to_owned(), content: text }
    };
    let note = "Before you merge it, export both keys with regedit: that file is the way back. \
                0000 is the binding whose DriverDesc is TCP/IP; look which it is. It holds after the next start.";
    let made_now = file("windtunnel-98.reg", note, &|number| format!("\"{number}\""));
    let back =
        "It deletes these values, so that the system's own hold again; if there were others, merge what you exported.";
    let files = vec![made_now, file("windtunnel-98-undo.reg", back, &|_| "-".to_owned())];
    (files, made.skipped)
}

/// # Source
/// Microsoft Learn: Set-NetTCPSetting, Set-NetIPInterface, Set-NetIPv4Protocol, Enable-NetAdapterLso,
/// Enable-NetAdapterRsc.
pub(super) fn powershell(items: &[Item]) -> Files {
    let mut made = FileDraft::default();
    let (mut tcp, mut lines) = (BTreeMap::new(), Vec::new());
    for item in items {
        if let ItemPlace::Route(route) = &item.place
            && !route.is_default()
            && matches!(item.key, "mtu" | "ttl" | "initcwnd" | "cc" | "rto-min" | "ecn")
        {
            made.skip(item, "no cmdlet sets it for one target: it holds for all of them there");
        }
        let enabled = if item.is("off") { "Disabled" } else { "Enabled" };
        match (item.key, &item.value) {
            ("initcwnd", Value::Number(segments @ 2..=64)) if segments.is_multiple_of(2) => {
                parameter(&mut tcp, &mut made, item, "InitialCongestionWindowMss", segments)
            }
            ("initcwnd", _) => made.skip(item, "Set-NetTCPSetting takes even numbers from 2 to 64 segments"),
            ("cc", Value::Word(name)) => match provider(name) {
                Some(provider) => parameter(&mut tcp, &mut made, item, "CongestionProvider", provider),
                None => made.skip(item, "Set-NetTCPSetting has no such provider"),
            },
            ("ecn", Value::Word(word)) if word == "on" || word == "off" => {
                parameter(&mut tcp, &mut made, item, "EcnCapability", enabled)
            }
            ("timestamps", Value::Word(_)) => parameter(&mut tcp, &mut made, item, "Timestamps", enabled),
            ("slow-start-after-idle", Value::Word(_)) => {
                let word = if item.is("on") { "True" } else { "False" };
                parameter(&mut tcp, &mut made, item, "CwndRestart", word)
            }
            ("rto-min", Value::Number(millis @ 20..=300)) => parameter(&mut tcp, &mut made, item, "MinRtoMs", millis),
            ("rto-min", _) => made.skip(item, "Set-NetTCPSetting takes 20 ms to 300 ms"),
            ("syn-retries", Value::Number(count @ 2..=8)) => {
                parameter(&mut tcp, &mut made, item, "MaxSynRetransmissions", count)
            }
            ("syn-retries", _) => made.skip(item, "Set-NetTCPSetting takes 2 to 8"),
            ("window-scaling", Value::Word(_)) => {
                let word = if item.is("on") { "Normal" } else { "Disabled" };
                parameter(&mut tcp, &mut made, item, "AutoTuningLevelLocal", word)
            }
            ("mtu", Value::Number(mtu)) => {
                lines.push(format!("Set-NetIPInterface -InterfaceAlias $Interface -NlMtuBytes {mtu}"))
            }
            ("ttl", Value::Number(ttl)) => {
                let v6 = matches!(&item.place, ItemPlace::Route(route) if route.route.is_v6());
                lines.push(format!("Set-NetIPv{}Protocol -DefaultHopLimit {ttl}", if v6 { 6 } else { 4 }))
            }
            ("neigh-gc-thresh3", Value::Number(count)) => {
                lines.push(format!("Set-NetIPv4Protocol -NeighborCacheLimitEntries {count}"))
            }
            ("neigh6-gc-thresh3", Value::Number(count)) => {
                lines.push(format!("Set-NetIPv6Protocol -NeighborCacheLimitEntries {count}"))
            }
            ("offload-tso", _) => lines
                .push(format!("{}-NetAdapterLso -Name $Interface", if item.is("on") { "Enable" } else { "Disable" })),
            ("offload-lro", _) => lines
                .push(format!("{}-NetAdapterRsc -Name $Interface", if item.is("on") { "Enable" } else { "Disable" })),
            ("rwin", _) => made.skip(item, "Windows sizes the window itself; only AutoTuningLevelLocal bounds it"),
            ("sack", _) => made.skip(item, "Windows since Vista always has selective acknowledgements"),
            _ => made.skip(item, "no cmdlet sets it"),
        }
    }
    if !tcp.is_empty() {
        // The template that connections with an RTT above 10 ms use; only the custom one can be changed on clients.
        let words: Vec<String> = tcp.iter().map(|(name, value)| format!("-{name} {value}")).collect();
        lines.insert(0, format!("Set-NetTCPSetting -SettingName $Template {}", words.join(" ")));
    }
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    if lines.is_empty() {
        return (Vec::new(), made.skipped);
    }
    let mut text = "# Written by windtunnel settings export. Run it as administrator.\r\nparam([string]$Interface = \"Ethernet\", [string]$Template = \"InternetCustom\")\r\n".to_owned();
    for line in lines {
        let _ = write!(text, "{line}\r\n");
    }
    (vec![ExportFile { path: "windtunnel.ps1".to_owned(), content: text }], made.skipped)
}

/// A parameter of Set-NetTCPSetting, which may be given once only, while IPv4 and IPv6 may differ here.
fn parameter(
    all: &mut BTreeMap<&'static str, String>,
    made: &mut FileDraft,
    item: &Item,
    name: &'static str,
    value: impl ToString,
) {
    let value = value.to_string();
    match all.get(name) {
        Some(first) if *first != value => made.skip(item, &format!("{name} is {first} already; there is just one")),
        _ => drop(all.insert(name, value)),
    }
}

/// Names of Set-NetTCPSetting's congestion providers.
fn provider(name: &str) -> Option<&'static str> {
    match name {
        "cubic" => Some("CUBIC"),
        "dctcp" => Some("DCTCP"),
        "reno" => Some("NewReno"),
        _ => None,
    }
}
