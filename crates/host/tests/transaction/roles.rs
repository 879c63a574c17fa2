//! What a child of the test does: apply, confirm, undo, hold or guard, with a fault.

use crate::faults::{Fault, FaultySystem, Kind};
use crate::world::{LONG, until};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;
use wt_host::{
    ApplyOptions, GuardCommand, GuardOptions, HeldChange, Phase, Plan, RealSystem, Request, Store, Survey, TxnError,
    apply, confirm, guard, undo,
};

/// What every child is told, by arguments.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) role: String,
    /// State directory is below it, configuration files too.
    pub(crate) root: PathBuf,
    pub(crate) fault: Fault,
    /// The fault of the first guard that starts.
    pub(crate) guard_fault: Fault,
    pub(crate) within_ms: u64,
    pub(crate) yes: bool,
    pub(crate) jump: i64,
    pub(crate) settings: String,
}

impl Orders {
    pub(crate) fn args(&self) -> Vec<String> {
        vec![
            self.role.clone(),
            self.root.display().to_string(),
            self.fault.to_string(),
            self.guard_fault.to_string(),
            self.within_ms.to_string(),
            self.yes.to_string(),
            self.jump.to_string(),
            self.settings.clone(),
        ]
    }

    pub(crate) fn parse(args: &[String]) -> Option<Self> {
        let [role, root, fault, guard_fault, within, yes, jump, settings, ..] = args else { return None };
        Some(Self {
            role: role.clone(),
            root: root.into(),
            fault: Fault::parse(fault),
            guard_fault: Fault::parse(guard_fault),
            within_ms: within.parse().unwrap(),
            yes: yes == "true",
            jump: jump.parse().unwrap(),
            settings: settings.clone(),
        })
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.root.join("state"))
    }

    fn options(&self) -> ApplyOptions {
        let confirm_within = Duration::from_millis(self.within_ms);
        ApplyOptions { confirm_within, yes: self.yes, observe: false, guard: self.guard_command() }
    }

    fn system(&self, fault: Fault) -> FaultySystem {
        let real = RealSystem::open(Some(self.root.clone())).unwrap();
        FaultySystem::new(real, fault, Some(self.root.join("stuck")), self.jump)
    }

    /// The guard is this very program.
    fn guard_command(&self) -> GuardCommand {
        let mut args = self.args();
        args[0] = "guard".to_owned();
        GuardCommand { program: "/proc/self/exe".into(), args: args.into_iter().map(Into::into).collect() }
    }
}

/// Does what the orders say. The exit code is 0 if it worked, 1 if it was refused, and 2 if that was our own mistake.
pub(crate) fn run(orders: &Orders, id: Option<&str>) -> u8 {
    let mut system = orders.system(orders.fault);
    let result = match orders.role.as_str() {
        "apply" | "apply-late" => run_apply(orders, &mut system),
        "confirm" => confirm(&mut system, &orders.store(), None).map(|done| println!("files {}", done.files.len())),
        "undo" => undo(&mut system, &orders.store(), None, &orders.guard_command()).map(drop),
        "hold-several" => hold_several(orders, &mut system),
        "hold-beside" => hold_beside(orders, &mut system),
        "hold-hung" => hold_hung(orders, &mut system),
        "recover" => wt_host::recover(&mut system, &orders.store()).map(drop),
        "guard" => {
            run_guard(orders, id.unwrap());
            Ok(())
        }
        other => panic!("no role {other}"),
    };
    if orders.role != "guard" {
        let steps: String = system.steps.iter().map(|step| step.letter()).collect();
        println!("steps {steps}");
    }
    match result {
        Ok(()) => 0,
        Err(error) => {
            println!("error {error}");
            if let TxnError::Failed { report, .. } = &error {
                println!("revert {}", serde_json::to_string(&report.revert).unwrap());
            }
            1
        }
    }
}

fn run_apply(orders: &Orders, system: &mut FaultySystem) -> Result<(), TxnError> {
    let (survey, plan) = planned(&orders.settings, system)?;
    if orders.role == "apply-late" {
        wt_sys::sysctl::write(TTL, "99")?;
    }
    apply(system, &orders.store(), &survey, &plan, &orders.options()).map(drop)
}

