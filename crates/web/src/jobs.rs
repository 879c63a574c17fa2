use crate::ask::{host, limited_number, option, text, words};
use crate::drawn::{PathRequest, scenario};
use crate::error::ApiError;
use crate::runs::{Job, Kind, Said};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

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
}

/// A path to probe: to a host, or to the server of a path of the lab.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeRequest {
    kind: ProbeKind,
    /// The host, with or without the TCP port for TCP probes; needs the token
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

    /// The command, which for the lab runs within `lab run`; `exe` is this program.
    ///
    /// # Errors
    /// [`ApiError`] unless it is said where, and only once.
    pub(crate) fn job(&self, exe: &str) -> Result<Job, ApiError> {
        let mut probe = match self.kind {
            ProbeKind::Path => words(&["path", "--json"]),
            ProbeKind::Mtu => words(&["mtu", "--json"]),
            ProbeKind::Scan => words(&["mtu", "--json", "--scan"]),
            ProbeKind::Trace => words(&["trace", "--json"]),
        };
        for (name, value) in [("from", self.from), ("to", self.to), ("step", self.step)] {
            match value {
                Some(_) if self.kind != ProbeKind::Scan => {
                    return Err(ApiError::bad(format!("{name} is for a scan only")));
                }
                Some(value) => probe.push(format!("--{name}={value}")),
                None => {}
            }
        }
        let (args, scenario) = match &self.target {
            Some(_) if self.lab.is_some() || self.path.is_some() => {
                return Err(ApiError::bad("a probe goes to a host or to the lab's server, not to both"));
            }
            Some(target) => {
                probe.extend(["--".to_owned(), host(target)?.to_owned()]);
                (probe, None)
            }
            None => {
                let scenario = scenario(self.lab.as_deref(), self.path.as_ref())?;
                let mut args = words(&["lab", "run"]);
                args.extend([scenario.argument.clone(), "--".to_owned(), exe.to_owned()]);
                args.extend(probe);
                args.push("server".to_owned());
                (args, Some(scenario))
            }
        };
        Ok(Job { kind: Kind::Probe, request: json(self)?, program: None, args, said: Said::Whole, scenario })
    }
}

/// What is done in a lab that is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
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
    kind: Work,
    /// How much a transfer moves, such as `10MB`
    #[schema(max_length = 256)]
    size: Option<String>,
    /// Or for how long it goes, such as `5s`
    #[schema(max_length = 256)]
    time: Option<String>,
    /// What the client's socket is set to: `{"cc": "bbr"}`
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// How many pings
    #[schema(minimum = 1, maximum = 1000)]
    count: Option<u16>,
}

impl WorkRequest {
    /// The command, run in the client of a lab; `enter` is how one gets there.
    ///
    /// # Errors
    /// [`ApiError`] where something belongs to another kind.
    pub(crate) fn job(&self, exe: &str, enter: &[String]) -> Result<Job, ApiError> {
        let transfers = matches!(self.kind, Work::Download | Work::Upload);
        if !transfers && (self.size.is_some() || self.time.is_some() || !self.settings.is_empty()) {
            return Err(ApiError::bad("size, time and settings are for transfers"));
        }
        if self.kind != Work::Ping && self.count.is_some() {
            return Err(ApiError::bad("count is for pings"));
        }
        let (command, said) = match self.kind {
            Work::Ping => {
                let count = limited_number("count", self.count.unwrap_or(10).into(), 1..=1000)?;
                let interval = if count > 20 { "0.05" } else { "0.2" };
                (words(&["ping", "-n", "-i", interval, "-c", &count.to_string(), "server"]), Said::Lines)
            }
            Work::Path => (words(&[exe, "path", "--json", "server"]), Said::Whole),
            Work::Download | Work::Upload => (self.transfer(exe)?, Said::Events),
        };
        let mut args = enter.to_vec();
        args.extend(command);
        let program = (!args.is_empty()).then(|| args.remove(0));
        Ok(Job { kind: Kind::Workload, request: json(self)?, program, args, said, scenario: None })
    }

    fn transfer(&self, exe: &str) -> Result<Vec<String>, ApiError> {
        let mut args = words(&[exe, "lab", "transfer", "--json-stream"]);
        if self.kind == Work::Upload {
            args.push("--up".to_owned());
        }
        option(&mut args, "size", self.size.as_deref())?;
        option(&mut args, "time", self.time.as_deref())?;
        for (name, value) in &self.settings {
            args.push(format!("--set={}={}", crate::ask::key(name)?, text(name, value)?));
        }
        Ok(args)
    }
}

/// What was asked, as it is told in lists.
pub(crate) fn json(request: &impl Serialize) -> Result<serde_json::Value, ApiError> {
    serde_json::to_value(request).map_err(|error| ApiError::ours(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(text: &str) -> Result<Job, ApiError> {
        serde_json::from_str::<ProbeRequest>(text).unwrap().job("/bin/wt")
    }

    #[test]
    fn a_probe_of_the_lab_runs_within_it_and_one_of_a_host_doesnt() {
        let lab = probe(r#"{"kind": "scan", "lab": "black-hole", "from": 1300, "step": 4}"#).unwrap();
        assert_eq!(lab.args.join(" "), "lab run black-hole -- /bin/wt mtu --json --scan --from=1300 --step=4 server");
        let live = probe(r#"{"kind": "path", "target": "example.org:443"}"#).unwrap();
        assert_eq!(live.args.join(" "), "path --json -- example.org:443");
        for bad in [
            r#"{"kind": "path"}"#,
            r#"{"kind": "path", "target": "a", "lab": "adsl"}"#,
            r#"{"kind": "path", "target": "--file=x"}"#,
            r#"{"kind": "path", "lab": "adsl", "from": 600}"#,
            r#"{"kind": "path", "lab": "../x"}"#,
        ] {
            assert!(probe(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_workload_is_one_of_ours() {
        let enter = ["nsenter", "-t", "7", "-n", "--"].map(str::to_owned);
        let job = |text: &str| serde_json::from_str::<WorkRequest>(text).unwrap().job("/bin/wt", &enter);
        let up = job(r#"{"kind": "upload", "size": "1MB", "settings": {"cc": "reno"}}"#).unwrap();
        assert_eq!(up.program.as_deref(), Some("nsenter"));
        assert_eq!(up.args.join(" "), "-t 7 -n -- /bin/wt lab transfer --json-stream --up --size=1MB --set=cc=reno");
        for bad in
            [r#"{"kind": "ping", "size": "1MB"}"#, r#"{"kind": "ping", "count": 0}"#, r#"{"kind": "path", "count": 3}"#]
        {
            assert!(job(bad).is_err(), "{bad}");
        }
    }
}
