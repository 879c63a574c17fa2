//! Error rate and power over thousands of simulated experiments, beside the figures that the method was chosen by.
//!
//! `cargo bench -p wt-experiment --bench tables [-- RUNS]`; 4000 runs of each cell by default, about a minute on two
//! cores. Ends with an error if a rate of false claims exceeds 5 %, or a share lies more than 3 points off.
#![expect(clippy::print_stdout, reason = "a bench talks to a person")]

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::process::ExitCode;
use wt_experiment::factorial::{Run, Screen};
use wt_experiment::simulate::{self, NoiseModel, Path, normal};
use wt_experiment::{Config, EProcess, Experiment, Method, Observation, PlateauConfig};

/// How far a share may lie from the published one: both come from thousands of runs.
const TOLERANCE: f64 = 0.03;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    // Without --bench somebody runs all targets as tests: then it is enough that everything runs.
    let quick = !args.iter().any(|a| a == "--bench");
    let runs = args.iter().find_map(|a| a.parse().ok()).unwrap_or(if quick { 20 } else { 4_000 });
    let mut report = Report { runs, off: 0, check: !quick };
    report.errors();
    report.power();
    report.rounds_needed();
    report.screening();
    report.plateau();
    report.million();
    println!("{} of the figures are out of bounds", report.off);
    if report.off == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Name, true effects, and the published shares for each budget and noise.
