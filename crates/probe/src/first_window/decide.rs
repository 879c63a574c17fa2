use super::reading::{End, Reading};

/// How much may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The first window is this.
    Exact,
    /// It is this or larger.
    AtLeast,
    /// Nothing is known.
    Unknown,
}

/// In what a server counts its first window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// In segments, whatever their size.
    Segments,
    /// Two to four segments by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// In bytes: as many at every segment size.
    Bytes,
}

/// Why no more is claimed than is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecisionReason {
    /// Probes with different MSS agree, and the server had more to send.
    Agreed,
    /// The response is too short to fill the window.
    ShortResponse,
    /// Probes saw different numbers of segments.
    Disagree,
    /// Only one probe saw a whole flight.
    OneProbe,
    /// The server paused before it had more to send.
    Paused,
    /// Our own window may have been the limit.
    Capped,
    /// The handshake was repeated or late, so that the server began with less than else.
    Late,
    /// There never were full segments.
    SmallSegments,
    /// Nobody accepts connections.
    Refused,
    /// No answer to SYNs.
    Silent,
    /// The server reset the connection.
    Reset,
    /// Accepted, but no data came.
    NoData,
    /// What answers doesn't speak TLS.
    Foreign,
}

impl DecisionReason {
    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Agreed => "probes with different MSS agree and the server had more to send",
            Self::ShortResponse => "the response is too short to fill the window",
            Self::Disagree => "probes with different MSS saw different numbers of segments",
            Self::OneProbe => "only one probe saw a whole flight",
            Self::Paused => "the server paused within its response",
            Self::Capped => "our own receive window may have been the limit",
            Self::Late => "the handshake was repeated or late, and servers then begin with one segment",
            Self::SmallSegments => "the server sent no full segments",
            Self::Refused => "connection refused",
            Self::Silent => "no answer to SYNs",
            Self::Reset => "the server reset the connection",
            Self::NoData => "the connection was accepted, but no data came",
            Self::Foreign => "what answers there doesn't speak TLS: try http:// or another port",
        }
    }
}

/// What is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// How much may be claimed.
    pub verdict: Verdict,
    /// Segments; 0 if unknown.
    pub segments: u32,
    /// Bytes in the flight of the probe with the longest segments; 0 if unknown.
    pub bytes: u32,
    /// That probe's longest segment, bytes; 0 if unknown.
    pub mss: u32,
    /// What the numbers follow.
    pub limit: Option<Limit>,
    /// Why.
    pub why: DecisionReason,
}

/// RFC 5681 section 3.1: the upper bound of the initial window in segments.
fn rfc5681(mss: u32) -> u32 {
    match mss {
        2191.. => 2,
        1096.. => 3,
        _ => 4,
    }
}

/// A timestamp takes so many bytes of every segment.
const TIMESTAMP: u32 = 12;

/// What the probes of a host allow to say.
///
/// "Exactly N" needs two probes with segments of different sizes that both saw N segments of a server that had more to send,
/// no more and no less, one of which knows for certain how much was sent, or three without such knowledge; and no probe that
/// saw more. So one lost tail never makes a number too small, and neither does an application that pauses: it pauses after
/// so many bytes, which are a different number of segments at a different size. Where one segment of a probe may be a tail
/// loss probe, it would agree with two numbers, and so it agrees with none.
#[must_use]
pub fn decide(readings: &[Reading]) -> Decision {
    let mut flights: Vec<&Reading> = readings.iter().filter(|r| r.end == End::Flight && r.segments > 0).collect();
    let seen = flights.clone();
    flights.retain(|r| !is_refuted(r, &seen));
    let Some(bound) = bound(&flights) else {
        return Decision {
            verdict: Verdict::Unknown,
            segments: 0,
            bytes: 0,
            mss: 0,
            limit: None,
            why: nothing(readings),
        };
    };
    let whole: Vec<&Reading> = flights.iter().copied().filter(|r| r.more && !r.capped).collect();
    let with = |reading: &Reading, segments: u32, verdict, limit, why| Decision {
        verdict,
        segments,
        bytes: reading.bytes.saturating_sub((reading.segments - segments) * reading.max_segment),
        mss: reading.max_segment,
        limit,
        why,
    };
    let largest = flights.iter().map(|r| shown(r)).max().unwrap_or(0);
    let agreeing: Vec<&Reading> = whole.iter().copied().filter(|r| r.firm && r.segments == largest).collect();
    if let Some(longest) = agreed(&agreeing) {
        return with(longest, longest.segments, Verdict::Exact, Some(Limit::Segments), DecisionReason::Agreed);
    }
    if let Some(longest) = by_size(&flights, &whole) {
        return with(longest, longest.segments, Verdict::Exact, Some(Limit::Rfc5681), DecisionReason::Agreed);
    }
    let limit = if same_bytes(&whole) { Some(Limit::Bytes) } else { None };
    with(bound, least(bound), Verdict::AtLeast, limit, doubt(&flights, &whole, &agreeing))
}

