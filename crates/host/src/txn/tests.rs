//! Changes on a kernel of paper, whose congestion controls come and go.

/// Measurements that end half-way, and stores that nobody may see.
mod odd_ends;

use super::apply::{ApplyOptions, apply};
use super::confirm::confirm;
use super::error::{StoreError, TxnError};
use super::guard::{GuardCommand, Next, step};
use super::history::{drift, history, pending, verify};
use super::recovery::{damaged, recover};
use super::revert::revert;
use super::store::Store;
use super::switch::in_force;
use crate::change::{
    CHECKPOINT_FORMAT, Change, Checkpoint, CheckpointId, FileChange, Phase, Place, Plan, SCHEMA_VERSION, ScopeName,
    State,
};
use crate::knob::Value;
use crate::read::{KernelVersion, Survey};
use crate::snapshot::{ALLOWED_CC, AVAILABLE_CC, CC, DevicePart, Scope, Snapshot};
use crate::system::{
    Action, Details, Devices, FileStep, Identity, Now, ObservedConnection, ObservedPlace, Ownership, RealSystem, System,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use wt_bpf::ConnectionRule;
use wt_sys::link::Link;
use wt_sys::route::Route;
use wt_sys::{SysError, SysResult};

const TTL: &str = "net.ipv4.ip_default_ttl";
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;

/// A kernel of paper beside real files.
struct Paper {
    files: RealSystem,
    sysctls: BTreeMap<String, String>,
    links: Vec<Link>,
    /// Whether the list of allowed controls can be written: outside of the first network namespace it can't.
    list_is_writable: bool,
    /// Settings that can't be written.
    stuck: Vec<&'static str>,
    /// There is no room for files.
    is_full: bool,
    /// Nor for those whose name has this in it.
    too_long: Option<&'static str>,
    /// Nobody may look at the store.
    is_closed: bool,
    boottime_ns: u64,
    cookie: u64,
    /// How often it was asked what tells it from other machines.
    identities: usize,
}

impl Paper {
    fn new() -> Self {
        let sysctls =
            [(TTL, "64"), (CC, "cubic"), (ALLOWED_CC, "reno cubic"), (AVAILABLE_CC, "reno cubic bbr westwood")];
        Self {
            files: RealSystem::open(None).unwrap(),
            sysctls: sysctls.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            links: Vec::new(),
            list_is_writable: true,
            stuck: Vec::new(),
            is_full: false,
            too_long: None,
            is_closed: false,
            boottime_ns: 1_000,
            cookie: 7,
            identities: 0,
        }
    }

    fn has(&self, control: &str) -> bool {
        self.sysctls[AVAILABLE_CC].split(' ').any(|name| name == control)
    }

    fn set(&mut self, name: &str, text: &str) {
        self.sysctls.insert(name.to_owned(), text.to_owned());
    }

    /// The controls that everybody may choose, sorted.
    fn allowed(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sysctls[ALLOWED_CC].split_whitespace().collect();
        names.sort_unstable();
        names
    }
}

fn error(number: i32) -> SysError {
    SysError { doing: "write".to_owned(), source: std::io::Error::from_raw_os_error(number) }
}

impl System for Paper {
    fn sysctl(&mut self, name: &str) -> SysResult<Option<String>> {
        Ok(self.sysctls.get(name).cloned())
    }
    fn devices(&mut self) -> SysResult<Devices> {
        Ok(Devices { links: self.links.clone(), ..Devices::default() })
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
        Err(error(ENOENT))
    }
    fn connections(&mut self) -> Vec<ConnectionRule> {
        Vec::new()
    }
    fn connections_here(&mut self) -> Result<u64, String> {
        Ok(self.cookie)
    }
    fn observe(&mut self, _: &ObservedPlace) -> SysResult<ObservedConnection> {
        Ok(ObservedConnection::default())
    }
    fn act(&mut self, action: &Action) -> SysResult<()> {
        match action {
            Action::Sysctl { name, .. } if self.stuck.iter().any(|stuck| stuck == name) => return Err(error(EACCES)),
            Action::Sysctl { name, value } if name == ALLOWED_CC => {
                if !self.list_is_writable {
                    return Err(error(EACCES));
                }
                if !value.split_whitespace().all(|control| self.has(control)) {
                    return Err(error(ENOENT));
                }
                self.set(name, value);
            }
            Action::Sysctl { name, value } => {
                if name == CC && !self.has(value) {
                    return Err(error(ENOENT));
                }
                // As tcp_set_default_congestion_control of the kernel does in the first network namespace.
                if name == CC && self.list_is_writable && !self.allowed().contains(&value.as_str()) {
                    let list = format!("{} {value}", self.sysctls[ALLOWED_CC]);
                    self.set(ALLOWED_CC, &list);
                }
                self.set(name, value);
            }
            Action::Mtu { device, mtu } => {
                let same = |link: &&mut Link| link.index == device.index && link.name == device.name;
                self.links.iter_mut().find(same).ok_or_else(|| error(ENOENT))?.mtu = *mtu;
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }
    fn read_file(&mut self, path: &Path) -> SysResult<Option<Vec<u8>>> {
        self.files.read_file(path)
    }
    fn list(&mut self, directory: &Path) -> SysResult<Vec<String>> {
        self.files.list(directory)
    }
    fn ownership(&mut self, path: &Path) -> SysResult<Option<Ownership>> {
        if self.is_closed { Err(error(EACCES)) } else { self.files.ownership(path) }
    }
    fn file(&mut self, step: &FileStep) -> SysResult<()> {
        if let FileStep::Create { path, .. } = step
            && (self.is_full || self.too_long.is_some_and(|name| path.to_string_lossy().contains(name)))
        {
            return Err(error(ENOSPC));
        }
        self.files.file(step)
    }
    fn now(&mut self) -> Now {
        Now { boottime_ns: self.boottime_ns, unix_s: 0 }
    }
    fn uid(&mut self) -> u32 {
        self.files.uid()
    }
    fn identity(&mut self) -> Identity {
        self.identities += 1;
        Identity {
            boot_id: "this boot".to_owned(),
            network: "net:[1]".to_owned(),
            network_cookie: Some(self.cookie),
            ..self.files.identity()
        }
    }
}

fn link(name: &str, index: u32, mtu: u32) -> Link {
    Link {
        index,
        name: name.to_owned(),
        kind: None,
        lower: None,
        master: None,
        mtu,
        min_mtu: None,
        max_mtu: None,
        qdisc: "noqueue".to_owned(),
        tx_queue_len: 1_000,
        address: Vec::new(),
        up: true,
        carrier: true,
        loopback: false,
    }
}

/// A change that is in force, and its store.
struct ChangeInForce {
    _folder: tempfile::TempDir,
    store: Store,
    checkpoint: Checkpoint,
    state: State,
}

/// Makes a change of kernel settings, and of the MTU of d0 if that is there, and stores it as applied until 5,000 ns.
fn made(paper: &mut Paper, sysctls: &[(&str, &str)]) -> ChangeInForce {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("state"));
    store.prepare(paper).unwrap();
    let id = store.create(paper).unwrap();
    let before = Snapshot::read(paper).unwrap();
    let mut wanted = before.clone();
    let mut scope = Scope::default();
    for (name, text) in sysctls {
        wanted.sysctls.insert((*name).to_owned(), (*text).to_owned());
        scope.sysctls.insert((*name).to_owned());
        paper.act(&Action::Sysctl { name: (*name).to_owned(), value: (*text).to_owned() }).unwrap();
    }
    let mut changes = Vec::new();
    if let Some(device) = before.device("d0") {
        wanted.devices.get_mut("d0").unwrap().mtu = 1_300;
        scope.devices.insert("d0".to_owned(), [DevicePart::Mtu].into());
        paper.act(&Action::Mtu { device, mtu: 1_300 }).unwrap();
        changes.push(Change {
            key: "mtu".to_owned(),
            old: Value::Number(1_500),
            new: Value::Number(1_300),
            scope: ScopeName::Link,
            target: "d0".to_owned(),
            family: None,
            why: String::new(),
            asked: None,
            unchanged: false,
            place: Place::Link("d0".to_owned()),
        });
    }
    let checkpoint = Checkpoint {
        format: CHECKPOINT_FORMAT.to_owned(),
        schema_version: SCHEMA_VERSION,
        id,
        created_unix_s: 0,
        identity: paper.identity(),
        to: "host".to_owned(),
        changes,
        actions: Vec::new(),
        wanted: wanted.within(&scope),
        before,
        scope,
        basis: None,
    };
    let now = paper.now();
    let state = State { phase: Phase::Applied, deadline_ns: Some(5_000), ..State::prepared(now, 1) };
    store.write(paper, &checkpoint).unwrap();
    store.write_state(paper, id, &state).unwrap();
    ChangeInForce { _folder: folder, store, checkpoint, state }
}

impl ChangeInForce {
    fn revert(&mut self, paper: &mut Paper) -> Result<(), Vec<String>> {
        revert(paper, &self.store, &self.checkpoint, &mut self.state, true)
    }
}

#[test]
fn of_the_allowed_controls_only_what_the_change_added_is_taken_out() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(CC, "bbr"), (TTL, "77")]);
    assert_eq!(paper.allowed(), ["bbr", "cubic", "reno"]);
    // Somebody else allows another one meanwhile.
    paper.set(ALLOWED_CC, "reno cubic bbr westwood");
    made.revert(&mut paper).unwrap();
    assert_eq!((paper.sysctls[CC].as_str(), paper.sysctls[TTL].as_str()), ("cubic", "64"));
    assert_eq!(paper.allowed(), ["cubic", "reno", "westwood"]);
    assert_eq!((made.state.phase, made.state.notes.len()), (Phase::Reverted, 0));
}

