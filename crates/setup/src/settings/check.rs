//! Whether what was changed still holds, and whether the verdicts behind it still apply.

use super::basis;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use utoipa::ToSchema;
use wt_host::{Basis, Checkpoint, CheckpointId, Drift, Store, Survey, System, VerifyReport, utc};
use wt_journal::{Filter, Journal};
use wt_sys::tcp::{TcpInfo, TcpSocket};

/// Connections that are made to a server, of which the fastest handshake counts: one may wait in a queue.
const CONNECTIONS: usize = 5;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// An RTT is another one when it is longer or shorter by this factor,
const RTT_FACTOR: f64 = 1.5;
/// and by more than this, µs: short ones vary by themselves.
const RTT_SLACK_US: f64 = 2_000.0;
/// Experiments among which the newest proof of a change is looked for.
const PROOFS: usize = 500;

/// How closely is looked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckRequest {
    /// No connection is made: whether the path is the same isn't looked at.
    pub offline: bool,
    /// The journal in which later proofs are looked for; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// Whether what was changed still holds, and still rests on something.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// 1.
    pub schema_version: u32,
    /// Whether nothing has drifted, every verdict applies as far as that is known, no later proof of one fails, and no change without one
    /// is shown to be slower.
    pub holds: bool,
    /// The changes that were looked at.
    pub checked: Vec<CheckpointId>,
    /// What isn't as they made it.
    pub drift: Vec<Drift>,
    /// What will not be so after the next boot, and why.
    pub at_boot: Vec<String>,
    /// The experiments behind changes in force.
    pub verdicts: Vec<VerdictCheck>,
    /// The latest proofs of changes in force that rest on no experiment.
    pub proofs: Vec<ProofCheck>,
}

/// A change in force that rests on no experiment, and was proved.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ProofCheck {
    /// The change.
    pub change: String,
    /// What it made: `initcwnd=20 on default via 192.0.2.1`.
    pub settings: Vec<String>,
    /// Its latest proof.
    pub proof: LaterProof,
}

/// An experiment behind a change in force.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct VerdictCheck {
    /// The change.
    pub change: String,
    /// What it made: `initcwnd=20 on default via 192.0.2.1`.
    pub settings: Vec<String>,
    /// The experiment's name in the journal.
    pub experiment: String,
    /// Where it was measured: `lab`, `live`.
    pub tunnel: String,
    /// What it was measured on.
    pub target: String,
    /// When.
    pub measured: String,
    /// What it fetched, of what curl can fetch.
    pub url: Option<String>,
    /// Whether everything that could be looked at is as when it was measured; `null` where nothing could.
    pub applies: Option<bool>,
    /// What was looked at.
    pub circumstances: Vec<Circumstance>,
    /// The latest proof of the change, if there is one.
    pub proof: Option<LaterProof>,
}

/// Something on which a verdict depends.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Circumstance {
    /// What: `kernel`, `device`, `rtt_us`, `path_mtu`.
    pub name: &'static str,
    /// As it was.
    #[schema(value_type = Object)]
    pub then: Value,
    /// As it is; `null` where that isn't known.
    #[schema(value_type = Object)]
    pub now: Value,
    /// Whether that is the same, for what it matters; `null` where it isn't known.
    pub same: Option<bool>,
    /// Why it isn't known, or what else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What `settings prove` has found since the change was made.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LaterProof {
    /// The experiment's name in the journal.
    pub experiment: String,
    /// When it began.
    pub measured: String,
    /// Whether the change is shown to make it faster.
    pub faster: bool,
    /// Whether it is shown to make it slower.
    pub slower: bool,
    /// The rate with the change over that without it.
    pub ratio: Option<f64>,
}

