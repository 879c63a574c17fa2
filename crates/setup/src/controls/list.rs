use super::{available, choice};
use serde::Serialize;
use utoipa::ToSchema;
use wt_bpf::{Pins, missing_capabilities};
use wt_cc::{ALGORITHMS, Algorithm, Choice};
use wt_host::boot_unit;
use wt_problem::Problem;

/// A congestion control that the kernel has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct KernelControl {
    /// The kernel's name for it.
    pub name: String,
    /// Whether it is the default of this network namespace.
    pub default: bool,
    /// Whose programs may choose it: `everybody`, or those with `CAP_NET_ADMIN`.
    pub who: &'static str,
    /// Which of ours it is.
    pub ours: Option<String>,
}

/// A named variant of a congestion control of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OwnControl {
    /// The algorithm.
    pub name: &'static str,
    /// The variant.
    pub variant: String,
    /// What it is.
    pub title: &'static str,
    /// The kernel's name for it.
    pub kernel_name: String,
    /// Whether the kernel has it now.
    pub loaded: bool,
    /// Whether it stays loaded when no program holds it.
    pub pinned: bool,
    /// Whether a unit of systemd loads it at boot.
    pub boot: bool,
}

/// The congestion controls that there are. Its JSON is the contract of `windtunnel cc list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ControlsList {
    /// The version of this object.
    pub schema_version: u32,
    /// Those in the kernel now.
    pub kernel: Vec<KernelControl>,
    /// Ours.
    pub ours: Vec<OwnControl>,
    /// Whether this user can load ours.
    pub loadable: bool,
    /// Why not.
    pub obstacle: Option<String>,
}

/// One parameter of a congestion control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ControlParameter {
    /// Its name.
    pub name: &'static str,
    /// Its value, in its unit.
    pub value: String,
    /// What it is if nobody sets it.
    pub default: String,
    /// Values that are allowed.
    pub allowed: String,
    /// What it does.
    pub help: &'static str,
}

/// A named set of parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ControlVariant {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub help: &'static str,
}

/// What a congestion control does. Its JSON is the contract of `windtunnel cc show --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ControlShown {
    /// The version of this object.
    pub schema_version: u32,
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What it does, in five lines.
    pub lines: [&'static str; 5],
    /// The variant, of one of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The kernel's name for it, of one of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Its parameters.
    pub parameters: Vec<ControlParameter>,
    /// Its named variants.
    pub variants: Vec<ControlVariant>,
    /// Where it is described.
    pub source: &'static str,
    /// Whether it is the kernel's own.
    pub kernel: bool,
    /// Whether the kernel has it now.
    pub available: bool,
}

/// What the kernel brings.
struct Native {
    name: &'static str,
    title: &'static str,
    lines: [&'static str; 5],
    source: &'static str,
}

const KERNEL: [Native; 3] = [
    Native {
        name: "reno",
        title: "NewReno by Linux's rules",
        lines: [
            "Grows by the packets acknowledged in slow start, then by one packet per round trip.",
            "Halves the window once for all losses of one window of data, spread over the round trip (PRR).",
            "Recent acknowledgement (RACK) and tail loss probes find losses without waiting for timeouts.",
            "Random loss p holds the window to about 1.22/sqrt(p) packets, whatever the path could carry.",
            "Always there; the kernel falls back to it.",
        ],
        source: "RFC 5681, RFC 6582, RFC 6937; net/ipv4/tcp_cong.c of Linux",
    },
    Native {
        name: "cubic",
        title: "CUBIC",
        lines: [
            "After a loss keeps 70 % of the window and returns to the old one along a cubic curve in time.",
            "Stays level near the old window, then probes beyond it faster and faster.",
            "On short or slow paths it grows like NewReno would, so as not to be slower than it.",
            "HyStart ends slow start when the RTT begins to rise.",
            "The default of Linux; K = cbrt(W * 0.3 / 0.4) seconds back to a window of W packets.",
        ],
        source: "RFC 9438; net/ipv4/tcp_cubic.c of Linux",
    },
    Native {
        name: "bbr",
        title: "BBR version 1",
        lines: [
            "Measures the path's rate and its shortest RTT, and paces to the one with a window of twice their product.",
            "Doesn't react to single losses at all.",
            "Probes for more rate one RTT in eight, and drains the queue in the next one.",
            "Every ten seconds it sends next to nothing for 200 ms, to see the shortest RTT.",
            "Fast under random loss; unfair to others at short queues.",
        ],
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; net/ipv4/tcp_bbr.c of Linux",
    },
];

/// All named variants of ours.
#[must_use]
pub fn variants() -> Vec<Choice> {
    let of = |algorithm: &'static Algorithm| {
        algorithm.variants.iter().filter_map(|variant| {
            let mut choice = Choice::new(algorithm.name).ok()?;
            choice.vary(variant.name).ok()?;
            Some(choice)
        })
    };
    ALGORITHMS.iter().flat_map(of).collect()
}

