use crate::checked::{host, key, limited_number, maybe, maybe_time, parsed, url};
use crate::drawn::{PathRequest, scenario};
use crate::error::ApiError;
use crate::runs::{Job, Kind};
use crate::worker::Work;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use wt_prober::first_window::{FirstWindowRequest, UrlRequest};
use wt_prober::mtu::{MtuRequest, ScanRequest};
use wt_prober::trace::TraceRequest;
use wt_setup::lab::TransferRequest;
use wt_trial::Direction;

/// What the server of a lab is called in it.
const SERVER: &str = "server";
/// What fills every first window, of the lab's own server.
const LARGE_FILE: &str = "http://server/bytes/1MB";

/// What is asked of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProbeKind {
    /// All about it: `windtunnel path`
    Path,
    /// The largest packet that gets through: `windtunnel mtu`
    Mtu,
    /// Loss size by size: `windtunnel mtu --scan`
    Scan,
    /// The hops: `windtunnel trace`
    Trace,
    /// How much a server sends before anything is acknowledged: `windtunnel first-window`
    #[serde(rename = "first-window")]
    FirstWindow,
}

/// A path to probe: to a host, or to the server of a path of the lab.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeRequest {
    kind: ProbeKind,
    /// The host, with or without the TCP port for TCP probes, or for `first-window` a URL; needs the token
    #[schema(max_length = 256, example = "example.org:443")]
    target: Option<String>,
    /// Or the server behind a preset's path
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "black-hole")]
    lab: Option<String>,
    /// Or behind a path of one's own
    path: Option<PathRequest>,
    /// The smallest size to scan, bytes
    from: Option<u16>,
    /// The largest size to scan, bytes
    to: Option<u16>,
    /// From one size to the next, bytes
    step: Option<u16>,
}

impl ProbeRequest {
    /// Whether it leaves this machine.
    pub(crate) fn is_live(&self) -> bool {
        self.target.is_some()
    }

    /// The worker's request, which for the lab is run in its client.
    ///
    /// # Errors
    /// [`ApiError`] unless it is said where, and only once.
    pub(crate) fn job(&self) -> Result<Job, ApiError> {
        let sizes = [("from", self.from), ("to", self.to), ("step", self.step)];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| size.is_some() && self.kind != ProbeKind::Scan) {
            return Err(ApiError::bad(format!("{name} is for a scan only")));
        }
        let (work, kept) = match &self.target {
            Some(_) if self.lab.is_some() || self.path.is_some() => {
                return Err(ApiError::bad("a probe goes to a host or to the lab's server, not to both"));
            }
            Some(target) => {
                let (operation, request) = self.probe(self.aim(target)?)?;
                (Work::request(operation, &request), None)
            }
            None => {
                let scenario = scenario(self.lab.as_deref(), self.path.as_ref())?;
                let server = if self.kind == ProbeKind::FirstWindow { LARGE_FILE } else { SERVER };
                let (operation, request) = self.probe(server)?;
                let request = json!({
                    "lab": scenario.request(), "probe": {"operation": operation, "request": request},
                });
                (Work::request("lab_probe", &request), scenario.drawn)
            }
        };
        Ok(Job { kind: Kind::Probe, request: as_json(self)?, work, kept: kept.into_iter().collect() })
    }

    /// The host that is probed, or the URL that is asked for.
    fn aim<'a>(&self, target: &'a str) -> Result<&'a str, ApiError> {
        let web = ["http://", "https://"].iter().any(|scheme| target.to_ascii_lowercase().starts_with(scheme));
        if self.kind == ProbeKind::FirstWindow && web { url(target) } else { host(target) }
    }

    /// What is asked of the path to a host.
    fn probe(&self, host: &str) -> Result<(&'static str, Value), ApiError> {
        let hosts = vec![host.to_owned()];
        let usual = ScanRequest::default();
        let scan = (self.kind == ProbeKind::Scan).then(|| ScanRequest {
            from: self.from.unwrap_or(usual.from),
            to: self.to,
            step: self.step.unwrap_or(usual.step),
            ..usual
        });
        Ok(match self.kind {
            ProbeKind::Path => path_of(host)?,
            ProbeKind::Mtu | ProbeKind::Scan => ("mtu", as_json(&MtuRequest { hosts, scan, ..MtuRequest::default() })?),
            ProbeKind::Trace => ("trace", as_json(&TraceRequest { hosts, ..TraceRequest::default() })?),
            ProbeKind::FirstWindow => {
                let targets = vec![UrlRequest { url: host.to_owned(), ..UrlRequest::default() }];
                ("first_window", as_json(&FirstWindowRequest { targets, ..FirstWindowRequest::default() })?)
            }
        })
    }
}

