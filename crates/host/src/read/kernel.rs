use serde::Serialize;
use utoipa::ToSchema;

/// A version of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion(pub u32, pub u32, pub u32);

impl KernelVersion {
    /// Reads `6.1.0-13-amd64`; what can't be read counts as the newest.
    #[must_use]
    pub fn of(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>());
        let mut next = || numbers.next().and_then(Result::ok);
        match next() {
            Some(first) => Self(first, next().unwrap_or(0), next().unwrap_or(0)),
            None => Self(u32::MAX, 0, 0),
        }
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)?;
        if self.2 > 0 { write!(f, ".{}", self.2) } else { Ok(()) }
    }
}

/// What follows from the version of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Caveat {
    /// Stays the same from version to version of this program.
    pub id: &'static str,
    /// The version of Linux with which it changed.
    pub since: String,
    /// Whether this kernel is older, so that it limits what can be done here.
    pub limits: bool,
    /// What holds on this kernel, in words.
    pub text: String,
}

/// What holds on kernels before a version.
struct Rule {
    id: &'static str,
    since: KernelVersion,
    before: &'static str,
    after: &'static str,
}

/// # Source
/// ip-route(8) and the kernel's change logs: initcwnd on routes 2.6.30, initrwnd 2.6.33, a default of 10 segments
/// 2.6.39; congctl on routes 4.0; pacing without fq 4.13; receive buffers of a namespace 4.15.
const RULES: [Rule; 7] = [
    Rule {
        id: "kernel-initcwnd-route",
        since: KernelVersion(2, 6, 30),
        before: "routes can't have initcwnd",
        after: "routes can have initcwnd",
    },
    Rule {
        id: "kernel-initrwnd-route",
        since: KernelVersion(2, 6, 33),
        before: "routes can't have initrwnd",
        after: "routes can have initrwnd",
    },
    Rule {
        id: "kernel-initcwnd-default",
        since: KernelVersion(2, 6, 39),
        before: "connections begin with 3 segments or fewer unless a route says otherwise",
        after: "connections begin with 10 segments unless a route says otherwise",
    },
    Rule {
        id: "kernel-congctl-route",
        since: KernelVersion(4, 0, 0),
        before: "routes can't choose a congestion control",
        after: "routes can choose a congestion control",
    },
    Rule {
        id: "kernel-pacing",
        since: KernelVersion(4, 13, 0),
        before: "bbr and pacing need the fq qdisc",
        after: "TCP paces by itself; fq isn't needed for bbr",
    },
    Rule {
        id: "kernel-rmem-namespaces",
        since: KernelVersion(4, 15, 0),
        before: "all network namespaces share tcp_rmem and tcp_wmem",
        after: "each network namespace has its own tcp_rmem and tcp_wmem",
    },
    Rule {
        id: "kernel-adv-win-scale",
        since: KernelVersion(6, 6, 0),
        before: "tcp_adv_win_scale decides how much of a receive buffer is window",
        after: "how much of a receive buffer is window follows what arrives; tcp_adv_win_scale has no effect",
    },
];

/// What follows from the version.
#[must_use]
pub fn caveats(version: KernelVersion) -> Vec<Caveat> {
    let caveat = |rule: &Rule| {
        let limits = version < rule.since;
        let (since, text) = (rule.since.to_string(), if limits { rule.before } else { rule.after });
        let text = format!("{text} ({} Linux {since})", if limits { "before" } else { "since" });
        Caveat { id: rule.id, since, limits, text }
    };
    RULES.iter().map(caveat).collect()
}

#[cfg(test)]
mod tests {
    use super::{KernelVersion, caveats};

    #[test]
    fn releases_are_read_whatever_distributions_append() {
        for (text, wanted) in [
            ("6.1.0-13-amd64", KernelVersion(6, 1, 0)),
            ("2.6.32-754.el6.x86_64", KernelVersion(2, 6, 32)),
            ("5.15", KernelVersion(5, 15, 0)),
            ("6.18.44-fc-v657", KernelVersion(6, 18, 44)),
        ] {
            assert_eq!(KernelVersion::of(text), wanted);
        }
        assert!(KernelVersion::of("weird") > KernelVersion(99, 0, 0));
    }

    #[test]
    fn old_kernels_have_caveats_and_new_ones_none() {
        let applying = |version| caveats(version).iter().filter(|c| c.limits).count();
        assert_eq!(applying(KernelVersion(6, 18, 0)), 0);
        assert_eq!(applying(KernelVersion(2, 6, 29)), 7);
        assert_eq!(applying(KernelVersion(2, 6, 38)), 5);
        let texts: Vec<String> = caveats(KernelVersion(6, 18, 0)).into_iter().map(|caveat| caveat.text).collect();
        assert_eq!(texts[2], "connections begin with 10 segments unless a route says otherwise (since Linux 2.6.39)");
        assert!(caveats(KernelVersion(2, 6, 32))[1].text.ends_with("(before Linux 2.6.33)"));
        assert!(caveats(KernelVersion(3, 2, 0))[3].text.ends_with("(before Linux 4.0)"));
    }
}
