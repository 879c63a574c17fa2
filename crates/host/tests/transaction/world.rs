//! A network namespace with devices, addresses and routes, and children that change it.

use crate::faults::{Fault, Step};
use crate::roles::Orders;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wt_host::{RealSystem, Snapshot, State, Store};
use wt_sys::guard::Watch;
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::NetNs;

/// What the change is that everything is tried with: the host, a device with several parts, routes of both families.
pub(crate) const SETTINGS: &str =
    "host|sack=off;mtu=1400;initcwnd=20;mss=from-mtu;tcp_rmem=4096 65536 131072;tso=off;txqueuelen=500;ttl=128";

/// How long children may take: far more than they do.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A namespace with two devices, and a directory for files.
pub(crate) struct World {
    namespace: NetNs,
    _far: NetNs,
    pub(crate) directory: tempfile::TempDir,
    cases: usize,
}

/// What a child did.
#[derive(Debug)]
pub(crate) struct ChildOutput {
    /// Its exit code; `None` if it was killed.
    pub(crate) code: Option<i32>,
    /// The steps that it took.
    pub(crate) steps: Vec<Step>,
    /// What it printed.
    pub(crate) text: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let (namespace, far) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        namespace
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let (near, other) = (
                    VethEnd { name: "wt0", mac: [2, 0, 0, 0, 0, 1] },
                    VethEnd { name: "wt1", mac: [2, 0, 0, 0, 0, 2] },
                );
                netlink.create_veth(&near, &other, far.as_fd()).unwrap();
                // Router solicitations and link-local addresses come and go by themselves; nothing here may.
                wt_sys::ns::write_net_sysctl("ipv6/conf/wt0/addr_gen_mode", "1").unwrap();
                netlink.start("wt0", None, None, true).unwrap();
                netlink.add_address("wt0", "192.0.2.1".parse().unwrap(), 24).unwrap();
                netlink.add_address("wt0", "2001:db8::1".parse().unwrap(), 64).unwrap();
            })
            .unwrap();
        far.run(|| {
            let mut netlink = Netlink::open().unwrap();
            netlink.start("wt1", None, None, true).unwrap();
        })
        .unwrap();
        let world = Self { namespace, _far: far, directory: tempfile::tempdir().unwrap(), cases: 0 };
        world.add_routes();
        world
    }

    fn add_routes(&self) {
        let metrics = RouteMetrics { initcwnd: Some(12), hoplimit: Some(99), ..RouteMetrics::default() };
        self.inside(|| {
            let mut netlink = Netlink::open().unwrap();
            for (target, prefix, metrics) in [
                ("0.0.0.0", 0, RouteMetrics::default()),
                ("198.51.100.0", 24, metrics.clone()),
                ("::", 0, RouteMetrics::default()),
                ("2001:db8:5::", 48, RouteMetrics { mtu: Some(1450), ..metrics.clone() }),
            ] {
                netlink.set_route("wt0", target.parse().unwrap(), prefix, &metrics).unwrap();
            }
        });
    }

    /// Runs something in the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.run(work).unwrap()
    }

    /// Everything, as it is now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.inside(|| {
            let mut system = RealSystem::open(None).unwrap();
            let mut snapshot = Snapshot::read(&mut system).unwrap();
            // Congestion controls that other programs load meanwhile are told in every namespace.
            for (_, value) in snapshot.sysctls.iter_mut().filter(|(name, _)| name.ends_with("_congestion_control")) {
                let words = value.split_whitespace().filter(|word| !word.starts_with("wt_"));
                *value = words.collect::<Vec<_>>().join(" ");
            }
            snapshot
        })
    }

    /// Fresh orders with a directory of their own.
    pub(crate) fn orders(&mut self, role: &str) -> Orders {
        self.cases += 1;
        let root = self.directory.path().join(self.cases.to_string());
        std::fs::create_dir_all(root.join("etc/sysctl.d")).unwrap();
        // systemd-networkd is said to configure the device, so that a confirmation writes two files.
        std::fs::create_dir_all(root.join("run/systemd/netif/links")).unwrap();
        let index = self.inside(|| Netlink::open().unwrap().index("wt0").unwrap());
        let text = "ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/10-wt0.network\n";
        std::fs::write(root.join(format!("run/systemd/netif/links/{index}")), text).unwrap();
        Orders {
            role: role.to_owned(),
            root,
            fault: Fault::NONE,
            guard_fault: Fault::NONE,
            within_ms: 600_000,
            yes: false,
            jump: 0,
            settings: SETTINGS.to_owned(),
        }
    }

    /// Runs a child to its end; its guards may go on.
    pub(crate) fn start(&self, orders: &Orders) -> (ChildOutput, Rest) {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new("/proc/self/exe");
        command.args(orders.args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        wt_sys::process::in_network(
            &mut command,
            std::fs::File::from(self.namespace.as_fd().try_clone_to_owned().unwrap()),
        );
        wt_sys::process::inherit(&writer).unwrap();
        let child = command.spawn().unwrap();
        drop(writer);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!error.contains("panicked"), "{orders:?}: {error}");
        let steps = text.lines().find_map(|line| line.strip_prefix("steps ")).unwrap_or_default();
        let steps = steps.chars().map(Step::of_letter).collect();
        (ChildOutput { code: output.status.code(), steps, text }, Rest(reader))
    }

    /// Runs a child and waits for its guards too.
    pub(crate) fn run(&self, orders: &Orders) -> ChildOutput {
        let (ran, rest) = self.start(orders);
        rest.wait();
        ran
    }

    /// The state of the only checkpoint, or the first, if it can be read.
    pub(crate) fn state(&self, store: &Store) -> Option<State> {
        let mut system = RealSystem::open(None).unwrap();
        store.read_state(&mut system, "1".parse().unwrap()).ok()
    }
}

/// Waits until something is so that files in a folder tell.
pub(crate) fn until(folder: &Path, mut is_so: impl FnMut() -> bool) {
    let watch = Watch::on(folder).unwrap();
    while !is_so() {
        assert_eq!(wt_sys::poll::wait_readable(&[watch.as_fd()], Some(LONG)).unwrap(), 1, "nothing happens");
        watch.clear();
    }
}

/// Processes that may still run.
pub(crate) struct Rest(std::io::PipeReader);

impl Rest {
    /// Waits until they have ended.
    pub(crate) fn wait(mut self) {
        let ready = wt_sys::poll::wait_readable(&[self.0.as_fd()], Some(LONG)).unwrap();
        assert_eq!(ready, 1, "guards still run after a minute");
        let mut nothing = Vec::new();
        self.0.read_to_end(&mut nothing).unwrap();
    }

    /// Whether they still run after so long.
    pub(crate) fn still_runs_after(&self, time: Duration) -> bool {
        wt_sys::poll::wait_readable(&[self.0.as_fd()], Some(time)).unwrap() == 0
    }
}

/// Files that a confirmation writes, as they are: how many there are, and what they hold.
pub(crate) fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root.join("etc")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}
