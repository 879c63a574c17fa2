use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use wt_host::ExportFormat;
use wt_setup::settings::{ChangeRequest, CheckRequest, Confirmation, ExportRequest, ShowRequest, confirm_within};
use wt_units::Role;

/// Shows adapters, settings with their origin, routes, and what could be better
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Every setting, rather than the most important ones
    #[arg(long)]
    pub(super) all: bool,
    /// The adapter to look at closely [default: the one that carries the default route]
    #[arg(long, value_name = "NAME")]
    adapter: Option<String>,
    /// Asks which adapter to look at closely
    #[arg(long, conflicts_with_all = ["adapter", "json"])]
    pub(super) pick: bool,
    /// Leaves out a finding this once
    #[arg(long, value_name = "ID")]
    mute: Vec<String>,
}

impl ShowArgs {
    pub(super) fn request(&self) -> ShowRequest {
        ShowRequest { adapter: self.adapter.clone(), mute: self.mute.clone() }
    }
}

/// What is to be changed, and where.
#[derive(Debug, Args)]
pub(super) struct RequestArgs {
    /// Settings such as initcwnd=20, rwin=4x or 33xmtu, ttl=0 or net.ipv4.tcp_sack=1, or a plan's file
    #[arg(value_name = "KEY=VALUE|PLAN")]
    items: Vec<String>,
    /// A plan: TOML with to = "…" and [settings], or what `plan --json` printed
    #[arg(long, value_name = "PLAN")]
    file: Option<PathBuf>,
    /// Every setting as the kernel has it by itself
    #[arg(long)]
    defaults: bool,
    /// The settings that an experiment recommends: its name, the beginning of it, or "last"
    #[arg(long, value_name = "ID")]
    verdict: Option<String>,
    /// What this host is in the transfers that --verdict measured: sender or receiver of the payload [default: what the host was on which the experiment ran]
    #[arg(long, value_name = "ROLE", requires = "verdict")]
    side: Option<Role>,
    /// The journal for --verdict
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Where: host, default (the default routes), a target such as 192.0.2.1 or 192.0.2.0/24, or a device such as eth0
    #[arg(long = "to", value_name = "ROUTE|IFACE|host")]
    to: Option<String>,
}

/// Settings and plans as they are written beside each other: what has no `=` is a file.
fn change(items: &[String], file: Option<&PathBuf>, defaults: bool, to: Option<&String>) -> ChangeRequest {
    let (settings, files): (Vec<String>, Vec<String>) = items.iter().cloned().partition(|item| item.contains('='));
    let files = files.into_iter().map(PathBuf::from).chain(file.cloned()).collect();
    ChangeRequest { settings, files, defaults, to: to.cloned(), ..ChangeRequest::default() }
}

impl RequestArgs {
    pub(super) fn request(&self) -> ChangeRequest {
        ChangeRequest {
            verdict: self.verdict.clone(),
            side: self.side,
            journal: self.journal.clone(),
            ..change(&self.items, self.file.as_ref(), self.defaults, self.to.as_ref())
        }
    }
}

/// How closely is looked.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Makes no connection: whether the path is the same isn't looked at
    #[arg(long)]
    offline: bool,
    /// The journal in which later proofs are looked for
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl CheckArgs {
    pub(super) fn request(&self) -> CheckRequest {
        CheckRequest { offline: self.offline, journal: self.journal.clone() }
    }
}

/// How a change is made.
#[derive(Debug, Args)]
pub(super) struct HowArgs {
    /// Revert everything unless `settings confirm` comes within this time (2m; a bare number is seconds)
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = confirm_within)]
    confirm_within: Duration,
    /// Confirm immediately (dangerous over a remote connection)
    #[arg(long, conflicts_with = "confirm_within")]
    yes: bool,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl HowArgs {
    pub(super) fn confirmation(&self) -> Confirmation {
        Confirmation { within: self.confirm_within, at_once: self.yes }
    }
}

/// Writes settings in the words of another system or manager
///
/// Without settings, those of this host that aren't the kernel's own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel settings export --to sysctl.d cc=bbr rwin=4MiB
  windtunnel settings export --to netplan initcwnd=20 mtu=1400 --at eth0
  windtunnel settings export --to windows-reg ttl=128 mtu=1492
  windtunnel settings export --to windows-98-reg rwin=4x mtu=576 mtu-probing=on
  windtunnel settings export --to freebsd cc=chd rwin=64KiB
  windtunnel settings export --to freebsd --verdict last")]
pub(super) struct ExportArgs {
    /// Whose words
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Form,
    /// Settings such as initcwnd=20, or a plan's file
    #[arg(value_name = "KEY=VALUE|PLAN")]
    items: Vec<String>,
    /// A plan
    #[arg(long, value_name = "PLAN")]
    file: Option<PathBuf>,
    /// Every setting as the kernel has it by itself
    #[arg(long)]
    defaults: bool,
    /// The settings that an experiment recommends: its name, the beginning of it, or "last"
    #[arg(long, value_name = "ID")]
    verdict: Option<String>,
    /// What that machine is in the transfers that --verdict measured: sender or receiver of the payload [default: the end on
    /// which the settings act]
    #[arg(long, value_name = "ROLE", requires = "verdict")]
    side: Option<Role>,
    /// The journal for --verdict
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Where the settings are to hold: host, default, a target or a device
    #[arg(long, value_name = "ROUTE|IFACE|host")]
    at: Option<String>,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

impl ExportArgs {
    pub(super) fn request(&self) -> ExportRequest {
        let change = ChangeRequest {
            verdict: self.verdict.clone(),
            side: self.side,
            journal: self.journal.clone(),
            ..change(&self.items, self.file.as_ref(), self.defaults, self.at.as_ref())
        };
        ExportRequest { format: self.to.0, change }
    }
}

/// [`ExportFormat`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form(ExportFormat);

impl ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Form; 11] = {
            let mut all = [Form(ExportFormat::SysctlD); 11];
            let mut at = 0;
            while at < all.len() {
                all[at] = Form(ExportFormat::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}
