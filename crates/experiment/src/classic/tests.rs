use super::*;
use crate::golden::assert_golden;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;

/// The dial-up study: rate in bytes/s, settings in rows, series in columns.
const TTL: [[f64; 4]; 4] = [
    [1309.0, 1597.0, 1888.0, 1206.0],
    [1327.0, 1597.0, 1597.0, 1109.0],
    [1242.0, 1404.0, 1700.0, 1191.0],
    [923.0, 1864.0, 1633.0, 975.0],
];
const OPTIONS: [[f64; 4]; 4] = [
    [1530.0, 1340.0, 1327.0, 1122.0],
    [1269.0, 1153.0, 1211.0, 1292.0],
    [1286.0, 985.0, 941.0, 816.0],
    [1211.0, 1286.0, 1876.0, 1093.0],
];
const MTU: [[f64; 4]; 3] =
    [[1398.0, 1555.0, 1580.0, 1876.0], [1073.0, 1453.0, 1221.0, 1606.0], [2077.0, 1624.0, 1140.0, 1221.0]];

fn table(rows: &[[f64; 4]], levels: &[&str]) -> Table {
    let blocks = (1..=4).map(|j| format!("series{j}")).collect();
    Table::new(levels.iter().map(|l| (*l).to_owned()).collect(), blocks, rows.concat()).unwrap()
}

fn ttl() -> Table {
    table(&TTL, &["0", "32", "64", "128"])
}

fn options() -> Table {
    table(&OPTIONS, &["none", "PMTUD", "+BH", "SACK"])
}

fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(1)
}

/// Asserts a row of figures at once.
#[track_caller]
fn golden(got: impl IntoIterator<Item = f64>, want: &[f64]) {
    let got: Vec<f64> = got.into_iter().collect();
    assert_eq!(got.len(), want.len(), "{got:?}");
    for (got, want) in got.iter().zip(want) {
        assert_golden(*got, *want);
    }
}

#[test]
fn the_dial_up_tables_are_described_as_published() {
    let figures = |t: &Table| -> Vec<Description> { (0..4).map(|i| describe(t.row(i)).unwrap()).collect() };
    let d = figures(&ttl());
    golden(d.iter().map(|d| d.mean), &[1500.0, 1408.0, 1384.0, 1349.0]);
    golden(d.iter().map(|d| d.geometric_mean.unwrap()), &[1477.0, 1392.0, 1371.0, 1286.0]);
    golden(d.iter().map(|d| d.sd.unwrap()), &[307.1, 236.2, 229.3, 471.6]);
    golden(d.iter().map(|d| d.sd_of_mean.unwrap()), &[153.5, 118.1, 114.6, 235.8]);
    let d = figures(&options());
    golden(d.iter().map(|d| d.mean), &[1330.0, 1231.0, 1007.0, 1366.0]);
    golden(d.iter().map(|d| d.geometric_mean.unwrap()), &[1322.0, 1230.0, 993.1, 1337.0]);
    golden(d.iter().map(|d| d.sd.unwrap()), &[166.7, 62.31, 199.3, 348.8]);
    golden(d.iter().map(|d| d.sd_of_mean.unwrap()), &[83.35, 31.16, 99.65, 174.4]);
    assert_golden(describe(&MTU[0]).unwrap().sd_of_mean.unwrap(), 99.74);
}

#[test]
fn one_way_analyses_without_blocks_give_the_golden_figures() {
    for (t, raw, log, rank) in [
        (ttl(), [0.1571, 0.9231], [0.2301, 0.8736], [0.3994, 0.9404]),
        (options(), [2.162, 0.1456], [2.754, 0.08855], [5.437, 0.1425]),
    ] {
        let logs = t.log().unwrap();
        let (rows, log_rows): (Vec<&[f64]>, Vec<&[f64]>) = (t.rows().collect(), logs.rows().collect());
        let f = one_way_anova(&rows).unwrap();
        golden([f.f.unwrap(), f.p.unwrap()], &raw);
        let f = one_way_anova(&log_rows).unwrap();
        golden([f.f.unwrap(), f.p.unwrap()], &log);
        let k = kruskal(&rows).unwrap();
        golden([k.h, k.p], &rank);
        // Ranks don't know of logarithms.
        assert!((kruskal(&log_rows).unwrap().h - k.h).abs() < 1e-12);
    }
}

