use super::error::StoreError;
use super::recovery::{settle, undo_stale};
use super::revert::{put_back, put_forward, revert};
use super::store::Store;
use crate::change::{Checkpoint, CheckpointId, Phase, State};
use crate::system::System;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use wt_sys::guard::{Alarm, StandardStream, Watch, silence};
use wt_sys::poll::wait_readable;

/// What a guard says once it is ready.
const READY: &[u8] = b"ready\n";
/// How long it may take until then.
const START: Duration = Duration::from_secs(20);
/// How long somebody may keep the lock while it is wanted.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pauses before what couldn't be put back is tried again: drivers come back, links come up.
const RETRIES_S: [u64; 6] = [1, 2, 5, 15, 60, 300];

/// Pause before what couldn't be stored is stored again, ns.
const SETTLE_AGAIN_NS: u64 = 1_000_000_000;

/// What starts a guard: this program, with arguments that lead to [`guard`].
#[derive(Debug, Clone)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, to which the number of the checkpoint is added.
    pub args: Vec<OsString>,
}

/// What a guard watches.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// Where checkpoints are stored.
    pub store: Store,
    /// Which one.
    pub id: CheckpointId,
}

/// A guard that was started. It watches the pipe that this holds: the pipe's end is the end of who makes the change.
#[derive(Debug)]
pub(crate) struct Guard {
    _pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts a guard and its stand-in, and waits until both are ready.
    pub(crate) fn start_pair(command: &GuardCommand, store: &Store, id: CheckpointId) -> Result<Vec<Self>, String> {
        let lock = store.guard_lock(id);
        File::create_new(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
        let mut started = Vec::new();
        for _ in 0..2 {
            started.push(Self::start(command, id)?);
        }
        Ok(started)
    }

    fn start(command: &GuardCommand, id: CheckpointId) -> Result<Self, String> {
        let mut process = Command::new(&command.program);
        process.args(&command.args).arg(id.to_string()).current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        wt_sys::guard::detach(&mut process);
        let mut child = process.spawn().map_err(|error| format!("{}: {error}", command.program.display()))?;
        if await_ready(&mut child) {
            return Ok(Self { _pipe: child.stdin.take() });
        }
        let _ = child.kill();
        let _ = child.wait();
        Err("it didn't say that it is ready".to_owned())
    }
}

fn await_ready(child: &mut Child) -> bool {
    let Some(mut output) = child.stdout.take() else { return false };
    let mut said = Vec::new();
    while said.len() < READY.len() && matches!(wait_readable(&[output.as_fd()], Some(START)), Ok(1)) {
        let mut byte = [0];
        match output.read(&mut byte) {
            Ok(1) => said.push(byte[0]),
            _ => return false,
        }
    }
    said == READY
}

/// Watches a change until it is confirmed or taken back, and puts it back if neither happens in time, or if the
/// process that makes it ends half-way. Returns when there is nothing left to watch.
///
/// Standard input is the pipe whose end tells that the process has ended; standard output says when this is ready.
///
/// # Errors
/// [`StoreError`] when the checkpoint can't be read at the start.
pub fn guard(system: &mut dyn System, options: &GuardOptions) -> Result<(), StoreError> {
    stay_alive();
    let GuardOptions { store, id } = options;
    // Read while all is well, so that it is known even if the disk fails later.
    let checkpoint = store.read(system, *id)?;
    let state = store.read_state(system, *id)?;
    let path = store.guard_lock(*id);
    let failed = |error| StoreError::from(wt_sys::SysError::io(format!("lock {}", path.display()))(error));
    let turn = File::open(&path).map_err(failed)?;
    let first = turn.try_lock().is_ok();
    say_ready();
    if !first {
        // The stand-in waits until the first one has ended, whatever ended it.
        turn.lock().map_err(failed)?;
    }
    await_end_of_apply(state.apply_until_ns);
    watch(system, store, &checkpoint, &state);
    Ok(())
}

/// The last process that memory pressure or the end of a session should take.
fn stay_alive() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    // A session manager may end everything in the control group of a session that ends.
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if own.contains("session-") || own.contains("user@") {
        let _ = std::fs::write("/sys/fs/cgroup/cgroup.procs", std::process::id().to_string());
    }
}

fn say_ready() {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(READY).and_then(|()| output.flush());
    drop(output);
    let _ = silence(StandardStream::Output);
}