#[test]
fn a_control_that_was_allowed_and_is_gone_keeps_nothing_from_being_put_back() {
    for list_is_writable in [true, false] {
        let mut paper = Paper { list_is_writable, ..Paper::new() };
        paper.set(ALLOWED_CC, "reno cubic westwood");
        let mut made = made(&mut paper, &[(CC, "reno"), (TTL, "77")]);
        paper.set(AVAILABLE_CC, "reno cubic bbr");
        paper.set(ALLOWED_CC, "reno cubic");
        made.revert(&mut paper).unwrap();
        assert_eq!((paper.sysctls[CC].as_str(), paper.sysctls[TTL].as_str()), ("cubic", "64"));
        assert_eq!((paper.allowed(), made.state.phase), (vec!["cubic", "reno"], Phase::Reverted));
    }
}

#[test]
fn a_default_that_the_kernel_has_no_more_keeps_nothing_else_from_being_put_back_and_is_told() {
    let mut paper = Paper::new();
    paper.set(CC, "westwood");
    let mut made = made(&mut paper, &[(CC, "reno"), (TTL, "77")]);
    paper.set(AVAILABLE_CC, "reno cubic bbr");
    made.revert(&mut paper).unwrap();
    assert_eq!((paper.sysctls[CC].as_str(), paper.sysctls[TTL].as_str()), ("reno", "64"));
    assert_eq!((made.state.phase, &made.state.errors), (Phase::Reverted, &Vec::new()));
    assert!(made.state.notes[0].contains("westwood is gone"), "{:?}", made.state.notes);
}