/// F, p and MSE of the raw table.
type Raw = [f64; 3];
/// SSA, SSB, SSE, MSE, F, p, ε, p_GG, block F, block p, block SD, relative efficiency, non-additivity F and p, se_diff.
type Log = [f64; 15];

#[test]
fn blocked_analyses_give_the_golden_figures() {
    let cases: [(Table, Raw, Log); 2] = [
        (
            ttl(),
            [0.6070, 0.6270, 27500.0],
            [
                0.03864, 0.5376, 0.1341, 0.01490, 0.8647, 0.4940, 0.4248, 0.4376, 12.03, 0.001678, 0.2027, 3.206,
                2.375, 0.1618, 0.08630,
            ],
        ),
        (
            options(),
            [2.338, 0.1417, 44620.0],
            [
                0.2281, 0.1151, 0.2161, 0.02401, 3.166, 0.07830, 0.5495, 0.1326, 1.598, 0.2571, 0.05993, 1.120,
                0.07013, 0.7978, 0.1096,
            ],
        ),
    ];
    for (t, raw, log) in cases {
        let a = blocked_anova(&t).unwrap();
        golden([a.levels.f.unwrap(), a.levels.p.unwrap(), a.mse], &raw);
        let a = blocked_anova(&t.log().unwrap()).unwrap();
        let (epsilon, p_gg) = a.sphericity.unwrap();
        let n = a.non_additivity.unwrap();
        let got = [
            a.ss_levels,
            a.ss_blocks,
            a.ss_error,
            a.mse,
            a.levels.f.unwrap(),
            a.levels.p.unwrap(),
            epsilon,
            p_gg,
            a.blocks.f.unwrap(),
            a.blocks.p.unwrap(),
            a.block_sd,
            a.relative_efficiency.unwrap(),
            n.f,
            n.p,
            a.se_difference,
        ];
        golden(got, &log);
    }
}

#[test]
fn rank_tests_within_blocks_give_the_golden_figures() {
    let f = friedman(&ttl()).unwrap();
    assert_eq!(f.rank_sums, [13.5, 9.5, 9.0, 8.0]);
    golden([f.q, f.p, f.w], &[2.692, 0.4415, 0.2244]);
    golden([f.iman_davenport.unwrap(), f.iman_davenport_p.unwrap()], &[0.8678, 0.4926]);
    let f = friedman(&options()).unwrap();
    assert_eq!(f.rank_sums, [14.0, 10.0, 6.0, 10.0]);
    golden([f.q, f.p, f.w], &[4.800, 0.1870, 0.4000]);
    golden([f.iman_davenport.unwrap(), f.iman_davenport_p.unwrap()], &[2.000, 0.1846]);
    assert_eq!(friedman_exact(&ttl()).unwrap(), FriedmanExact { as_large: 6516, of: 13_824 });
    assert_eq!(friedman_exact(&options()).unwrap(), FriedmanExact { as_large: 2765, of: 13_824 });
}

#[test]
fn exact_relabelling_gives_the_golden_counts() {
    for (t, log, raw) in [(ttl(), 6680, 8448), (options(), 1107, 1707)] {
        for (t, as_large) in [(t.log().unwrap(), log), (t, raw)] {
            let test = within_block_permutation(&t, &mut rng()).unwrap();
            assert_eq!((test.as_large, test.of, test.exact), (as_large, 13_824, true));
        }
    }
}

#[test]
fn exact_sign_flips_give_the_golden_p_values() {
    let flip = |t: &Table, a: usize, b: usize| {
        let d: Vec<f64> = t.row(a).iter().zip(t.row(b)).map(|(a, b)| (a / b).ln()).collect();
        pair_sign_flip(&d, &mut rng()).unwrap().p
    };
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    assert_eq!(pairs.map(|(a, b)| flip(&ttl(), a, b)), [0.5, 0.125, 0.375, 0.875, 0.75, 0.625]);
    assert_eq!(pairs.map(|(a, b)| flip(&options(), a, b)), [0.375, 0.125, 1.0, 0.25, 0.75, 0.25]);
}

