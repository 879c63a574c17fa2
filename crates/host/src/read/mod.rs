/// Which file sets what at boot.
pub(crate) mod chain;
/// What could be better, and why.
mod findings;
/// The kernel's version and what follows from it.
mod kernel;
/// Who else sets things.
mod manager;
/// The screen.
mod report;
/// Everything that is known of the host.
mod survey;

pub use chain::{Assignment, Chain};
pub use findings::{Finding, Severity};
pub use kernel::{Caveat, KernelVersion, caveats};
pub use manager::{Manager, ManagerKind, Managers, Tuned};
pub use report::{Adapter, Congestion, KnobRow, Origin, Report, RouteRow};
pub use survey::Survey;

pub(crate) use report::{is_unicast, late_line, sysctl_manager};
pub(crate) use survey::{buffer_of_window, host_value, link_value, route_value};
