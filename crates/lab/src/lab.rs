use crate::engine::{self, Command, EngineConfig};
use crate::host::{Backend, Host, advice};
use crate::links::Place;
use crate::record::{Recorder, Recording, RecordingCounts};
use crate::scenario::{MiddleHost, Scenario};
use crate::stats::{Counters, EngineStats};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wt_sys::awake::NoSleep;
use wt_sys::poll::Waker;
use wt_sys::{SysError, ns, process};

/// Why a lab can't be set up or broke.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// User namespaces are forbidden, or the process isn't single-threaded any more.
    #[error("can't create an unprivileged user namespace: {0}")]
    UserNamespace(SysError),
    /// A device, an address or a route.
    #[error("can't set up the lab: {source}; {advice}")]
    SetUp {
        /// What the kernel said.
        source: SysError,
        /// What to try.
        advice: &'static str,
    },
    /// The file of a recording.
    #[error("can't record into {file}: {source}")]
    Record {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The emulator ended.
    #[error("the lab's emulator stopped: {0}")]
    Engine(String),
}

impl LabError {
    fn set_up(source: SysError) -> Self {
        let advice = advice(&source);
        Self::SetUp { source, advice }
    }
}

/// Moves this process into the user namespace in which a lab can be made. Call it once, before any other thread runs.
/// Root, where user namespaces are forbidden, does without one.
///
/// # Errors
/// [`LabError::UserNamespace`].
pub fn enter() -> Result<(), LabError> {
    // Asked now: in a user namespace that could be made and not used, one has every right and no user.
    let root = process::has_capability(process::CAP_SYS_ADMIN);
    ns::enter_user_namespace()
        .and_then(|()| {
            // A security module may let the namespace be made and take the rights in it away.
            let may =
                process::has_capability(process::CAP_NET_ADMIN) && process::has_capability(process::CAP_SYS_ADMIN);
            let taken = || std::io::Error::from_raw_os_error(1);
            if may { Ok(()) } else { Err(SysError { doing: "use a new user namespace".to_owned(), source: taken() }) }
        })
        .or_else(|error| if root { ns::enter_network_namespace().map_err(|_| error) } else { Err(error) })
        .map_err(LabError::UserNamespace)
}

/// How a lab is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabOptions {
    /// How it reaches the hosts' kernels.
    pub backend: Backend,
    /// Of everything random on the path.
    pub seed: u64,
    /// What is recorded.
    pub record: Option<Recording>,
    /// Whether this machine's processors are kept awake as long as the lab is up, which costs all of their idle time and needs root
    /// ([`NoSleep`]): one that has slept lets packets wait until it is awake. In virtual time nothing waits.
    pub sharp: bool,
}

impl LabOptions {
    /// The usual ones, with a seed.
    #[must_use]
    pub fn seeded(backend: Backend, seed: u64) -> Self {
        Self { backend, seed, record: None, sharp: false }
    }
}

/// Where a host stands.
fn place(host: &Host, node: usize) -> Place {
    Place { node, addresses: [host.v4.into(), host.v6.into()] }
}

/// Two hosts joined by an emulated path, running until dropped. Whatever ends the process ends it too: namespaces and
/// devices live as long as its descriptors.
#[derive(Debug)]
pub struct Lab {
    /// Host A: where the user sits.
    pub client: Host,
    /// Host B: the other end.
    pub server: Host,
    /// Hosts on the way, from the client on.
    pub middle: Vec<Host>,
    scenario: Scenario,
    backend: &'static str,
    counters: Arc<Counters>,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    engine: Option<JoinHandle<()>>,
    broken: Arc<Mutex<Option<String>>>,
    recorder: Option<Recorder>,
    _no_sleep: Option<NoSleep>,
}

