use super::choices::{check, controls, not_built};
use super::session::problem;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use wt_lab::{DEVICE, SERVER_V4};
use wt_problem::Problem;
use wt_stacks::{Availability, Choice, ChoiceError, Forward};
use wt_sys::netlink::Netlink;
use wt_sys::{ns, poll, process};
use wt_trial::Cancel;

/// The file in which a lab keeps its names, mounted over hosts(5).
const NAMES: &str = "/run/hosts";
/// The name of the lab's server.
const SERVER: &str = "server";
/// Where the program finds the server instead.
const INSTEAD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(20);

/// A program in the client of a lab whose connections to the server go through another stack.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackProgram {
    /// The stack, as for comparisons: `smoltcp`, `lwip:rwin=8KiB`.
    pub stack: String,
    /// The server's port.
    #[serde(default = "http_port")]
    pub port: u16,
    /// The program and its arguments.
    #[serde(deserialize_with = "wt_setup::lab::words")]
    pub argv: Vec<OsString>,
}

const fn http_port() -> u16 {
    80
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackProgramAnswer {
    /// 1.
    pub schema_version: u32,
    /// The program's, or 128 and the signal that killed it.
    pub exit_code: u8,
    /// The stack.
    pub stack: String,
    /// Connections that it opened, if it said so.
    pub connections: Option<u64>,
    /// Bytes that it carried to the program.
    pub bytes_in: Option<u64>,
    /// Bytes that it carried to the server.
    pub bytes_out: Option<u64>,
    /// Settings that it refused, and why.
    pub refused: Vec<String>,
    /// What went wrong with it, if anything did.
    pub trouble: Option<String>,
}

/// Runs a program to its end, or until somebody cancels, in the client of a lab: there the name `server` leads to a stack, which
/// connects to the lab's server over the path.
///
/// # Errors
/// A [`Problem`]: outside of a lab, no such stack, a program that isn't there.
pub fn run_program(request: &StackProgram, cancel: &Cancel) -> Result<StackProgramAnswer, Problem> {
    if !ns::is_guest_of_a_machine() || !Path::new(NAMES).exists() {
        return Err(Problem::usage("this isn't the client of a lab")
            .hint("windtunnel lab run PATH -- windtunnel stacks run STACK -- PROGRAM"));
    }
    let [program, args @ ..] = &request.argv[..] else { return Err(Problem::usage("there is no program to run")) };
    let usage = |error: ChoiceError| Problem::usage(error.to_string()).hint("windtunnel stacks list");
    let mut choices: Vec<Choice> = vec![request.stack.parse().map_err(usage)?];
    check(&choices)?;
    let _loaded = controls(&mut choices)?;
    let choice = &choices[0];
    match choice.stack.built() {
        Availability::Direct => {
            return Err(Problem::usage(format!("{} is this kernel itself", choice.stack.name))
                .hint("run the program in the lab without `stacks run`"));
        }
        Availability::No(how) => return Err(not_built(choice.stack.name, how)),
        Availability::In(_) | Availability::Program(_) => {}
    }
    if choice.stack.described().is_some_and(|told| told.far_end) {
        return Err(Problem::usage(format!(
            "{} isn't TCP, and the lab's web server doesn't speak it",
            choice.stack.name
        )));
    }
    wt_stacks::tun_device().map_err(problem)?;
    let failed = |why: String| {
        Problem::environment(format!("{} can't run: {why}", choice.stack.name)).hint("run `windtunnel doctor`")
    };
    let at = SocketAddr::new(IpAddr::V4(INSTEAD), request.port);
    let forward = Forward::start(choice, SocketAddrV4::new(SERVER_V4, request.port), at, mtu().map_err(failed)?)
        .map_err(failed)?;
    let names = Names::redirect().map_err(|error| failed(format!("names: {error}")))?;
    let refused = forward.refused().to_vec();
    let child = command(program, args).spawn().map_err(|error| {
        Problem::environment(format!("can't run {}: {error}", program.to_string_lossy()))
            .hint("name a program that is in PATH")
    })?;
    let status = wait(child, cancel)?;
    drop(names);
    let ended = forward.end();
    let done = ended.done.as_ref();
    Ok(StackProgramAnswer {
        schema_version: 1,
        exit_code: process::exit_code(status),
        stack: choice.title(),
        connections: done.map(|done| done.connections),
        bytes_in: done.map(|done| done.bytes_in),
        bytes_out: done.map(|done| done.bytes_out),
        refused,
        trouble: ended.trouble,
    })
}

/// The program as it is started.
fn command(program: &OsString, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("WT_SERVER", INSTEAD.to_string());
    process::die_with_parent(&mut command);
    // Whoever starts us may leave Ctrl-C to the program, and what is ignored stays so through an exec.
    process::default_signals(&mut command);
    command
}

/// The MTU of the client's device towards the path.
fn mtu() -> Result<u32, String> {
    let links = Netlink::open().and_then(|mut netlink| netlink.links()).map_err(|error| error.to_string())?;
    let link = links.into_iter().find(|link| link.name == DEVICE);
    link.map(|link| link.mtu).ok_or_else(|| format!("there is no device {DEVICE}"))
}

fn wait(mut child: Child, cancel: &Cancel) -> Result<ExitStatus, Problem> {
    let broken = |error: std::io::Error| Problem::internal(format!("can't wait for the program: {error}"));
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(broken)? {
            return Ok(status);
        }
        if cancel.is_cancelled() && !told {
            told = true;
            let _ = process::signal(child.id(), 15);
        }
        poll::wait_readable(&[], Some(LOOK)).map_err(|error| Problem::internal(error.to_string()))?;
    }
}

/// The lab's names with the server's address replaced; as they were when dropped.
struct Names(String);

impl Names {
    fn redirect() -> std::io::Result<Self> {
        let before = std::fs::read_to_string(NAMES)?;
        // In place: what programs read is this very file, mounted elsewhere.
        std::fs::write(NAMES, redirected(&before))?;
        Ok(Self(before))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = std::fs::write(NAMES, &self.0);
    }
}

fn redirected(names: &str) -> String {
    let is_server = |line: &&str| line.split_whitespace().skip(1).any(|name| name == SERVER);
    let kept: Vec<&str> = names.lines().filter(|line| !is_server(line)).collect();
    format!("{}\n{INSTEAD} {SERVER}\n", kept.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_name_leads_elsewhere_and_all_others_where_they_did() {
        let names = "127.0.0.1 localhost\n198.18.0.1 client\n198.19.0.1 server\n2001:db8::1 server6\n";
        assert_eq!(
            redirected(names),
            "127.0.0.1 localhost\n198.18.0.1 client\n2001:db8::1 server6\n127.0.0.2 server\n"
        );
    }

    #[test]
    fn ctrl_c_reaches_the_program_though_we_ignore_it() {
        process::ignore_signal(2);
        let status = command(&"sh".into(), &["-c".into(), "kill -INT $$; exit 0".into()]).status().unwrap();
        assert_eq!(process::exit_code(status), 130);
    }

    #[test]
    fn outside_of_a_lab_it_is_refused_with_how_to_make_one() {
        let request = StackProgram { stack: "smoltcp".to_owned(), port: 80, argv: vec!["true".into()] };
        let text = r#"{"stack": "smoltcp", "argv": ["true"]}"#;
        assert_eq!(serde_json::from_str::<StackProgram>(text).unwrap(), request);
        let problem = run_program(&request, &Cancel::new()).unwrap_err();
        assert!(format!("{problem:?}").contains("windtunnel lab run"), "{problem:?}");
    }
}
