/// Which file sets what at boot.
pub(crate) mod chain;
/// What could be better, and why.
mod findings;
/// The kernel's version and what follows from it.
mod kernel;
/// Who else sets things.
mod manager;
/// What the system does by itself.
mod own_values;
/// The screen.
mod report;
/// What the screen consists of.
mod rows;
/// Everything that is known of the host.
mod survey;
/// What the way to a target lays down.
mod toward;
/// Values of settings in what was read.
mod values;

pub use chain::{Assignment, Chain};
pub use findings::{Finding, Severity};
pub use kernel::{Caveat, KernelVersion, caveats};
pub(crate) use manager::ROUTE_FILE;
pub use manager::{Manager, ManagerKind, Managers, TunedDaemon};
pub use report::Report;
pub use rows::{Adapter, Clamp, Congestion, KnobRow, Origin, RouteRow};
pub use survey::Survey;
pub use toward::laid_down_toward;

pub(crate) use own_values::is_ethernet;
pub(crate) use values::{
    Values, buffer_of_window, connection_value, host_value, link_value, route_value, window_of_buffer,
};
