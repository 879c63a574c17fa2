//! The same command on a kernel of its own, in virtual time.

use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Fault, Problem};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use wt_lab::{GuestError, VirtualKernel, is_guest};

/// On which kernel.
#[derive(Debug, Args, Clone)]
pub(crate) struct VirtualArgs {
    /// All of it on a kernel of its own in virtual time: its clock stands still while anything computes and jumps when everything
    /// waits, so that no load of this machine is measured. Standard input is empty there
    #[arg(long = "virtual", requires = "kernel")]
    is_virtual: bool,
    /// The kernel: a User-Mode Linux with time travel, as scripts/build-uml.sh makes one
    #[arg(long, value_name = "FILE", requires = "is_virtual")]
    kernel: Option<PathBuf>,
}

impl VirtualArgs {
    /// Whether virtual time was asked for, and hasn't begun.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_virtual && !is_guest()
    }

    /// Runs this very command there instead, if that was asked for.
    ///
    /// # Errors
    /// A [`Problem`] that says what to try.
    pub(crate) fn instead(&self) -> Result<Option<Exit>, Problem> {
        let Some(kernel) = self.kernel.as_ref().filter(|_| self.is_asked()) else { return Ok(None) };
        let kernel = VirtualKernel::open(kernel).map_err(|error| failure(&error))?;
        let folder = tempfile::Builder::new().prefix("windtunnel-").tempdir();
        let folder = folder.map_err(|error| Problem::environment(format!("no folder for the kernel: {error}")))?;
        let cancel = cancel_on_signals()?;
        let args: Vec<OsString> = std::env::args_os().skip(1).collect();
        match kernel.run(folder.path(), &args, &|| cancel.is_cancelled()) {
            Ok(Some(code)) => Ok(Some(Exit::Passed(code))),
            Ok(None) => Err(Problem::new(Fault::Stopped, "stopped; the kernel in virtual time has ended")),
            Err(error) => Err(failure(&error)),
        }
    }
}

fn failure(error: &GuestError) -> Problem {
    let failure = Problem::environment(error.to_string());
    match error {
        GuestError::NoKernel { .. } | GuestError::Unfit { .. } => {
            failure.hint("scripts/build-uml.sh builds one from Debian's linux-source, in about ten minutes")
        }
        GuestError::Exchange { .. } => failure.hint("choose another folder with TMPDIR"),
        GuestError::Died { .. } => failure.because("the kernel, or what it needs of this machine (ptrace, memory)"),
    }
}
