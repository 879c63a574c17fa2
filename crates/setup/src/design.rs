//! Which settings are compared: knobs, levels, and the reason for each.

use crate::arms::{Baseline, NamedArm, over};
use crate::text;
use wt_problem::Problem;
use wt_trial::PathFacts;
use wt_units::{Assignment, FullPacket, Knob, Level, Settings};

/// The most settings that one experiment compares; beyond that, screen first.
const MOST_ARMS: usize = 16;
/// Why a setting is tried that somebody named.
const ASKED_FOR: &str = "asked for";
/// No window of TCP is larger (RFC 7323 section 2.3), nor a buffer that can be asked for, bytes.
const LARGEST_BUFFER: u64 = 1 << 30;
/// MTUs that are recommended to people, wherever they come from.
const USUAL_MTUS: [u64; 5] = [1492, 1454, 1400, 1280, 576];

/// One setting that is compared.
#[derive(Debug, Clone, serde::Serialize, utoipa::ToSchema)]
#[schema(as = PlannedArm)]
pub struct Arm {
    /// How it is called in tables.
    pub label: String,
    /// What is asked for: everything that isn't named stays as it is.
    pub settings: Settings,
    /// Why it is tried.
    pub why: String,
}

impl Arm {
    /// Whether somebody named it, so that no model leaves it out.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.why == ASKED_FOR
    }
}

/// All settings that are compared, the current one first.
#[derive(Debug, Clone)]
pub struct Design {
    /// By number; 0 is what the others are compared with: the current settings, or a baseline that somebody named.
    pub arms: Vec<Arm>,
    /// The ordered knob whose smallest sufficient level is sought: its arms, ascending.
    pub plateau: Option<(Knob, Vec<usize>)>,
}

impl Design {
    /// What each setting is called, by number.
    pub fn labels(&self) -> Vec<String> {
        self.arms.iter().map(|arm| arm.label.clone()).collect()
    }
}

/// What is known when levels are chosen.
pub struct DesignFacts<'a> {
    /// What holds when nothing is asked for.
    pub current: &'a Settings,
    /// The path.
    pub path: &'a PathFacts,
    /// The congestion controls that can be set there.
    pub congestion_controls: &'a [String],
    /// TCP payload of a full-sized packet, bytes.
    pub mss: u64,
    /// The MTU up to a bound that fills its cells best, where the framing is known.
    pub best_mtu: &'a dyn Fn(u64) -> Option<u64>,
}

/// The congestion controls that come with Linux.
///
/// # Source
/// `net/ipv4/Kconfig` of Linux 6.18, the entries `TCP_CONG_…`.
const OF_LINUX: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

