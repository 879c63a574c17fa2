//! Packets and bytes by chance.

use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_packets_make_it_panic_and_no_time_counts_twice(
        packets in proptest::collection::vec((any::<bool>(), any::<u8>(), 0u32..9000, 0u32..9000, 0u16..3, 0u16..1500, 0u64..50, any::<bool>()), 0..80),
        base: u32,
    ) {
        let mut tracker = Tracker::new(Bounds { followed: 4, told: 4, outstanding: 8, remembered: 4 }, None);
        let mut at = 0;
        for (from_client, flags, seq, ack, window, len, gap, sack) in packets {
            at += gap * MS;
            let mut packet = packet(at, from_client, flags & 0x3f, base.wrapping_add(seq), base.wrapping_add(ack), len).window(window * 1000);
            if sack {
                packet = packet.sack(base.wrapping_add(seq), base.wrapping_add(ack));
            }
            let bytes = packet.bytes(50_000 + len % 7);
            tracker.packet(0, at, &bytes, bytes.len() + usize::from(len));
        }
        for c in tracker.finish(&[]).connections {
            let t = c.time;
            let sum = t.handshake_us + t.under_way_us + t.client_window_us + t.server_window_us + t.client_zero_window_us
                + t.server_zero_window_us + t.client_repair_us + t.server_repair_us + t.client_idle_us + t.server_idle_us + t.ending_us;
            prop_assert!(sum <= c.duration_us && sum + 11 >= c.duration_us, "{} {}", sum, c.duration_us);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), version in 0u8..3, len in 0usize..70_000) {
        if let (Some(first), 1..) = (bytes.first_mut(), version) {
            *first = if version == 1 { 0x45 } else { 0x60 };
        }
        let mut tracker = Tracker::new(Bounds::default(), None);
        tracker.packet(0, 0, &bytes, len);
        prop_assert_eq!(tracker.finish(&[]).packets.all, 1);
    }
}
