//! The claims.

use crate::faults::{Fault, Kind, Step, Tally};
use crate::roles::Orders;
use crate::world::{ChildOutput, World, files, until};
use std::time::Duration;
use wt_host::{Phase, Snapshot};

type Case = (&'static str, fn() -> String);

pub(crate) const ALL: &[Case] = &[
    ("a_change_is_made_whole_and_taken_back_whole", whole),
    ("a_fault_at_any_step_of_apply_leaves_all_of_the_old_or_all_of_the_new", faults_of_apply),
    ("a_fault_at_any_step_of_apply_with_yes_leaves_no_file_or_every_file", faults_of_apply_yes),
    ("a_fault_at_any_step_of_confirm_leaves_no_file_or_every_file", faults_of_confirm),
    ("a_fault_at_any_step_of_undo_leaves_all_of_the_old_or_all_of_the_new", faults_of_undo),
    ("a_fault_at_any_step_of_holding_one_change_after_the_other_leaves_all_of_the_old", faults_of_holding),
    ("a_guard_killed_at_any_step_is_replaced_by_its_stand_in", faults_of_guard),
    ("without_any_guard_the_next_command_puts_it_back", both_guards_killed),
    ("an_unconfirmed_change_is_put_back_in_time_whatever_the_clock_on_the_wall_does", clock_jumps),
    ("what_cannot_be_written_back_now_is_not_changed_at_all", unwritable_before),
    ("what_cannot_be_written_back_later_leaves_all_of_the_new_until_it_can", unwritable_after),
    ("of_two_changes_at_once_one_is_refused", two_at_once),
    ("what_somebody_else_sets_while_a_change_is_planned_is_not_overwritten", changed_meanwhile),
    ("a_hung_process_does_not_keep_its_guard_from_putting_everything_back", hung),
    ("who_holds_one_change_after_the_other_isnt_ended_by_the_guards_of_those_before", held_in_turn),
    ("a_change_that_waits_is_put_back_or_confirmed_in_time_while_another_is_held_in_another_namespace", held_beside),
    ("what_a_hung_process_holds_is_put_back_in_time_and_stays_so_when_it_goes_on", held_by_a_hung_process),
];

/// Everything that was before, and a world in which it is so.
struct Bench {
    world: World,
    old: Snapshot,
    new: Snapshot,
}

impl Bench {
    fn new() -> Self {
        let mut world = World::new();
        let old = world.snapshot();
        let orders = world.orders("apply");
        let (ran, rest) = world.start(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let new = world.snapshot();
        assert_ne!(old, new);
        let undone = world.run(&Orders { role: "undo".to_owned(), ..orders });
        assert_eq!(undone.code, Some(0), "{undone:?}");
        rest.wait();
        assert_eq!(world.snapshot(), old);
        Self { world, old, new }
    }

    fn is_old_or_new(&self, fault: Fault, ran: &ChildOutput) -> bool {
        let now = self.world.snapshot();
        let is_new = now == self.new;
        assert!(is_new || now == self.old, "fault {fault}: a mixture\n{ran:?}\nold {:#?}\nnow {now:#?}", self.old);
        is_new
    }

    /// Whether every file of a confirmation is there and as it should be. A fault can hide who configures the device;
    /// then there is none for that.
    fn has_every_file(&self, orders: &Orders, wanted: &[(std::path::PathBuf, String)]) -> bool {
        let (found, all) =
            (files(&orders.root), self.world.state(&orders.store()).map_or(0, |state| state.files.len()));
        found.len() == all && found.iter().all(|file| wanted.contains(file))
    }

    /// Takes back whatever is in force, so that the next case finds the old state.
    fn clean_up(&self, orders: &Orders, fault: Fault) {
        let undone = self.world.run(&Orders {
            role: "undo".to_owned(),
            fault: Fault::NONE,
            guard_fault: Fault::NONE,
            ..orders.clone()
        });
        assert!(undone.code == Some(0) || undone.text.contains("no change to undo"), "fault {fault}: {undone:?}");
        assert!(self.world.snapshot() == self.old, "fault {fault}: undo left something behind");
        assert_eq!(files(&orders.root), [], "fault {fault}");
    }
}

/// Every fault that can happen at the steps that a child took.
fn points(ran: &ChildOutput) -> Vec<Fault> {
    let faults = |(at, step): (usize, &Step)| step.faults().into_iter().map(move |kind| Fault { at: at + 1, kind });
    ran.steps.iter().enumerate().flat_map(faults).collect()
}

fn whole() -> String {
    let bench = Bench::new();
    assert!(bench.new.sysctls["net.ipv4.tcp_sack"] == "0" && bench.new.sysctls["net.ipv4.ip_default_ttl"] == "128");
    assert_eq!(bench.new.sysctls["net.ipv4.tcp_rmem"], "4096\t65536\t131072");
    let device = &bench.new.devices["wt0"];
    assert_eq!((device.mtu, device.queue_len), (1400, 500));
    assert!(bench.new.routes.iter().any(|route| route.metrics().get(wt_sys::route::Metric::Initcwnd) == Some(20)));
    String::new()
}

fn faults_of_apply() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let orders = bench.world.orders("apply");
    let (counted, rest) = bench.world.start(&orders);
    bench.clean_up(&orders, Fault::NONE);
    rest.wait();
    let points = points(&counted);
    for fault in &points {
        let orders = Orders { fault: *fault, ..bench.world.orders("apply") };
        let (ran, rest) = bench.world.start(&orders);
        if ran.code == Some(0) {
            // It was done in spite of the fault, or the fault did no harm.
            assert!(bench.is_old_or_new(*fault, &ran), "fault {fault}: it said that it is done, and it isn't");
        } else {
            // Killed, its guards put everything back or find it done; refused, it has put everything back itself.
            if fault.kind.is_kill()
                && bench.world.state(&orders.store()).is_some_and(|state| state.phase == Phase::Applied)
            {
                assert!(bench.is_old_or_new(*fault, &ran), "fault {fault}");
            } else {
                rest.wait();
                assert!(!bench.is_old_or_new(*fault, &ran), "fault {fault}: not put back: {ran:?}");
                bench.clean_up(&orders, *fault);
                tally.add(fault.kind);
                continue;
            }
        }
        bench.clean_up(&orders, *fault);
        rest.wait();
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

fn faults_of_apply_yes() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let orders = Orders { yes: true, ..bench.world.orders("apply") };
    let counted = bench.world.run(&orders);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    let wanted = files(&orders.root);
    assert_eq!(wanted.len(), 2, "{wanted:?}");
    bench.clean_up(&orders, Fault::NONE);
    let points = points(&counted);
    for fault in &points {
        let orders = Orders { fault: *fault, yes: true, ..bench.world.orders("apply") };
        let (ran, rest) = bench.world.start(&orders);
        settle(&bench, &orders);
        if bench.world.state(&orders.store()).is_none_or(|state| state.phase != Phase::Applied) {
            rest.wait();
        } else {
            // Killed between applied and confirmed, it waits for a confirmation. On a full disk it couldn't be stored
            // that everything was put back.
            assert!(fault.kind.is_kill() || fault.kind == Kind::DiskFull, "fault {fault}: {ran:?}");
        }
        let is_new = bench.is_old_or_new(*fault, &ran);
        if ran.code == Some(0) {
            assert!(is_new, "fault {fault}: {ran:?}");
        }
        let found = files(&orders.root);
        assert!(found.is_empty() || (bench.has_every_file(&orders, &wanted) && is_new), "fault {fault}: {found:?}");
        bench.clean_up(&orders, *fault);
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

fn faults_of_confirm() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let applied = |bench: &mut Bench| {
        let orders = bench.world.orders("apply");
        let (ran, rest) = bench.world.start(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (Orders { role: "confirm".to_owned(), ..orders }, rest)
    };
    let (orders, rest) = applied(&mut bench);
    let counted = bench.world.run(&orders);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    rest.wait();
    let wanted = files(&orders.root);
    assert_eq!(wanted.len(), 2, "{wanted:?}");
    bench.clean_up(&orders, Fault::NONE);
    let points = points(&counted);
    for fault in &points {
        let (orders, rest) = applied(&mut bench);
        let orders = Orders { fault: *fault, ..orders };
        let (ran, _) = bench.world.start(&orders);
        // A confirmation that was cut short is brought to an end by the guard: it counts, or its files go.
        settle(&bench, &orders);
        assert!(bench.is_old_or_new(*fault, &ran), "fault {fault}: a confirmation doesn't take anything back");
        let (found, state) = (files(&orders.root), bench.world.state(&orders.store()).unwrap());
        match state.phase {
            Phase::Confirmed => assert!(bench.has_every_file(&orders, &wanted), "fault {fault}: {found:?}"),
            Phase::Applied => assert_eq!(found, [], "fault {fault}"),
            other => panic!("fault {fault}: {other}"),
        }
        bench.clean_up(&orders, *fault);
        rest.wait();
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

/// Waits until nobody is in the middle of a confirmation.
fn settle(bench: &Bench, orders: &Orders) {
    let store = orders.store();
    if bench.world.state(&store).is_none() {
        return;
    }
    let watch = wt_sys::guard::Watch::on(&store.of("1".parse().unwrap())).unwrap();
    for _ in 0..100 {
        if bench.world.state(&store).is_none_or(|state| state.phase != Phase::Confirming) {
            return;
        }
        use std::os::fd::AsFd as _;
        wt_sys::poll::wait_readable(&[watch.as_fd()], Some(Duration::from_millis(200))).unwrap();
        watch.clear();
    }
    panic!("the guard didn't end the confirmation");
}

fn faults_of_undo() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let confirmed = |bench: &mut Bench| {
        let orders = Orders { yes: true, ..bench.world.orders("apply") };
        let ran = bench.world.run(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        Orders { role: "undo".to_owned(), yes: false, ..orders }
    };
    let orders = confirmed(&mut bench);
    let wanted = files(&orders.root);
    let counted = bench.world.run(&orders);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    bench.clean_up(&orders, Fault::NONE);
    let points = points(&counted);
    for fault in &points {
        let orders = Orders { fault: *fault, ..confirmed(&mut bench) };
        let ran = bench.world.run(&orders);
        let is_new = bench.is_old_or_new(*fault, &ran);
        let found = files(&orders.root);
        if is_new {
            assert_ne!(ran.code, Some(0), "fault {fault}: it said that it is done, and it isn't");
            assert_eq!(found, wanted, "fault {fault}: {ran:?}");
        } else {
            assert_eq!(found, [], "fault {fault}: {ran:?}");
        }
        bench.clean_up(&orders, *fault);
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

fn faults_of_guard() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let within_ms = 1;
    let orders = Orders { within_ms, ..bench.world.orders("apply") };
    let ran = bench.world.run(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!bench.is_old_or_new(Fault::NONE, &ran));
    let steps = guard_steps(&orders);
    bench.clean_up(&orders, Fault::NONE);
    let counted = ChildOutput { code: None, steps, text: String::new() };
    let points = points(&counted);
    for fault in &points {
        let orders = Orders { within_ms, guard_fault: *fault, ..bench.world.orders("apply") };
        let ran = bench.world.run(&orders);
        // Without a guard that is ready, nothing is begun.
        assert!(ran.code == Some(0) || ran.text.contains("nothing was changed"), "fault {fault}: {ran:?}");
        assert!(!bench.is_old_or_new(*fault, &ran), "fault {fault}: the guard didn't put it back");
        bench.clean_up(&orders, *fault);
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

/// The steps of the guard that did the work.
fn guard_steps(orders: &Orders) -> Vec<Step> {
    let texts = std::fs::read_dir(&orders.root).unwrap().map(|entry| entry.unwrap().path());
    let texts = texts.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("guard-steps-"));
    let longest = texts.map(|path| std::fs::read_to_string(path).unwrap()).max_by_key(String::len).unwrap();
    assert!(longest.len() > 20, "{longest}");
    longest.chars().map(Step::of_letter).collect()
}

fn both_guards_killed() -> String {
    let mut bench = Bench::new();
    let orders = Orders { within_ms: 1_500, ..bench.world.orders("apply") };
    let (ran, rest) = bench.world.start(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for pid in guards_of(&orders) {
        wt_sys::process::signal(pid, 9).unwrap();
    }
    rest.wait();
    assert!(bench.is_old_or_new(Fault::NONE, &ran), "nobody is there to put it back");
    let deadline = bench.world.state(&orders.store()).unwrap().deadline_ns.unwrap();
    // Before its time is up, it may still be confirmed, and stays.
    let recover = Orders { role: "recover".to_owned(), ..orders.clone() };
    bench.world.run(&recover);
    assert!(bench.is_old_or_new(Fault::NONE, &ran) || wt_sys::guard::boottime_ns() > deadline);
    let alarm = wt_sys::guard::Alarm::at(deadline).unwrap();
    use std::os::fd::AsFd as _;
    wt_sys::poll::wait_readable(&[alarm.as_fd()], Some(Duration::from_secs(10))).unwrap();
    bench.world.run(&recover);
    assert!(!bench.is_old_or_new(Fault::NONE, &ran), "the next command puts it back");
    bench.clean_up(&orders, Fault::NONE);
    String::new()
}

/// The guards of a change, by their command lines.
fn guards_of(orders: &Orders) -> Vec<u32> {
    let root = orders.root.display().to_string();
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_guard = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.get(1) == Some(&&b"guard"[..]) && words.get(2) == Some(&root.as_bytes())
    };
    let found: Vec<u32> = pids.filter(is_guard).collect();
    assert_eq!(found.len(), 2, "a guard and its stand-in");
    found
}

fn clock_jumps() -> String {
    const TEN_YEARS: i64 = 315_360_000;
    let mut bench = Bench::new();
    for jump in [TEN_YEARS, -TEN_YEARS] {
        let orders = Orders { jump, within_ms: 400, ..bench.world.orders("apply") };
        let (ran, rest) = bench.world.start(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        rest.wait();
        assert!(!bench.is_old_or_new(Fault::NONE, &ran), "jump {jump}: not put back");
        bench.clean_up(&orders, Fault::NONE);
        let orders = Orders { jump, ..bench.world.orders("apply") };
        let (ran, rest) = bench.world.start(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(rest.still_runs_after(Duration::from_millis(300)), "jump {jump}: it was put back far too early");
        bench.clean_up(&orders, Fault::NONE);
        rest.wait();
    }
    String::new()
}

fn unwritable_before() -> String {
    let mut bench = Bench::new();
    let orders = bench.world.orders("apply");
    std::fs::write(orders.root.join("stuck"), "net.ipv4.ip_default_ttl\n").unwrap();
    let ran = bench.world.run(&orders);
    assert_eq!(ran.code, Some(1));
    assert!(ran.text.contains("nothing was changed"), "{ran:?}");
    assert!(!bench.is_old_or_new(Fault::NONE, &ran));
    String::new()
}

fn unwritable_after() -> String {
    let mut bench = Bench::new();
    // Nothing but the host's settings: then all of the new stays rather than a mixture.
    let settings = "host|sack=off;ttl=128;timestamps=off";
    let orders = Orders { settings: settings.to_owned(), yes: true, ..bench.world.orders("apply") };
    assert_eq!(bench.world.run(&orders).code, Some(0));
    let (new, wanted) = (bench.world.snapshot(), files(&orders.root));
    std::fs::write(orders.root.join("stuck"), "net.ipv4.ip_default_ttl\n").unwrap();
    let undo = Orders { role: "undo".to_owned(), ..orders.clone() };
    let ran = bench.world.run(&undo);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.text.contains("not everything could be put back"), "{ran:?}");
    assert!(bench.world.snapshot() == new && files(&orders.root) == wanted, "{ran:?}");
    std::fs::remove_file(orders.root.join("stuck")).unwrap();
    assert_eq!(bench.world.run(&undo).code, Some(0));
    assert!(bench.world.snapshot() == bench.old && files(&orders.root).is_empty());
    // The guard keeps at it until it can.
    let orders = Orders { settings: settings.to_owned(), within_ms: 200, ..bench.world.orders("apply") };
    let (ran, rest) = bench.world.start(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    std::fs::write(orders.root.join("stuck"), "net.ipv4.ip_default_ttl\n").unwrap();
    assert!(rest.still_runs_after(Duration::from_millis(700)));
    let state = bench.world.state(&orders.store()).unwrap();
    assert_eq!((state.phase, bench.world.snapshot() == new), (Phase::RevertFailed, true), "{state:?}");
    std::fs::remove_file(orders.root.join("stuck")).unwrap();
    rest.wait();
    assert!(bench.world.snapshot() == bench.old);
    String::new()
}

fn two_at_once() -> String {
    let mut bench = Bench::new();
    let orders = bench.world.orders("apply");
    // The lock of the first one, as long as the second one tries.
    std::fs::create_dir_all(orders.root.join("state/checkpoints")).unwrap();
    let lock = std::fs::File::create(orders.root.join("state/lock")).unwrap();
    for path in ["state", "state/checkpoints"] {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(orders.root.join(path), std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    lock.lock().unwrap();
    let second = bench.world.run(&orders);
    assert_eq!(second.code, Some(1));
    assert!(second.text.contains("another windtunnel changes the settings right now"), "{second:?}");
    assert!(!bench.is_old_or_new(Fault::NONE, &second));
    drop(lock);
    // One that waits for its confirmation keeps others out too.
    let (first, rest) = bench.world.start(&orders);
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = bench.world.run(&Orders { settings: "host|ecn=on".to_owned(), ..orders.clone() });
    assert!(second.code == Some(1) && second.text.contains("change 1 waits"), "{second:?}");
    bench.clean_up(&orders, Fault::NONE);
    rest.wait();
    String::new()
}

fn changed_meanwhile() -> String {
    let mut bench = Bench::new();
    let orders = Orders { role: "apply-late".to_owned(), ..bench.world.orders("apply") };
    let ran = bench.world.run(&orders);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.text.contains("nothing was changed: net.ipv4.ip_default_ttl changed while"), "{ran:?}");
    let mut wanted = bench.old.clone();
    wanted.sysctls.insert("net.ipv4.ip_default_ttl".to_owned(), "99".to_owned());
    assert!(bench.world.snapshot() == wanted, "the other one's value stays, and nothing else is touched");
    // Whoever plans anew takes back to that value.
    let orders = bench.world.orders("apply");
    let (ran, rest) = bench.world.start(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(bench.world.run(&Orders { role: "undo".to_owned(), ..orders }).code, Some(0));
    rest.wait();
    assert!(bench.world.snapshot() == wanted);
    String::new()
}

fn hung() -> String {
    let mut bench = Bench::new();
    let orders = bench.world.orders("apply");
    let (ran, rest) = bench.world.start(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let counted = bench.world.run(&Orders { role: "confirm".to_owned(), ..orders.clone() });
    bench.clean_up(&orders, Fault::NONE);
    rest.wait();
    // It stops, with the lock, amid the files.
    let files: Vec<usize> =
        counted.steps.iter().enumerate().filter(|(_, step)| **step == Step::File).map(|(at, _)| at + 1).collect();
    let at = files[files.len() / 2];
    let orders = Orders { within_ms: 300, ..bench.world.orders("apply") };
    let (ran, rest) = bench.world.start(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let fault = Fault { at, kind: Kind::Stop };
    let confirm = bench.world.run(&Orders { role: "confirm".to_owned(), fault, ..orders.clone() });
    assert_eq!(confirm.code, None, "the guard ends it: {confirm:?}");
    rest.wait();
    assert!(!bench.is_old_or_new(fault, &confirm), "a hung process kept the guard from its work");
    bench.clean_up(&orders, fault);
    String::new()
}

fn held_in_turn() -> String {
    let mut bench = Bench::new();
    let orders = Orders { settings: "101;102;103".to_owned(), ..bench.world.orders("hold-several") };
    let ran = bench.world.run(&orders);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!bench.is_old_or_new(Fault::NONE, &ran));
    String::new()
}

fn faults_of_holding() -> String {
    let mut bench = Bench::new();
    let mut tally = Tally::default();
    let orders = Orders { settings: "101;102".to_owned(), ..bench.world.orders("hold-several") };
    let counted = bench.world.run(&orders);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    let points = points(&counted);
    for fault in &points {
        let own = bench.world.orders("hold-several");
        let orders = Orders { fault: *fault, settings: orders.settings.clone(), ..own };
        let ran = bench.world.run(&orders);
        assert!(!bench.is_old_or_new(*fault, &ran), "fault {fault}: {ran:?}");
        bench.clean_up(&orders, *fault);
        tally.add(fault.kind);
    }
    assert_eq!(tally.total(), points.len());
    format!(": {tally} over {} steps", counted.steps.len())
}

fn held_beside() -> String {
    let (mut bench, elsewhere) = (Bench::new(), World::new());
    let before = elsewhere.snapshot();
    for (within_ms, is_confirmed) in [(1_500, false), (600_000, true)] {
        let orders = Orders { within_ms, ..bench.world.orders("apply") };
        let (ran, rest) = bench.world.start(&orders);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let beside = Orders { role: "hold-beside".to_owned(), within_ms: 600_000, ..orders.clone() };
        let holds = std::thread::scope(|scope| {
            let holder = scope.spawn(|| elsewhere.run(&beside));
            until(&orders.root, || orders.root.join("held").exists());
            // Here nothing is held, and there nothing else can be changed.
            if is_confirmed {
                let second = Orders { role: "apply".to_owned(), ..beside.clone() };
                let refused = elsewhere.run(&second);
                assert!(
                    refused.text.contains("another windtunnel changes the settings right now (process"),
                    "{refused:?}"
                );
                let confirmed = bench.world.run(&Orders { role: "confirm".to_owned(), ..orders.clone() });
                assert_eq!(confirmed.code, Some(0), "{confirmed:?}");
            }
            holder.join().unwrap()
        });
        assert_eq!(holds.code, Some(0), "{holds:?}");
        rest.wait();
        assert!(bench.is_old_or_new(Fault::NONE, &holds) == is_confirmed && elsewhere.snapshot() == before);
        bench.clean_up(&orders, Fault::NONE);
    }
    String::new()
}

fn held_by_a_hung_process() -> String {
    const SIGCONT: i32 = 18;
    let mut bench = Bench::new();
    let orders = Orders { within_ms: 1_000, ..bench.world.orders("hold-hung") };
    let ran = std::thread::scope(|scope| {
        let world = &bench.world;
        let holder = scope.spawn(|| world.run(&orders));
        let (said, store) = (orders.root.join("held"), orders.store());
        until(&orders.root, || said.exists());
        until(&store.of("1".parse().unwrap()), || world.state(&store).unwrap().phase == Phase::Reverted);
        assert!(world.snapshot() == bench.old);
        // Nor is it in anybody's way.
        bench.clean_up(&Orders { role: "undo".to_owned(), ..orders.clone() }, Fault::NONE);
        wt_sys::process::signal(std::fs::read_to_string(said).unwrap().parse().unwrap(), SIGCONT).unwrap();
        holder.join().unwrap()
    });
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!bench.is_old_or_new(Fault::NONE, &ran));
    String::new()
}