impl DesignFacts<'_> {
    /// What multiples are multiplied with where nothing else is set.
    #[must_use]
    pub fn full_packet(&self) -> FullPacket {
        FullPacket { mtu: self.path.pmtu, mss: self.mss }
    }

    fn default_levels(&self, knob: Knob) -> Vec<(Level, String)> {
        match knob {
            Knob::Rwin => self.windows(),
            Knob::Mtu => self.mtus(),
            Knob::Cc => {
                // What other programs have registered isn't the kernel's to offer, and may be gone before the experiment ends.
                let own = self.congestion_controls.iter().filter(|name| OF_LINUX.contains(&name.as_str()));
                own.map(|name| (Level::Name(name.clone()), "this kernel has it".to_owned())).collect()
            }
            Knob::Initcwnd => [4, 20, 32].map(|n| (Level::Number(n), "around the usual 10".to_owned())).to_vec(),
            Knob::Initrwnd => [4, 20, 40].map(|n| (Level::Number(n), "around the usual".to_owned())).to_vec(),
            Knob::Mss => vec![],
            Knob::Sndbuf => {
                let bdp = self.path.bdp_bytes.max(4608);
                let levels = [bdp, bdp.saturating_mul(4)].map(|n| n.min(LARGEST_BUFFER));
                levels.map(|n| (Level::Number(n), "around the bandwidth-delay product".to_owned())).to_vec()
            }
            Knob::Ttl => [32, 64, 128].map(|n| (Level::Number(n), "a usual default".to_owned())).to_vec(),
            Knob::Sack | Knob::Timestamps | Knob::WindowScaling | Knob::Ecn | Knob::MtuProbing | Knob::Pmtud => {
                // Where nobody says how it is, it is as Linux has it: ip-sysctl.rst. ECN is neither: it is accepted, and not asked for.
                let usual = match knob {
                    Knob::Ecn => None,
                    Knob::MtuProbing => Some("off"),
                    _ => Some("on"),
                };
                let usual = usual.filter(|_| self.current.get(knob).is_none());
                let levels = ["on", "off"].into_iter().filter(|level| Some(*level) != usual);
                levels.map(|level| (Level::Name(level.to_owned()), "the other way round".to_owned())).collect()
            }
        }
    }

    /// Half, once, one and a half times and twice the bandwidth-delay product, in whole segments: where the link doesn't carry
    /// steadily (radio, shared media) once is too small and twice fills the queue.
    fn windows(&self) -> Vec<(Level, String)> {
        let segments = (self.path.bdp_bytes as f64 / self.mss as f64).max(1.0);
        let mut levels: Vec<(Level, String)> = Vec::new();
        for (times, why) in [
            (0.5, "half the bandwidth-delay product: too small if the model is right"),
            (1.0, "the bandwidth-delay product"),
            (1.5, "one and a half times the bandwidth-delay product: less delay than twice, where once is too small"),
            (2.0, "twice the bandwidth-delay product"),
        ] {
            let bytes = ((segments * times).ceil().max(2.0) as u64).saturating_mul(self.mss);
            let level = Level::Number(bytes.min(LARGEST_BUFFER));
            if levels.iter().all(|(known, _)| *known != level) {
                levels.push((level, why.to_owned()));
            }
        }
        levels
    }

    fn mtus(&self) -> Vec<(Level, String)> {
        let pmtu = self.path.pmtu;
        let current = self.current.number(Knob::Mtu).unwrap_or(u64::MAX);
        let mut levels: Vec<(u64, &str)> = Vec::new();
        if pmtu < current {
            levels.push((pmtu, "the largest that gets through"));
        }
        // Without the current one: the best below it.
        let fitting = (self.best_mtu)(pmtu.min(current).saturating_sub(1));
        levels.extend(fitting.map(|mtu| (mtu, "wastes least of the link's cells or frames below the current one")));
        let new = |mtu: &&u64| **mtu < pmtu.min(current) && levels.iter().all(|(known, _)| known != *mtu);
        let usual = USUAL_MTUS.iter().find(new).map(|mtu| (*mtu, "often recommended"));
        levels.extend(usual);
        levels.into_iter().map(|(mtu, why)| (Level::Number(mtu), why.to_owned())).collect()
    }
}

/// Levels that somebody wrote for one knob.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// The knob.
    pub knob: Knob,
    /// Its levels, at least one.
    pub levels: Vec<Level>,
}

impl std::fmt::Display for Levels {
    /// `rwin=4x,8x`; read back it is the same.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.knob, levels.join(","))
    }
}

text::serde_as_text!(Levels);

impl std::str::FromStr for Levels {
    type Err = String;
    /// Reads `rwin=4x,33xmtu,64KiB`, `rwin=1x..16x` (doubling), `mtu=1400,1454`, `cc=reno,cubic`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, list) = text.split_once('=').ok_or("write KNOB=LEVEL,LEVEL…, such as rwin=4x,8x,auto")?;
        let knob: Knob = name.parse().map_err(|error: wt_units::ParseError| error.to_string())?;
        let mut levels = Vec::new();
        for word in list.split(',').filter(|word| !word.trim().is_empty()) {
            match word.split_once("..") {
                Some((from, to)) => levels.extend(doubling(knob, from, to)?),
                None => levels.push(knob.parse_level(word).map_err(|error| error.to_string())?),
            }
        }
        if levels.is_empty() {
            return Err(format!("no level of {knob} is named: allowed is {}", knob.allowed()));
        }
        Ok(Self { knob, levels })
    }
}