type Scenario = (&'static str, [f64; 4], [[f64; 4]; 3]);
/// Effect in standard deviations, and the rounds for half and for four in five.
type Effect = (f64, u32, u32);

struct Report {
    runs: u64,
    off: u32,
    check: bool,
}

impl Report {
    /// Prints a share beside the published one, and counts it if it is out of bounds.
    fn cell(&mut self, what: &str, got: f64, published: f64, ok: bool) {
        let off = self.check && !ok;
        self.off += u32::from(off);
        let mark = if off { "  <-- out of bounds" } else { "" };
        println!("{what:<56} {got:>6.3}  published {published:>5.3}{mark}");
    }

    fn near(&mut self, what: &str, got: f64, published: f64) {
        self.cell(what, got, published, (got - published).abs() <= TOLERANCE);
    }

    fn errors(&mut self) {
        println!("False claims with four identical settings");
        for (trials, published) in [
            (60, [0.008, 0.009, 0.008, 0.006]),
            (120, [0.018, 0.019, 0.019, 0.015]),
            (240, [0.020, 0.024, 0.022, 0.021]),
        ] {
            for (model, published) in NoiseModel::ALL.into_iter().zip(published) {
                let share = mean(self.runs, |seed| flag(pick(model, &[0.0; 4], trials, seed).0 != 0));
                self.cell(&format!("  {} cap {trials}", model.name()), share, published, share <= 0.05);
            }
        }
        for (model, published) in NoiseModel::ALL.into_iter().zip([0.029, 0.029, 0.041, 0.027]) {
            let share = mean(self.runs.min(1_500), |seed| flag(never_stopped(model, seed)));
            self.cell(&format!("  {} never stopped, 1600 trials", model.name()), share, published, share <= 0.05);
        }
    }

    fn power(&mut self) {
        println!("A claim, and the pick within 5 % of the best");
        let one = |gain: f64| [0.0, 0.0, 0.0, f64::ln(gain)];
        let graded = [0.0, 1.05f64.ln(), 1.1f64.ln(), 1.2f64.ln()];
        let cases: [Scenario; 4] = [
            ("one +20 %", one(1.2), [[0.67, 0.51, 0.40, 0.36], [0.95, 0.89, 0.83, 0.67], [0.98, 0.95, 0.93, 0.84]]),
            ("0/5/10/20 %", graded, [[0.54, 0.37, 0.32, 0.31], [0.91, 0.80, 0.71, 0.60], [0.96, 0.93, 0.89, 0.83]]),
            ("one +50 %", one(1.5), [[1.0, 1.0, 1.0, 0.91], [1.0, 1.0, 1.0, 0.98], [1.0, 1.0, 1.0, 0.99]]),
            ("one +10 %", one(1.1), [[0.12, 0.09, 0.06, 0.08], [0.39, 0.29, 0.21, 0.21], [0.72, 0.59, 0.51, 0.39]]),
        ];
        for (name, effects, rows) in cases {
            for (trials, row) in [60, 120, 240].into_iter().zip(rows) {
                for (model, published) in NoiseModel::ALL.into_iter().zip(row) {
                    let good = |seed| {
                        let (pick, _) = pick(model, &effects, trials, seed);
                        flag(pick != 0 && effects[3] - effects[pick] <= 1.05f64.ln() + 1e-9)
                    };
                    self.near(&format!("  {name}, {} cap {trials}", model.name()), mean(self.runs, good), published);
                }
            }
        }
    }

    fn rounds_needed(&mut self) {
        println!("Power at the rounds that are said to give 50 % and 80 %");
        let rows: [(f64, [Effect; 6]); 3] = [
            (20.0, [(0.2, 164, 319), (0.3, 71, 139), (0.4, 40, 75), (0.5, 28, 49), (0.7, 17, 27), (1.0, 11, 16)]),
            (60.0, [(0.2, 232, 413), (0.3, 100, 178), (0.4, 56, 97), (0.5, 38, 62), (0.7, 23, 35), (1.0, 14, 20)]),
            (140.0, [(0.2, 272, 455), (0.3, 123, 202), (0.4, 69, 111), (0.5, 48, 73), (0.7, 28, 41), (1.0, 17, 23)]),
        ];
        for (threshold, row) in rows {
            for (effect, half, most) in row {
                for (rounds, published) in [(half, 0.5), (most, 0.8)] {
                    let share = mean(self.runs, |seed| flag(shows(effect, rounds, threshold, seed)));
                    // Where a round more or less moves the power by several points, whole rounds can't hit it better.
                    let step = 0.35 / f64::from(most - half);
                    let ok = (share - published).abs() <= TOLERANCE + step;
                    self.cell(&format!("  effect {effect} threshold {threshold} round {rounds}"), share, published, ok);
                }
            }
        }
    }

    fn screening(&mut self) {
        println!("Seven knobs, eight trials a round: +20 % and +10 % found, anything else claimed");
        for (rounds, twenty, ten) in
            [(10, 0.12, None), (20, 0.94, Some(0.27)), (40, 1.0, Some(0.79)), (60, 1.0, Some(0.97))]
        {
            let runs = self.runs.min(2_000);
            let all: Vec<[bool; 3]> = parallel(runs, |seed| screen(rounds, seed));
            let share = |i: usize| all.iter().filter(|found| found[i]).count() as f64 / runs as f64;
            self.near(&format!("  +20 % in {rounds} rounds"), share(0), twenty);
            if let Some(ten) = ten {
                self.near(&format!("  +10 % in {rounds} rounds"), share(1), ten);
            }
            self.cell(&format!("  false in {rounds} rounds"), share(2), 0.013, share(2) <= 0.05);
        }
    }

    /// The published curve isn't given; this one gives the published shares of a single sweep's largest.
    fn plateau(&mut self) {
        println!("The smallest level within 10 %: exact (at least as published), and off the plateau");
        let flat = [0.0, -1.5, -0.8, -0.4, -0.12, 0.0, 0.0, 0.0];
        let umbrella = [0.0, -1.5, -0.8, -0.4, -0.12, 0.0, -0.07, 0.85f64.ln()];
        for (name, effects, sigma, exact, off) in [
            ("plateau CV 8 %", flat, 0.08, 0.99, 0.010),
            ("plateau CV 15 %", flat, 0.15, 0.92, 0.019),
            ("plateau CV 22 %", flat, 0.22, 0.57, 0.010),
            ("umbrella CV 15 %", umbrella, 0.15, 0.94, 0.022),
        ] {
            let runs = self.runs.min(2_000);
            let all: Vec<usize> = parallel(runs, |seed| smallest(effects, sigma, seed));
            let share = |is: &dyn Fn(usize) -> bool| all.iter().filter(|arm| is(**arm)).count() as f64 / runs as f64;
            let (found, below) = (share(&|arm| arm == 5), share(&|arm| (1..=4).contains(&arm)));
            self.cell(&format!("  {name}: exact"), found, exact, found >= exact - TOLERANCE);
            self.cell(&format!("  {name}: off"), below, off, below <= 0.05);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a bench measures time")]
    fn million(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut path = Path::new(NoiseModel::Typical, &mut rng);
        let rounds: Vec<[Observation; 4]> = (0..if self.check { 250_000 } else { 2_500 })
            .map(|_| std::array::from_fn(|arm| Observation::of(arm, path.outcome(0.0, &mut rng))))
            .collect();
        let start = std::time::Instant::now();
        let mut experiment = Experiment::new(uniform(Config::new(4))).expect("a valid configuration");
        for round in &rounds {
            experiment.record(round).expect("a valid round");
        }
        println!("  {:.3} s for the rounds", start.elapsed().as_secs_f64());
        let assessment = experiment.assessment();
        let seconds = start.elapsed().as_secs_f64();
        let what = format!("Seconds for {} trials", assessment.trials);
        self.cell(&what, seconds, 2.0, seconds <= 2.0);
    }
}

/// The method that the published figures are of.
fn uniform(config: Config) -> Config {
    Config { method: Method::Uniform, relevant: 0.0, ..config }
}

/// The pick of an experiment with a budget, and its trials.
fn pick(model: NoiseModel, effects: &[f64], trials: usize, seed: u64) -> (usize, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut path = Path::new(model, &mut rng);
    let config = uniform(Config { max_trials: Some(trials), ..Config::new(effects.len()) });
    let experiment = simulate::drive(config, &mut path, effects, &mut rng).expect("a valid configuration");
    (experiment.pick(), experiment.trials())
}

/// Whether any of three candidates is claimed in 400 rounds of four identical settings without any stopping rule.
fn never_stopped(model: NoiseModel, seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut path = Path::new(model, &mut rng);
    let mut faster = [EProcess::new(), EProcess::new(), EProcess::new()];
    (0..400).any(|_| {
        let mut y: [f64; 4] = std::array::from_fn(|_| path.outcome(0.0, &mut rng));
        y.shuffle(&mut rng);
        faster.iter_mut().zip(&y[1..]).for_each(|(e, own)| e.push(own - y[0]));
        faster.iter().any(|e| e.evidence() >= 60.0)
    })
}

/// Whether an effect of so many standard deviations of a difference shows within so many rounds.
fn shows(effect: f64, rounds: u32, threshold: f64, seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut e = EProcess::new();
    (0..rounds).any(|_| {
        e.push(effect + normal(&mut rng));
        e.evidence() >= threshold
    })
}

/// Whether +20 %, +10 % and anything else is claimed among seven knobs of which a third costs 15 %.
fn screen(rounds: u32, seed: u64) -> [bool; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut path = Path::new(NoiseModel::Typical, &mut rng);
    let mut screen = Screen::new(7, 0.05).expect("a valid screen");
    let effects = [1.2f64.ln(), 1.1f64.ln(), 0.85f64.ln()];
    for _ in 0..rounds {
        let runs = screen.next_round(&mut rng);
        let effect = |run: &Run| effects.iter().zip(run).map(|(e, on)| if *on { *e } else { 0.0 }).sum();
        let round: Vec<(Run, f64)> =
            runs.into_iter().map(|run| (run.clone(), path.outcome(effect(&run), &mut rng))).collect();
        screen.record(&round).expect("a round of the screen");
    }
    let claimed: Vec<bool> = screen.assessment().effects.iter().map(|e| e.claimed.is_some()).collect();
    [claimed[0], claimed[1], claimed[2..].iter().any(|c| *c)]
}

/// The smallest level shown, of ¼ to 4 times the bandwidth-delay product with the current setting at 2: arm 5 is right.
fn smallest(effects: [f64; 8], sigma: f64, seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut path = Path::with_sigma(NoiseModel::Calm, sigma, &mut rng);
    let plateau = PlateauConfig::new(vec![1, 2, 3, 4, 5, 0, 6, 7]);
    let config = uniform(Config { max_trials: Some(256), plateau: Some(plateau), ..Config::new(8) });
    let assessment = simulate::run(config, &mut path, &effects, &mut rng).expect("a valid configuration");
    assessment.plateau.map_or(0, |p| p.smallest)
}

fn flag(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn mean(runs: u64, f: impl Fn(u64) -> f64 + Sync) -> f64 {
    parallel(runs, f).iter().sum::<f64>() / runs as f64
}

/// `f` of every seed, on two threads.
fn parallel<T: Send>(runs: u64, f: impl Fn(u64) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let f = &f;
        let half = scope.spawn(move || (0..runs / 2).map(f).collect::<Vec<T>>());
        let rest: Vec<T> = (runs / 2..runs).map(f).collect();
        half.join().into_iter().flatten().chain(rest).collect()
    })
}
