//! Surveys of hosts.

use super::tell;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wt_probe::first_window::{Goal, Incoming, Opener, Plain, Session, Survey, SurveyConfig};
use wt_wire::TcpFlags;

/// Says the same to everybody.
struct Greeting;

impl Opener for Greeting {
    fn open(&self, _: &Goal) -> Box<dyn Session> {
        Box::new(Plain::new(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()))
    }
}

/// What `first-window` does for so many private hosts that all refuse 40 ms after they are asked: its queue, its timers and its memory.
/// Its clock goes from event to event.
pub(crate) fn hosts(count: u64) {
    const ROUND_TRIP: Duration = Duration::from_millis(40);
    tell(|| {
        let mut survey = Survey::new(SurveyConfig::default(), Greeting, ChaCha8Rng::seed_from_u64(1));
        for number in 0..count {
            let address = IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + number as u32));
            let goal = Goal { address, port: 80, tls: false, host: "x".into(), path: "/".into() };
            survey.add(usize::try_from(number).unwrap(), goal);
        }
        let (mut now, mut found) = (Duration::ZERO, 0);
        let mut answers = std::collections::VecDeque::new();
        while !survey.is_done() {
            survey.wake(now);
            while let Some(send) = survey.poll() {
                if send.segment.flags.has(TcpFlags::SYN) {
                    answers.push_back((now + ROUND_TRIP, send));
                }
            }
            found += survey.take_found().len();
            let next = answers.front().map(|(at, _)| *at);
            let Some(at) = survey.wakeup().into_iter().chain(next).min() else { break };
            now = now.max(at);
            while answers.front().is_some_and(|(at, _)| *at <= now) {
                let Some((_, send)) = answers.pop_front() else { break };
                let refusal = Incoming {
                    seq: 0,
                    ack: send.segment.seq.wrapping_add(1),
                    flags: TcpFlags::RST | TcpFlags::ACK,
                    window: 0,
                    options: None,
                    timestamp: None,
                    payload: &[],
                    len: 0,
                    unit: None,
                };
                survey.handle(now, send.address, send.port, send.from, &refusal);
            }
        }
        found += survey.take_found().len();
        assert_eq!(found as u64, count);
    });
}
