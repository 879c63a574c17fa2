use super::{load, problem, start};
use crate::Controls;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wt_lab::{
    Backend, EngineStats, Host, Lab, LabError, LabOptions, LabTunnel, Program, Recording, RecordingCounts, Scenario,
};
use wt_load::{Server, ServerConfig};
use wt_problem::Problem;
use wt_trial::Cancel;
use wt_units::{shell_word, shell_word_of_os};

/// How often it is looked whether somebody wants the lab to end.
const LOOK: Duration = Duration::from_millis(20);

/// A path of the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabRequest {
    /// A preset's name or a TOML file.
    pub path: String,
    /// Seeds everything random on the path.
    pub seed: u64,
    /// How the emulator reaches the hosts' kernels.
    pub backend: Backend,
    /// Keep this machine's processors awake while the lab is up: packets wait less; it costs all of their idle time and needs root.
    pub sharp: bool,
}

impl LabRequest {
    /// The command line that makes it, up to what runs in it: `windtunnel lab run adsl --seed 7`.
    fn command(&self, control: Option<&str>) -> String {
        let seed = (self.seed != Self::default().seed).then(|| format!(" --seed {}", self.seed));
        let backend = match self.backend {
            Backend::Best => None,
            Backend::Tun => Some(" --backend tun".to_owned()),
            Backend::Veth => Some(" --backend veth".to_owned()),
        };
        let sharp = self.sharp.then(|| " --sharp".to_owned());
        let control = control.map(|name| format!(" --cc {}", shell_word(name)));
        let options: String = [seed, backend, sharp, control].into_iter().flatten().collect();
        format!("windtunnel lab run {}{options}", shell_word(&self.path))
    }
}

impl Default for LabRequest {
    fn default() -> Self {
        Self { path: String::new(), seed: 1, backend: Backend::default(), sharp: false }
    }
}

/// A lab that is up, and how another shell gets in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabUpAnswer {
    /// 1.
    pub schema_version: u32,
    /// The path's name.
    pub path: String,
    /// How the emulator reaches the hosts' kernels.
    pub backend: &'static str,
    /// The lab's process 1.
    pub pid: u32,
    /// The client, the server, then hosts on the way.
    pub hosts: Vec<HostUp>,
}

/// A host of a lab that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostUp {
    /// `client`, `server`, or the name of a host on the way.
    pub name: String,
    /// Its IPv4 address.
    pub ipv4: String,
    /// Its IPv6 address.
    pub ipv6: String,
    /// The command that gives a shell there.
    pub enter: String,
}

/// A lab with our servers in it.
#[derive(Debug)]
pub struct RunningLab {
    tunnel: LabTunnel,
    controls: Controls,
    /// HTTP of the server, then of other hosts.
    http: Mutex<Vec<Server>>,
    /// Round-trip time of a full-sized segment on the idle path.
    pub rtt: Duration,
    before: EngineStats,
    /// Whether it is in a user namespace of its own.
    own_users: bool,
    /// What makes it again, up to what runs in the server and the client.
    command: String,
}

impl RunningLab {
    /// Starts a lab whose server answers our clients, and HTTP on port 80. Must be called before any other thread runs.
    ///
    /// `control` is the congestion control of every connection, on both ends and whatever programs ask for; `record` says
    /// what is recorded.
    ///
    /// # Errors
    /// A usage [`Problem`] for an invalid path, an environment one where there can't be such a lab.
    pub fn start(
        request: &LabRequest,
        control: Option<&str>,
        record: impl FnOnce(&Scenario) -> Result<Option<Recording>, Problem>,
    ) -> Result<Self, Problem> {
        let scenario = load(&request.path)?;
        let record = record(&scenario)?;
        let rtt = scenario.full_size(scenario.pmtu()).rtt;
        let command = request.command(control);
        // Loading takes rights that one doesn't have in the lab, and its name must be known before.
        let controls = Controls::load(control)?;
        let control = control.map(|name| controls.kernel_name(name)).transpose()?;
        let outside = user_namespace();
        let lab = start(
            scenario,
            LabOptions { record, sharp: request.sharp, ..LabOptions::seeded(request.backend, request.seed) },
        )?;
        for host in lab.hosts() {
            let locked = control.as_deref().map_or(Ok(()), |name| host.lock_control(name));
            locked.map_err(|error| {
                Problem::environment(format!("{} can't have this congestion control: {error}", host.name))
                    .hint("windtunnel cc list shows what there is")
            })?;
        }
        // Our own server, and plain HTTP on port 80 for programs that aren't ours.
        let tunnel = LabTunnel::new(lab).map_err(|error| problem(&error))?;
        let http = serve_http(tunnel.lab())?;
        let before = tunnel.lab().stats();
        let (http, own_users) = (Mutex::new(http), user_namespace() != outside);
        Ok(Self { tunnel, controls, http, rtt, before, own_users, command })
    }

    /// The lab.
    #[must_use]
    pub fn lab(&self) -> &Lab {
        self.tunnel.lab()
    }