#[test]
fn a_list_that_was_changed_on_purpose_gets_back_what_still_exists() {
    let mut paper = Paper::new();
    paper.set(ALLOWED_CC, "reno cubic westwood bbr");
    let mut made = made(&mut paper, &[(ALLOWED_CC, "reno")]);
    paper.set(AVAILABLE_CC, "reno cubic bbr");
    made.revert(&mut paper).unwrap();
    assert_eq!(paper.allowed(), ["bbr", "cubic", "reno"]);
}

#[test]
fn a_list_that_cannot_be_written_is_a_note_and_no_failure() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(CC, "bbr"), (TTL, "77")]);
    paper.list_is_writable = false;
    made.revert(&mut paper).unwrap();
    assert_eq!((paper.sysctls[TTL].as_str(), made.state.phase), ("64", Phase::Reverted));
    assert!(made.state.notes[0].contains(ALLOWED_CC), "{:?}", made.state.notes);
    let row = &history(&mut paper, &made.store).unwrap()[0];
    assert_eq!((row.phase, row.notes.len(), row.here), (Some("reverted"), 1, true));
}

#[test]
fn what_could_not_be_put_back_is_not_confirmed_after_its_deadline() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(TTL, "77")]);
    paper.boottime_ns = 6_000;
    paper.stuck = vec![TTL];
    made.revert(&mut paper).unwrap_err();
    assert_eq!(made.state.phase, Phase::RevertFailed);
    // Its guard still tries: that is what keeps it from being recovered first.
    let lock = std::fs::File::create(made.store.guard_lock(made.checkpoint.id)).unwrap();
    lock.lock().unwrap();
    let error = confirm(&mut paper, &made.store, None).unwrap_err();
    assert!(matches!(error, TxnError::Expired { .. }), "{error}");
    assert!(error.to_string().contains("its time is up"), "{error}");
}

