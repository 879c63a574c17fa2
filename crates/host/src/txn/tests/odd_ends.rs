use super::{EACCES, Paper, TTL, made};
use crate::change::{FileChange, Phase, State};
use crate::hex::to_hex;
use crate::read::Severity;
use crate::txn::{GuardCommand, TxnError, confirm, forget, recover, undo};
use wt_sys::process::ProcessIdentity;

#[test]
fn a_change_that_a_measurement_had_taken_out_when_it_was_killed_is_put_in_again_by_the_next_command() {
    let gone = ProcessIdentity { start_ticks: 0, ..ProcessIdentity::own() };
    assert_eq!(gone.to_string().parse(), Ok(gone.clone()));
    for (phase, by, now_ns, is_put_in) in [
        (Phase::Confirmed, &gone, 9_000, true),
        (Phase::Applied, &gone, 1_000, true),
        (Phase::Confirmed, &ProcessIdentity::own(), 1_000, false),
        // What is over stays out.
        (Phase::Undone, &gone, 1_000, false),
    ] {
        let mut paper = Paper::new();
        let made = made(&mut paper, &[(TTL, "77")]);
        let id = made.checkpoint.id;
        let along = Some(Vec::new());
        let state = State { phase, along, out_by: Some(by.to_string()), ..made.state.clone() };
        made.store.write_state(&mut paper, id, &state).unwrap();
        paper.set(TTL, "64");
        paper.boottime_ns = now_ns;
        let recovered = recover(&mut paper, &made.store).unwrap();
        assert_eq!(
            (paper.sysctls[TTL].as_str(), recovered.len()),
            if is_put_in { ("77", 1) } else { ("64", 0) },
            "{phase}"
        );
        if is_put_in {
            let finding = recovered[0].finding();
            assert!(finding.severity == Severity::Warning && finding.text.contains("in force again"), "{finding:?}");
            let after = made.store.read_state(&mut paper, id).unwrap();
            assert_eq!((after.phase, after.out_by), (phase, None));
            assert!(recover(&mut paper, &made.store).unwrap().is_empty());
        }
        if phase == Phase::Confirmed {
            assert!(matches!(confirm(&mut paper, &made.store, None), Err(TxnError::NothingPending)));
        }
    }
}

#[test]
fn a_store_that_may_not_be_seen_is_not_taken_for_none() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    paper.is_closed = true;
    let guard = GuardCommand { program: "false".into(), args: Vec::new() };
    let refused = undo(&mut paper, &made.store, None, &guard).unwrap_err().to_string();
    assert!(refused.contains(&std::io::Error::from_raw_os_error(EACCES).to_string()), "{refused}");
}

#[test]
fn whoever_forgets_a_change_hears_which_files_go_on_setting_it() {
    let mut paper = Paper::new();
    let made = made(&mut paper, &[(TTL, "77")]);
    let path = made.store.directory().join("90-windtunnel.conf");
    std::fs::write(&path, "net.ipv4.ip_default_ttl = 77\n").unwrap();
    let new = Some(to_hex(&std::fs::read(&path).unwrap()));
    let files = vec![FileChange { path: path.clone(), old: None, new, mode: 0o644 }];
    let state = State { phase: Phase::Confirmed, files, ..made.state.clone() };
    made.store.write_state(&mut paper, made.checkpoint.id, &state).unwrap();
    let released = forget(&mut paper, &made.store, made.checkpoint.id).unwrap();
    assert_eq!(released.files, [path.display().to_string()]);
}
