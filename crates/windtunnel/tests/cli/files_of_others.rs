//! Files of others, of random bytes from fixed seeds: the bodies that libFuzzer runs (`fuzz/files.rs`).

#[path = "../../../../fuzz/files.rs"]
mod files;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Where files of each kind begin, so that random bytes come further than the first look.
const BEGINNINGS: [&[u8]; 14] = [
    b"",
    b"mtu,s1,s2\n1,2,3\n2,3,4\n",
    b"title = \"t\"\nsource = \"s\"\n[[link]]\nname = \"l\"\ndown = { rate = \"8mbit\" }\nup = { rate = \"1mbit\" }\n",
    b"1\n5\n5\n9\n",
    b"{\"schema_version\":1,\"experiment\":{},\"trials\":[]}",
    b"{\"metadata\":{\"NAME\":\"x\"},\"x_values\":[0.0,0.2],\"results\":{\"TCP download\":[1.0,null]}}",
    b"{\"format\":\"windtunnel-backup\",\"schema_version\":1,\"created_unix_s\":0,",
    b"{\"format\":\"windtunnel-state\",\"schema_version\":1,\"phase\":\"applied\",",
    b"to = \"eth0\"\nttl = 128\n[settings]\nrwin = \"4x\"\n",
    b"[Match]\nName=eth0\n[Network]\nDHCP=yes\n[Route]\n",
    b"network:\n  version: 2\n  ethernets:\n    eth0:\n      dhcp4: true\n",
    b"net.ipv4.tcp_sack = 0\n-net.*.x=1\n",
    b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\xf7\0\x01\0\0\0",
    b"\x9f\xeb\x01\0\x18\0\0\0\0\0\0\0\x10\0\0\0\x10\0\0\0\x05\0\0\0\x01\0\0\0\0\0\0\x01\x04\0\0\0\x20\0\0\x01\0int\0",
];

/// Runs a body on so many inputs: beginnings, cut, changed and continued at random.
fn feed(body: fn(&[u8]), inputs: u64) {
    for seed in 0..inputs {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = BEGINNINGS[rng.random_range(0..BEGINNINGS.len())].to_vec();
        bytes.truncate(rng.random_range(0..=bytes.len()));
        for _ in 0..rng.random_range(0..4) {
            if let Some(at) = bytes.len().checked_sub(1).map(|last| rng.random_range(0..=last)) {
                bytes[at] = rng.random();
            }
        }
        let more = BEGINNINGS[rng.random_range(0..BEGINNINGS.len())];
        bytes.extend(&more[..rng.random_range(0..=more.len())]);
        bytes.extend((0..rng.random_range(0..64)).map(|_| rng.random::<u8>()));
        body(&bytes);
    }
}

#[test]
fn no_table_path_or_trace_makes_it_panic() {
    feed(files::table, 3_000);
    feed(files::scenario, 3_000);
}

#[test]
fn no_import_and_no_journal_of_others_makes_it_panic() {
    feed(files::import, 2_000);
    feed(files::journal, 300);
}

#[test]
fn no_file_of_the_host_and_no_program_for_the_kernel_makes_it_panic() {
    feed(files::host, 1_000);
    feed(files::object, 5_000);
}