fn path_of(host: &str) -> Result<(&'static str, Value), ApiError> {
    let request = wt_prober::path::PathRequest { host: host.to_owned(), ..Default::default() };
    Ok(("path", as_json(&request)?))
}

/// What is done in a lab that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkKind {
    /// The server sends
    Download,
    /// The client sends
    Upload,
    /// The client pings the server
    Ping,
    /// All about the path: `windtunnel path`
    Path,
}

/// A workload for a lab that is up.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkRequest {
    kind: WorkKind,
    /// How much a transfer moves, such as `10MB`
    #[schema(max_length = 256)]
    size: Option<String>,
    /// Or for how long it goes, such as `5s`
    #[schema(max_length = 256)]
    time: Option<String>,
    /// What the connection's sockets are set to, `cc` and `sndbuf` the sender's: `{"cc": "bbr"}`
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// How many pings
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<u16>,
}

impl WorkRequest {
    /// What is run in the client of a lab; `enter` is how one gets there.
    ///
    /// # Errors
    /// [`ApiError`] where something belongs to another kind.
    pub(crate) fn job(&self, mut enter: Vec<String>) -> Result<Job, ApiError> {
        let transfers = matches!(self.kind, WorkKind::Download | WorkKind::Upload);
        if !transfers && (self.size.is_some() || self.time.is_some() || !self.settings.is_empty()) {
            return Err(ApiError::bad("size, time and settings are for transfers"));
        }
        if self.kind != WorkKind::Ping && self.count.is_some() {
            return Err(ApiError::bad("count is for pings"));
        }
        let (operation, request) = match self.kind {
            WorkKind::Ping => {
                let count = limited_number("count", self.count.unwrap_or(10).into(), 1..=1000)?.to_string();
                let interval = if self.count.is_some_and(|count| count > 20) { "0.05" } else { "0.2" };
                enter.extend(["ping", "-n", "-i", interval, "-c", &count, SERVER].map(str::to_owned));
                return self.in_lab(Work::Lines(enter));
            }
            WorkKind::Path => path_of(SERVER)?,
            WorkKind::Download => ("lab_transfer", as_json(&self.transfer(Direction::Down)?)?),
            WorkKind::Upload => ("lab_transfer", as_json(&self.transfer(Direction::Up)?)?),
        };
        let request = json!({"operation": operation, "request": request}).to_string();
        self.in_lab(Work::Request { enter, request })
    }

    fn in_lab(&self, work: Work) -> Result<Job, ApiError> {
        Ok(Job { kind: Kind::Workload, request: as_json(self)?, work, kept: Vec::new() })
    }

    fn transfer(&self, direction: Direction) -> Result<TransferRequest, ApiError> {
        let pair = |(knob, level): (&String, &String)| parsed("settings", &format!("{}={level}", key(knob)?));
        let set = self.settings.iter().map(pair).collect::<Result<_, _>>()?;
        let (size, time) = (self.size.as_deref(), self.time.as_deref());
        Ok(TransferRequest { direction, size: maybe("size", size)?, time: maybe_time("time", time)?, set })
    }
}