/// The probe that tells how much it is at least: the one with the longest segments, for a server may count bytes, of which short
/// segments take any number, or give short ones more (RFC 5681). One with far fewer bytes wasn't stopped by their number, and so a
/// larger number counts. Where a response ended, or a handshake was late, there may be more than that; of nothing but such probes the
/// largest number counts.
fn bound<'a>(flights: &[&'a Reading]) -> Option<&'a Reading> {
    let stopped = || flights.iter().copied().filter(|r| !r.exhausted && !r.late);
    let Some(longest) = stopped().max_by_key(|r| (r.max_segment, least(r))) else {
        return flights.iter().copied().max_by_key(|r| (least(r), r.max_segment));
    };
    let lawful = flights.iter().all(|r| is_lawful(r));
    let counts = |r: &&Reading| !lawful && r.bytes + longest.max_segment < longest.bytes;
    stopped().filter(counts).chain([longest]).max_by_key(|r| (least(r), r.max_segment))
}

/// The probe with the longest segments, if these are enough to be believed.
fn agreed<'a>(agreeing: &[&'a Reading]) -> Option<&'a Reading> {
    let longest = agreeing.iter().max_by_key(|r| r.max_segment)?;
    // As many bytes at either size, but for less than a segment, are as many as an application wrote before it paused: one
    // that writes little by little fills the shortest segments alone.
    let differs = |r: &&Reading| {
        let longer = r.mss != longest.mss && r.max_segment < longest.max_segment;
        longer && r.bytes + r.max_segment <= longest.bytes && are_alike(r, longest)
    };
    let different = agreeing.iter().any(differs);
    let full = agreeing.iter().any(|r| is_full(r));
    let sure = agreeing.iter().any(|r| r.sure);
    // On a busy path one that came early may be a tail loss probe all the same; where there are none, it can't.
    let plain = agreeing.iter().any(|r| r.spare == 0);
    (different && full && plain && (sure || agreeing.len() >= 3)).then_some(longest)
}

/// Whether the same short segment explains two numbers that rest on bytes: a server sends a head by itself and full segments behind
/// it, or full ones alone. Who writes in pieces leaves more short ones, and something else over at each size.
fn are_alike(shorter: &Reading, longer: &Reading) -> bool {
    let (Some(of_shorter), Some(of_longer)) = (shorter.left_over, longer.left_over) else { return true };
    let full = shorter.max_segment.max(1);
    let short = of_longer == longer.max_segment && of_shorter == full;
    short || of_shorter > 0 && of_longer > 0 && of_shorter % full == of_longer % full
}

/// RFC 5681's law, if probes follow it at sizes for which it gives different numbers, and each number was seen where it was
/// the window that stopped the server: an application that pauses may send three long segments where four fit, too.
fn by_size<'a>(flights: &[&Reading], whole: &[&'a Reading]) -> Option<&'a Reading> {
    let limited: Vec<&Reading> = whole.iter().copied().filter(|r| r.limited && is_lawful(r)).collect();
    let longest = limited.iter().max_by_key(|r| r.max_segment)?;
    let different = limited.iter().any(|r| r.segments != longest.segments && are_alike(r, longest));
    (different && flights.iter().all(|r| is_lawful(r))).then_some(*longest)
}

/// Whether these probes would follow RFC 5681's law, if one more showed that it was the window that stopped the server; gives
/// the size to offer.
pub(super) fn may_be_lawful(readings: &[Reading]) -> Option<u16> {
    let flights = || readings.iter().filter(|r| r.end == End::Flight && r.segments > 0);
    let lawful = flights().all(is_lawful);
    let longest = flights().max_by_key(|r| r.max_segment).filter(|r| !r.limited && r.segments < 4)?;
    let different = flights().any(|r| r.segments != longest.segments);
    (lawful && different).then(|| longest.mss - longest.mss / 16)
}

/// Whether a flight is one that RFC 5681 has as initial window.
fn is_lawful(reading: &Reading) -> bool {
    reading.firm && reading.segments == rfc5681(reading.max_segment) && is_full(reading)
}

