//! Turns on a server of the test's own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "turns are about time; the clock is the caller's")]

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wt_fleet::{StoreAddress, Turn, TurnAnswer, TurnError, TurnTicket, TurnWish, Turns};
use wt_testing::{PostgresServer, require};

/// Longer than this machine ever stands still.
const HOLD: Duration = Duration::from_secs(240);

fn wish(alone: &[&str], shared: &[&str]) -> TurnWish {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    TurnWish { alone: words(alone), shared: words(shared), hold: HOLD, patience: HOLD }
}

fn granted(answer: Result<TurnAnswer, TurnError>) -> Turn {
    match answer.unwrap() {
        TurnAnswer::Granted(turn) => turn,
        waits => panic!("{waits:?}"),
    }
}

fn waits(answer: Result<TurnAnswer, TurnError>) -> TurnTicket {
    match answer.unwrap() {
        TurnAnswer::Waits { ticket, .. } => ticket,
        granted => panic!("{granted:?}"),
    }
}

fn start(folder: &std::path::Path) -> Result<(PostgresServer, StoreAddress), String> {
    let server = PostgresServer::start(folder)?;
    let address: StoreAddress = server.database("turns")?.parse().map_err(|error| format!("{error}"))?;
    Turns::install(&address).map_err(|error| error.to_string())?;
    Turns::install(&address).map_err(|error| error.to_string())?;
    Ok((server, address))
}

#[test]
fn all_or_nothing_is_granted_and_only_the_servers_clock_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let (server, address) = require!("postgres", start(folder.path()));
    let zero = Instant::now();
    let mut one = Turns::connect(&address).unwrap();
    let mut other = Turns::connect(&address).unwrap();
    let now = zero.elapsed();
    let first = granted(one.ask(&wish(&["link:a", "link:b"], &[]), None, now));
    assert_eq!(first.ends(), now + HOLD, "counted from before the request");
    // Nothing is held by whoever waits for the rest.
    let both = waits(other.ask(&wish(&["link:b", "link:c"], &[]), None, now));
    let third = granted(one.ask(&wish(&["link:c"], &["link:d"]), None, now));
    // Many share, nobody alone beside them.
    let fourth = granted(one.ask(&wish(&[], &["link:d"]), None, now));
    waits(other.ask(&wish(&["link:d"], &[]), None, now));
    assert!(one.end(first).unwrap() && one.end(third).unwrap() && one.end(fourth).unwrap());
    let mut both = granted(other.ask(&wish(&["link:b", "link:c"], &[]), Some(both), now));
    assert!(other.keep(&mut both, 2 * HOLD, now).unwrap());
    assert_eq!(both.ends(), now + 2 * HOLD, "and kept from then on");
    // The answer was lost: asked again with the ticket, it is the same turn.
    let lost = waits(one.ask(&wish(&["link:c"], &[]), None, now));
    assert!(other.end(both).unwrap());
    granted(one.ask(&wish(&["link:c"], &[]), Some(lost), now));
    let again = granted(one.ask(&wish(&["link:c"], &[]), Some(lost), now));
    assert_eq!(server.sql("turns", "SELECT count(*) FROM turns WHERE granted IS NOT NULL").unwrap(), "1");

    // Its holder dies: the lease ends by itself, and who wakes up late is told so.
    server.sql("turns", "UPDATE turns SET until = clock_timestamp() WHERE granted IS NOT NULL").unwrap();
    let after = granted(other.ask(&wish(&["link:c"], &[]), None, now));
    let mut again = again;
    assert!(!one.keep(&mut again, HOLD, now).unwrap());
    assert_eq!(again.left(now), Duration::ZERO);
    assert!(!one.end(again).unwrap(), "a late end says no");
    assert!(other.end(after).unwrap());
    for (bad, told) in [
        (wish(&[], &[]), "1 to 64 things"),
        (TurnWish { hold: Duration::from_secs(601), ..wish(&["x"], &[]) }, "10 minutes"),
        (TurnWish { patience: Duration::from_millis(1), ..wish(&["x"], &[]) }, "10 ms"),
    ] {
        let error = one.ask(&bad, None, now).unwrap_err();
        assert!(matches!(&error, TurnError::Refused(why) if why.contains(told)), "{error}");
    }
    rights(&server);
}