/// From one level to another by doubling, the last one included.
fn doubling(knob: Knob, from: &str, to: &str) -> Result<Vec<Level>, String> {
    let parse = |text: &str| knob.parse_level(text).map_err(|error| error.to_string());
    let (from, to) = (parse(from)?, parse(to)?);
    let steps = |first: u64, last: u64| {
        let doubled = std::iter::successors(Some(first), |n| n.checked_mul(2)).take_while(move |n| *n < last);
        doubled.chain([last]).take(MOST_ARMS).collect::<Vec<_>>()
    };
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    match (from, to) {
        (Level::Number(a), Level::Number(b)) if a < b => Ok(steps(a, b).into_iter().map(Level::Number).collect()),
        (Level::TimesMss(a), Level::TimesMss(b)) if a < b => {
            Ok(steps(a.into(), b.into()).into_iter().map(|n| Level::TimesMss(narrow(n))).collect())
        }
        (Level::TimesMtu(a), Level::TimesMtu(b)) if a < b => {
            Ok(steps(a.into(), b.into()).into_iter().map(|n| Level::TimesMtu(narrow(n))).collect())
        }
        (a, b) => Err(format!(
            "{a}..{b} is no range of {knob}: write SMALL..LARGE, both as bytes or both as multiples of the same"
        )),
    }
}

/// What somebody wants to have compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct DesignQuestion<'a> {
    /// The knobs that are varied, one at a time.
    pub knobs: &'a [Knob],
    /// Levels of them, instead of those chosen from the path; they bring their knob.
    pub levels: &'a [Levels],
    /// What the candidates are compared with; nothing means the current settings.
    pub baseline: Option<&'a Baseline>,
    /// Candidates of several settings.
    pub arms: &'a [NamedArm],
}

/// Builds the design: the current settings, then each level of each knob by itself.
///
/// # Errors
/// A usage [`Problem`] when nothing is left to compare, or too much.
pub fn design(knobs: &[Knob], given: &[Levels], known: &DesignFacts<'_>) -> Result<Design, Problem> {
    design_of(&DesignQuestion { knobs, levels: given, ..DesignQuestion::default() }, known)
}

/// Builds the design: the baseline, then each level of each knob by itself over the baseline, then the arms over it.
///
/// # Errors
/// As [`design`].
pub fn design_of(asked: &DesignQuestion<'_>, known: &DesignFacts<'_>) -> Result<Design, Problem> {
    let given = asked.levels;
    let mut knobs = asked.knobs.to_vec();
    knobs.extend(given.iter().map(|levels| levels.knob).filter(|knob| !knobs.contains(knob)).collect::<Vec<_>>());
    let mut arms = vec![first(asked.baseline, known)?];
    let mut plateau = None;
    for knob in knobs {
        let asked: Vec<&Levels> = given.iter().filter(|levels| levels.knob == knob).collect();
        let levels: Vec<(Level, String)> = if asked.is_empty() {
            known.default_levels(knob)
        } else {
            let all = asked.iter().flat_map(|levels| levels.levels.iter());
            all.map(|level| (level.clone(), ASKED_FOR.to_owned())).collect()
        };
        let added = add(&mut arms, knob, levels, known);
        if plateau.is_none() && knob.is_ordered() && knob != Knob::Mtu && added.len() >= 2 {
            plateau = Some((knob, ascending(&arms, knob, added, known)));
        }
    }
    // Without a baseline the current settings are the first arm anyhow, of two or more.
    let first_anyhow = asked.baseline.is_none() && asked.arms.iter().any(|arm| !arm.settings.is_empty());
    let mut named = asked.arms.iter().filter(|arm| !first_anyhow || !arm.settings.is_empty());
    named.try_for_each(|arm| add_named(&mut arms, arm, known))?;
    match arms.len() {
        1 => Err(Problem::usage("there is nothing to compare: no level differs from the current settings")
            .hint("name levels with --levels, such as --levels rwin=4x,8x")),
        n if n > MOST_ARMS => {
            Err(Problem::usage(format!("{n} settings are too many for one experiment; at most {MOST_ARMS}"))
                .hint("name fewer knobs with --knobs, or fewer levels with --levels"))
        }
        _ => Ok(Design { arms, plateau }),
    }
}

/// What the others are compared with.
fn first(baseline: Option<&Baseline>, known: &DesignFacts<'_>) -> Result<Arm, Problem> {
    let Some(baseline) = baseline else {
        return Ok(Arm {
            settings: Settings::new(),
            label: format!("current ({})", known.current),
            why: "what holds when nothing is asked for".to_owned(),
        });
    };
    let settings = baseline.settings(known.current, known.full_packet())?;
    Ok(Arm { label: baseline.label(&settings), settings, why: "what the others are compared with".to_owned() })
}