#[test]
fn what_somebody_left_half_way_is_brought_to_its_end_before_anything_is_built_on_it_guarded_or_not() {
    for (phase, wanted, then) in [
        (Phase::Applying, Phase::Reverted, "64"),
        (Phase::Reverting, Phase::Reverted, "64"),
        (Phase::Undoing, Phase::Undone, "64"),
        // No file is missing, so it counts.
        (Phase::Confirming, Phase::Confirmed, "77"),
    ] {
        let mut paper = Paper::new();
        let mut made = made(&mut paper, &[(TTL, "77")]);
        let id = made.checkpoint.id;
        made.state.phase = phase;
        made.store.write_state(&mut paper, id, &made.state).unwrap();
        // Its guard is there, but has yet to get the lock.
        let lock = std::fs::File::create(made.store.guard_lock(id)).unwrap();
        lock.lock().unwrap();
        assert!(recover(&mut paper, &made.store).unwrap().is_empty(), "whoever only looks leaves it to the guard");
        let error = confirm(&mut paper, &made.store, None).unwrap_err();
        assert!(matches!(error, TxnError::TooLate { .. } | TxnError::NothingPending), "{phase}: {error}");
        let state = made.store.read_state(&mut paper, id).unwrap();
        assert_eq!((state.phase, paper.sysctls[TTL].as_str()), (wanted, then), "{phase}");
    }
}

#[test]
fn a_confirmation_that_was_cut_off_on_a_full_disk_is_tried_again_and_put_back_when_its_time_is_up() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(TTL, "77")]);
    let id = made.checkpoint.id;
    let path = made.store.of(id).join("a file that was to make it stay");
    made.state.files = vec![FileChange { path, old: None, new: Some("00".to_owned()), mode: 0o644 }];
    made.state.phase = Phase::Confirming;
    made.store.write_state(&mut paper, id, &made.state).unwrap();
    made.store.stage_last_state(&mut paper, id, &State { phase: Phase::Reverted, ..made.state.clone() }).unwrap();
    paper.is_full = true;
    // Nothing changes by itself until somebody makes room, or until 5,000 ns, whichever is first.
    let next = step(&mut paper, &made.store, &made.checkpoint, &made.state);
    assert_eq!((next, paper.sysctls[TTL].as_str()), (Next::Again { at_ns: 5_000 }, "77"));
    paper.boottime_ns = 5_000;
    let next = step(&mut paper, &made.store, &made.checkpoint, &made.state);
    assert_eq!((next, paper.sysctls[TTL].as_str()), (Next::Done, "64"));
    assert_eq!(made.store.read_state(&mut paper, id).unwrap().phase, Phase::Reverted);
}

#[test]
fn the_guard_of_what_is_over_asks_for_no_lock_which_somebody_may_have_for_another_change() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(TTL, "77")]);
    made.revert(&mut paper).unwrap();
    assert_eq!(step(&mut paper, &made.store, &made.checkpoint, &made.state), Next::Done);
    assert!(!made.store.directory().join("lock").exists());
    paper.set(TTL, "78");
    for phase in [Phase::Undone, Phase::Lapsed, Phase::Forgotten] {
        made.state.phase = phase;
        made.store.write_state(&mut paper, made.checkpoint.id, &made.state).unwrap();
        assert_eq!(step(&mut paper, &made.store, &made.checkpoint, &made.state), Next::Done);
    }
    assert!(!made.store.directory().join("lock").exists() && paper.sysctls[TTL] == "78");
}

#[test]
fn what_is_held_is_left_to_its_holder_until_that_is_gone_or_counts_as_hung() {
    for is_gone in [true, false] {
        let mut paper = Paper::new();
        let mut made = made(&mut paper, &[(TTL, "77")]);
        let id = made.checkpoint.id;
        made.state = State { phase: Phase::Applying, apply_until_ns: 9_000, ..made.state };
        made.store.write_state(&mut paper, id, &made.state).unwrap();
        let hold = made.store.hold(id).unwrap();
        assert!(recover(&mut paper, &made.store).unwrap().is_empty());
        let refused = confirm(&mut paper, &made.store, None).unwrap_err().to_string();
        assert!(refused.contains(&format!("right now (process {})", std::process::id())), "{refused}");
        paper.cookie = 8;
        assert!(
            matches!(confirm(&mut paper, &made.store, None), Err(TxnError::NothingPending)),
            "in another namespace"
        );
        paper.cookie = 7;
        assert_eq!(paper.sysctls[TTL], "77");
        if is_gone {
            drop(hold);
        } else {
            paper.boottime_ns = 9_000;
        }
        assert_eq!(recover(&mut paper, &made.store).unwrap().len(), 1);
        assert_eq!(paper.sysctls[TTL], "64");
    }
}

