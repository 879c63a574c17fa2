//! How far apart a narrow link draws packets, with an interval, from when the answers to trains of them came.
//!
//! Packets are held up behind the narrowest link, by a busy host above all, and never come early. Laid over each other from the
//! moment at which each train began to leave, the earliest answers of all trains lie on or above a line whose slope is what a
//! packet takes on the link. Where one of them is on time, that line supports the lower convex hull there: its slope is one of
//! the hull's at that place. So the hull's slopes over the middle half hold the true one **if one answer of that half, of all
//! trains, came on time**, and a hull that bends there says by how much that may be wrong. Where no answer of that half lies on
//! the hull at all, none was on time, and nothing bounds it.
//!
//! # What this leaves out
//! Traffic of others, which makes the link look slower in all trains alike.
//!
//! # Source
//! Moon, Skelly and Towsley, IEEE INFOCOM 1999, who fit the skew of clocks by the line below all points.

/// With fewer answers nothing is said.
const FEWEST: usize = 6;
/// What clocks, and links behind the narrowest one, add to either end.
const TOLERANCE: f64 = 0.01;
/// The share of a train by which all answers may be late, beyond what the packets before them take.
const STANDING: f64 = 0.25;

/// So many answers of the middle half must lie on the hull, as near as a packet's time: where none does, none was on time.
const SUPPORT: usize = 3;

/// One train: when its answers came, seconds after its first packet began to leave, ascending by number.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Passage {
    /// The number of each packet that was answered in its train, and when.
    pub(crate) answers: Vec<(usize, f64)>,
}

/// Seconds that a packet takes on the narrowest link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spacing {
    pub(crate) best: f64,
    /// It takes no less.
    pub(crate) low: f64,
    /// It takes no more.
    pub(crate) high: f64,
}

impl Spacing {
    /// How many times its least value the most is; infinite where nothing bounds it.
    pub(crate) fn width(&self) -> f64 {
        if self.low > 0.0 { self.high / self.low } else { f64::INFINITY }
    }
}

/// The spacing that these trains show; `skipped` answers of each come first and don't count, and an idle path answers a packet
/// no sooner than after `least_rtt`. `None` with too few answers.
pub(crate) fn spacing(trains: &[Passage], skipped: usize, least_rtt: Option<f64>) -> Option<Spacing> {
    // Of what a queue dropped nothing was sent on: what came is one behind the other. What was lost behind the narrowest link
    // did take its time on it. Nobody knows which it was.
    let ranked = earliest(trains, skipped, |rank, _| rank);
    let by_rank = hull(&ranked)?;
    let by_number = hull(&earliest(trains, skipped, |_, number| number))?;
    let (of_rank, of_number) = (slopes(&by_rank)?, slopes(&by_number)?);
    let mut found = Spacing {
        low: of_rank.low.min(of_number.low).max(0.0) * (1.0 - TOLERANCE),
        high: of_rank.high.max(of_number.high) * (1.0 + TOLERANCE),
        ..of_rank
    };
    if let (Some(least), Some((rank, last))) = (least_rtt, by_rank.last()) {
        // Whatever held all trains up to their end may have pressed them together.
        let passed = rank + 1.0;
        let beyond = last - passed * found.best - least;
        if beyond > STANDING * passed * found.best {
            found.high = found.high.max((last - least) / passed * (1.0 + TOLERANCE));
        }
    }
    if supported(&ranked, &by_rank, found.best) < SUPPORT {
        (found.low, found.high) = (0.0, f64::INFINITY);
    }
    (found.best > 0.0).then_some(found)
}

/// The earliest answer at each place of all trains.
fn earliest(trains: &[Passage], skipped: usize, place: fn(usize, usize) -> usize) -> Vec<(f64, f64)> {
    let mut places: std::collections::BTreeMap<usize, f64> = std::collections::BTreeMap::new();
    for train in trains {
        let mut times: Vec<f64> = train.answers.iter().map(|(_, at)| *at).collect();
        // Answers may overtake each other.
        times.sort_by(f64::total_cmp);
        for (rank, ((number, _), at)) in train.answers.iter().zip(times).enumerate().skip(skipped) {
            places.entry(place(rank, *number)).and_modify(|least| *least = at.min(*least)).or_insert(at);
        }
    }
    if places.len() < FEWEST { Vec::new() } else { places.into_iter().map(|(at, time)| (at as f64, time)).collect() }
}

/// The lower convex hull of points ascending in x.
fn hull(points: &[(f64, f64)]) -> Option<Vec<(f64, f64)>> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., before, last] = hull[..] {
            if slope(before, last) < slope(last, *point) {
                break;
            }
            hull.pop();
        }
        hull.push(*point);
    }
    (hull.len() >= 2).then_some(hull)
}

fn slope(from: (f64, f64), to: (f64, f64)) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

