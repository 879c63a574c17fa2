//! What an experiment on a server's own connections recommends, as settings of this host.

use super::problem;
use serde::Deserialize as _;
use serde_json::Value;
use wt_host::{Request, Target};
use wt_problem::Problem;
use wt_traffic::{ArmSettings, SocketSetting, TrafficClaim, TrafficReport, TrafficVerdictKind};

/// The settings of the arm that is shown to be faster, for the whole host or for `to`.
///
/// They are the arm's, also where they are those of the first arm: what was measured is what is applied.
///
/// # Errors
/// A usage [`Problem`] where nothing is shown to be faster, or where a setting can't be had for a host.
pub(super) fn recommended(id: &str, verdict: &Value, to: Option<&str>) -> Result<Request, Problem> {
    let report = TrafficReport::deserialize(&verdict["report"])
        .map_err(|error| Problem::internal(format!("the verdict of {id}: {error}")))?;
    let said = &report.verdict;
    let arm = said.arm.as_ref().filter(|_| said.kind == TrafficVerdictKind::Faster).ok_or_else(|| {
        Problem::usage(format!("{id} shows nothing that is faster: there is nothing to apply"))
            .because(said.text.clone())
            .hint(format!("windtunnel traffic report {id}"))
    })?;
    let settings = report.arms.iter().find(|one| one.name == *arm).map(|one| &one.settings);
    let settings = settings.ok_or_else(|| Problem::internal(format!("the verdict of {id} names no settings")))?;
    if settings.is_current() {
        return Err(Problem::usage(format!("{id} recommends the settings that it found: there is nothing to change")));
    }
    let mut request = of_arm(settings)?;
    request.target = to.map_or(Target::Host, |to| to.parse().unwrap_or_default());
    let about = if said.claim == TrafficClaim::Everybody { "" } else { ", beside connections without it" };
    for (knob, _) in &request.pairs {
        request.reasons.insert(knob.name, format!("{id}: faster on this server's own connections{about}"));
    }
    Ok(request)
}

/// The settings of an arm for the whole host.
///
/// # Errors
/// A usage [`Problem`] that names what no host can have.
pub(super) fn of_arm(settings: &ArmSettings) -> Result<Request, Problem> {
    let mut pairs: Vec<String> =
        settings.knobs().iter().map(|(knob, level)| format!("{}={level}", knob.name())).collect();
    for setting in SocketSetting::ALL {
        if let Some(number) = settings.socket(setting) {
            pairs.push(of_the_host(setting, number)?);
        }
    }
    let mut request = Request::of_pairs(pairs.iter().map(String::as_str)).map_err(|error| problem::knob(&error))?;
    request.target = Target::Host;
    Ok(request)
}

/// A setting of sockets as the host has it.
///
/// # Errors
/// A usage [`Problem`] that names what is near, where only a connection can have it.
fn of_the_host(setting: SocketSetting, number: u64) -> Result<String, Problem> {
    let nearest = match setting {
        SocketSetting::RtoMin => return Ok(format!("rto-min={}", number.div_ceil(1_000))),
        SocketSetting::NotsentLowat => return Ok(format!("notsent-lowat={number}")),
        SocketSetting::CwndClamp => "no host-wide setting bounds the cwnd; ip route … cwnd is near to it",
        SocketSetting::DelackMax => "only a socket can have it",
        SocketSetting::WindowClamp => "the greatest value of tcp_rmem is near to it: settings apply tcp-rmem=…",
        SocketSetting::Pacing => "the server itself can set SO_MAX_PACING_RATE",
    };
    Err(Problem::usage(format!("{} can't be had for a whole server", setting.name()))
        .because("the experiment gave it to each connection by itself")
        .hint(nearest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(kind: &str, settings: &Value) -> Value {
        let arm = |name: &str, settings: &Value| {
            json!({"name": name, "settings": settings, "assigned": 9, "recorded": 9, "missed": 0, "open": 0,
                   "set_errors": 0, "not_compliant": 0})
        };
        json!({"kind": kind, "report": {
            "schema_version": 1, "id": "T", "unit": "prefix", "backend": "sockops", "classes": [], "effects": [],
            "guardrails": [], "self_checks": [],
            "verdict": {"kind": kind, "arm": "B", "claim": "beside", "text": "Nothing is shown yet.", "evidence": 50.0,
                        "needed": 40.0},
            "arms": [arm("A", &json!({"initcwnd": 10})), arm("B", settings)],
        }})
    }

    #[test]
    fn the_settings_of_the_arm_that_is_faster_are_the_hosts() {
        let settings = json!({"initcwnd": 32, "cc": "bbr", "rto-min": "50ms", "notsent-lowat": "16KiB", "ecn": "on"});
        let request = recommended("T", &verdict("faster", &settings), None).unwrap();
        let names: Vec<&str> = request.pairs.iter().map(|(knob, _)| knob.name).collect();
        assert_eq!((names.len(), &request.target), (5, &Target::Host), "{names:?}");
        let said = &request.reasons["initcwnd"];
        assert_eq!(said, "T: faster on this server's own connections, beside connections without it");
        let narrow = recommended("T", &verdict("faster", &json!({"initcwnd": 32})), Some("default")).unwrap();
        assert_eq!(narrow.target, Target::DefaultRoutes);
    }

    #[test]
    fn what_isnt_shown_and_what_no_host_can_hold_is_refused_with_the_reason() {
        for (kind, settings, said) in [
            ("undecided", json!({"initcwnd": 32}), "nothing that is faster"),
            ("slower", json!({"initcwnd": 32}), "nothing that is faster"),
            ("faster", json!({}), "nothing to change"),
            ("faster", json!({"pacing": "20mbit"}), "pacing can't be had for a whole server"),
            ("faster", json!({"initcwnd": 32, "cwnd-clamp": 100}), "cwnd-clamp can't be had"),
        ] {
            let problem = recommended("T", &verdict(kind, &settings), None).unwrap_err().to_string();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
