use serde::Serialize;
use std::fmt::{self, Display};
use std::time::Duration;
use utoipa::ToSchema;
use wt_lab::LabTunnel;
use wt_problem::Problem;
use wt_sim::{BufferTuning, StackConfig};
use wt_units::Bytes;

/// How long our server takes to answer in virtual time, where nothing but reading the clock takes any.
pub(crate) const VIRTUAL_REACTION: Duration = Duration::from_micros(10);

/// The running kernel's release.
pub(crate) fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The model's ends set up as this kernel's.
#[must_use]
pub fn kernel_stack(lab: &LabTunnel) -> StackConfig {
    stack_of(&|name| lab.lab().server.sysctl(name).unwrap_or_default())
}

/// The ends as this host has them, for the model.
#[must_use]
pub fn host_stack() -> StackConfig {
    stack_of(&|name| wt_sys::ns::read_net_sysctl(name).unwrap_or_default())
}

/// What a host's settings are, as far as the model asks hosts for theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct StackSettings {
    /// The congestion control of connections that ask for none.
    pub cc: String,
    /// What a receive buffer begins with, bytes: the second number of `tcp_rmem`.
    pub rmem_initial: u64,
    /// How large a receive buffer may become, bytes: the third number of `tcp_rmem`.
    pub rmem_max: u64,
    /// How large a send buffer may become, bytes: the third number of `tcp_wmem`.
    pub wmem_max: u64,
    /// Whether receive buffers grow as before Linux 6.16.
    pub grows_as_before_6_16: bool,
}

impl StackSettings {
    fn of(stack: &StackConfig) -> Self {
        Self {
            cc: stack.congestion_control.clone(),
            rmem_initial: stack.rmem.0,
            rmem_max: stack.rmem.1,
            wmem_max: stack.wmem_max,
            grows_as_before_6_16: stack.tuning == BufferTuning::Cushioned,
        }
    }

    /// Those of a Linux 6.18 with enough memory where nobody has set anything: the model's own.
    #[must_use]
    pub fn usual() -> Self {
        Self::of(&StackConfig::default())
    }

    /// Those of this host. What can't be read is as usual.
    #[must_use]
    pub fn of_this_host() -> Self {
        let cc = wt_sys::ns::read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default();
        let mut settings = Self::of(&host_stack());
        if !cc.trim().is_empty() {
            cc.trim().clone_into(&mut settings.cc);
        }
        settings
    }

    /// Whether the model has this congestion control.
    #[must_use]
    pub fn are_known(&self) -> bool {
        wt_sim::cc::by_name(&self.cc, 0).is_some()
    }

    /// Where they aren't as those, in words.
    #[must_use]
    pub fn differences(&self, those: &Self) -> Vec<String> {
        let (all, same) = (self.parts(), those.parts());
        all.into_iter().filter(|part| !same.contains(part)).collect()
    }

    fn parts(&self) -> Vec<String> {
        let size = |bytes: u64| Bytes(bytes).human();
        let grows = if self.grows_as_before_6_16 { ", used as before Linux 6.16" } else { "" };
        vec![
            format!("cc={}", self.cc),
            format!("tcp_rmem from {} to {}{grows}", size(self.rmem_initial), size(self.rmem_max)),
            format!("tcp_wmem to {}", size(self.wmem_max)),
        ]
    }
}

impl Display for StackSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(", "))
    }
}

/// The ends as this host has them, for a question about this host, and what these settings are.
///
/// # Errors
/// A usage problem where the model doesn't have this host's congestion control.
pub(crate) fn asked_host_stack() -> Result<(StackConfig, StackSettings), Problem> {
    let settings = StackSettings::of_this_host();
    if !settings.are_known() {
        let what = format!("this host has cc={}, which the model doesn't know", settings.cc);
        return Err(Problem::usage(what)
            .because(format!("it knows {}", wt_sim::cc::NAMES.join(", ")))
            .hint("leave --this-host out, and name one of these with --set or --levels"));
    }
    Ok((host_stack(), settings))
}

fn stack_of(sysctl: &dyn Fn(&str) -> String) -> StackConfig {
    let numbers = |name: &str| -> Vec<u64> {
        let text = sysctl(name);
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let usual = StackConfig::default();
    let (rmem, wmem) = (numbers("ipv4/tcp_rmem"), numbers("ipv4/tcp_wmem"));
    let default_cc = sysctl("ipv4/tcp_congestion_control");
    let default_cc = default_cc.trim();
    let known_cc = wt_sim::cc::by_name(default_cc, 0).is_some();
    StackConfig {
        congestion_control: if known_cc { default_cc.to_owned() } else { usual.congestion_control.clone() },
        rmem: (*rmem.get(1).unwrap_or(&usual.rmem.0), *rmem.get(2).unwrap_or(&usual.rmem.1)),
        wmem_max: *wmem.get(2).unwrap_or(&usual.wmem_max),
        tuning: BufferTuning::of_release(&release()),
        // Kernels before 6.5 have no such sysctl.
        syn_linear_timeouts: numbers("ipv4/tcp_syn_linear_timeouts").first().map_or(0, |linear| *linear as u32),
        // A socket that began with BBR keeps its pacing when it is switched to another congestion control.
        pacing: default_cc == "bbr",
        // That kernel has neither tunnels nor wireless devices.
        header_room: if wt_lab::is_guest() { 192 } else { usual.header_room },
        reaction: if wt_lab::is_guest() { VIRTUAL_REACTION } else { usual.reaction },
        ..usual
    }
}