impl Lab {
    /// Sets up the hosts and starts the emulator. The process must have [`enter`]ed.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn start(scenario: Scenario, backend: Backend, seed: u64) -> Result<Self, LabError> {
        Self::with(scenario, LabOptions::seeded(backend, seed))
    }

    /// As [`Lab::start`], with all options.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn with(scenario: Scenario, options: LabOptions) -> Result<Self, LabError> {
        let LabOptions { backend, seed, record, sharp } = options;
        let advice = "run as root, or without --sharp";
        let sharp = (sharp && !crate::guest::is_guest()).then(NoSleep::hold);
        let no_sleep = sharp.transpose().map_err(|source| LabError::SetUp { source, advice })?;
        let path = scenario.path();
        path.validate().map_err(|error| LabError::Engine(error.to_string()))?;
        let (client, client_port) =
            Host::create(0, "client", scenario.client_mtu, backend).map_err(LabError::set_up)?;
        let (server, server_port) =
            Host::create(1, "server", scenario.server_mtu, backend).map_err(LabError::set_up)?;
        let name = client_port.backend();
        let mut ports = vec![client_port, server_port];
        let mut places = vec![place(&client, 0), place(&server, scenario.links.len())];
        let mut middle = Vec::new();
        for (node, link) in scenario.links.iter().enumerate() {
            let Some(MiddleHost { name, mtu }) = &link.hop.host else { continue };
            let (host, port) = Host::create(ports.len(), name, *mtu, backend).map_err(LabError::set_up)?;
            places.push(place(&host, node));
            ports.push(port);
            middle.push(host);
        }
        let counters = Arc::new(Counters::default());
        let waker = Arc::new(Waker::new().map_err(LabError::set_up)?);
        let (commands, receiver) = channel();
        // The last that can fail for a reason of the machine's: a lab that can't be made leaves no file.
        let recorder = record.as_ref().map(|recording| {
            Recorder::start(recording, &scenario)
                .map_err(|source| LabError::Record { file: recording.file.display().to_string(), source })
        });
        let (recorder, shooter) = recorder.transpose()?.unzip();
        let config = EngineConfig {
            ports,
            places,
            scenario: scenario.clone(),
            record: record.map(|recording| recording.ends).zip(shooter),
            seed,
            counters: Arc::clone(&counters),
            commands: receiver,
            waker: Arc::clone(&waker),
        };
        let broken = Arc::new(Mutex::new(None));
        let (report, count) = (Arc::clone(&broken), Arc::clone(&counters));
        let engine = std::thread::Builder::new().name("wt-engine".to_owned()).spawn(move || {
            let ran = std::panic::catch_unwind(AssertUnwindSafe(|| engine::run(config)));
            if let Err(why) = ran.unwrap_or_else(|_| Err("it panicked, which is a mistake in this program".to_owned()))
            {
                *report.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                count.ended();
            }
        });
        let engine = engine.map_err(SysError::io("start the emulator's thread")).map_err(LabError::set_up)?;
        let engine = Some(engine);
        Ok(Self {
            client,
            server,
            middle,
            scenario,
            backend: name,
            counters,
            commands,
            waker,
            engine,
            broken,
            recorder,
            _no_sleep: no_sleep,
        })
    }

    /// All hosts: the client, those on the way, the server.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        [&self.client].into_iter().chain(&self.middle).chain([&self.server])
    }

    /// What it emulates.
    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// How the emulator reaches the kernels.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        self.backend
    }

    /// What the emulator has counted.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        EngineStats { packet: self.scenario().packet_time(), ..self.counters.read() }
    }

    /// Why the emulator stopped, if it did before it was told to.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, once the emulator has looked at all ports: what was broken before this is asked is told.
    #[must_use]
    pub fn ended_by_now(&self) -> Option<String> {
        let (done, wait) = channel();
        let sent = self.commands.send(Command::Check { done });
        self.waker.wake();
        if sent.is_err() || wait.recv_timeout(Duration::from_secs(5)).is_err() {
            // It says why as the last it does.
            let is_ending = || self.engine.as_ref().is_some_and(|engine| !engine.is_finished());
            (0..500).take_while(|_| is_ending()).for_each(|_| {
                let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_millis(10)));
            });
        }
        self.ended()
    }

    /// Empties the path and seeds it anew, so that trials with the same seed meet the same random choices.
    ///
    /// # Errors
    /// [`LabError::Engine`] when the emulator has stopped.
    pub fn reset(&self, seed: u64) -> Result<(), LabError> {
        let (done, wait) = channel();
        let stopped = || LabError::Engine(self.ended().unwrap_or_else(|| "it doesn't answer".to_owned()));
        self.commands.send(Command::Reset { seed, done }).map_err(|_| stopped())?;
        self.waker.wake();
        wait.recv_timeout(Duration::from_secs(5)).map_err(|_| stopped())
    }

    /// Ends the emulator, and completes the recording if there is one.
    ///
    /// # Errors
    /// [`LabError::Record`].
    pub fn stop(mut self) -> Result<Option<RecordingCounts>, LabError> {
        self.end();
        self.recorder.take().map(complete).transpose()
    }

    fn end(&mut self) {
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        if let Some(engine) = self.engine.take() {
            let _ = engine.join();
        }
    }
}

/// Completes a recording.
fn complete(recorder: Recorder) -> Result<RecordingCounts, LabError> {
    let file = recorder.file().display().to_string();
    recorder.finish().map_err(|source| LabError::Record { file, source })
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.end();
        if let Some(recorder) = self.recorder.take() {
            let _ = recorder.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LinkEnd;

    #[test]
    fn a_recording_that_a_full_disk_ends_is_named() {
        let scenario = crate::presets::load("lan").unwrap();
        let recording = Recording { file: "/dev/full".into(), ends: LinkEnd::outer(&scenario) };
        let (recorder, shooter) = Recorder::start(&recording, &scenario).unwrap();
        drop(shooter);
        let error = complete(recorder).unwrap_err().to_string();
        assert!(error.starts_with("can't record into /dev/full: No space left on device"), "{error}");
    }
}