/// Adds a candidate that somebody put together.
fn add_named(arms: &mut Vec<Arm>, named: &NamedArm, known: &DesignFacts<'_>) -> Result<(), Problem> {
    // The current settings are those without the baseline.
    let base = if named.settings.is_empty() { Settings::new() } else { arms[0].settings.clone() };
    let settings = over(&base, &named.settings, known.full_packet());
    if let Some(same) = arms.iter().find(|arm| arm.settings == settings) {
        return Err(Problem::usage(format!("\"{named}\" is the same as \"{}\"", same.label))
            .hint("leave one of them out, or name another --baseline"));
    }
    let label = match (named.settings.is_empty(), named.name.as_str()) {
        (true, _) => "your current settings".to_owned(),
        (false, "") => over(&Settings::new(), &named.settings, known.full_packet()).to_string(),
        (false, name) => name.to_owned(),
    };
    if arms.iter().any(|arm| arm.label == label) {
        return Err(Problem::usage(format!("two arms are called \"{label}\"")).hint("give each a name of its own"));
    }
    arms.push(Arm { label, settings, why: ASKED_FOR.to_owned() });
    Ok(())
}

/// Adds the levels that differ from what holds and from each other; returns their numbers.
fn add(arms: &mut Vec<Arm>, knob: Knob, levels: Vec<(Level, String)>, known: &DesignFacts<'_>) -> Vec<usize> {
    let mut added = Vec::new();
    let base = arms[0].settings.clone();
    let full = known.full_packet().within(base.number(Knob::Mtu), base.number(Knob::Mss));
    for (asked, why) in levels {
        let level = asked.clone().resolve(full);
        let settings = over(&base, &[Assignment { knob, level: level.clone() }], full);
        let holds = match base.get(knob) {
            Some(own) => *own == level,
            None => level == Level::Auto || known.current.get(knob) == Some(&level),
        };
        if holds || arms.iter().any(|arm| arm.settings == settings) {
            continue;
        }
        added.push(arms.len());
        arms.push(Arm { label: label(knob, &asked, &level, full), settings, why });
    }
    added
}

/// What a level is called: a window with the multiple that somebody wrote, or else with that of the MSS or the MTU that it is.
fn label(knob: Knob, asked: &Level, level: &Level, full: FullPacket) -> String {
    let FullPacket { mtu, mss } = full;
    match (knob, asked, level) {
        (Knob::Rwin, Level::TimesMtu(times), Level::Number(bytes)) => format!("rwin={bytes} ({times}×MTU {mtu})"),
        (Knob::Rwin, _, Level::Number(bytes)) if bytes % mss == 0 => format!("rwin={bytes} ({}×{mss})", bytes / mss),
        (Knob::Rwin, _, Level::Number(bytes)) if bytes % mtu == 0 => {
            format!("rwin={bytes} ({}×MTU {mtu})", bytes / mtu)
        }
        _ => format!("{knob}={level}"),
    }
}

/// What Linux does where nothing says otherwise, in segments.
///
/// # Source
/// `TCP_INIT_CWND` of include/net/tcp.h; for the window, what `tcp_select_initial_window` makes of the default receive buffer
/// and segments of 1460 bytes.
fn usual(knob: Knob) -> Option<u64> {
    match knob {
        Knob::Initcwnd => Some(10),
        Knob::Initrwnd => Some(44),
        _ => None,
    }
}

/// What Linux does where nobody has set it, as the ends of a lab and a model do: of knobs whose level then is known exactly.
///
/// # Source
/// `TCP_INIT_CWND` of include/net/tcp.h; Documentation/networking/ip-sysctl.rst for `tcp_sack`, `tcp_timestamps`, `tcp_window_scaling`,
/// `tcp_mtu_probing`, `ip_no_pmtu_disc` and `ip_default_ttl`.
#[must_use]
pub fn level_of_linux(knob: Knob) -> Option<Level> {
    match knob {
        Knob::Initcwnd => usual(knob).map(Level::Number),
        Knob::Ttl => Some(Level::Number(64)),
        Knob::Sack | Knob::Timestamps | Knob::WindowScaling | Knob::Pmtud => Some(Level::Name("on".to_owned())),
        Knob::MtuProbing => Some(Level::Name("off".to_owned())),
        Knob::Rwin | Knob::Mtu | Knob::Mss | Knob::Cc | Knob::Ecn | Knob::Initrwnd | Knob::Sndbuf => None,
    }
}

