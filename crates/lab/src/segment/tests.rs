use super::*;
use wt_wire::{IpView, Ipv4View, TcpView};

/// A super-packet as a kernel hands it over: three segments of 1000 bytes and one of 500, with FIN, PSH and CWR.
fn super_packet(v6: bool) -> (Vec<u8>, VnetHeader) {
    let payload: Vec<u8> = (0..3500u32).map(|i| (i % 251) as u8).collect();
    let ip = if v6 { 40 } else { 20 };
    let mut bytes = vec![0; ip + 32];
    let total = bytes.len() + payload.len();
    if v6 {
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        bytes[6] = 6;
        bytes[7] = 64;
        bytes[8..24].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, 0, 0x18, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes[24..40].copy_from_slice(&[0x20, 1, 0, 2, 0, 0, 0, 0x19, 0, 0, 0, 0, 0, 0, 0, 1]);
    } else {
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        bytes[4..6].copy_from_slice(&0xFFFE_u16.to_be_bytes());
        bytes[6] = 0x40;
        bytes[8] = 64;
        bytes[9] = 6;
        bytes[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 19, 0, 1]);
    }
    let tcp = ip;
    bytes[tcp..tcp + 4].copy_from_slice(&[0x1C, 0xF3, 0x80, 0x01]);
    bytes[tcp + 4..tcp + 8].copy_from_slice(&0xFFFF_FF00_u32.to_be_bytes());
    bytes[tcp + 12] = 0x80;
    bytes[tcp + 13] = 0b1001_1001; // CWR, ACK, PSH, FIN
    bytes.extend_from_slice(&payload);
    let header = VnetHeader {
        flags: vnet::NEEDS_CSUM,
        gso_type: if v6 { vnet::GSO_TCPV6 } else { vnet::GSO_TCPV4 },
        hdr_len: (ip + 32) as u16,
        gso_size: 1000,
        csum_start: ip as u16,
        csum_offset: 16,
    };
    (bytes, header)
}

fn buffer(v6: bool) -> Rc<Buffer> {
    let (bytes, header) = super_packet(v6);
    let layout = Layout::of(&bytes, &header).unwrap();
    Rc::new(Buffer::of(bytes, layout))
}

/// What leaves for a run, whole.
fn out(run: &Run) -> (VnetHeader, Vec<u8>) {
    let outgoing = run.outgoing(0);
    let mut bytes = outgoing.headers[..outgoing.headers_len].to_vec();
    bytes.extend_from_slice(&run.buffer.bytes()[outgoing.payload.clone()]);
    (VnetHeader::from_bytes(&outgoing.vnet), bytes)
}

#[test]
fn every_byte_of_a_super_packet_is_in_exactly_one_segment() {
    for v6 in [false, true] {
        let buffer = buffer(v6);
        let headers = buffer.layout.payload_at;
        let mut joined = Vec::new();
        for index in 0..buffer.layout.segments() {
            let packet = buffer.packet(index);
            let (vnet, bytes) = out(&Run::of(&packet));
            assert_eq!(bytes.len(), packet.ip_len as usize);
            assert_eq!((vnet.gso_type, vnet.flags), (vnet::GSO_NONE, vnet::NEEDS_CSUM));
            joined.extend_from_slice(&bytes[headers..]);
        }
        assert_eq!(joined, buffer.bytes()[headers..], "v6: {v6}");
        assert_eq!(buffer.layout.segments(), 4);
    }
}

#[test]
fn all_segments_at_once_are_what_each_is_by_itself() {
    for v6 in [false, true] {
        let buffer = buffer(v6);
        let one_by_one: Vec<_> = (0..buffer.layout.segments()).map(|index| buffer.packet(index)).collect();
        let key = |packet: &Packet<Segment>| {
            let Packet { ip_len, data_len, flow, ttl, ect, ce, dont_fragment, pure_ack, .. } = *packet;
            (ip_len, data_len, flow, ttl, (ect, ce, dont_fragment, pure_ack), packet.payload.index)
        };
        let at_once: Vec<_> = buffer.packets().map(|packet| key(&packet)).collect();
        assert_eq!(at_once, one_by_one.iter().map(key).collect::<Vec<_>>());
    }
}