/// Who may call the functions can do nothing else, and has no hold of others' turns.
fn rights(server: &PostgresServer) {
    server
        .sql("turns", "CREATE ROLE agent LOGIN; CREATE ROLE stranger LOGIN; GRANT EXECUTE ON FUNCTION ask_turn, keep_turn, end_turn TO agent")
        .unwrap();
    let of =
        |role: &str| -> StoreAddress { server.address("turns").replace("wt@", &format!("{role}@")).parse().unwrap() };
    let now = Duration::ZERO;
    let mut agent = Turns::connect(&of("agent")).unwrap();
    let mut owner = Turns::connect(&of("wt")).unwrap();
    let own = granted(agent.ask(&wish(&["link:z"], &[]), None, now));
    let ticket = waits(owner.ask(&wish(&["link:z"], &[]), None, now));
    let stranger = Turns::connect(&of("stranger")).unwrap().ask(&wish(&["link:y"], &[]), None, now).unwrap_err();
    assert!(matches!(&stranger, TurnError::Refused(why) if why.contains("permission denied")), "{stranger}");
    // With another's ticket one gets a ticket of one's own, and ends nothing.
    let mine = waits(agent.ask(&wish(&["link:z"], &[]), Some(ticket), now));
    assert_ne!(mine, ticket);
    agent.give_up(ticket).unwrap();
    let kept = "SELECT count(*) FROM turns WHERE agent = 'wt' AND 'link:z' = ANY (alone)";
    assert_eq!(server.sql("turns", kept).unwrap(), "1");
    assert!(matches!(Turns::install(&of("agent")), Err(TurnError::Refused(_))));
    assert!(agent.end(own).unwrap());
}

#[test]
fn nothing_is_ever_held_twice_whoever_dies_and_whatever_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, address) = require!("postgres", start(folder.path()));
    const THINGS: usize = 5;
    let names: Vec<String> = (0..THINGS).map(|n| format!("link:{n}")).collect();
    // How many hold each thing: 1000 for one alone, 1 for each that shares.
    let held: Vec<AtomicI64> = (0..THINGS).map(|_| AtomicI64::new(0)).collect();
    let (turns, overlaps, deaths) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    // Until when whoever died had each of them, µs.
    let left = || (0..THINGS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let (left_alone, left_shared) = (left(), left());
    let zero = Instant::now();
    std::thread::scope(|scope| {
        for agent in 0..8_usize {
            let (names, held, address) = (&names, &held, &address);
            let (left_alone, left_shared) = (&left_alone, &left_shared);
            let (turns, overlaps, deaths) = (&turns, &overlaps, &deaths);
            scope.spawn(move || {
                let mut client = Turns::connect(address).unwrap();
                let mut draw = agent as u64 * 7_919 + 1;
                let mut random = |most: usize| {
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (draw >> 33) as usize % most
                };
                for _ in 0..40 {
                    let first = random(THINGS);
                    let second = (first + 1 + random(THINGS - 1)) % THINGS;
                    let (alone, shared) = match random(3) {
                        0 => (vec![first, second], vec![]),
                        1 => (vec![first], vec![second]),
                        _ => (vec![], vec![first, second]),
                    };
                    let named = |things: &[usize]| things.iter().map(|n| names[*n].clone()).collect::<Vec<_>>();
                    let dies = random(10) == 0;
                    // Those that die hold for a moment only, so that the others needn't wait for long.
                    let hold = if dies { Duration::from_millis(60) } else { Duration::from_secs(300) };
                    let wish = TurnWish { alone: named(&alone), shared: named(&shared), hold, patience: HOLD };
                    let mut ticket = None;
                    let turn = loop {
                        match client.ask(&wish, ticket, zero.elapsed()).unwrap() {
                            TurnAnswer::Granted(turn) => break turn,
                            TurnAnswer::Waits { ticket: next, .. } => ticket = Some(next),
                        }
                        std::thread::yield_now();
                    };
                    let now = zero.elapsed().as_micros() as u64;
                    let early = |ends: &[AtomicU64], things: &[usize]| {
                        things.iter().any(|n| now < ends[*n].load(Ordering::SeqCst))
                    };
                    if early(left_alone, &alone) || early(left_alone, &shared) || early(left_shared, &alone) {
                        overlaps.fetch_add(1, Ordering::SeqCst);
                    }
                    if dies {
                        // Nobody may have it before its end, as whoever died counts it.
                        let ends = turn.ends().as_micros() as u64;
                        for n in &alone {
                            left_alone[*n].fetch_max(ends, Ordering::SeqCst);
                        }
                        for n in &shared {
                            left_shared[*n].fetch_max(ends, Ordering::SeqCst);
                        }
                        deaths.fetch_add(1, Ordering::SeqCst);
                        client = Turns::connect(address).unwrap();
                        continue;
                    }
                    let mut wrong = false;
                    for n in &alone {
                        wrong |= held[*n].fetch_add(1_000, Ordering::SeqCst) != 0;
                    }
                    for n in &shared {
                        wrong |= held[*n].fetch_add(1, Ordering::SeqCst) >= 1_000;
                    }
                    std::thread::yield_now();
                    for n in &alone {
                        held[*n].fetch_sub(1_000, Ordering::SeqCst);
                    }
                    for n in &shared {
                        held[*n].fetch_sub(1, Ordering::SeqCst);
                    }
                    overlaps.fetch_add(u64::from(wrong), Ordering::SeqCst);
                    turns.fetch_add(1, Ordering::SeqCst);
                    assert!(client.end(turn).unwrap(), "its lease is minutes");
                }
            });
        }
    });
    let (turns, deaths) = (turns.into_inner(), deaths.into_inner());
    assert_eq!(overlaps.into_inner(), 0, "{turns} turns, {deaths} deaths");
    assert!(turns > 200 && deaths > 5, "{turns} turns, {deaths} deaths");
}