impl LaterProof {
    fn of(journal: &dyn Journal, change: CheckpointId, since_unix_s: u64) -> Option<Self> {
        let since_unix_us = i64::try_from(since_unix_s).ok()?.checked_mul(1_000_000);
        let listed = journal.list(&Filter { since_unix_us, limit: Some(PROOFS), ..Filter::default() }).ok()?;
        let part = format!("-proof-{change}-");
        let of = |id: &str| {
            let found = journal.load(id).ok()?;
            let verdict = found.verdict?;
            let proof = verdict.get("proof").filter(|proof| proof["change"] == change.to_string())?;
            // One that was interrupted says nothing.
            (proof["verdict"] != "stopped").then(|| Self {
                experiment: found.id,
                measured: utc(u64::try_from(found.started_unix_us / 1_000_000).unwrap_or(0)),
                faster: proof["verdict"] == "faster",
                slower: proof["slower"] == true,
                ratio: proof["ratio"].as_f64(),
            })
        };
        listed.iter().filter(|one| one.id.contains(&part)).find_map(|one| of(&one.id))
    }
}

/// What this host and its paths are like now.
struct Present<'a> {
    system: &'a mut dyn System,
    survey: &'a Survey,
    offline: bool,
}

/// Looks at everything; nothing is changed, and no change is ended.
pub(super) fn look(
    system: &mut dyn System,
    store: &Store,
    survey: &Survey,
    verified: VerifyReport,
    request: &CheckRequest,
) -> CheckReport {
    // Without a journal there are no later proofs.
    let patience = request.offline.then_some(crate::journal::SCRAPE);
    let journal = crate::journal::open_as_it_stands(request.journal.as_deref(), patience);
    let mut seen = BTreeSet::new();
    let (mut verdicts, mut proofs) = (Vec::new(), Vec::new());
    let mut present = Present { system, survey, offline: request.offline };
    // The latest come first: what they made is no more what earlier ones made.
    for id in verified.checked.iter().copied() {
        let Ok(checkpoint) = store.read(present.system, id) else { continue };
        let changes = checkpoint.changes.iter();
        let own: Vec<_> = changes.filter(|change| seen.insert((change.key.clone(), change.target.clone()))).collect();
        if own.is_empty() {
            continue;
        }
        let change = id.to_string();
        let settings = own.iter().map(|change| format!("{}={} on {}", change.key, change.new, change.target)).collect();
        let proof = journal.as_deref().and_then(|journal| LaterProof::of(journal, id, checkpoint.created_unix_s));
        let Some(basis) = &checkpoint.basis else {
            proofs.extend(proof.map(|proof| ProofCheck { change, settings, proof }));
            continue;
        };
        let circumstances = present.circumstances(basis, &checkpoint);
        let mut known = circumstances.iter().filter_map(|one| one.same).peekable();
        let applies = known.peek().is_some().then(|| known.all(|same| same));
        verdicts.push(VerdictCheck {
            change,
            settings,
            experiment: basis.experiment.clone(),
            tunnel: basis.tunnel.clone(),
            target: basis.target.clone(),
            measured: utc(basis.measured_unix_s),
            url: basis.url.clone(),
            applies,
            circumstances,
            proof,
        });
    }
    let fails =
        |one: &VerdictCheck| one.applies == Some(false) || one.proof.as_ref().is_some_and(|proof| !proof.faster);
    // Who never said that it is faster is contradicted only by what is slower.
    let slower = proofs.iter().any(|one: &ProofCheck| one.proof.slower);
    CheckReport {
        schema_version: 1,
        holds: verified.drift.is_empty() && !verdicts.iter().any(fails) && !slower,
        checked: verified.checked,
        drift: verified.drift,
        at_boot: verified.at_boot,
        verdicts,
        proofs,
    }
}