/// Waits until the process that makes the change has ended, or counts as hung.
fn await_end_of_apply(until_ns: u64) {
    let input = std::io::stdin();
    let Ok(alarm) = Alarm::at(until_ns) else { return };
    // Nothing is ever written: readable means ended.
    while let Ok(0) = wait_readable(&[input.as_fd(), alarm.as_fd()], None) {}
    let _ = silence(StandardStream::Input);
}

fn watch(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, first: &State) {
    let mut retries = RETRIES_S.into_iter();
    loop {
        // Before the state is read: a change after that ends the wait below.
        let watch = Watch::on(&store.of(checkpoint.id)).ok();
        match step(system, store, checkpoint, first) {
            Next::Done => return,
            Next::Wait { until_ns } => pause(until_ns, watch.as_ref()),
            // What is tried again makes files itself, which would end the wait at once.
            Next::Again { at_ns } => pause(at_ns, None),
            Next::Retry => {
                let Some(seconds) = retries.next() else { return };
                pause(system.now().boottime_ns.saturating_add(seconds * 1_000_000_000), None);
            }
        }
    }
}

/// What the guard has to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Done,
    Wait { until_ns: u64 },
    Again { at_ns: u64 },
    Retry,
}

pub(super) fn step(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, first: &State) -> Next {
    // Nothing follows on that. Whoever has the lock may be at another change by now: nobody is waited for, let alone ended.
    if store.read_state(system, checkpoint.id).is_ok_and(|state| state.phase.is_out_of_force()) {
        return Next::Done;
    }
    let Ok(_lock) = store.lock_by_force(PATIENCE) else {
        // Without a directory nobody can confirm any more.
        return undo_blindly(system, checkpoint, first);
    };
    let mut state = match store.read_state(system, checkpoint.id) {
        Ok(state) => state,
        Err(_) => return undo_blindly(system, checkpoint, first),
    };
    match state.phase {
        Phase::Confirmed | Phase::Reverted | Phase::Undone | Phase::Lapsed | Phase::Forgotten => Next::Done,
        Phase::Applied if !state.is_expired(system.now().boottime_ns) => {
            Next::Wait { until_ns: state.deadline_ns.unwrap_or(0) }
        }
        Phase::Confirming => {
            settle(system, store, checkpoint, &mut state);
            settled(system, store, checkpoint, state)
        }
        Phase::Undoing => {
            if undo_stale(system, store, checkpoint, &mut state) {
                Next::Done
            } else {
                Next::Retry
            }
        }
        Phase::Prepared | Phase::Applying | Phase::Applied | Phase::Reverting | Phase::RevertFailed => {
            match revert(system, store, checkpoint, &mut state, true) {
                Ok(()) => Next::Done,
                Err(_) => {
                    // Rather all of the new than a mixture, as long as nothing of it can cut the machine off.
                    if !checkpoint.can_cut_off() {
                        put_forward(system, checkpoint, &state);
                    }
                    Next::Retry
                }
            }
        }
    }
}

/// What follows once a confirmation whose process ended half-way was settled. Where that can't be stored, as on a full disk, it is tried
/// again for as long as somebody could still confirm, and then everything is put back all the same.
fn settled(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, mut state: State) -> Next {
    let is_stored = store.read_state(system, checkpoint.id).is_ok_and(|stored| stored.phase == state.phase);
    let now_ns = system.now().boottime_ns;
    if is_stored {
        // What is stored says what is next.
        return Next::Again { at_ns: now_ns };
    }
    if state.phase == Phase::Applied && state.is_expired(now_ns) {
        return if revert(system, store, checkpoint, &mut state, true).is_ok() { Next::Done } else { Next::Retry };
    }
    let again_ns = now_ns.saturating_add(SETTLE_AGAIN_NS);
    Next::Again { at_ns: state.deadline_ns.map_or(again_ns, |deadline| deadline.min(again_ns)) }
}

/// The state is gone: whatever it was, nobody can confirm the change any more.
fn undo_blindly(system: &mut dyn System, checkpoint: &Checkpoint, first: &State) -> Next {
    let left = put_back(system, checkpoint, first).errors;
    if left.is_empty() { Next::Done } else { Next::Retry }
}

fn pause(until_ns: u64, watch: Option<&Watch>) {
    let Ok(alarm) = Alarm::at(until_ns) else { return };
    let mut sources: Vec<BorrowedFd<'_>> = vec![alarm.as_fd()];
    sources.extend(watch.map(Watch::as_fd));
    while matches!(wait_readable(&sources, None), Ok(0)) {}
}