#[test]
fn all_pairs_by_tukey_and_holm_give_the_golden_figures() {
    let cases = [
        (
            ttl(),
            [
                [1.061, 0.8106, 1.389, 0.6882, 0.5087, 0.8990, 1.0],
                [1.078, 0.8231, 1.411, 0.8654, 0.4093, 0.8223, 1.0],
                [1.148, 0.8770, 1.503, 1.601, 0.1439, 0.4247, 0.8637],
                [1.015, 0.7756, 1.329, 0.1772, 0.8633, 0.9979, 1.0],
                [1.082, 0.8264, 1.416, 0.9123, 0.3854, 0.7991, 1.0],
                [1.065, 0.8139, 1.395, 0.7351, 0.4810, 0.8806, 1.0],
            ],
        ),
        (
            options(),
            [
                [1.075, 0.7633, 1.513, 0.6565, 0.5279, 0.9106, 1.0],
                [1.331, 0.9454, 1.874, 2.609, 0.02830, 0.1077, 0.1435],
                [0.9888, 0.7023, 1.392, -0.1029, 0.9203, 0.9996, 1.0],
                [1.239, 0.8798, 1.744, 1.953, 0.08258, 0.2733, 0.3303],
                [0.9202, 0.6536, 1.295, -0.7593, 0.4671, 0.8705, 1.0],
                [0.7429, 0.5277, 1.046, -2.712, 0.02391, 0.09245, 0.1435],
            ],
        ),
    ];
    for (t, want) in cases {
        let log = t.log().unwrap();
        let pairs = all_pairs(&log, &blocked_anova(&log).unwrap());
        for (pair, want) in pairs.iter().zip(want) {
            golden([pair.ratio, pair.low, pair.high, pair.t, pair.p_single, pair.p, pair.p_holm], &want);
        }
    }
}

#[test]
fn comparisons_with_the_first_and_with_the_best_give_the_golden_figures() {
    let cases = [
        (
            ttl(),
            [[0.9423, 0.7393, 1.201, 0.8326], [0.9280, 0.7281, 1.183, 0.7271], [0.8710, 0.6833, 1.110, 0.3120]],
            [[-13.53, 30.23, 0.9224], [-23.21, 15.64, 0.4656], [-24.38, 13.89, 0.3916], [-29.03, 6.885, 0.1584]],
        ),
        (
            options(),
            [[0.9306, 0.6838, 1.266, 0.8498], [0.7513, 0.5521, 1.022, 0.06871], [1.011, 0.7432, 1.376, 0.9992]],
            [[-23.75, 28.23, 0.7122], [-29.05, 19.33, 0.4354], [-42.71, 0.0, 0.02932], [-22.01, 31.15, 0.7849]],
        ),
    ];
    for (t, dunnett, mcb) in cases {
        let log = t.log().unwrap();
        let anova = blocked_anova(&log).unwrap();
        for (row, want) in against_the_first(&log, &anova).iter().zip(dunnett) {
            golden([row.ratio, row.low, row.high, row.p], &want);
        }
        for (row, want) in against_the_best(&log, &anova).iter().zip(mcb) {
            golden([(row.low - 1.0) * 100.0, (row.high - 1.0) * 100.0, row.p], &want);
        }
    }
}

#[test]
fn everything_at_once_agrees_with_its_parts_and_says_what_the_study_may_say() {
    let a = analyse(&ttl(), Better::Higher, "ttl", "series", &mut rng()).unwrap();
    assert!(!a.difference_shown);
    assert!(
        a.verdict.starts_with("No difference shown between the 4 levels of ttl (permutation p = 0.48)."),
        "{}",
        a.verdict
    );
    assert!(a.verdict.contains("+20% takes 8 series, +5% takes 99. Keep what you have."), "{}", a.verdict);
    assert!(a.verdict.contains("The series differ among themselves (p = 0.0017)"), "{}", a.verdict);
    golden([a.mcb[0].low, a.mcb[3].high], &[-13.53, 6.885]);
    golden(a.evidence[2].e.iter().copied(), &[1.520, 0.9116, 1.201, 1.763]);
    assert_golden(*a.evidence[2].e_worse.last().unwrap(), 0.2948);
    let a = analyse(&options(), Better::Higher, "option", "series", &mut rng()).unwrap();
    assert!(a.verdict.contains("Nothing is claimed from 4 series: 5 at least are needed."), "{}", a.verdict);
    assert!(!a.difference_shown && a.evidence_needed == 60.0);
    golden([a.friedman.unwrap().p_exact.unwrap(), a.permutation.log.unwrap().p], &[0.2000, 0.08008]);
}

