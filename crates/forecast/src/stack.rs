use std::time::Duration;
use wt_lab::LabTunnel;
use wt_sim::{BufferTuning, StackConfig};

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
