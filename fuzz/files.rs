//! What is done with files of others, for libFuzzer and for the tests of `windtunnel` alike. Nothing here may panic or run for
//! long.
#![allow(dead_code, unreachable_pub, reason = "every fuzz target uses one of them")]

use std::net::IpAddr;
use std::path::Path;
use wt_bpf::ConnectionRule;
use wt_bpf::btf::Btf;
use wt_bpf::elf::Elf;
use wt_experiment::tables::{NamedColumns, TableRequest, analyse_table};
use wt_host::{
    Action, Backup, Details, Devices, FileStep, Identity, Now, ObservedConnection, ObservedPlace, Ownership, Plan,
    Request, Store, Survey, System,
};
use wt_journal::{Filter, Journal as _, SqliteJournal, WithSamples, import_json};
use wt_sys::SysResult;
use wt_sys::link::Link;
use wt_sys::route::Route;

/// A table of measurements.
pub fn table(bytes: &[u8]) {
    let request = TableRequest { file: "t.csv".to_owned(), columns: NamedColumns::default(), seed: 1 };
    if let Ok(answer) = analyse_table(bytes, &request) {
        assert!(!answer.verdict().is_empty());
    }
}

/// A path as TOML, and a trace of mahimahi.
pub fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = wt_lab::Scenario::parse("mine.toml", text);
    }
    let _ = wt_link::Trace::parse(bytes).map(|trace| (trace.len(), trace.period(), trace.moments_ms().take(8).count()));
}

/// Exported experiments and data files of flent, into a journal of this thread.
pub fn import(bytes: &[u8]) {
    thread_local! {
        static JOURNAL: std::cell::RefCell<(tempfile::TempDir, SqliteJournal)> = std::cell::RefCell::new({
            let folder = tempfile::tempdir().expect("a folder");
            let journal = SqliteJournal::open(&folder.path().join("journal.sqlite3")).expect("a journal");
            (folder, journal)
        });
    }
    JOURNAL.with_borrow_mut(|(_, journal)| drop(import_json(journal, bytes)));
}

/// A journal of somebody else: one of ours whose bytes are changed, four bytes of input for each: place, and value.
pub fn journal(bytes: &[u8]) {
    thread_local! {
        static WHOLE: (tempfile::TempDir, Vec<u8>) = {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("journal.sqlite3");
            drop(SqliteJournal::open(&path).expect("a journal"));
            let bytes = std::fs::read(&path).expect("its bytes");
            (folder, bytes)
        };
    }
    WHOLE.with(|(folder, whole)| {
        let mut file = whole.clone();
        for patch in bytes.chunks_exact(4) {
            let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) * 2 + usize::from(patch[2] & 1);
            let length = file.len();
            file[at % length] = patch[3];
        }
        let path = folder.path().join("changed.sqlite3");
        if std::fs::write(&path, &file).is_err() {
            return;
        }
        let Ok(journal) = SqliteJournal::open_to_read(&path) else { return };
        for found in journal.list(&Filter::default()).unwrap_or_default() {
            let _ = (journal.load(&found.id), journal.trials(&found.id, WithSamples::No), journal.rows(&found.id));
        }
    });
}

/// Programs for the kernel, and what a kernel says of its types.
pub fn object(bytes: &[u8]) {
    if let Ok(object) = Elf::parse(bytes) {
        let _ = object.section(".BTF").map(|section| format!("{section:?}").len());
        (0..32).for_each(|section| drop(object.relocations(section)));
    }
    if let Ok(types) = Btf::parse(bytes.to_vec()) {
        for id in 0..64 {
            let _ = (types.name(id), types.size(id), types.resolve(id), types.member_names(id));
        }
        let _ = types.find_struct("tcp_congestion_ops").map(|id| types.member(id, "name").map(drop));
    }
}