#[test]
fn who_has_waited_for_long_gets_both_links_that_are_never_free_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, address) = require!("postgres", start(folder.path()));
    let others = AtomicU64::new(0);
    let now = Duration::ZERO;
    std::thread::scope(|scope| {
        let mut client = Turns::connect(&address).unwrap();
        // One of the two links is always held: each next turn is taken before the last one is given back.
        let (a, b) = (wish(&["link:a"], &[]), wish(&["link:b"], &[]));
        let mut held = Some(granted(client.ask(&a, None, now)));
        let (address, others) = (&address, &others);
        let patient = scope.spawn(move || {
            let mut patient = Turns::connect(address).unwrap();
            let both = wish(&["link:a", "link:b"], &[]);
            let mut ticket = None;
            let mut before = 0;
            loop {
                match patient.ask(&both, ticket, now).unwrap() {
                    TurnAnswer::Granted(turn) => break (patient.end(turn).unwrap(), before),
                    TurnAnswer::Waits { ticket: next, .. } => ticket = Some(next),
                }
                before = others.load(Ordering::SeqCst);
            }
        });
        let mut turn_of_b = true;
        let mut waiting = None;
        while !patient.is_finished() {
            match client.ask(if turn_of_b { &b } else { &a }, waiting, now).unwrap() {
                TurnAnswer::Granted(next) => {
                    held.take().into_iter().for_each(|turn| assert!(client.end(turn).unwrap()));
                    (held, turn_of_b, waiting) = (Some(next), !turn_of_b, None);
                    others.fetch_add(1, Ordering::SeqCst);
                }
                TurnAnswer::Waits { ticket, .. } => {
                    // The old ticket reserves both: now the turn that is held is given back, as every turn ends some day.
                    waiting = Some(ticket);
                    held.take().into_iter().for_each(|turn| assert!(client.end(turn).unwrap()));
                }
            }
        }
        let (was_held, before) = patient.join().unwrap();
        assert!(was_held);
        assert!(before > 3, "many were served before it was old: {before}");
    });
}

/// `cargo test --release --workspace --test turns -- --ignored --nocapture`: how many are granted a second.
#[test]
#[ignore = "tells a speed"]
fn three_hundred_turns_are_granted_each_second() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start_with(folder.path(), &["fsync=on"]));
    let address: StoreAddress = server.database("turns").unwrap().parse().unwrap();
    Turns::install(&address).unwrap();
    for agents in [1_usize, 10] {
        let zero = Instant::now();
        let grants = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for agent in 0..agents {
                let (address, grants) = (&address, &grants);
                scope.spawn(move || {
                    let mut client = Turns::connect(address).unwrap();
                    let mut n = agent;
                    while zero.elapsed() < Duration::from_secs(5) {
                        n = (n * 7 + 3) % 20;
                        let wish = wish(&[&format!("link:{n}"), &format!("link:{}", (n + 5) % 20)], &[]);
                        let mut ticket = None;
                        loop {
                            match client.ask(&wish, ticket, zero.elapsed()).unwrap() {
                                TurnAnswer::Granted(turn) => {
                                    client.end(turn).unwrap();
                                    break;
                                }
                                TurnAnswer::Waits { ticket: next, .. } => ticket = Some(next),
                            }
                        }
                        grants.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let rate = grants.into_inner() as f64 / zero.elapsed().as_secs_f64();
        println!("{agents} agents, two of 20 links each, no hold: {rate:.0} grants/s");
        assert!(rate >= 300.0, "{rate}");
    }
}