/// Whether its segments are somewhat shorter than was allowed: a router on the way back may have called longer ones too long, whereupon the
/// server cut them, and sent others for those that it took for lost.
fn may_be_cut(reading: &Reading) -> bool {
    !is_full(reading) && 2 * reading.max_segment > u32::from(reading.mss)
}

/// Whether a connection says nothing of the window, since another one that offered no more than what came through shows it without a cut.
fn is_refuted(reading: &Reading, flights: &[&Reading]) -> bool {
    let whole = |r: &&Reading| {
        is_full(r) && r.max_segment <= reading.max_segment && r.max_segment + TIMESTAMP >= reading.max_segment
    };
    may_be_cut(reading) && flights.iter().any(whole)
}

/// The size to offer so that a server that may have cut its segments has no reason to: it knows by then what gets through.
pub(super) fn uncut_size(readings: &[Reading]) -> Option<u16> {
    let flights: Vec<&Reading> = readings.iter().filter(|r| r.end == End::Flight && r.segments > 0).collect();
    let cut = flights.iter().find(|r| may_be_cut(r) && !is_refuted(r, &flights))?;
    let size = u16::try_from(cut.max_segment).ok()?;
    flights.iter().all(|r| r.mss != size).then_some(size)
}

/// The segments that a flight had for certain.
fn least(reading: &Reading) -> u32 {
    reading.segments - reading.spare.min(reading.segments)
}

/// The segments that it showed, as far as that is one number.
fn shown(reading: &Reading) -> u32 {
    if reading.firm { reading.segments } else { least(reading) }
}

/// Whether it had segments as long as it was allowed to.
fn is_full(reading: &Reading) -> bool {
    reading.max_segment + TIMESTAMP >= u32::from(reading.mss)
}

/// Whether sure probes with segments of different sizes saw the same bytes, but for one segment.
fn same_bytes(whole: &[&Reading]) -> bool {
    whole.iter().any(|a| {
        whole.iter().any(|b| {
            let within = a.bytes.abs_diff(b.bytes) < a.max_segment.max(b.max_segment);
            a.sure && b.sure && a.max_segment > 2 * b.max_segment && within && a.segments != b.segments
        })
    })
}

/// Why "at least".
fn doubt(flights: &[&Reading], whole: &[&Reading], agreeing: &[&Reading]) -> DecisionReason {
    if flights.iter().any(|r| r.late) && agreeing.len() < 2 {
        DecisionReason::Late
    } else if flights.iter().any(|r| r.capped) {
        DecisionReason::Capped
    } else if flights.iter().any(|r| r.exhausted) && agreeing.len() < 2 {
        DecisionReason::ShortResponse
    } else if same_bytes(whole) {
        DecisionReason::Paused
    } else if flights.iter().any(|r| shown(r) != shown(flights[0])) {
        DecisionReason::Disagree
    } else if !whole.is_empty() && !whole.iter().any(|r| is_full(r)) {
        DecisionReason::SmallSegments
    } else if whole.len() < 2 && flights.len() > 1 {
        DecisionReason::Paused
    } else {
        DecisionReason::OneProbe
    }
}