    /// What the lab says of itself since it is up.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.lab().stats().since(&self.before)
    }

    /// How often this kernel skipped a program of the congestion control.
    #[must_use]
    pub fn guard_hits(&self) -> u64 {
        self.controls.guard_hits()
    }

    /// Runs something in the client, on a thread that knows the hosts by their names.
    ///
    /// # Errors
    /// An environment [`Problem`] when the client is gone.
    pub fn in_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Problem> {
        self.lab().run_in_client(work).map_err(|error| Problem::environment(error.to_string()))
    }

    /// Runs a program in the client until it ends or somebody cancels; its exit code, or 128 and the signal that killed it. `started`
    /// is told the lab's process 1, on a thread that can't start threads. A program's own server has all ports but those of our protocol:
    /// HTTP on port 80 of the host `server` ends.
    ///
    /// # Errors
    /// An environment [`Problem`] where it can't be started.
    pub fn run(&self, program: &Program, cancel: &Cancel, started: impl FnOnce(u32) + Send) -> Result<u8, Problem> {
        self.run_until(program, &|| cancel.is_cancelled(), started)
    }

    /// What makes the lab again with this program's server.
    fn command_with(&self, program: &Program) -> String {
        let server = program.server.as_deref().map(shell_word_of_os);
        let server = server.map_or_else(String::new, |server| format!(" --server {server}"));
        format!("{}{server}", self.command)
    }

    fn run_until(
        &self,
        program: &Program,
        stops: &(dyn Fn() -> bool + Sync),
        started: impl FnOnce(u32) + Send,
    ) -> Result<u8, Problem> {
        if program.server.is_some() {
            self.http.lock().unwrap_or_else(PoisonError::into_inner).drain(..1.min(self.lab().hosts().count() - 1));
        }
        let (sender, process) = std::sync::mpsc::channel();
        let ended = Cancel::new();
        let over = &ended;
        let ran = std::thread::scope(|scope| {
            // The thread that starts the lab's process 1 can't start threads any more: its children are in another namespace.
            scope.spawn(move || {
                let Ok(pid) = process.recv() else { return };
                while !stops() && !over.is_cancelled() {
                    let _ = wt_sys::poll::wait_readable(&[], Some(LOOK));
                }
                if stops() {
                    // It may have ended just now; then there is nothing to stop.
                    let _ = wt_sys::process::signal(pid, SIGKILL);
                }
            });
            let ran = self.lab().run_program_of(program, &self.command_with(program), move |pid| {
                let _ = sender.send(pid);
                started(pid);
            });
            over.cancel();
            ran
        });
        ran.map_err(|error| Problem::environment(error.to_string()))
    }

    /// Stays up until somebody cancels; `up` is told how to enter. `server` is a shell command that runs in the server
    /// meanwhile.
    ///
    /// # Errors
    /// An environment [`Problem`] where it can't be kept up, or somebody else ended it; an internal one where the emulator stops.
    pub fn stay(
        &self,
        server: Option<OsString>,
        cancel: &Cancel,
        up: impl FnOnce(LabUpAnswer) + Send,
    ) -> Result<(), Problem> {
        let (own_users, lab) = (self.own_users, self.lab());
        let stops = || cancel.is_cancelled() || lab.ended().is_some();
        let code = self.run_until(&Program::nothing(server), &stops, move |pid| {
            // Who enters too early finds the host's files instead of the lab's.
            let ready = PathBuf::from(format!("/proc/{pid}/root/run/netns/server"));
            (0..200).take_while(|_| !ready.exists()).for_each(|_| {
                let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(10)));
            });
            up(LabUpAnswer::of(lab, pid, own_users));
        })?;
        if let Some(why) = lab.ended() {
            return Err(problem(&LabError::Engine(why)));
        }
        if !cancel.is_cancelled() && code == KILLED {
            return Err(Problem::environment("the lab has ended: its process 1 was killed")
                .because("somebody's kill, or too little memory")
                .hint("start it anew"));
        }
        Ok(())
    }

    /// Ends it; what was recorded is complete then.
    ///
    /// # Errors
    /// A [`Problem`] where the recording can't be completed.
    pub fn stop(self) -> Result<Option<RecordingCounts>, Problem> {
        self.tunnel.into_lab().stop().map_err(|error| problem(&error))
    }
}

fn user_namespace() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/ns/user").ok()
}

/// signal(7).
const SIGKILL: i32 = 9;
/// As shells have it, 128 and the signal.
const KILLED: u8 = 137;

impl LabUpAnswer {
    /// How another shell gets in: into process 1 of the lab, and from there to the other hosts; `user` if the lab is in a
    /// user namespace of its own.
    fn of(lab: &Lab, pid: u32, user: bool) -> Self {
        let user = if user { "-U --preserve-credentials " } else { "" };
        let enter = |host: &Host| {
            let there = if host.name == "client" { String::new() } else { format!(" ip netns exec {}", host.name) };
            format!("nsenter -t {pid} {user}-n -m -p --{there} sh")
        };
        let host = |host: &Host| HostUp {
            name: host.name.clone(),
            ipv4: host.v4.to_string(),
            ipv6: host.v6.to_string(),
            enter: enter(host),
        };
        let path = lab.scenario().name.clone();
        Self { schema_version: 1, path, backend: lab.backend(), pid, hosts: lab.hosts().map(host).collect() }
    }
}

/// Our HTTP on port 80 of every host but the client.
fn serve_http(lab: &Lab) -> Result<Vec<Server>, Problem> {
    let listen = |any: std::net::IpAddr| wt_sys::tcp::listen(std::net::SocketAddr::new(any, 80));
    // A listener for IPv6 is one for IPv4, too (ipv6(7), `IPV6_V6ONLY`).
    let both =
        || listen(std::net::Ipv6Addr::UNSPECIFIED.into()).or_else(|_| listen(std::net::Ipv4Addr::UNSPECIFIED.into()));
    let start = |host: &Host| {
        let listener = host.run(both).and_then(|listener| listener);
        listener.and_then(|listener| Server::start(listener, ServerConfig::default()))
    };
    let servers = lab.hosts().skip(1).map(start).collect::<Result<Vec<_>, _>>();
    servers.map_err(|error| Problem::environment(error.to_string()))
}
