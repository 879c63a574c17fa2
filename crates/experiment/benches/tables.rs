//! Error and power.
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use wt_experiment::simulate::{self, NoiseModel, Path};
use wt_experiment::*;

fn main() {
    let reps: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2000);
    let scen: [(&str, [f64; 4]); 5] = [
        ("null", [0.0; 4]),
        ("one+20", [0.0, 0.0, 0.0, 1.2f64.ln()]),
        ("graded", [0.0, 1.05f64.ln(), 1.1f64.ln(), 1.2f64.ln()]),
        ("one+50", [0.0, 0.0, 0.0, 1.5f64.ln()]),
        ("one+10", [0.0, 0.0, 0.0, 1.1f64.ln()]),
    ];
    for cap in [60usize, 120, 240] {
        for (name, eff) in &scen {
            print!("cap {cap} {name}: ");
            for model in NoiseModel::ALL {
                let (mut claims, mut good, mut trials) = (0u32, 0u32, 0usize);
                for seed in 0..reps {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed);
                    let mut path = Path::new(model, &mut rng);
                    let mut c = Config::new(4);
                    c.max_trials = Some(cap);
                    let e = simulate::drive(c, &mut path, eff, &mut rng).unwrap();
                    trials += e.trials();
                    let pick = e.pick();
                    claims += u32::from(pick != 0);
                    let best = eff.iter().cloned().fold(0.0, f64::max);
                    good += u32::from(pick != 0 && best - eff[pick] <= 1.05f64.ln() + 1e-9);
                }
                let r = reps as f64;
                print!(
                    " {} claim {:.3} good {:.3} [{:.0}]",
                    model.name(),
                    claims as f64 / r,
                    good as f64 / r,
                    trials as f64 / r
                );
            }
            println!();
        }
    }
}