#[test]
fn each_segment_has_the_headers_that_the_kernels_own_segmentation_gives_it() {
    let buffer = buffer(false);
    for index in 0..4 {
        let (_, bytes) = out(&Run::of(&buffer.packet(index)));
        let ip = Ipv4View::new(&bytes).unwrap();
        assert!(ip.checksum_ok(), "segment {index}");
        assert_eq!(word(&bytes, 4), 0xFFFE_u16.wrapping_add(index as u16));
        let tcp = TcpView::new(ip.payload()).unwrap();
        assert_eq!(double(tcp_bytes(&bytes), 4), 0xFFFF_FF00_u32.wrapping_add(1000 * index));
        assert_eq!(tcp.payload().len(), if index == 3 { 500 } else { 1000 });
        let flags = tcp_bytes(&bytes)[13];
        assert_eq!(flags & 0b1001, if index == 3 { 0b1001 } else { 0 }, "FIN and PSH are the last one's");
        assert_eq!(flags >> 7, u8::from(index == 0), "CWR is the first one's");
    }
}

fn tcp_bytes(packet: &[u8]) -> &[u8] {
    &packet[20..]
}

#[test]
fn the_partial_checksum_of_a_segment_is_that_of_its_own_pseudo_header() {
    for v6 in [false, true] {
        let buffer = buffer(v6);
        let (_, mut bytes) = out(&Run::of(&buffer.packet(3)));
        let start = buffer.layout.transport_at;
        let sum = Checksum::new().with(&bytes[start..]).finish();
        bytes[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        let ip = IpView::new(&bytes).unwrap();
        let (protocol, segment) = ip.transport().unwrap();
        let whole = Checksum::pseudo_header(ip.src(), ip.dst(), protocol.0, segment.len() as u32).with(segment);
        assert_eq!(whole.finish(), 0, "v6: {v6}: the receiver finds it right");
    }
}

#[test]
fn neighbours_are_merged_again_and_a_gap_or_a_mark_separates() {
    let buffer = buffer(false);
    let mut run = Run::of(&buffer.packet(0));
    assert!(run.extend(&buffer.packet(1)) && run.extend(&buffer.packet(2)));
    let (vnet, bytes) = out(&run);
    assert_eq!((vnet.gso_type, vnet.gso_size, bytes.len()), (vnet::GSO_TCPV4, 1000, 52 + 3000));
    assert!(!Run::of(&buffer.packet(0)).extend(&buffer.packet(2)), "one is missing between");
    let mut marked = buffer.packet(3);
    marked.ce = true;
    assert!(!run.extend(&marked), "a mark belongs to its own packet");
    assert!(run.extend(&buffer.packet(3)));
    assert_eq!(out(&run).1.len(), buffer.bytes().len(), "all of them are the packet that came in");
}

#[test]
fn marks_of_the_path_are_written_into_the_header() {
    let buffer = buffer(false);
    let mut packet = buffer.packet(1);
    (packet.ttl, packet.ce) = (7, true);
    let (_, bytes) = out(&Run::of(&packet));
    let ip = Ipv4View::new(&bytes).unwrap();
    assert_eq!((bytes[8], bytes[1] & 3, ip.checksum_ok()), (7, 3, true));
}

#[test]
fn nothing_that_a_kernel_could_hand_over_makes_it_panic() {
    let (good, header) = super_packet(false);
    for cut in 0..good.len().min(120) {
        for first in [0x00, 0x45, 0x4F, 0x60, 0xFF] {
            let mut bytes = good[..cut].to_vec();
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            for gso_size in [0, 1, 1000, u16::MAX] {
                let header = VnetHeader { gso_size, csum_start: 0xFFF0, ..header };
                let Some(layout) = Layout::of(&bytes, &header) else { continue };
                let buffer = Rc::new(Buffer::of(bytes.clone(), layout));
                for index in 0..layout.segments().min(50) {
                    let run = Run::of(&buffer.packet(index));
                    let outgoing = run.outgoing(14);
                    assert!(outgoing.headers_len + outgoing.payload.len() <= bytes.len());
                }
            }
        }
    }
}

#[test]
fn what_buffers_take_is_known_whatever_becomes_of_them() {
    let before = held_bytes();
    let mut bytes = vec![0; 1500];
    (bytes[0], bytes[2], bytes[3], bytes[9]) = (0x45, 5, 220, 1);
    let layout = Layout::of(&bytes, &VnetHeader::default()).unwrap();
    let mut large = vec![0; 70_000];
    large[..1500].copy_from_slice(&bytes);
    let (small, large) = (Rc::new(Buffer::of(bytes, layout)), Buffer::new(large, 0..1500, layout));
    assert_eq!(held_bytes(), before + 71_500);
    let segment = small.packet(0);
    drop(small);
    assert_eq!(held_bytes(), before + 71_500, "a segment of it is on the way");
    drop(segment);
    assert_eq!(held_bytes(), before + 70_000);
    assert_eq!(large.into_storage().len(), 70_000);
    assert_eq!(held_bytes(), before);
}