impl Present<'_> {
    fn circumstances(&mut self, basis: &Basis, checkpoint: &Checkpoint) -> Vec<Circumstance> {
        let mut all = vec![self.kernel(basis, checkpoint)];
        all.extend(self.device(basis));
        if let Some(server) = basis.server {
            all.extend(self.path(basis, checkpoint, server));
        }
        all
    }

    /// Where another host measured, its kernel isn't this one's; then the one counts that the change was made under.
    fn kernel(&self, basis: &Basis, checkpoint: &Checkpoint) -> Circumstance {
        let here = basis.host.is_some() && basis.host == crate::machine::host_name();
        let (then, note) = match basis.kernel.as_ref().filter(|_| here) {
            Some(kernel) => (kernel, None),
            None => (&checkpoint.identity.kernel, Some("as it was when the change was made".to_owned())),
        };
        let now = &self.survey.identity.kernel;
        Circumstance { name: "kernel", then: json!(then), now: json!(now), same: Some(then == now), note }
    }

    fn device(&mut self, basis: &Basis) -> Option<Circumstance> {
        let then = basis.device.as_ref()?;
        let now = basis::device(self.system, self.survey, basis.server.map(|server| server.ip()));
        // A speed isn't always told, as while a cable is out.
        let speeds = now.as_ref().and_then(|now| now.speed_mbps).zip(then.speed_mbps);
        let same = now.as_ref().is_some_and(|now| {
            (&now.name, &now.driver) == (&then.name, &then.driver) && speeds.is_none_or(|(now, then)| now == then)
        });
        let now = now.map_or(Value::Null, |now| json!(now.to_string()));
        Some(Circumstance { name: "device", then: json!(then.to_string()), now, same: Some(same), note: None })
    }

    /// What a few handshakes with the server show.
    fn path(&self, basis: &Basis, checkpoint: &Checkpoint, server: SocketAddr) -> Vec<Circumstance> {
        let seen = if self.offline { Err("no connection was made".to_owned()) } else { handshakes(server) };
        let of = |name, then: Option<u64>, now: Result<u64, String>, same: &dyn Fn(u64, u64) -> Option<bool>| {
            let then = then?;
            let (now, note) = now.map_or_else(|why| (None, Some(why)), |now| (Some(now), None));
            let same = now.and_then(|now| same(then, now));
            Some(Circumstance { name, then: json!(then), now: json!(now), same, note })
        };
        let rtt =
            of("rtt_us", basis.rtt_us, seen.clone().map(|seen| seen.0), &|then, now| Some(is_same_rtt(then, now)));
        // A change of the MTU itself makes another one, and whether it holds is told by its drift.
        let own = checkpoint.changes.iter().any(|change| matches!(change.key.as_str(), "mtu" | "mss"));
        let mtu = match basis.path_mtu {
            Some(_) if own => None,
            then => of("path_mtu", then, seen.map(|seen| seen.1), &is_same_mtu),
        };
        [rtt, mtu].into_iter().flatten().collect()
    }
}

/// A host learns of a smaller MTU on the path only from what it sends: a larger one says nothing.
fn is_same_mtu(then: u64, now: u64) -> Option<bool> {
    (now <= then).then_some(now == then)
}

fn is_same_rtt(then_us: u64, now_us: u64) -> bool {
    let (then, now) = (then_us as f64, now_us as f64);
    now <= then * RTT_FACTOR + RTT_SLACK_US && then <= now * RTT_FACTOR + RTT_SLACK_US
}

/// The smallest RTT, µs, and the MTU, bytes, as this host's sockets know them.
fn handshakes(server: SocketAddr) -> Result<(u64, u64), String> {
    let one = || {
        let stream = TcpSocket::new(&server)?.connect(&server, PATIENCE)?;
        TcpInfo::read(&stream)
    };
    let mut least = u64::MAX;
    let mut mtu = 0;
    for _ in 0..CONNECTIONS {
        let info = one().map_err(|error| error.to_string())?;
        let rtt = if info.min_rtt == 0 || info.min_rtt == u32::MAX { info.rtt } else { info.min_rtt };
        (least, mtu) = (least.min(rtt.into()), info.pmtu.into());
    }
    Ok((least, mtu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_rtt_is_another_one_beyond_half_as_much_again_and_two_milliseconds() {
        for (then, now, same) in [
            (30_000, 30_000, true),
            (30_000, 46_900, true),
            (30_000, 47_100, false),
            (30_000, 18_700, true),
            (30_000, 18_600, false),
            (100, 2_100, true),
            (100, 2_200, false),
        ] {
            assert_eq!(is_same_rtt(then, now), same, "{then} {now}");
            assert_eq!(is_same_rtt(now, then), same, "{now} {then}");
        }
    }

    #[test]
    fn a_larger_mtu_than_was_found_on_the_path_says_nothing() {
        assert_eq!([1_400, 1_492, 1_500].map(|now| is_same_mtu(1_492, now)), [Some(false), Some(true), None]);
    }
}
