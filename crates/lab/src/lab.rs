use crate::engine::{self, Command, EngineConfig};
use crate::host::{Backend, Host, advice};
use crate::scenario::Scenario;
use crate::stats::{Counters, EngineStats};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
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
    ns::enter_user_namespace()
        .or_else(|error| {
            let may = process::has_capability(process::CAP_SYS_ADMIN);
            if may { ns::enter_network_namespace().map_err(|_| error) } else { Err(error) }
        })
        .map_err(LabError::UserNamespace)
}

/// Two hosts joined by an emulated path, running until dropped. Whatever ends the process ends it too: namespaces and
/// devices live as long as its descriptors.
#[derive(Debug)]
pub struct Lab {
    /// Host A: where the user sits.
    pub client: Host,
    /// Host B: the far end.
    pub server: Host,
    scenario: Scenario,
    backend: &'static str,
    counters: Arc<Counters>,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    engine: Option<JoinHandle<()>>,
    broken: Arc<Mutex<Option<String>>>,
}

impl Lab {
    /// Sets up the hosts and starts the emulator. The process must have [`enter`]ed.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn start(scenario: Scenario, backend: Backend, seed: u64) -> Result<Self, LabError> {
        let path = scenario.path();
        path.validate().map_err(|error| LabError::Engine(error.to_string()))?;
        let (client, client_port) = Host::create(0, scenario.client_mtu, backend).map_err(LabError::set_up)?;
        let (server, server_port) = Host::create(1, scenario.server_mtu, backend).map_err(LabError::set_up)?;
        let counters = Arc::new(Counters::default());
        let waker = Arc::new(Waker::new().map_err(LabError::set_up)?);
        let (commands, receiver) = channel();
        let name = client_port.backend();
        let config = EngineConfig {
            ports: [client_port, server_port],
            path,
            icmp: scenario.links.iter().map(|link| link.icmp).collect(),
            seed,
            counters: Arc::clone(&counters),
            commands: receiver,
            waker: Arc::clone(&waker),
        };
        let broken = Arc::new(Mutex::new(None));
        let report = Arc::clone(&broken);
        let engine = std::thread::Builder::new().name("wt-engine".to_owned()).spawn(move || {
            if let Err(why) = engine::run(config) {
                *report.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        });
        let engine = engine.map_err(SysError::io("start the emulator's thread")).map_err(LabError::set_up)?;
        Ok(Self { client, server, scenario, backend: name, counters, commands, waker, engine: Some(engine), broken })
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
        self.counters.read()
    }

    /// Empties the path and seeds it anew, so that trials with the same seed meet the same random choices.
    ///
    /// # Errors
    /// [`LabError::Engine`] when the emulator has stopped.
    pub fn reset(&self, seed: u64) -> Result<(), LabError> {
        let (done, wait) = channel();
        let stopped = || LabError::Engine(self.why_broken());
        self.commands.send(Command::Reset { seed, done }).map_err(|_| stopped())?;
        self.waker.wake();
        wait.recv_timeout(Duration::from_secs(5)).map_err(|_| stopped())
    }

    fn why_broken(&self) -> String {
        let why = self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone();
        why.unwrap_or_else(|| "it doesn't answer".to_owned())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        self.waker.wake();
        if let Some(engine) = self.engine.take() {
            let _ = engine.join();
        }
    }
}
