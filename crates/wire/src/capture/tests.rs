use super::*;
use crate::{CapturedPacket, Direction, Interface, LinkType, PcapngWriter};
use proptest::prelude::*;
use std::time::Duration;

const IP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

type Read3 = (usize, Option<u64>, u16, usize, Vec<u8>);

fn all(file: &[u8]) -> (Vec<Read3>, Option<String>) {
    let mut reader = match CaptureReader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(r)) => records.push((r.interface, r.at_ns, r.link.0, r.original_len, r.bytes.to_vec())),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error.to_string())),
        }
    }
}

/// A classic capture with one packet of 60 bytes, of which 20 were kept.
fn pcap(big: bool, magic: u32, fraction: u32) -> Vec<u8> {
    let n4 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let n2 = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = n4(magic).to_vec();
    file.extend([n2(2), n2(4)].concat());
    file.extend([n4(0), n4(0), n4(65_535), n4(0x4000_0065)].concat());
    file.extend([n4(1_700_000_000), n4(fraction), n4(20), n4(60)].concat());
    if magic == 0xa1b2_cd34 {
        file.extend([0; 8]);
    }
    file.extend(IP);
    file
}

#[test]
fn classic_captures_are_read_in_both_byte_orders_and_resolutions() {
    for big in [true, false] {
        for (magic, fraction, nanos) in
            [(0xa1b2_c3d4, 123_456, 123_456_000), (0xa1b2_3c4d, 123_456_789, 123_456_789), (0xa1b2_cd34, 5, 5000)]
        {
            let file = pcap(big, magic, fraction);
            assert!(is_capture(&file[..8]));
            let expected = (0, Some(1_700_000_000_000_000_000 + nanos), 101, 60, IP.to_vec());
            assert_eq!(all(&file), (vec![expected], None), "{magic:x} {big}");
        }
    }
}

/// A block of pcapng.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let n4 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [n4(kind), n4(len)].concat();
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(n4(len));
    block
}

/// A section of two interfaces: one counts 2⁻¹⁰ s from 100 s on, the other hundredths of a second.
fn section(big: bool) -> Vec<u8> {
    let n4 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let n2 = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let n8 = |n: u64| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut header = n4(0x1a2b_3c4d).to_vec();
    header.extend([n2(1), n2(0)].concat());
    header.extend([0xff; 8]);
    let mut file = block(big, 0x0a0d_0d0a, &header);
    let option = |code: u16, value: &[u8]| {
        let mut option = [n2(code), n2(value.len() as u16)].concat();
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    };
    let interface = |link: u16, options: &[Vec<u8>]| {
        let mut body = [n2(link), n2(0)].concat();
        body.extend(n4(16));
        body.extend(options.concat());
        block(big, 1, &body)
    };
    file.extend(interface(101, &[option(2, b"a"), option(9, &[0x8a]), option(14, &n8(100)), option(0, &[])]));
    file.extend(block(big, 4, &[0; 40])); // names, which nobody reads
    file.extend(interface(1, &[option(9, &[2])]));
    let packet = |interface: u32, ticks: u32, bytes: &[u8]| {
        let mut body = [n4(interface), n4(0), n4(ticks), n4(bytes.len() as u32), n4(99)].concat();
        body.extend(bytes);
        block(big, 6, &body)
    };
    file.extend(packet(0, 512, &IP));
    file.extend(packet(1, 150, &IP[..3]));
    // A simple packet: no more than the snap length of 16 bytes.
    let mut simple = n4(20).to_vec();
    simple.extend(&IP[..16]);
    file.extend(block(big, 3, &simple));
    // The obsolete kind: a short number of the interface, then drops.
    let mut old = [n2(1), n2(0)].concat();
    old.extend([n4(0), n4(1), n4(4), n4(4)].concat());
    old.extend(&IP[..4]);
    file.extend(block(big, 2, &old));
    file
}

#[test]
fn pcapng_is_read_with_several_sections_interfaces_and_clocks() {
    let file = [section(true), section(false)].concat();
    let (records, error) = all(&file);
    assert_eq!(error, None);
    let times: Vec<(usize, Option<u64>, u16, usize, usize)> =
        records.iter().map(|r| (r.0, r.1, r.2, r.3, r.4.len())).collect();
    let one = [
        (0, Some(100_500_000_000), 101, 99, 20),
        (1, Some(1_500_000_000), 1, 99, 3),
        (0, None, 101, 20, 16),
        (1, Some(10_000_000), 1, 4, 4),
    ];
    let again = one.map(|(interface, at, link, original, len)| (interface + 2, at, link, original, len));
    assert_eq!(times, [one, again].concat());
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!((reader.interfaces().len(), reader.interfaces()[2].name.as_str(), reader.format()), (4, "a", "pcapng"));
}