fn planned(settings: &str, system: &mut FaultySystem) -> Result<(Survey, Plan), TxnError> {
    let survey = Survey::take(system)?;
    let (to, pairs) = settings.split_once('|').unwrap();
    let mut request = Request::of_pairs(pairs.split(';')).unwrap();
    request.target = to.parse().unwrap();
    let plan = Plan::make(system, &survey, &request);
    Ok((survey, plan.unwrap_or_else(|error| panic!("{error}"))))
}

const TTL: &str = "net.ipv4.ip_default_ttl";

fn hold(orders: &Orders, system: &mut FaultySystem, ttl: &str) -> Result<HeldChange, TxnError> {
    let (survey, plan) = planned(&format!("host|ttl={ttl}"), system)?;
    wt_host::hold(system, &orders.store(), &survey, &plan, &orders.options())
}

fn has_ttl(ttl: &str) -> bool {
    wt_sys::sysctl::read(TTL).unwrap().is_some_and(|text| text.trim() == ttl)
}

/// Holds one change after the other, each until the guards of the one before have ended.
fn hold_several(orders: &Orders, system: &mut FaultySystem) -> Result<(), TxnError> {
    let mut before = None;
    for ttl in orders.settings.split(';') {
        // Its guards alone inherit the pipe's end.
        let (guards, end) = std::io::pipe().unwrap();
        wt_sys::process::inherit(&end).unwrap();
        let held = hold(orders, system, ttl)?;
        drop(end);
        if let Some(guards) = before.replace(guards) {
            assert_eq!(
                wt_sys::poll::wait_readable(&[guards.as_fd()], Some(LONG)).unwrap(),
                1,
                "they watch what is over"
            );
        }
        assert!(has_ttl(ttl));
        held.put_back(system)?;
    }
    Ok(())
}

/// Holds a change until the first one doesn't wait any more.
fn hold_beside(orders: &Orders, system: &mut FaultySystem) -> Result<(), TxnError> {
    let held = hold(orders, system, "111")?;
    say_held(orders);
    let (store, first) = (orders.store(), "1".parse().unwrap());
    let waits = |phase| matches!(phase, Phase::Applied | Phase::Confirming | Phase::Reverting);
    until(&store.of(first), || !waits(store.read_state(system, first).unwrap().phase));
    assert!(has_ttl("111"));
    held.switch(system, false)?;
    held.switch(system, true)?;
    assert!(has_ttl("111"));
    held.put_back(system)
}

/// Holds a change and stops, until somebody has it go on; then its guards have long put everything back.
fn hold_hung(orders: &Orders, system: &mut FaultySystem) -> Result<(), TxnError> {
    const SIGSTOP: i32 = 19;
    let held = hold(orders, system, "111")?;
    say_held(orders);
    wt_sys::process::signal(std::process::id(), SIGSTOP)?;
    let refused = held.switch(system, true).unwrap_err();
    assert!(matches!(refused, TxnError::NotInForce { .. }), "{refused}");
    held.switch(system, false)?;
    held.put_back(system)
}

/// Says which process this is, once it holds a change.
fn say_held(orders: &Orders) {
    let (written, said) = (orders.root.join("written"), orders.root.join("held"));
    std::fs::write(&written, std::process::id().to_string()).and_then(|()| std::fs::rename(written, said)).unwrap();
}

fn run_guard(orders: &Orders, id: &str) {
    // Of the guard and its stand-in, the first one to come gets the fault.
    let armed = orders.guard_fault.kind != Kind::None
        && std::fs::File::create_new(orders.root.join(format!("armed-{id}-{}", orders.guard_fault))).is_ok();
    let fault = if armed { orders.guard_fault } else { Fault::NONE };
    let mut system = orders.system(fault);
    let options = GuardOptions { store: orders.store(), id: id.parse().unwrap() };
    let _ = guard(&mut system, &options);
    let steps: String = system.steps.iter().map(|step| step.letter()).collect();
    let _ = std::fs::write(orders.root.join(format!("guard-steps-{}", std::process::id())), steps);
}
