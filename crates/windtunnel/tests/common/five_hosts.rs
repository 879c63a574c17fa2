//! Five hosts with kernels of their own, for tests and benchmarks.
#![allow(dead_code, reason = "tests and benchmarks use other parts")]

use super::{RunOutput, binary, ran, windtunnel};
use serde_json::Value;

/// The link that delays: RTT 40 ms.
const LINK: &str = "title = \"delay\"\nsource = \"a test\"\n[[link]]\nname = \"d\"\nmtu = 1500\n\
    down = { rate = \"1gbit\", delay = \"20ms\" }\nup = { rate = \"1gbit\", delay = \"20ms\" }\n";
/// The target.
pub(crate) const V4: &str = "10.3.0.2";
/// The target.
pub(crate) const V6: &str = "fd00:3::2";

/// Runs a script among the five hosts, where `at c` is the client and `$WT` the program.
pub(crate) fn among_five(variant: &str, script: &str) -> RunOutput {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("link.toml");
    std::fs::write(&link, LINK).unwrap();
    let whole = format!("set -eu\n{}\ntopology\nvariant {variant}\n{script}", include_str!("topology.sh"));
    let mut command = windtunnel(home.path());
    command.env("WT", binary()).env("TMPDIR", home.path());
    command.args(["lab", "run"]).arg(&link).args(["--", "sh", "-c", &whole]);
    ran(command.output().unwrap())
}

/// One JSON object a run, as many as there are.
pub(crate) fn objects(ran: &RunOutput) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_str(&ran.out).into_iter::<Value>();
    stream.map(|value| value.unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))).collect()
}