#[test]
fn a_clear_gain_is_recommended_also_where_less_is_better() {
    let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let blocks = names(&["1", "2", "3", "4", "5", "6"]);
    let cells = vec![100.0, 103.0, 99.0, 104.0, 101.0, 102.0, 151.0, 148.0, 154.0, 150.0, 149.0, 151.0];
    let t = Table::new(names(&["old", "new"]), blocks, cells).unwrap();
    let a = analyse(&t, Better::Higher, "setting", "round", &mut rng()).unwrap();
    assert!(a.difference_shown && a.verdict.starts_with("Use setting new: it is shown to be better than old by 48%"));
    let a = analyse(&t, Better::Lower, "setting", "round", &mut rng()).unwrap();
    assert!(a.verdict.starts_with("Use setting old: it is shown to be better than new by 48%"), "{}", a.verdict);
    let e = &a.evidence[0];
    assert!(e.e.last().unwrap() > &3.0 && e.e_worse.last().unwrap() < &1.0);
}

#[test]
fn of_two_levels_the_better_one_is_named_also_where_there_is_no_interval() {
    let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let blocks = names(&["1", "2", "3", "4", "5", "6"]);
    // Without any noise, and with one block that is far from all others.
    let constant = [2.0; 6];
    let outlier = [11.01, 11.02, 11.03, 11.04, 11.05, 200.0];
    for (a, b, gain, has_tukey) in [([1.0; 6], constant, "100%", false), ([10.0; 6], outlier, "79%", true)] {
        let table = Table::new(names(&["A", "B"]), blocks.clone(), [a, b].concat()).unwrap();
        for (better, best, other) in [(Better::Higher, "B", "A"), (Better::Lower, "A", "B")] {
            let told = analyse(&table, better, "setting", "round", &mut rng()).unwrap();
            let want = format!(
                "Use setting {best}: it is shown to be better than {other} (permutation p = 0.031). In the geometric mean \
                 that is {gain}; how much it is at least isn't shown. "
            );
            assert!(told.difference_shown && told.verdict.starts_with(&want), "{}", told.verdict);
            assert_eq!(told.tukey.iter().any(|pair| pair.p >= 0.05), has_tukey);
            assert_eq!((told.tukey.is_empty(), told.sign_flip[0].test.p), (!has_tukey, 0.03125));
        }
    }
    // Of three levels relabelling doesn't say which.
    let cells = [[1.0; 6], [1.0; 6], constant].concat();
    let table = Table::new(names(&["A", "B", "C"]), blocks, cells).unwrap();
    let told = analyse(&table, Better::Higher, "setting", "round", &mut rng()).unwrap();
    assert!(told.difference_shown, "{}", told.verdict);
    assert!(
        told.verdict
            .starts_with("The levels of setting differ (permutation p = 0.0041), but which from which isn't shown.")
    );
}

#[test]
fn from_a_few_blocks_of_identical_levels_nothing_is_claimed_in_any_words() {
    let mut rng = rng();
    let names = |n: usize| (0..n).map(|i| format!("l{i}")).collect::<Vec<_>>();
    for _ in 0..8 {
        let cells = (0..12).map(|_| (0.2 * crate::simulate::normal(&mut rng)).exp()).collect();
        let table = Table::new(names(3), names(4), cells).unwrap();
        let a = analyse(&table, Better::Higher, "x", "series", &mut rng).unwrap();
        assert!(!a.difference_shown && !a.verdict.contains("best") && !a.verdict.contains("Use "), "{}", a.verdict);
    }
    // Two series that agree wholly, which Tukey's interval takes for a difference.
    let cells = vec![10.0, 10.1, 20.0, 20.1, 40.0, 40.3];
    let a = analyse(&Table::new(names(3), names(2), cells).unwrap(), Better::Higher, "x", "series", &mut rng).unwrap();
    assert!(a.tukey.iter().all(|pair| pair.p < 0.05) && !a.difference_shown, "{}", a.verdict);
}

