//! Loads every congestion control into the running kernel. Needs CAP_BPF and CAP_PERFMON; says so without.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use wt_bpf::{LoadError, RegisteredControl, missing_capabilities};
use wt_cc::{ALGORITHMS, Choice};
use wt_testing::require;

/// Why there is nothing to load.
const NO_CLANG: &str = "there was no clang when this was built";

/// What the kernel has.
fn available() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A choice that no other test makes, so that tests can run side by side.
fn own(text: &str) -> Choice {
    text.parse().unwrap()
}

/// Whether this process may load and has what; if not, checks that the error says what is missing.
fn loadable() -> Result<(), String> {
    let missing = missing_capabilities();
    if missing.is_empty() {
        return ALGORITHMS[0].object().map(drop).ok_or_else(|| NO_CLANG.to_owned());
    }
    let error = RegisteredControl::load(&own("chd")).unwrap_err().to_string();
    assert!(ALGORITHMS[0].object().is_none() || missing.iter().all(|name| error.contains(name)), "{error}");
    Err(format!("{} missing", missing.join(", ")))
}

#[test]
fn every_algorithm_passes_the_verifier_and_is_gone_when_dropped() {
    require!("bpf", loadable());
    for algorithm in &ALGORITHMS {
        let parameter = &algorithm.parameters[0];
        let value = parameter.format(if parameter.range.1 == 1 { 1 } else { parameter.default + 1 });
        let choice = own(&format!("{}@{}={value}", algorithm.name, parameter.name));
        let loaded = match RegisteredControl::load(&choice) {
            Ok(loaded) => loaded,
            Err(LoadError::Rejected { log, operation, .. }) => panic!("{}: {operation}\n{log}", algorithm.name),
            Err(error) => panic!("{}: {error}", algorithm.name),
        };
        assert!(available().contains(&choice.kernel_name()), "{}", choice.kernel_name());
        let taken = RegisteredControl::load(&choice).unwrap_err();
        assert!(matches!(taken, LoadError::NameTaken { .. }), "{taken}");
        let private = RegisteredControl::load_privately(&choice).unwrap();
        assert_ne!(private.name(), loaded.name(), "an experiment gets a name of its own");
        assert!(available().contains(&private.name().to_owned()));
        drop(private);
        drop(loaded);
        assert!(!available().contains(&choice.kernel_name()), "{}", choice.kernel_name());
    }
}

#[test]
fn an_object_that_is_cut_short_is_an_error_and_no_panic() {
    let object = require!("clang", ALGORITHMS[2].object().ok_or(NO_CLANG));
    for length in (0..object.len()).step_by(997) {
        let parsed = wt_bpf::elf::Elf::parse(&object[..length]);
        assert!(parsed.is_err(), "the table of sections is at the end");
    }
    let elf = wt_bpf::elf::Elf::parse(object).unwrap();
    let types = elf.section(".BTF").unwrap().data;
    for length in (0..types.len()).step_by(101) {
        let _ = wt_bpf::btf::Btf::parse(types[..length].to_vec());
    }
}

#[test]
fn members_within_members_without_a_name_are_found() {
    let object = require!("clang", ALGORITHMS[2].object().ok_or(NO_CLANG));
    let elf = wt_bpf::elf::Elf::parse(object).unwrap();
    let own = wt_bpf::btf::Btf::parse(elf.section(".BTF").unwrap().data.to_vec()).unwrap();
    let id = own.find_struct("tcp_sock").unwrap();
    assert!(own.member(id, "snd_cwnd").unwrap().is_some());
    assert!(own.member(id, "no_such_member").unwrap().is_none());
    let kernel = require!("btf", std::fs::read("/sys/kernel/btf/vmlinux"));
    let kernel = wt_bpf::btf::Btf::parse(kernel).unwrap();
    let id = kernel.find_struct("tcp_congestion_ops").unwrap();
    // 16 bytes of name, whatever else changes.
    let name = kernel.member(id, "name").unwrap().unwrap();
    assert_eq!(kernel.size(name.type_id), Ok(16));
    assert!(kernel.member_names(id).unwrap().contains(&"ssthresh"));
}

#[test]
fn what_the_verifier_rejects_is_told_with_its_reason_and_leaves_nothing() {
    require!("bpf", loadable());
    let choice = own("hd@pmax=43%");
    let mut object = choice.algorithm.object().unwrap().to_vec();
    let elf = wt_bpf::elf::Elf::parse(&object).unwrap();
    let program = elf.section("struct_ops/ssthresh").unwrap().data.to_vec();
    let at = object.windows(program.len()).position(|bytes| bytes == program).unwrap();
    // r0 = r9, and nobody has written r9.
    object[at..at + 8].copy_from_slice(&[0xbf, 0x90, 0, 0, 0, 0, 0, 0]);
    let error = RegisteredControl::load_object(&choice, choice.kernel_name(), &object).unwrap_err();
    let told = error.to_string();
    assert!(told.contains(&format!("verifier rejects {} (ssthresh)", choice.kernel_name())), "{told}");
    assert!(told.contains("R9 !read_ok"), "{told}");
    assert!(matches!(&error, LoadError::Rejected { log, .. } if log.lines().count() > 1));
    assert!(!available().contains(&choice.kernel_name()));
    // The name is free.
    drop(RegisteredControl::load(&choice).unwrap());
}