#[test]
fn a_renamed_device_is_put_back_under_its_new_name_and_another_of_its_old_name_is_left_alone() {
    let mut paper = Paper { links: vec![link("d0", 5, 1_500)], ..Paper::new() };
    let mut made = made(&mut paper, &[]);
    paper.links = vec![link("e0", 5, 1_300), link("d0", 6, 1_444)];
    let now = Snapshot::read(&mut paper).unwrap();
    let here = paper.identity();
    let found = drift(&made.checkpoint, &now, KernelVersion(6, 1, 0), &here);
    assert!(found.len() == 1 && found[0].to_string().contains("is called e0 now"), "{found:?}");
    made.revert(&mut paper).unwrap();
    assert_eq!(paper.links.iter().map(|link| link.mtu).collect::<Vec<_>>(), [1_500, 1_444]);
    assert_eq!(made.state.notes, ["the device d0 is called e0 now"]);
}

#[test]
fn a_device_that_was_replaced_or_is_gone_is_told_and_not_guessed() {
    for (links, told) in [(vec![link("d0", 6, 1_300)], "is another one now"), (vec![], "is gone")] {
        let mut paper = Paper { links: vec![link("d0", 5, 1_500)], ..Paper::new() };
        let mut made = made(&mut paper, &[]);
        paper.links.clone_from(&links);
        made.revert(&mut paper).unwrap();
        assert_eq!(paper.links, links);
        assert!(made.state.notes[0].contains(told), "{:?}", made.state.notes);
    }
}

#[test]
fn another_namespace_of_the_same_number_is_told_apart_by_its_cookie() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    assert!(made.checkpoint.is_of(&paper.identity()));
    paper.cookie = 8;
    assert!(!made.checkpoint.is_of(&paper.identity()));
    // Kernels before 5.14 have no cookies, and files of an older program neither.
    let old = Identity { network_cookie: None, ..paper.identity() };
    assert!(made.checkpoint.is_of(&old));
}

#[test]
fn a_change_of_an_earlier_boot_is_of_here_unless_it_was_made_in_a_namespace_that_is_gone() {
    let mut paper = Paper::new();
    let mut made = made(&mut paper, &[(TTL, "77")]);
    let here = Identity { network_of_init: Some(true), owns_etc: true, ..paper.identity() };
    let mut of = |network_of_init, owns_etc, here: &Identity| {
        made.checkpoint.identity =
            Identity { boot_id: "an earlier one".to_owned(), network_of_init, owns_etc, ..here.clone() };
        (made.checkpoint.concerns(here), made.checkpoint.ended_with_its_network(here))
    };
    assert_eq!(of(Some(true), true, &here), (true, false));
    // A service that may not look at process 1, and whoever looks at it without that right.
    assert_eq!(of(None, true, &here), (true, false));
    assert_eq!(of(Some(true), true, &Identity { network_of_init: None, ..here.clone() }), (true, false));
    // From within another namespace the host's own are neither ours nor over.
    assert_eq!(of(Some(true), true, &Identity { network_of_init: Some(false), ..here.clone() }), (false, false));
    assert_eq!(of(Some(false), false, &here), (false, true));
    // Whoever takes the lock next closes that one, and touches nothing.
    let id = made.checkpoint.id;
    made.store.write(&mut paper, &made.checkpoint).unwrap();
    assert!(matches!(confirm(&mut paper, &made.store, None), Err(TxnError::NothingPending)));
    let phase = made.store.read_state(&mut paper, id).unwrap().phase;
    assert_eq!((phase, paper.sysctls[TTL].as_str()), (Phase::Lapsed, "77"));
}

