//! One bulk download on a preset, printed: `cargo run --example trial -- adsl auto 3 [rwin]`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]
use wt_trial::*;
use wt_units::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == wt_lab::INIT {
        std::process::exit(i32::from(wt_lab::init(std::env::args_os().skip(2))));
    }
    let scenario = wt_lab::presets::load(&args[1]).unwrap();
    wt_lab::enter().unwrap();
    let backend = match args[2].as_str() {
        "tun" => wt_lab::Backend::Tun,
        "veth" => wt_lab::Backend::Veth,
        _ => wt_lab::Backend::Best,
    };
    let lab = wt_lab::Lab::start(scenario, backend, 1).unwrap();
    println!("{} {:?}", lab.backend(), lab.scenario().facts());
    let mut tunnel = wt_lab::LabTunnel::new(lab).unwrap();
    if args.get(3).is_some_and(|a| a == "run") {
        let program = wt_lab::Program { argv: args[4..].iter().map(Into::into).collect(), server: None };
        println!("exit {}", tunnel.lab().run_program(&program).unwrap());
        return;
    }
    let seconds: f64 = args[3].parse().unwrap();
    let mut settings = Settings::new();
    for pair in &args[4..] {
        let (knob, level) = pair.split_once('=').unwrap();
        let knob: Knob = knob.parse().unwrap();
        settings.set(knob, knob.parse_level(level).unwrap().resolve(Bytes(1440)));
    }
    let spec = TrialSpec {
        experiment: "x".into(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings,
        workload: Workload::Bulk {
            direction: Direction::Down,
            amount: Amount::Time(std::time::Duration::from_secs_f64(seconds)),
        },
        deadline: std::time::Duration::from_secs(60),
        seed: 1,
    };
    for _ in 0..2 {
        let mut o = tunnel.run(&spec, &Cancel::new()).unwrap();
        println!(
            "{:?} goodput {:.3} Mbit/s = {:.1}% of limit; samples {} {}",
            o.status,
            o.goodput_bps() / 1e6,
            100.0 * o.goodput_bps() / tunnel.path().physical_goodput_bps.unwrap() as f64,
            o.sender.len(),
            o.receiver.len()
        );
        if let Some(Level::Number(w)) = spec.settings.get(Knob::Rwin) {
            let rtt = o.observed["rtt_us"].as_f64().unwrap();
            println!(
                "rwin/rtt(srtt) = {:.3} Mbit/s; rwin/path.rtt = {:.3}",
                *w as f64 * 8.0 / rtt,
                *w as f64 * 8.0 / tunnel.path().rtt_us as f64
            );
        }
        o.sender.clear();
        o.receiver.clear();
        println!("{o:?}");
        println!("{:?}", tunnel.lab().stats());
    }
}
