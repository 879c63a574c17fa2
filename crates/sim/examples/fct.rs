use std::time::Duration;
use wt_link::*; use wt_sim::*; use wt_trial::*; use wt_units::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let rate: f64 = a[1].parse().unwrap(); let rtt: f64 = a[2].parse().unwrap(); let q: f64 = a[3].parse().unwrap();
    let size: u64 = a[4].parse().unwrap(); let cc = a[5].clone(); let loss: f64 = a.get(6).map_or(0.0, |s| s.parse().unwrap());
    let seed: u64 = a.get(7).map_or(1, |s| s.parse().unwrap());
    let verbose = a.get(8).is_some();
    let bps = BitsPerSecond((rate*1e6) as u64);
    let bdp = rate*1e6*rtt/1e3/8.0;
    let queue = (bdp*q/1500.0).max(2.0) as u32;
    let dir = |loss: f64| { let mut v = vec![]; if loss > 0.0 { v.push(StageConfig::Loss(LossConfig::Bernoulli{probability: Ratio(loss)})); } v.push(StageConfig::Queue(QueueConfig::drop_tail(bps, queue))); v.push(StageConfig::Delay{delay: Duration::from_secs_f64(rtt/2e3)}); v };
    let path = PathConfig { links: vec![LinkConfig { forward: dir(0.0), backward: dir(loss), medium: None }] };
    let mut sim = Simulation::new(&path, vec![], seed).unwrap();
    let stack = StackConfig { congestion_control: cc, ..StackConfig::default() };
    if verbose { sim.sample_every(Duration::from_millis(10)); }
    sim.add_flow(FlowSpec { client: stack.clone(), server: stack, job: Job::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(size)) }, start: Duration::ZERO }).unwrap();
    let t = std::time::Instant::now();
    let r = sim.run(Duration::from_secs(3600));
    let wall = t.elapsed();
    let f = &r.flows[0];
    if verbose { for s in &f.sender { println!("{:?}", s); } }
    println!("{:?} connect {:?} bytes {} retx {} rto {} segs {} acks {} undo {} drops {} lost {} events {} wall {:?} srtt {} busy {:?} wnd {}", f.elapsed, f.connect, f.bytes, f.retransmits, f.timeouts, f.data_segments, f.acks, f.undos, r.queue_drops, r.losses, r.events, wall, f.srtt_us, f.busy, f.widest_window);
}