#[test]
fn a_damaged_state_is_found_unless_what_it_belongs_to_is_over() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    assert_eq!(damaged(&mut paper, &made.store).unwrap(), []);
    let id: CheckpointId = made.checkpoint.id;
    let (checkpoint, state) = (made.store.backup(id), made.store.of(id).join("state.json"));
    let whole = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &whole[..whole.len() / 2]).unwrap();
    let found = damaged(&mut paper, &made.store).unwrap();
    assert!(found.len() == 1 && found[0].text.contains("checkpoint.json"), "{found:?}");
    made.store.write_state(&mut paper, id, &State { phase: Phase::Undone, ..made.state.clone() }).unwrap();
    assert_eq!(damaged(&mut paper, &made.store).unwrap(), []);
    std::fs::remove_file(&state).unwrap();
    assert_eq!(damaged(&mut paper, &made.store).unwrap(), [], "what was never begun");
    std::fs::write(&state, b"{\"format\":").unwrap();
    let found = damaged(&mut paper, &made.store).unwrap();
    assert!(found.len() == 1 && found[0].id == "damaged-state" && found[0].text.contains("state.json"), "{found:?}");
}

#[test]
fn a_change_that_was_never_begun_keeps_nobody_from_looking_at_the_others() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    let id = made.store.create(&mut paper).unwrap();
    let survey = Survey::take(&mut paper).unwrap();
    assert_eq!(verify(&mut paper, &made.store, &survey).unwrap().checked, [made.checkpoint.id]);
    assert_eq!(in_force(&mut paper, &made.store, None).unwrap().0, made.checkpoint.id);
    assert!(matches!(in_force(&mut paper, &made.store, Some(id)), Err(TxnError::Store(StoreError::NoSuch(_)))));
    let row = &history(&mut paper, &made.store).unwrap()[0];
    assert_eq!((row.id, row.phase, &row.error), (id, Some("never-begun"), &None));
    let over = State { phase: Phase::Undone, ..made.state.clone() };
    made.store.write_state(&mut paper, made.checkpoint.id, &over).unwrap();
    assert!(matches!(confirm(&mut paper, &made.store, None), Err(TxnError::NothingPending)));
}

#[test]
fn a_change_that_finds_no_room_leaves_nothing_stored() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    let over = State { phase: Phase::Undone, ..made.state.clone() };
    made.store.write_state(&mut paper, made.checkpoint.id, &over).unwrap();
    let survey =
        Survey { identity: Identity { net_admin: true, ..paper.identity() }, ..Survey::take(&mut paper).unwrap() };
    let plan = Plan::new("host".to_owned(), survey.snapshot.clone());
    let guard = GuardCommand { program: "false".into(), args: Vec::new() };
    let options = ApplyOptions { confirm_within: Duration::from_secs(1), yes: false, observe: false, guard };
    // What is short, as a state is, finds room where a checkpoint doesn't.
    for (is_full, too_long) in [(true, None), (false, Some("checkpoint.json"))] {
        (paper.is_full, paper.too_long) = (is_full, too_long);
        apply(&mut paper, &made.store, &survey, &plan, &options).unwrap_err();
        assert_eq!(made.store.ids(&mut paper).unwrap(), [made.checkpoint.id]);
    }
}

#[test]
fn a_folder_with_a_state_and_no_checkpoint_is_one_of_a_change_that_was_never_begun() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    let id = made.checkpoint.id;
    std::fs::remove_file(made.store.backup(id)).unwrap();
    for (phase, wanted) in [(Phase::Reverted, Some("never-begun")), (Phase::Applied, None)] {
        made.store.write_state(&mut paper, id, &State { phase, ..made.state.clone() }).unwrap();
        let row = &history(&mut paper, &made.store).unwrap()[0];
        assert_eq!((row.phase, row.error.is_none()), (wanted, wanted.is_some()));
    }
}

#[test]
fn changes_that_are_over_cost_no_further_look_at_the_machine() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "65")]);
    let over = State { phase: Phase::Undone, ..made.state.clone() };
    made.store.write_state(&mut paper, made.checkpoint.id, &over).unwrap();
    let mut looks = |changes: u64| {
        for _ in 1..changes {
            let id = made.store.create(&mut paper).unwrap();
            made.store.write(&mut paper, &Checkpoint { id, ..made.checkpoint.clone() }).unwrap();
            made.store.write_state(&mut paper, id, &over).unwrap();
        }
        paper.identities = 0;
        assert!(recover(&mut paper, &made.store).unwrap().is_empty());
        assert!(pending(&mut paper, &made.store).unwrap().is_none());
        assert!(damaged(&mut paper, &made.store).unwrap().is_empty());
        paper.identities
    };
    let one = looks(1);
    assert_eq!(looks(50), one);
}