/// The arms of an ordered knob by level; the current one where it belongs, an automatic one last.
fn ascending(arms: &[Arm], knob: Knob, mut added: Vec<usize>, known: &DesignFacts<'_>) -> Vec<usize> {
    let current = known.current.number(knob).or_else(|| usual(knob)).unwrap_or(u64::MAX);
    let size = |arm: &usize| arms[*arm].settings.number(knob).unwrap_or(current);
    added.push(0);
    added.sort_by_key(size);
    added
}

/// So many candidates that all ask for nothing: whatever is found between them is false.
pub fn identical(candidates: usize, known: &DesignFacts<'_>) -> Result<Design, Problem> {
    if !(1..MOST_ARMS).contains(&candidates) {
        return Err(Problem::usage(format!(
            "--identical {candidates} is out of range: allowed is 1 to {}",
            MOST_ARMS - 1
        )));
    }
    let arm = |number: usize| Arm {
        settings: Settings::new(),
        label: if number == 0 { format!("current ({})", known.current) } else { format!("identical {number}") },
        why: "the same settings under another name".to_owned(),
    };
    Ok(Design { arms: (0..=candidates).map(arm).collect(), plateau: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> PathFacts {
        PathFacts { rtt_us: 34_900, pmtu: 1492, bdp_bytes: 29_600, physical_goodput_bps: Some(6_792_452) }
    }

    fn with_known<T>(test: impl FnOnce(&DesignFacts<'_>) -> T) -> T {
        let current = Settings::new()
            .with(Knob::Rwin, Level::Auto)
            .with(Knob::Mtu, Level::Number(1492))
            .with(Knob::Cc, Level::Name("cubic".to_owned()));
        let controls = ["reno", "cubic", "wt_hd", "anothers"].map(str::to_owned);
        test(&DesignFacts {
            current: &current,
            path: &path(),
            congestion_controls: &controls,
            mss: 1440,
            best_mtu: &|_| Some(1444),
        })
    }

    fn labels(design: &Design) -> Vec<String> {
        design.arms.iter().skip(1).map(|arm| arm.settings.to_string()).collect()
    }

    #[test]
    fn defaults_are_chosen_from_the_path_and_never_repeat_the_current_settings() {
        let design = with_known(|known| design(&[Knob::Rwin, Knob::Mtu, Knob::Cc], &[], known).unwrap());
        assert_eq!(
            labels(&design),
            ["rwin=15840", "rwin=30240", "rwin=44640", "rwin=60480", "mtu=1444", "mtu=1454", "cc=reno"]
        );
        assert_eq!(design.plateau, Some((Knob::Rwin, vec![1, 2, 3, 4, 0])));
    }

    #[test]
    fn no_level_that_is_chosen_from_the_path_is_larger_than_a_window_or_a_buffer_can_be() {
        let path = PathFacts { bdp_bytes: 2_500_000_000, ..path() };
        let labels =
            |knob| with_known(|known| labels(&design(&[knob], &[], &DesignFacts { path: &path, ..*known }).unwrap()));
        assert_eq!(
            (labels(Knob::Rwin), labels(Knob::Sndbuf)),
            (vec!["rwin=1073741824".into()], vec!["sndbuf=1073741824".into()])
        );
    }

    #[test]
    fn a_switch_is_tried_the_other_way_round_alone() {
        let labels = |knobs: &[Knob]| with_known(|known| labels(&design(knobs, &[], known).unwrap()));
        assert_eq!(labels(&[Knob::Pmtud, Knob::Sack, Knob::MtuProbing]), ["pmtud=off", "sack=off", "mtu-probing=on"]);
        assert_eq!(labels(&[Knob::Ecn]), ["ecn=on", "ecn=off"], "it is neither by default");
    }

    #[test]
    fn levels_that_are_written_replace_the_defaults_and_bring_their_knob() {
        let given = ["rwin=1x..6x,auto".parse().unwrap(), "ttl=64".parse().unwrap()];
        let design = with_known(|known| design(&[], &given, known).unwrap());
        assert_eq!(labels(&design), ["rwin=1440", "rwin=2880", "rwin=5760", "rwin=8640", "ttl=64"]);
    }

    #[test]
    fn a_baseline_comes_first_and_every_candidate_is_over_it() {
        let baseline = "rwin=8192,sack=off".parse().unwrap();
        let levels = ["rwin=8192,4x,auto".parse().unwrap()];
        let asked = DesignQuestion {
            levels: &levels,
            baseline: Some(&baseline),
            arms: &["small: mtu=576,rwin=4x".parse().unwrap(), "current".parse().unwrap()],
            ..DesignQuestion::default()
        };
        let design = with_known(|known| design_of(&asked, known).unwrap());
        assert_eq!(design.arms[0].label, "baseline (rwin=8192 sack=off)");
        assert_eq!(
            labels(&design),
            ["rwin=5760 sack=off", "sack=off", "rwin=2096 mtu=576 sack=off", "defaults"],
            "8192 is the baseline's, and current is without it"
        );
        let named: Vec<&str> = design.arms.iter().skip(1).map(|arm| arm.label.as_str()).collect();
        assert_eq!(named, ["rwin=5760 (4×1440)", "rwin=auto", "small", "your current settings"]);
        assert_eq!(design.plateau, Some((Knob::Rwin, vec![1, 0, 2])));
    }

    #[test]
    fn windows_in_whole_packets_are_called_so() {
        let of = |levels: &str, baseline: Option<&str>| {
            let levels = [levels.parse().unwrap()];
            let baseline = baseline.map(|text| text.parse().unwrap());
            let asked = DesignQuestion { levels: &levels, baseline: baseline.as_ref(), ..DesignQuestion::default() };
            let design = with_known(|known| design_of(&asked, known).unwrap());
            design.arms.into_iter().skip(1).map(|arm| arm.label).collect::<Vec<_>>()
        };
        assert_eq!(
            of("rwin=33xmtu,4x,2984,8000,1440xmtu", None),
            [
                "rwin=49236 (33×MTU 1492)",
                "rwin=5760 (4×1440)",
                "rwin=2984 (2×MTU 1492)",
                "rwin=8000",
                "rwin=2148480 (1440×MTU 1492)"
            ]
        );
        assert_eq!(of("rwin=1xmtu..4xmtu", None).last().unwrap(), "rwin=5968 (4×MTU 1492)");
        // Over a baseline with a smaller MTU they are multiples of that one.
        assert_eq!(of("rwin=33xmtu,4x", Some("mtu=1456")), ["rwin=48048 (33×MTU 1456)", "rwin=5616 (4×1404)"]);
    }

    #[test]
    fn an_arm_that_is_there_already_is_refused() {
        let refused = |arms: &[&str]| {
            let arms: Vec<NamedArm> = arms.iter().map(|arm| arm.parse().unwrap()).collect();
            let asked = DesignQuestion { arms: &arms, ..DesignQuestion::default() };
            with_known(|known| design_of(&asked, known).unwrap_err().to_string())
        };
        assert!(refused(&["a: rwin=4x", "b: rwin=4x"]).contains("same"));
        assert!(refused(&["a: rwin=4x", "a: rwin=8x"]).contains("two arms"));
        assert!(refused(&["current"]).contains("same"));
    }

    #[test]
    fn the_current_settings_may_be_named_where_they_come_first_anyhow() {
        let arms: Vec<NamedArm> = ["current", "a: rwin=4x"].iter().map(|arm| arm.parse().unwrap()).collect();
        let asked = DesignQuestion { arms: &arms, ..DesignQuestion::default() };
        let design = with_known(|known| design_of(&asked, known).unwrap());
        assert_eq!((design.arms[0].settings.is_empty(), labels(&design)), (true, vec!["rwin=5760".to_owned()]));
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        for text in ["rwin", "rwind=4x", "mtu=4x", "rwin=16x..1x", "rwin=1x..4xmtu", "rwin=", "cc=reno..cubic"] {
            assert!(text.parse::<Levels>().is_err(), "{text}");
        }
        let nothing = ["cc=cubic".parse().unwrap()];
        assert!(with_known(|known| design(&[], &nothing, known)).is_err());
    }
}
