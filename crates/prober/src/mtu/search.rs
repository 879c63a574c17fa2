use super::memory::ToldMtus;
use crate::ProbeOptions;
use crate::driver::{Cost, Driver, SearchPass, limit_at_rate};
use crate::target::Target;
use crate::waves::waves;
use std::time::Duration;
use wt_probe::{Finding, Kind, Machine, PathKind, Search, SearchConfig, SearchReport};
use wt_problem::Problem;
use wt_trial::Cancel;

/// With more targets at once routers are given no time to say more.
const FEW: usize = 4;
/// TCP connections that look for other branches, if nothing else is said: one of two equal branches is missed once in
/// 4096 times.
const FLOWS: u8 = 12;
/// No search takes longer, unless a low rate was asked for.
const LIMIT: Duration = Duration::from_secs(60);
/// Packets of one host's search, where more than a black hole is the matter with the path.
const PACKETS: u32 = 200;

/// What searches found and cost.
#[derive(Debug, Clone)]
pub struct SearchRun {
    /// Target by target; of one that this host can't send to, why not.
    pub reports: Vec<Result<SearchReport, Problem>>,
    /// The cost of finding what gets there.
    pub cost: Cost,
    /// The cost, on top, of finding what comes back.
    pub reverse: Cost,
}

/// What a search looks at beside the path MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SearchScope {
    /// Whether losses of short and of long packets are counted.
    pub losses: bool,
    /// TCP connections that look for other branches; if it isn't said, 12 to a few targets, and none to many.
    pub flows: Option<u8>,
}

/// Searches for all targets at once, those of one version of IP after those of the other, and several of one address one after the other.
///
/// # Errors
/// An environment problem where this host can't probe at all, and a stopped one after a cancel.
pub fn search(
    targets: &[Target],
    options: &ProbeOptions,
    scope: SearchScope,
    cancel: &Cancel,
) -> Result<SearchRun, Problem> {
    let SearchScope { losses, flows } = scope;
    let (mut told, file) = ToldMtus::load();
    let mut reports: Vec<Option<Result<SearchReport, Problem>>> = targets.iter().map(|_| None).collect();
    let (mut cost, mut reverse) = (Cost::default(), Cost::default());
    for wave in waves(targets) {
        let Some(v6) = wave.first().map(|first| targets[*first].ip.is_ipv6()) else { continue };
        let mut driver = Driver::open(v6, wave.len(), options, cancel)?;
        let kinds = driver.kinds();
        let handshake = kinds.contains(&Kind::OldSegment) || kinds.contains(&Kind::Stream);
        let patient = wave.len() <= FEW;
        let limit = limit_at_rate(LIMIT, wave.len(), PACKETS, options);
        let flows = if driver.streams() { flows.unwrap_or(if patient { FLOWS } else { 1 }) } else { 1 };
        let config = |i: usize| SearchConfig {
            max: targets[i].mtu,
            v6,
            kinds: kinds.clone(),
            handshake,
            patient,
            losses,
            flows,
            told: told.of(targets[i].ip),
        };
        let mut machines: Vec<Search> = wave.iter().map(|i| Search::new(config(*i), options.rng(*i as u64))).collect();
        let (spent, (reverse_pmtu, reverse_hole), on_top, failed) = if let ([only], [machine]) =
            (&wave[..], &mut machines[..])
        {
            let SearchPass { cost, reverse_pmtu, reverse_hole, on_top, failed } =
                driver.search_both_ways(&targets[*only], machine, limit)?;
            (cost, (reverse_pmtu, reverse_hole), on_top, vec![failed])
        } else {
            let pairs = wave.iter().zip(&mut machines).map(|(i, machine)| (&targets[*i], machine as &mut dyn Machine));
            let (spent, failed) = driver.run_all(pairs.collect(), limit)?;
            (spent, (None, false), Cost::default(), failed)
        };
        (cost, reverse) = (cost.plus(spent), reverse.plus(on_top));
        for ((i, machine), failed) in wave.iter().zip(&machines).zip(failed) {
            if let Some(problem) = failed {
                reports[*i] = Some(Err(problem));
                continue;
            }
            let report = SearchReport { reverse_pmtu, ..machine.report() };
            let report = if reverse_hole { with_hole_on_the_way_back(report) } else { report };
            let truth = report.hints.iter().find(|hint| Some(hint.mtu) == report.pmtu);
            if let Some(hint) = truth.filter(|_| patient) {
                told.told(targets[*i].ip, hint.mtu, wt_sys::clock::unix_us());
            }
            reports[*i] = Some(Ok(report));
        }
    }
    told.store(file);
    Ok(SearchRun { reports: reports.into_iter().flatten().collect(), cost, reverse })
}

/// What longer packets vanish on their way back adds to what the way there showed; one hole both ways is one.
fn with_hole_on_the_way_back(mut report: SearchReport) -> SearchReport {
    let Some(most) = report.reverse_pmtu else { return report };
    if report.pmtu.is_some_and(|there| most < there)
        || !matches!(report.kind, PathKind::BlackHole | PathKind::LyingRouter)
    {
        report.findings.push(Finding::HoleOnTheWayBack { most });
    }
    if report.kind == PathKind::Clean {
        report.kind = PathKind::ReverseBlackHole;
    }
    report
}
