//! The same cases in ns-3: one small program is built from `one_link.cc` with Debian's libraries.

use super::{Case, Run};
use std::path::PathBuf;
use std::process::Command;

/// What is to be done where it isn't there.
const INSTALL: &str = "apt-get install --no-install-recommends ns3 libns3-dev g++ pkg-config";
/// The parts of it that the program needs.
const MODULES: [&str; 6] = ["core", "network", "internet", "point-to-point", "applications", "traffic-control"];

/// A program of ns-3.
pub(super) struct Ns3(PathBuf);

impl Ns3 {
    /// Builds the program; or why it can't be.
    pub(super) fn build() -> Result<Self, String> {
        let modules = MODULES.map(|module| format!("ns3-{module}"));
        let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(&modules).output();
        let flags = flags.map_err(|error| format!("pkg-config: {error}; {INSTALL}"))?;
        if !flags.status.success() {
            let told = String::from_utf8_lossy(&flags.stderr);
            return Err(format!("{}; {INSTALL}", told.lines().next().unwrap_or("it isn't installed")));
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let program = folder.join("ns3-one-link");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/speed/one_link.cc");
        let mut compiler = Command::new("g++");
        compiler.args(["-std=c++17", "-O2", "-o"]).arg(&program).arg(source);
        // Libraries that its own ones were built with are named by their paths, though nothing of them is needed.
        let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
        compiler.args(flags.split_whitespace().filter(|flag| !flag.starts_with('/')));
        let built = compiler.output().map_err(|error| format!("g++: {error}; {INSTALL}"))?;
        if !built.status.success() {
            let told = String::from_utf8_lossy(&built.stderr);
            return Err(format!("its program can't be built: {}", told.lines().next().unwrap_or_default()));
        }
        Ok(Self(program))
    }

    /// Runs a case; `None` if it gave no result.
    pub(super) fn run(&self, case: &Case) -> Option<Run> {
        let numbers = [case.bps, case.rtt_ms / 2, u64::from(case.queue), case.flows as u64, case.seconds, case.buffer];
        let output = Command::new(&self.0).args(numbers.map(|number| number.to_string())).output().ok()?;
        Run::parse(&String::from_utf8_lossy(&output.stdout))
    }
}
