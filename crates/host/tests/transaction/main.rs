//! Changes on a real kernel, in network namespaces, with a fault at every step.
//!
//! This program is its own driver, its own children and their guards: the roles are told by arguments. It needs user
//! namespaces, and fails where they are forbidden.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, and its own harness")]

mod cases;
mod faults;
mod roles;
mod world;

use roles::Orders;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks for one case in this process.
const ALONE: &str = "--exact";
/// Cases at once: they mostly wait for the kernel to make and to take away namespaces.
const AT_ONCE: usize = 4;

/// Runs one case, and prints what came of it.
fn run_case(name: &str) -> ExitCode {
    let case = cases::ALL.iter().find(|(known, _)| *known == name).map(|(_, case)| *case);
    match std::panic::catch_unwind(case.unwrap()) {
        Ok(note) => {
            println!("test {name} ... ok{note}");
            ExitCode::SUCCESS
        }
        Err(_) => {
            println!("test {name} ... FAILED");
            ExitCode::FAILURE
        }
    }
}

/// Runs cases, each in a process of its own, for what a child inherits it must not have from another case; returns those
/// that failed.
fn run_all(names: &[&str]) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let status = Command::new("/proc/self/exe").args([ALONE, name]).status().unwrap();
            if !status.success() {
                failed.lock().unwrap().push((*name).to_owned());
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    failed.into_inner().unwrap()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(orders) = Orders::parse(&args) {
        return ExitCode::from(roles::run(&orders, args.get(8).map(String::as_str)));
    }
    // Whoever asks for a list of tests is told that it is one.
    if args.iter().any(|arg| arg == "--list") {
        cases::ALL.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if let [alone, name, ..] = &args[..]
        && alone == ALONE
    {
        if let Err(error) = wt_sys::ns::enter_user_namespace() {
            println!("transaction: CANNOT RUN: {error}: this machine forbids user namespaces");
            return ExitCode::FAILURE;
        }
        return run_case(name);
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let names: Vec<&str> = cases::ALL.iter().map(|(name, _)| *name).filter(|name| chosen(name)).collect();
    let (count, failed) = (names.len(), run_all(&names));
    println!("\ntest result: {count} run, {} failed", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