/// What was asked, as it is told in lists and to workers.
pub(crate) fn as_json(request: &impl Serialize) -> Result<Value, ApiError> {
    serde_json::to_value(request).map_err(|error| ApiError::ours(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request of a job's worker.
    fn asked(job: Job) -> (Vec<String>, Value) {
        let Work::Request { enter, request } = job.work else { panic!("another program") };
        (enter, serde_json::from_str(&request).unwrap())
    }

    fn probe(text: &str) -> Result<Job, ApiError> {
        serde_json::from_str::<ProbeRequest>(text).unwrap().job()
    }

    #[test]
    fn a_probe_of_the_lab_runs_within_it_and_one_of_a_host_doesnt() {
        let lab = asked(probe(r#"{"kind": "scan", "lab": "black-hole", "from": 1300, "step": 4}"#).unwrap()).1;
        let request: wt_api::Request = serde_json::from_value(lab).unwrap();
        let wt_api::Request::LabProbe(request) = request else { panic!("{request:?}") };
        assert_eq!(request.lab.path, "black-hole");
        let wt_api::Request::Mtu(mtu) = *request.probe else { panic!("another probe") };
        assert_eq!((mtu.hosts, mtu.scan.map(|scan| (scan.from, scan.step))), (vec!["server".into()], Some((1300, 4))));
        let live = asked(probe(r#"{"kind": "path", "target": "example.org:443"}"#).unwrap()).1;
        let request: wt_api::Request = serde_json::from_value(live).unwrap();
        assert!(matches!(request, wt_api::Request::Path(path) if path.host == "example.org:443"));
        let first = asked(probe(r#"{"kind": "first-window", "lab": "lan"}"#).unwrap()).1;
        let request: wt_api::Request = serde_json::from_value(first).unwrap();
        let wt_api::Request::LabProbe(request) = request else { panic!("{request:?}") };
        assert!(matches!(*request.probe, wt_api::Request::FirstWindow(first) if first.targets[0].url == LARGE_FILE));
        for target in ["https://example.org/large.bin", "example.org"] {
            let first = asked(probe(&format!(r#"{{"kind": "first-window", "target": "{target}"}}"#)).unwrap()).1;
            let request: wt_api::Request = serde_json::from_value(first).unwrap();
            assert!(matches!(request, wt_api::Request::FirstWindow(first) if first.targets[0].url == target));
        }
        for bad in [
            r#"{"kind": "path"}"#,
            r#"{"kind": "path", "target": "a", "lab": "adsl"}"#,
            r#"{"kind": "path", "target": "--file=x"}"#,
            r#"{"kind": "path", "lab": "adsl", "from": 600}"#,
            r#"{"kind": "path", "lab": "../x"}"#,
            r#"{"kind": "path", "target": "https://example.org/"}"#,
            r#"{"kind": "first-window", "target": "ftp://example.org/"}"#,
            r#"{"kind": "first-window", "target": "file:///etc/passwd"}"#,
            r#"{"kind": "first-window", "target": "--seed"}"#,
        ] {
            assert!(probe(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_workload_is_one_of_ours() {
        let enter = || ["nsenter", "-t", "7", "-n", "--"].map(str::to_owned).to_vec();
        let job = |text: &str| serde_json::from_str::<WorkRequest>(text).unwrap().job(enter());
        let up = asked(job(r#"{"kind": "upload", "size": "1MB", "settings": {"cc": "reno"}}"#).unwrap());
        assert_eq!(up.0, enter());
        let request: wt_api::Request = serde_json::from_value(up.1).unwrap();
        let wt_api::Request::LabTransfer(transfer) = request else { panic!("{request:?}") };
        assert_eq!((transfer.direction, transfer.size.map(|size| size.get())), (Direction::Up, Some(1_000_000)));
        let Work::Lines(ping) = job(r#"{"kind": "ping", "count": 3}"#).unwrap().work else { panic!("a worker") };
        assert_eq!(ping[5..].join(" "), "ping -n -i 0.2 -c 3 server");
        for bad in [
            r#"{"kind": "ping", "size": "1MB"}"#,
            r#"{"kind": "ping", "count": 0}"#,
            r#"{"kind": "path", "count": 3}"#,
            r#"{"kind": "upload", "size": "much"}"#,
            r#"{"kind": "upload", "settings": {"--help": "1"}}"#,
        ] {
            assert!(job(bad).is_err(), "{bad}");
        }
    }
}