#[test]
fn what_we_write_we_read() {
    let mut writer = PcapngWriter::new(Vec::new(), "test").unwrap();
    let lan = writer.add_interface(&Interface { name: "lan", link_type: LinkType::Ethernet, snap_len: 0 }).unwrap();
    let at = Duration::new(1_700_000_000, 1);
    writer
        .write(&CapturedPacket { interface: lan, at, direction: Direction::Inbound, original_len: 0, bytes: &IP })
        .unwrap();
    let (records, error) = all(&writer.finish().unwrap());
    assert_eq!((records, error), (vec![(0, Some(1_700_000_000_000_000_001), 1, 20, IP.to_vec())], None));
}

#[test]
fn a_capture_that_was_cut_short_gives_what_is_whole() {
    for (file, records) in [(pcap(false, 0xa1b2_c3d4, 0), 1), (section(false), 4)] {
        for end in 0..file.len() {
            let (found, error) = all(&file[..end]);
            assert!(found.len() < records || error.is_none(), "{end}");
            if end > 4 && found.len() < records && error.is_none() {
                // Only between two packets or blocks nothing is missing.
                assert!(CaptureReader::new(&file[..end]).is_ok(), "{end}");
            }
        }
    }
}

#[test]
fn lies_about_lengths_are_errors_and_take_no_memory() {
    let mut file = pcap(false, 0xa1b2_c3d4, 0);
    file[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(all(&file).1.unwrap().contains("more than a million bytes"));
    for (at, value, wanted) in [(4, 7u32, "impossible length"), (4, u32::MAX - 3, "middle of a packet")] {
        let mut file = section(false);
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert!(all(&file).1.unwrap().contains(wanted), "{value}");
    }
    let mut differ = section(false);
    let last = differ.len() - 1;
    differ[last] = 9;
    assert!(all(&differ).1.unwrap().contains("lengths"), "two lengths");
    for (head, wanted) in [(&b"\x1f\x8b\x08\0"[..], "gunzip"), (b"a,b\n", "neither"), (b"", "less than four")] {
        assert!(all(head).1.unwrap().contains(wanted));
    }
    assert!(!is_capture(b"mtu,goodput") && is_capture(b"\x1f\x8b\x08\0"));
    assert!(is_capture(b"BZh91AY&") && !is_capture(b"BZh9,mtu") && !is_capture(b"BZhou,a"));
    assert!(all(b"BZh91AY&SY").1.unwrap().contains("bunzip2"));
}

#[test]
fn the_ip_packet_is_found_behind_every_link_layer() {
    let behind = |link: u16, head: &[u8]| {
        let bytes = [head, &IP].concat();
        LinkLayer(link).ip(&bytes) == Some(&IP[..])
    };
    let ethernet = |rest: &[u8]| [&[2; 12], rest].concat();
    assert!(behind(1, &ethernet(&[8, 0])));
    assert!(behind(1, &ethernet(&[0x81, 0, 0, 5, 8, 0])), "VLAN");
    assert!(behind(1, &ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0])), "QinQ");
    assert!(behind(1, &ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21])), "PPPoE");
    assert!(behind(1, &ethernet(&[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21])), "PPPoE in a VLAN");
    assert!(behind(1, &ethernet(&[0x88, 0x47, 0, 0, 0, 64, 0, 0, 1, 64])), "MPLS");
    assert!(behind(113, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]), "cooked");
    assert!(behind(276, &[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]), "cooked, version 2");
    let cooked = [8, 0, 0, 0, 0, 0, 1, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
    assert_eq!((LinkLayer(276).device(&cooked), LinkLayer(276).device(&cooked[..7])), (Some(258), None));
    assert_eq!(LinkLayer(113).device(&cooked), None);
    assert!(behind(0, &[2, 0, 0, 0]) && behind(0, &[0, 0, 0, 2]) && behind(108, &[0, 0, 0, 2]), "loopback");
    assert!(behind(101, &[]) && behind(12, &[]) && behind(228, &[]), "raw");
    assert!(behind(9, &[0xff, 3, 0, 0x21]) && behind(9, &[0x21]), "PPP");
    assert!(!behind(1, &ethernet(&[8, 6])) && !behind(147, &[]), "ARP, and what isn't known");
    assert!(!behind(1, &ethernet(&[0x81, 0, 0, 0].repeat(9))), "tags without end");
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(mut file in proptest::collection::vec(any::<u8>(), 0..400), kind in 0usize..5) {
        let head: &[u8] = [&[][..], &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2], &[10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a], &[10, 13, 13, 10]][kind];
        let n = head.len().min(file.len());
        file[..n].copy_from_slice(&head[..n]);
        let (records, _) = all(&file);
        prop_assert!(records.iter().map(|r| r.4.len()).sum::<usize>() <= file.len());
    }

    #[test]
    fn damage_is_never_a_panic(at in 0usize..1000, byte: u8, big: bool) {
        let mut file = section(big);
        let at = at % file.len();
        file[at] = byte;
        let _ = all(&file);
    }

    #[test]
    fn no_frame_makes_a_link_layer_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), link: u16) {
        for link in [0, 1, 9, 50, 51, 101, 108, 113, 276, link] {
            if let Some(ip) = LinkLayer(link).ip(&bytes) {
                prop_assert!(ip.len() <= bytes.len());
            }
        }
    }
}
