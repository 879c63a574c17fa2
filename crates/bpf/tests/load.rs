//! Loads every congestion control into the running kernel. Needs CAP_BPF and CAP_PERFMON; says so without.

use wt_bpf::{LoadError, Loaded, missing_capabilities};
use wt_cc::{ALGORITHMS, Choice};

/// What the kernel has.
fn available() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A choice that no other test makes, so that tests can run side by side.
fn own(text: &str) -> Choice {
    text.parse().unwrap()
}

/// Whether this process may load; if not, checks that the error says what is missing.
fn may_load() -> bool {
    let missing = missing_capabilities();
    if missing.is_empty() {
        return ALGORITHMS[0].object().is_some();
    }
    let error = Loaded::load(&own("chd")).unwrap_err().to_string();
    assert!(ALGORITHMS[0].object().is_none() || missing.iter().all(|name| error.contains(name)), "{error}");
    eprintln!("not run: {} missing", missing.join(", "));
    false
}

#[test]
fn every_algorithm_passes_the_verifier_and_is_gone_when_dropped() {
    if !may_load() {
        return;
    }
    for algorithm in &ALGORITHMS {
        let parameter = &algorithm.parameters[0];
        let value = parameter.format(if parameter.range.1 == 1 { 1 } else { parameter.default + 1 });
        let choice = own(&format!("{}@{}={value}", algorithm.name, parameter.name));
        let loaded = match Loaded::load(&choice) {
            Ok(loaded) => loaded,
            Err(LoadError::Rejected { log, operation, .. }) => panic!("{}: {operation}\n{log}", algorithm.name),
            Err(error) => panic!("{}: {error}", algorithm.name),
        };
        assert!(available().contains(&choice.kernel_name()), "{}", choice.kernel_name());
        let taken = Loaded::load(&choice).unwrap_err();
        assert!(matches!(taken, LoadError::NameTaken { .. }), "{taken}");
        drop(loaded);
        assert!(!available().contains(&choice.kernel_name()), "{}", choice.kernel_name());
    }
}