/// Plans, backups, states, and what network managers and sysctl have under /etc: every file of the host holds these bytes.
pub fn host(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Request::of_file(text);
        let _ = text.parse::<Route>().map(|route| (route.hops(), route.metrics(), route.key()));
    }
    let mut host = Host(bytes);
    let Ok(survey) = Survey::take(&mut host) else { return };
    if let Ok(backup) = Backup::parse(bytes, Path::new("backup")) {
        let _ = backup.plan(&survey);
    }
    if let Ok(request) = Request::of_pairs(["mtu=1400", "ttl=77"]) {
        let _ = Plan::make(&mut host, &survey, &request);
    }
    let store = Store::at("/var/lib/windtunnel".into());
    let _ = wt_host::history(&mut host, &store).map(|rows| rows.len());
    let _ = (wt_host::damaged(&mut host, &store), wt_host::pending(&mut host, &store));
    let _ = wt_host::Report::of(&survey, None, &[], &store.muted(&mut host));
}

/// A host with one device, all of whose files hold the same bytes.
struct Host<'a>(&'a [u8]);

impl System for Host<'_> {
    fn sysctl(&mut self, name: &str) -> SysResult<Option<String>> {
        Ok((name != "net.ipv4.tcp_rmem").then(|| "1".to_owned()))
    }
    fn devices(&mut self) -> SysResult<Devices> {
        let link = Link {
            index: 2,
            name: "eth0".to_owned(),
            kind: None,
            lower: None,
            master: None,
            mtu: 1_500,
            min_mtu: None,
            max_mtu: None,
            qdisc: "fq".to_owned(),
            tx_queue_len: 1_000,
            address: vec![2, 0, 0, 0, 0, 1],
            up: true,
            carrier: true,
            loopback: false,
        };
        Ok(Devices { links: vec![link], ..Devices::default() })
    }
    fn details(&mut self, _: &str) -> Details {
        Details::default()
    }
    fn routes(&mut self) -> SysResult<Vec<Route>> {
        Ok(Vec::new())
    }
    fn rules(&mut self) -> Vec<String> {
        Vec::new()
    }
    fn route_to(&mut self, _: IpAddr) -> SysResult<Route> {
        Err(wt_sys::link::no_such_device("eth0"))
    }
    fn connections(&mut self) -> Vec<ConnectionRule> {
        Vec::new()
    }
    fn connections_here(&mut self) -> Result<u64, String> {
        Ok(1)
    }
    fn observe(&mut self, _: &ObservedPlace) -> SysResult<ObservedConnection> {
        Ok(ObservedConnection::default())
    }
    fn act(&mut self, _: &Action) -> SysResult<()> {
        Ok(())
    }
    fn read_file(&mut self, _: &Path) -> SysResult<Option<Vec<u8>>> {
        Ok(Some(self.0.to_vec()))
    }
    fn list(&mut self, directory: &Path) -> SysResult<Vec<String>> {
        let names: &[&str] = if directory.ends_with("checkpoints") {
            &["1", "2"]
        } else {
            &["10-eth0.network", "50-cloud.yaml", "99-local.conf", "eth0.nmconnection", "2", "leases"]
        };
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    }
    fn ownership(&mut self, path: &Path) -> SysResult<Option<Ownership>> {
        let is_file = path.extension().is_some();
        Ok(Some(Ownership { uid: 0, mode: 0o700, is_file, is_directory: !is_file }))
    }
    fn file(&mut self, _: &FileStep) -> SysResult<()> {
        Ok(())
    }
    fn now(&mut self) -> Now {
        Now { boottime_ns: 1, unix_s: 1 }
    }
    fn identity(&mut self) -> Identity {
        Identity {
            boot_id: "boot".to_owned(),
            network: "net:[1]".to_owned(),
            network_cookie: None,
            network_of_init: Some(true),
            owns_etc: true,
            uid: 0,
            kernel: "6.1.0".to_owned(),
            net_admin: true,
        }
    }
}