/// How many points of the middle half lie on the hull, as near as `room`.
fn supported(points: &[(f64, f64)], hull: &[(f64, f64)], room: f64) -> usize {
    let on = |point: &&(f64, f64)| {
        let edge = hull.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&point.0));
        edge.is_some_and(|pair| point.1 <= pair[0].1 + (point.0 - pair[0].0) * slope(pair[0], pair[1]) + room)
    };
    let quarter = points.len() / 4;
    points.iter().skip(quarter).take(points.len() - 2 * quarter).filter(on).count()
}

/// A hull's slopes over its middle half, and the one in the middle.
fn slopes(hull: &[(f64, f64)]) -> Option<Spacing> {
    let (first, last) = (hull.first()?.0, hull.last()?.0);
    let edges = || hull.windows(2).map(|pair| (pair[0].0, pair[1].0, slope(pair[0], pair[1])));
    let at = |share: f64| first + (last - first) * share;
    let covers = |place: f64| edges().find(|(from, to, _)| (*from..=*to).contains(&place)).map(|(.., slope)| slope);
    let right = edges().rfind(|(from, ..)| *from <= at(0.75)).map(|(.., slope)| slope);
    Some(Spacing { best: covers(at(0.5))?, low: covers(at(0.25))?, high: right? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(count: usize, time: impl Fn(usize) -> Option<f64>) -> Passage {
        Passage { answers: (0..count).filter_map(|number| Some((number, time(number)?))).collect() }
    }

    fn holds(found: Spacing, gap: f64) -> bool {
        found.low <= gap && gap <= found.high && found.low <= found.best && found.best <= found.high
    }

    #[test]
    fn packets_on_time_show_what_one_takes_and_late_ones_only_widen_the_interval() {
        let gap = 1e-3;
        let even = |number: usize| Some(0.04 + gap * (number + 1) as f64);
        let found = spacing(&[train(58, even)], 10, Some(0.04)).unwrap();
        assert!(holds(found, gap) && found.width() < 1.021, "{found:?}");
        // Everything up to the middle is held until it comes at once.
        let held = |number: usize| even(number).map(|at| at.max(0.04 + gap * 30.0));
        let found = spacing(&[train(58, held)], 10, Some(0.04)).unwrap();
        assert!(holds(found, gap), "{found:?}");
        assert!(found.width() > 2.0, "{found:?}");
        // Another train that was held at another time is enough.
        let late = |number: usize| even(number).map(|at| at + if number > 40 { 0.02 } else { 0.0 });
        let found = spacing(&[train(58, held), train(58, late)], 10, Some(0.04)).unwrap();
        assert!(holds(found, gap) && found.width() < 1.1, "{found:?}");
    }

    #[test]
    fn trains_that_were_held_to_their_end_and_came_at_once_show_no_fast_link() {
        let gap = 224e-6;
        let pressed = |number: usize| Some(0.04 + gap * 70.0 + number as f64 * 3e-6);
        let found = spacing(&[train(58, pressed), train(58, pressed)], 10, Some(0.04)).unwrap();
        assert!(found.high >= gap && found.width() > 5.0, "{found:?}");
        // Who doesn't know how soon an idle path answers can't tell them from a fast link.
        assert!(spacing(&[train(58, pressed)], 10, None).unwrap().high < gap);
    }

    #[test]
    fn what_is_lost_behind_the_link_and_what_its_queue_drops_are_both_within() {
        let gap = 1e-3;
        let behind = |number: usize| (number % 9 != 4).then(|| 0.04 + gap * (number + 1) as f64);
        assert!(holds(spacing(&[train(58, behind)], 10, None).unwrap(), gap));
        // Of a short queue every third packet comes out, one behind the other.
        let passed = (0..58).filter(|number| *number < 20 || number % 3 == 0);
        let dropped = Passage {
            answers: passed.zip(0..).map(|(number, rank)| (number, 0.04 + gap * f64::from(rank + 1))).collect(),
        };
        assert!(holds(spacing(&[dropped], 10, None).unwrap(), gap));
    }

    #[test]
    fn where_all_of_the_middle_is_late_nothing_bounds_it() {
        let gap = 1e-3;
        let late = |number: usize| Some(0.04 + gap * (number + 1) as f64 + if number > 20 { 0.03 } else { 0.0 });
        let found =
            spacing(&[train(58, |number| late(number).filter(|_| !(21..30).contains(&number)))], 10, Some(0.04));
        assert!(found.is_some_and(|found| holds(found, gap) && found.width() > 1.5), "{found:?}");
    }

    #[test]
    fn too_few_answers_show_nothing() {
        let even = |number: usize| Some(0.04 + 1e-3 * number as f64);
        assert_eq!(spacing(&[train(15, even)], 10, None), None);
        assert!(spacing(&[train(16, even)], 10, None).is_some());
        assert_eq!(spacing(&[], 0, None), None);
        assert_eq!(spacing(&[train(58, |_| Some(0.04))], 10, None), None, "all at one instant");
    }
}
