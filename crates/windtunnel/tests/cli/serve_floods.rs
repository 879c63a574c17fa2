//! `windtunnel serve` beside twenty thousand strangers: none hears anything, and a client with the key is answered as if they weren't
//! there.

use super::crowd::{FloodReport, from, most_memory_kb, took_ms};
use super::serve::Served;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use wt_load::{SharedKey, greeting};

/// Strangers of each kind, of whom so many are there at once, in all.
const OF_A_KIND: usize = 2_500;
const AT_ONCE: usize = 600;
/// The length of a greeting, and of its answer.
const HELLO: usize = 48;

/// Its name, and what each of its connections sends.
type Flood<'a> = (&'static str, Box<dyn Fn(usize) -> Vec<u8> + 'a>);

/// How much a connection says before it ends, up to an answer's length.
fn heard(mut stream: TcpStream) -> usize {
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let (mut bytes, mut length) = ([0; HELLO], 0);
    while length < HELLO {
        match stream.read(&mut bytes[length..]) {
            // A reset is as good as an end.
            Ok(0) | Err(_) => break,
            Ok(n) => length += n,
        }
    }
    length
}

/// What a client with the key sees, time after time.
fn serve(served: &Served, key: &SharedKey) -> Vec<u64> {
    let hello = |_| greeting(key).expect("a greeting");
    (0..10)
        .map(hello)
        .map(|hello| {
            took_ms(|| {
                let mut stream = TcpStream::connect(&served.address).expect("a connection");
                stream.write_all(&hello).expect("a greeting is sent");
                assert_eq!(heard(stream), HELLO, "a client with the key is answered");
            })
        })
        .collect()
}

#[test]
fn of_twenty_thousand_strangers_none_hears_anything_and_a_client_is_answered_within_a_second_beside_each_kind() {
    let _alone = crate::common::alone();
    // Its places are fewer than the strangers who stay.
    let served = Served::start_in("ulimit -n 1024; exec \"$0\" \"$@\"", &[]);
    let key: SharedKey = served.url.split('@').next().expect("a key")[5..].parse().expect("a key");
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut random = |length: usize| (0..length).map(|_| rng.random::<u8>()).collect::<Vec<u8>>();

    let more = random(OF_A_KIND * 8);
    // Made before, since a greeting takes its time.
    let others: Vec<_> =
        (0..64).map(|_| greeting(&SharedKey::generate().expect("a key")).expect("a greeting")).collect();
    let right: Vec<_> = (0..64).map(|_| greeting(&key).expect("a greeting")).collect();
    let known = greeting(&key).expect("a greeting");
    let mut first = TcpStream::connect(&served.address).expect("a connection");
    first.write_all(&known).expect("a greeting");
    assert_eq!(heard(first), HELLO, "the first time");
    let protocols: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and then some more\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a hello of TLS, which goes on and on and on",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64\0\x04\0\0\xff\xff",
        b"USER anonymous\r\nPASS x\r\nSYST\r\nFEAT\r\nPWD\r\nTYPE I\r\nPASV\r\nRETR x",
        b"{\"tcp\":true,\"omit\":0,\"time\":10,\"parallel\":1,\"len\":131072,\"pacing_timer\":1000}",
        &[0; 48],
        &[0xFF; 4096],
    ];
    let mut kinds: Vec<Flood<'_>> = Vec::new();
    kinds.push(("silence", Box::new(|_| Vec::new())));
    kinds.push(("beginnings of greetings", Box::new(|n| right[n % 64][..1 + n % (HELLO - 1)].to_vec())));
    kinds.push(("random bytes", Box::new(|n| more[n * 7..][..1 + n % 1_000].to_vec())));
    kinds.push(("greetings under other keys", Box::new(|n| others[n % 64].clone())));
    kinds.push(("recorded greetings", Box::new(|_| known.clone())));
    kinds.push((
        "changed greetings",
        Box::new(|n| {
            let mut changed = right[n % 64].clone();
            changed[n % HELLO] ^= 1 << (n % 8);
            changed
        }),
    ));
    kinds.push(("other protocols", Box::new(|n| protocols[n % 8].to_vec())));
    kinds.push(("those who come and go", Box::new(|n| more[n..][..n % 50].to_vec())));

    let (mut count, mut through) = (0, 0);
    for (flood, bytes) in &kinds {
        let mut held: Vec<TcpStream> = Vec::new();
        let (mut of_kind, mut served_ms) = (0, Vec::new());
        for n in 0..OF_A_KIND {
            // Addresses enough that their shares would be all places.
            let Some(mut stream) = from(2 + (n % 8) as u8, &served.address) else { continue };
            // It may be closed before it has said all.
            let _ = stream.write_all(&bytes(n));
            of_kind += 1;
            if *flood == "those who come and go" {
                let _ = wt_sys::tcp::reset_on_close(&stream);
                continue;
            }
            held.push(stream);
            if held.len() >= AT_ONCE {
                if served_ms.is_empty() {
                    served_ms = serve(&served, &key);
                }
                for stream in held.drain(..AT_ONCE / 2) {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    through += usize::from(heard(stream) > 0);
                }
            }
        }
        served_ms.extend(serve(&served, &key));
        for stream in held {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            through += usize::from(heard(stream) > 0);
        }
        let memory_kb = most_memory_kb(served.child.id());
        count += FloodReport { flood, connections: of_kind, served_ms, memory_kb }.check();
    }
    println!("{count} strangers: {through} heard anything");
    assert!(count >= 19_500 && through == 0, "{count} strangers, {through} of whom heard something");
    let ran = served.tune(&served.url, &[]);
    assert_eq!(ran.code, 1, "a whole experiment: {}{}", ran.out, ran.err);
    assert!(served.metric("windtunnel_unauthenticated_total") >= 17_000);
}