/// Why ours can't be loaded here; `None` if they can.
fn obstacle() -> Option<String> {
    if ALGORITHMS.iter().any(|algorithm| algorithm.object().is_none()) {
        return Some("this windtunnel was built without clang".to_owned());
    }
    let missing = missing_capabilities();
    if missing.is_empty() { None } else { Some(format!("needs {}, as root has", missing.join(" and "))) }
}

/// The congestion controls of the kernel and ours.
#[must_use]
pub fn list() -> ControlsList {
    let read = |name| wt_sys::ns::read_net_sysctl(name).unwrap_or_default();
    let (allowed, default) = (read("ipv4/tcp_allowed_congestion_control"), read("ipv4/tcp_congestion_control"));
    let (ours, loaded, pinned) = (variants(), available(), Pins::default().names());
    let kernel = loaded.iter().map(|name| KernelControl {
        default: default == *name,
        who: if allowed.split_whitespace().any(|word| word == name) { "everybody" } else { "CAP_NET_ADMIN" },
        ours: ours.iter().find(|choice| choice.kernel_name() == *name).map(ToString::to_string),
        name: name.clone(),
    });
    let own = ours.iter().map(|choice| {
        let kernel_name = choice.kernel_name();
        OwnControl {
            name: choice.algorithm.name,
            variant: choice.variant_text(),
            title: choice.algorithm.title,
            loaded: loaded.contains(&kernel_name),
            pinned: pinned.contains(&kernel_name),
            boot: super::boot::below_root(&boot_unit(&kernel_name)).exists(),
            kernel_name,
        }
    });
    let obstacle = obstacle();
    ControlsList {
        schema_version: 1,
        kernel: kernel.collect(),
        ours: own.collect(),
        loadable: obstacle.is_none(),
        obstacle,
    }
}

/// What one does.
///
/// # Errors
/// A usage [`Problem`] when there is none of this name.
pub fn show(name: &str) -> Result<ControlShown, Problem> {
    if let Some(native) = KERNEL.iter().find(|native| native.name == name) {
        return Ok(ControlShown {
            schema_version: 1,
            name: native.name,
            title: native.title,
            lines: native.lines,
            variant: None,
            kernel_name: None,
            parameters: Vec::new(),
            variants: Vec::new(),
            source: native.source,
            kernel: true,
            available: available().iter().any(|name| name == native.name),
        });
    }
    let choice = choice(name).map_err(|problem| problem.hint("reno, cubic and bbr are the kernel's"))?;
    let algorithm = choice.algorithm;
    let parameters = algorithm.parameters.iter().zip(&choice.values).map(|(parameter, value)| ControlParameter {
        name: parameter.name,
        value: parameter.format(*value),
        default: parameter.format(parameter.default),
        allowed: parameter.allowed(),
        help: parameter.help,
    });
    let variants = algorithm.variants.iter().map(|variant| ControlVariant { name: variant.name, help: variant.help });
    Ok(ControlShown {
        schema_version: 1,
        name: algorithm.name,
        title: algorithm.title,
        lines: algorithm.lines,
        variant: Some(choice.variant_text()),
        kernel_name: Some(choice.kernel_name()),
        parameters: parameters.collect(),
        variants: variants.collect(),
        source: algorithm.source,
        kernel: false,
        available: available().contains(&choice.kernel_name()),
    })
}
