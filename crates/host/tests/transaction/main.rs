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
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(orders) = Orders::parse(&args) {
        return ExitCode::from(roles::run(&orders, args.get(8).map(String::as_str)));
    }
    // Whoever asks for a list of tests is told that it is one.
    if args.iter().any(|arg| arg == "--list") {
        println!("transaction: test");
        return ExitCode::SUCCESS;
    }
    if let Err(error) = wt_sys::ns::enter_user_namespace() {
        println!("transaction: CANNOT RUN: {error}: this machine forbids user namespaces");
        return ExitCode::FAILURE;
    }
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let mut failed = Vec::new();
    let mut count = 0;
    for (name, case) in cases::ALL {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        count += 1;
        match std::panic::catch_unwind(case) {
            Ok(note) => println!("test {name} ... ok{note}"),
            Err(_) => {
                println!("test {name} ... FAILED");
                failed.push(*name);
            }
        }
    }
    println!("\ntest result: {count} run, {} failed", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