/// Why nothing is known.
fn nothing(readings: &[Reading]) -> DecisionReason {
    let any = |end| readings.iter().any(|r| r.end == end);
    match () {
        () if any(End::Refused) => DecisionReason::Refused,
        () if any(End::Reset) => DecisionReason::Reset,
        () if any(End::Foreign) => DecisionReason::Foreign,
        () if any(End::NoData) || any(End::Flight) => DecisionReason::NoData,
        () => DecisionReason::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(mss: u16, segments: u32) -> Reading {
        Reading {
            mss,
            end: End::Flight,
            segments,
            spare: 0,
            firm: true,
            limited: true,
            bytes: segments * u32::from(mss),
            max_segment: u32::from(mss),
            left_over: None,
            sure: true,
            more: true,
            exhausted: false,
            capped: false,
            late: false,
        }
    }

    fn claim(readings: &[Reading]) -> (Verdict, u32, DecisionReason) {
        let decision = decide(readings);
        (decision.verdict, decision.segments, decision.why)
    }

    #[test]
    fn two_probes_that_agree_are_exact() {
        let decision = decide(&[seen(1240, 10), seen(64, 10)]);
        assert_eq!((decision.verdict, decision.limit), (Verdict::Exact, Some(Limit::Segments)));
        assert_eq!((decision.segments, decision.bytes, decision.mss), (10, 12_400, 1240));
    }

    #[test]
    fn nothing_less_is_exact() {
        let unsure = |mss, n| Reading { sure: false, ..seen(mss, n) };
        let short = |mss, n| Reading { more: false, exhausted: true, ..seen(mss, n) };
        for (readings, n, why) in [
            (vec![seen(1240, 10)], 10, DecisionReason::OneProbe),
            (vec![seen(64, 10), seen(64, 10)], 10, DecisionReason::OneProbe),
            (vec![unsure(1240, 9), unsure(64, 9)], 9, DecisionReason::OneProbe),
            (vec![seen(1240, 9), seen(64, 10)], 10, DecisionReason::Disagree),
            (vec![seen(1240, 10), seen(64, 10), unsure(536, 11)], 11, DecisionReason::Disagree),
            (vec![short(1240, 3), seen(64, 10)], 10, DecisionReason::ShortResponse),
            (vec![seen(1240, 3), Reading { bytes: 3720, ..seen(64, 58) }], 3, DecisionReason::Paused),
            (
                vec![Reading { bytes: 100, ..seen(88, 2) }, Reading { bytes: 100, ..seen(64, 2) }],
                2,
                DecisionReason::OneProbe,
            ),
            (vec![Reading { capped: true, ..seen(1240, 52) }, seen(64, 52)], 52, DecisionReason::Capped),
            (
                vec![Reading { max_segment: 40, ..seen(1240, 1) }, Reading { max_segment: 40, ..seen(64, 1) }],
                1,
                DecisionReason::SmallSegments,
            ),
        ] {
            assert_eq!(claim(&readings), (Verdict::AtLeast, n, why), "{readings:?}");
        }
    }

    #[test]
    fn a_server_that_counts_bytes_sends_no_more_segments_than_the_longest_show() {
        let bytes = |mss: u16, sure| Reading { bytes: 14_600, sure, ..seen(mss, 14_600 / u32::from(mss)) };
        for sure in [true, false] {
            let decision = decide(&[bytes(1240, sure), bytes(64, sure), bytes(536, sure)]);
            assert_eq!((decision.verdict, decision.segments, decision.mss), (Verdict::AtLeast, 11, 1240), "{sure}");
        }
        let exhausted = |mss| Reading { exhausted: true, more: false, ..bytes(mss, true) };
        assert_eq!(decide(&[exhausted(1240), bytes(536, true), bytes(64, true)]).segments, 27);
        assert_eq!(decide(&[exhausted(1240), exhausted(64)]).segments, 228, "nothing stopped it");
    }

    #[test]
    fn a_flight_that_was_cut_on_its_way_counts_only_until_one_shows_it_whole() {
        // Ten of 1460 bytes met a link of 1400 on their way back.
        let cut = Reading { bytes: 20_040, max_segment: 1360, ..seen(1460, 18) };
        assert_eq!(uncut_size(&[cut, seen(64, 10)]), Some(1360));
        assert_eq!(uncut_size(&[seen(1240, 10), seen(64, 10)]), None);
        let readings = [cut, seen(64, 10), seen(1360, 10)];
        assert_eq!((claim(&readings), uncut_size(&readings)), ((Verdict::Exact, 10, DecisionReason::Agreed), None));
        // What an application writes in far smaller pieces was cut by nobody.
        assert_eq!(uncut_size(&[Reading { bytes: 1000, max_segment: 100, ..seen(1460, 10) }]), None);
    }

    #[test]
    fn short_writes_with_pauses_between_are_no_window() {
        // 63 bytes of header and 60 of each event: of an MSS of 64 the first is full, of 1240 none.
        let trickled = |mss, longest| Reading { bytes: 63 + 2 * 60, max_segment: longest, ..seen(mss, 3) };
        let other = Reading { bytes: 66 + 2 * 60, ..trickled(1240, 66) };
        assert_eq!(claim(&[other, trickled(64, 63)]), (Verdict::AtLeast, 3, DecisionReason::OneProbe));
        assert_eq!(claim(&[other, trickled(64, 63), seen(536, 3)]).0, Verdict::Exact, "so much was there to send");
    }

    #[test]
    fn numbers_that_rest_on_bytes_need_the_same_short_segment_at_both_sizes() {
        let merged = |mss: u16, n: u32, head: u32| Reading {
            left_over: Some(head),
            bytes: (n - 1) * u32::from(mss) + head,
            ..seen(mss, n)
        };
        for (short, long) in
            [((256, 200), (524, 200)), ((256, 256), (524, 524)), ((256, 44), (524, 300)), ((256, 256), (524, 512))]
        {
            let readings = [merged(short.0, 10, short.1), merged(long.0, 10, long.1)];
            assert_eq!(claim(&readings), (Verdict::Exact, 10, DecisionReason::Agreed), "{short:?} {long:?}");
        }
        // Sixteen segments of a server that writes 5, 1400 and 2 bytes.
        let pieces = [merged(256, 15, 104), merged(388, 15, 59), merged(524, 14, 329)];
        assert_eq!(claim(&pieces).0, Verdict::AtLeast);
        assert_eq!(claim(&[merged(256, 15, 0), merged(388, 15, 0)]).0, Verdict::AtLeast, "several are short");
    }

    #[test]
    fn a_segment_that_may_be_a_loss_probe_neither_counts_nor_contradicts() {
        let spare = |mss, n| Reading { spare: 1, firm: false, ..seen(mss, n) };
        for n in [10, 11] {
            // Either number would do, so a pause of the other one's application would go unnoticed.
            assert_eq!(claim(&[seen(1240, 10), spare(64, n)]).0, Verdict::AtLeast, "{n}");
            assert_eq!(
                claim(&[seen(1240, 10), spare(64, n), seen(536, 10)]),
                (Verdict::Exact, 10, DecisionReason::Agreed),
                "{n}"
            );
        }
        assert_eq!(claim(&[seen(1240, 10), spare(64, 12)]), (Verdict::AtLeast, 11, DecisionReason::Disagree));
        assert_eq!(
            claim(&[seen(1240, 10), spare(64, 12), seen(536, 10)]),
            (Verdict::AtLeast, 11, DecisionReason::Disagree)
        );
        assert_eq!(claim(&[spare(1240, 11), spare(64, 11)]).0, Verdict::AtLeast);
        let firm = |mss, n| Reading { spare: 1, ..seen(mss, n) };
        assert_eq!(
            claim(&[seen(1240, 10), firm(64, 10)]),
            (Verdict::Exact, 10, DecisionReason::Agreed),
            "none of the ten is one"
        );
        assert_eq!(
            claim(&[seen(1240, 10), firm(64, 11), seen(536, 10)]),
            (Verdict::AtLeast, 10, DecisionReason::Disagree)
        );
    }

    #[test]
    fn three_unsure_probes_stand_for_a_sure_one() {
        let unsure = |mss| Reading { sure: false, ..seen(mss, 10) };
        assert_eq!(claim(&[unsure(1240), unsure(64), unsure(536)]), (Verdict::Exact, 10, DecisionReason::Agreed));
    }

    #[test]
    fn windows_by_the_size_of_segments_are_known() {
        let decision = decide(&[seen(1240, 3), seen(64, 4)]);
        assert_eq!((decision.verdict, decision.segments, decision.limit), (Verdict::Exact, 3, Some(Limit::Rfc5681)));
        let paused = Reading { limited: false, ..seen(1240, 3) };
        assert_eq!(claim(&[paused, seen(64, 4)]), (Verdict::AtLeast, 3, DecisionReason::Disagree), "perhaps it paused");
        assert_eq!(may_be_lawful(&[paused, seen(64, 4)]), Some(1163));
        assert_eq!(may_be_lawful(&[seen(1240, 3), seen(64, 4)]), None);
        let third = decide(&[paused, seen(64, 4), seen(1163, 3)]);
        assert_eq!((third.verdict, third.segments, third.limit), (Verdict::Exact, 3, Some(Limit::Rfc5681)));
        assert_eq!(decide(&[paused, seen(64, 4), seen(1163, 4)]).verdict, Verdict::Exact, "it had paused");
        let bytes = decide(&[seen(1240, 3), Reading { bytes: 3720, ..seen(64, 58) }]);
        assert_eq!((bytes.verdict, bytes.limit), (Verdict::AtLeast, Some(Limit::Bytes)));
    }

    #[test]
    fn what_showed_no_flight_says_why() {
        let nothing = |end| Reading { end, segments: 0, bytes: 0, max_segment: 0, ..seen(64, 0) };
        for (end, why) in [
            (End::Refused, DecisionReason::Refused),
            (End::Silent, DecisionReason::Silent),
            (End::Reset, DecisionReason::Reset),
            (End::NoData, DecisionReason::NoData),
            (End::Foreign, DecisionReason::Foreign),
        ] {
            assert_eq!(claim(&[nothing(end)]), (Verdict::Unknown, 0, why));
        }
        assert_eq!(claim(&[]), (Verdict::Unknown, 0, DecisionReason::Silent));
    }
}
