use wt_sys::SysError;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Nothing was asked for.
    #[error("nothing to change: give KEY=VALUE, --file, --defaults or --verdict")]
    Nothing,
    /// It can't be set there.
    #[error("{key} can't be set on {place}: {instead}")]
    WrongPlace {
        /// The setting.
        key: &'static str,
        /// Where it was asked for.
        place: String,
        /// Where it can be set.
        instead: String,
    },
    /// Nothing here sets it for one target.
    #[error("{key} can't be set for connections with {target} alone here: {why}")]
    NotPerTarget {
        /// The setting.
        key: &'static str,
        /// The target.
        target: String,
        /// Why not.
        why: String,
        /// The kernel setting that sets it for the whole host.
        nearest: &'static str,
    },
    /// This kernel, or this network namespace, doesn't have it.
    #[error("{key} ({kernel}) doesn't exist here: this kernel, or this network namespace, doesn't have it")]
    Missing {
        /// The setting.
        key: &'static str,
        /// The kernel's name.
        kernel: String,
    },
    /// There is no default route to set it on.
    #[error("there is no default route to set {key} on")]
    NoDefaultRoute {
        /// The setting.
        key: &'static str,
    },
    /// No route leads there.
    #[error("no route leads to {target}")]
    NoRoute {
        /// Where.
        target: String,
        /// What the kernel said.
        source: SysError,
    },
    /// There is no such device.
    #[error("there is no device \"{name}\"{}", suggestion(nearest))]
    NoDevice {
        /// What was written.
        name: String,
        /// The nearest name, or else all.
        nearest: Vec<String>,
    },
    /// It looks like the name of a host, and places are addresses.
    #[error("there is no device \"{text}\", and names of hosts aren't looked up here")]
    HostName {
        /// What was written.
        text: String,
    },
    /// It looks like an address or a network, and is none.
    #[error("\"{text}\" is neither an address nor a network: IPv4 has /0 to /32, IPv6 /0 to /128")]
    BadTarget {
        /// What was written.
        text: String,
    },
    /// Which device is meant can't be told.
    #[error("{key} needs a device: there is no default route, and not just one device that is up")]
    WhichDevice {
        /// The setting.
        key: &'static str,
    },
    /// The device, or what is known of it, doesn't allow the value.
    #[error("{key}={value} is out of range: {device} allows {allowed}")]
    OutOfRange {
        /// The setting.
        key: &'static str,
        /// The value.
        value: String,
        /// What sets the limit.
        device: String,
        /// The range.
        allowed: String,
    },
    /// The kernel has no such congestion control.
    #[error("this kernel has no congestion control \"{name}\": there are {}", known.join(", "))]
    NoCongestionControl {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The default isn't the same on all kernels.
    #[error("the kernel's own value of {key} can't be known: name a value")]
    NoDefault {
        /// The setting.
        key: &'static str,
    },
    /// It could not be undone.
    #[error("{what} could not be put back exactly, so it isn't changed: {why}")]
    Irreversible {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!(": did you mean {one}?"),
        several => format!(": there are {}", several.join(", ")),
    }
}