#[test]
fn the_rate_of_the_hosts_does_not_go_with_their_distance() {
    // The dial-up study's hosts.
    let hops = [10, 14, 14, 14, 30, 30, 30, 15, 20, 17, 16, 17, 23, 16, 19, 18, 20, 30].map(f64::from);
    let rate =
        [2106, 1495, 1131, 1197, 1661, 1849, 1124, 1844, 1120, 1850, 1056, 1388, 1347, 1260, 1913, 1911, 1375, 2233]
            .map(f64::from);
    let r = relation(&hops, &rate, &mut rng()).unwrap();
    assert!(r.p > 0.05 && r.spearman.abs() < 0.5, "{r:?}");
    let d = describe(&rate).unwrap();
    assert!((d.mean - 1548.0).abs() < 1.0 && (d.sd_of_mean.unwrap() - 89.0).abs() < 1.0, "{d:?}");
    let straight: Vec<f64> = hops.iter().map(|h| 1000.0 * 1.02f64.powf(*h)).collect();
    let r = relation(&hops, &straight, &mut rng()).unwrap();
    assert!((r.spearman - 1.0).abs() < 1e-12 && (r.slope.unwrap() - 0.02).abs() < 1e-12 && r.p < 0.001);
    assert!(relation(&[1.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0], &mut rng()).is_none());
}

#[test]
fn what_such_tables_can_show_is_as_published() {
    for (mse, single, all, for_20, for_5, rough) in [
        (0.0149, 31.23, 45.39, (8, 13), (99, 153), [7.034, 98.23]),
        (0.02401, 41.22, 60.84, (13, 19), (159, 246), [11.34, 158.4]),
    ] {
        let t = if mse < 0.02 { ttl() } else { options() };
        let mse_exact = blocked_anova(&t.log().unwrap()).unwrap().mse;
        assert_golden(mse_exact, mse);
        let mde = detectable(4, 4, mse_exact);
        golden([mde.single * 100.0, mde.all_pairs * 100.0], &[single, all]);
        assert_eq!(blocks_needed(4, mse_exact, 0.20), (Some(for_20.0), Some(for_20.1)));
        assert_eq!(blocks_needed(4, mse_exact, 0.05), (Some(for_5.0), Some(for_5.1)));
        golden([0.20, 0.05].map(|gain| rough_blocks_needed(mse_exact, gain)), &rough);
    }
}

#[test]
fn the_pooled_noise_of_the_three_dial_up_tables_is_the_planning_figure() {
    let tables = [ttl(), options(), table(&MTU, &["1500", "576", "1002"])];
    let (ss, df) = tables.iter().fold((0.0, 0), |(ss, df), t| {
        let a = blocked_anova(&t.log().unwrap()).unwrap();
        (ss + a.ss_error, df + a.df)
    });
    assert_eq!(df, 24);
    let mse = ss / 24.0;
    golden([mse, mse.sqrt(), mse.exp_m1().sqrt() * 100.0], &[0.02755, 0.1660, 16.71]);
    let limit = |p: f64| (ss / crate::distributions::chi_squared_quantile(p, 24.0)).sqrt();
    golden([limit(0.975), limit(0.025)], &[0.1296, 0.2309]);
}

#[test]
fn a_table_that_says_nothing_gives_no_numbers_instead_of_wrong_ones() {
    let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    assert_eq!(Table::new(names(1), names(4), vec![1.0; 4]), Err(TableError::OneLevel));
    assert!(matches!(Table::new(names(2), names(2), vec![1.0; 3]), Err(TableError::Shape { cells: 3, .. })));
    let nan = Table::new(names(2), names(2), vec![1.0, 2.0, f64::NAN, 1.0]);
    assert_eq!(nan, Err(TableError::NotFinite { level: "1".into(), block: "0".into() }));
    let constant = Table::new(names(3), names(3), vec![5.0; 9]).unwrap();
    let a = blocked_anova(&constant).unwrap();
    assert_eq!((a.levels.f, a.levels.p, a.sphericity, a.non_additivity), (None, None, None, None));
    assert_eq!((friedman(&constant), kruskal(&[&[1.0, 1.0], &[1.0]])), (None, None));
    assert_eq!(within_block_permutation(&constant, &mut rng()).unwrap().p, 1.0);
    let one_block = Table::new(names(2), names(1), vec![1.0, 2.0]).unwrap();
    assert_eq!((blocked_anova(&one_block), friedman(&one_block)), (None, None));
    assert!(one_way_anova(&[&[1.0], &[2.0]]).is_none() && describe(&[]).is_none());
    assert!(pair_sign_flip(&[], &mut rng()).is_none());
    assert!(Table::new(names(2), names(1), vec![0.0, 1.0]).unwrap().log().is_none());
}

