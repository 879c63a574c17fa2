//! What a radio makes of its rate and its time, in the mean.

use std::time::Duration;
use wt_link::AirtimeConfig;
use wt_units::Bytes;

/// The most bits per second that it carries of packets that are so long on the wire, bytes. An exchange costs access and, in the mean, half
/// of the back-off; with slots it lasts until a slot begins. Of what is sent the failures are lost, whether they are repeated or given
/// up.
///
/// Left out: what has arrived behind a failed packet keeps its place among `max_packets`, which costs a Wi-Fi some hundredths more.
pub(super) fn carries(radio: &AirtimeConfig, wire: u64) -> u128 {
    let room = radio.max_bytes.get();
    let whole = if radio.slot.is_some() { room } else { (room / wire).max(1) * wire };
    let bytes = whole.min(u64::from(radio.max_packets) * wire);
    let cycle_ns = cycle_ns(radio, (Bytes(bytes) / radio.rate).as_nanos() as f64).max(1.0);
    (bytes as f64 * 8e9 * (1.0 - radio.failure.get()).max(0.0) / cycle_ns) as u128
}

/// How much longer a packet that is so long on the wire, bytes, takes through an idle radio than its bits do, in the mean of those
/// that get over.
pub(super) fn mean_wait(radio: &AirtimeConfig, wire: u64) -> Duration {
    let slot_ns = radio.slot.map_or(0, |slot| slot.as_nanos()) as f64;
    let air_ns = |bytes: u64| (Bytes(bytes) / radio.rate).as_nanos() as f64;
    let room = radio.max_bytes.get().max(1);
    let (piece, pieces) = if radio.slot.is_some() { (wire.min(room), wire.div_ceil(room)) } else { (wire, 1) };
    let access_ns = radio.access.as_nanos() as f64 + radio.backoff.as_nanos() as f64 / 2.0;
    let further_ns = (cycle_ns(radio, air_ns(piece)) - air_ns(piece)).max(0.0) * pieces.saturating_sub(1) as f64;
    let again_ns = cycle_ns(radio, air_ns(piece) + radio.retry_after.as_nanos() as f64);
    let wait_ns = slot_ns / 2.0 + access_ns + further_ns + failures(radio) * pieces as f64 * again_ns;
    // As many as fit; who waits for centuries waits for ever.
    Duration::from_nanos(wait_ns as u64)
}

/// How often a piece fails before it gets over, in the mean of those that do.
fn failures(radio: &AirtimeConfig) -> f64 {
    let mut likely = 1.0;
    let (mut all, mut times) = (0.0, 0.0);
    for tries in 0..=radio.max_retries {
        all += likely;
        times += likely * f64::from(tries);
        likely *= radio.failure.get();
    }
    times / all
}

/// From where an exchange may begin to where the next one may, if its bits take so long, ns, in the mean.
fn cycle_ns(radio: &AirtimeConfig, air_ns: f64) -> f64 {
    let backoff_ns = radio.backoff.as_nanos() as f64;
    let least_ns = radio.access.as_nanos() as f64 + air_ns;
    let Some(slot_ns) = radio.slot.map(|slot| slot.as_nanos() as f64).filter(|slot| *slot > 0.0) else {
        return least_ns + backoff_ns / 2.0;
    };
    let (from, to) = (least_ns / slot_ns, (least_ns + backoff_ns) / slot_ns);
    if to - from < 1e-6 {
        return (least_ns as u64).div_ceil(slot_ns as u64) as f64 * slot_ns;
    }
    // The mean of the slots begun, of a time that is anywhere between these: by the area below the stairs.
    let area = |time: f64| time.floor().mul_add(time.floor() + 1.0, 2.0 * (time.floor() + 1.0) * time.fract()) / 2.0;
    (area(to) - area(from)) / (to - from) * slot_ns
}