#[test]
fn measurements_that_are_all_the_same_differ_by_rounding_alone_and_have_no_f() {
    for value in [10.0, 0.1, 3.3, 1e9, 1e-9, 0.1f64.ln(), 1e-300] {
        for (a, b) in [(12, 12), (7, 12), (3, 1000)] {
            let f = one_way_anova(&[&vec![value; a], &vec![value; b]]).unwrap();
            assert_eq!((f.f, f.p), (None, None), "{value} {a} times and {b} times");
        }
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        for (levels, blocks) in [(2, 12), (3, 7)] {
            let table = Table::new(names(levels), names(blocks), vec![value; levels * blocks]).unwrap();
            let found = blocked_anova(&table).unwrap();
            assert_eq!((found.levels.p, found.blocks.p, found.non_additivity), (None, None, None), "{value}");
        }
    }
    // What is measured, however little it is, isn't rounding.
    let f = one_way_anova(&[&[1.0, 1.0 + 1e-12, 1.0], &[1.0 + 1e-11, 1.0 + 1e-11, 1.0 + 1.1e-11]]).unwrap();
    assert!(f.p.unwrap() < 1e-3, "{f:?}");
}

#[test]
fn a_table_too_large_to_try_all_relabellings_is_sampled_and_agrees_with_the_f_test() {
    // The blocks of the TTL table twice: 24⁷ relabellings.
    let rows: Vec<f64> = TTL.iter().flat_map(|row| row.iter().chain(row).copied()).collect();
    let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let t = Table::new(names(4), names(8), rows).unwrap().log().unwrap();
    let test = within_block_permutation(&t, &mut rng()).unwrap();
    assert!(!test.exact && test.of == 99_999 && friedman_exact(&t).is_none());
    let f = blocked_anova(&t).unwrap().levels.p.unwrap();
    assert!((test.p - f).abs() < 0.02, "{} {f}", test.p);
}

proptest! {
    #[test]
    fn a_constant_for_every_block_changes_no_comparison(
        cells in prop::collection::vec(100.0f64..200.0, 12), shift in prop::collection::vec(-50.0f64..50.0, 4),
    ) {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let shifted = cells.iter().enumerate().map(|(i, c)| c + shift[i % 4]).collect();
        let a = Table::new(names(3), names(4), cells).unwrap();
        let b = Table::new(names(3), names(4), shifted).unwrap();
        let (x, y) = (blocked_anova(&a).unwrap(), blocked_anova(&b).unwrap());
        prop_assert!((x.mse / y.mse - 1.0).abs() < 1e-9);
        prop_assert!((x.levels.p.unwrap() - y.levels.p.unwrap()).abs() < 1e-9);
        prop_assert_eq!(friedman(&a), friedman(&b));
        prop_assert_eq!(
            within_block_permutation(&a, &mut rng()).unwrap().as_large,
            within_block_permutation(&b, &mut rng()).unwrap().as_large
        );
    }

    #[test]
    fn the_order_of_the_rows_changes_no_overall_test(cells in prop::collection::vec(1.0f64..200.0, 12)) {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let mut reversed: Vec<f64> = cells.chunks(4).rev().flatten().copied().collect();
        let a = Table::new(names(3), names(4), cells).unwrap();
        let b = Table::new(names(3), names(4), std::mem::take(&mut reversed)).unwrap();
        prop_assert_eq!(friedman_exact(&a), friedman_exact(&b));
        let p = |t: &Table| within_block_permutation(t, &mut rng()).unwrap().as_large;
        prop_assert_eq!(p(&a), p(&b));
        let f = |t: &Table| blocked_anova(t).unwrap().levels.f.unwrap();
        prop_assert!((f(&a) / f(&b) - 1.0).abs() < 1e-9);
    }
}
