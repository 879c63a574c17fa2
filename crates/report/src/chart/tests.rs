use super::plan::{Mark, sample, thin};
use super::scale::number;
use super::*;
use proptest::prelude::*;

fn sawtooth(n: usize) -> Vec<(f64, f64)> {
    (0..n).map(|i| (1400.0 + i as f64, 83.0 + (i % 48) as f64 / 20.0)).collect()
}

fn chart() -> Chart {
    Chart {
        title: "Efficiency".into(),
        x: Axis::linear("MTU", "bytes"),
        y: Axis::linear("efficiency", "%"),
        series: vec![Series::line("adsl", sawtooth(101)), Series::points("best", vec![(1444.0, 85.45)])],
        rules: vec![Rule::horizontal(85.45, "best 85.45 %"), Rule::vertical(1444.0, "1444")],
        ..Chart::default()
    }
}

#[test]
fn no_line_of_a_terminal_chart_is_wider_than_asked() {
    for width in [30, 60, 80, 100, 500] {
        let text = chart().to_terminal(width, 20, false);
        assert!(text.lines().all(|line| line.chars().count() <= width.min(100)), "{text}");
    }
}

#[test]
fn an_axis_that_does_not_begin_at_zero_says_so() {
    let words = "(the axis doesn't begin at 0)";
    assert!(chart().to_terminal(80, 20, false).contains(words) && chart().to_svg(800, 400).contains("begin at 0)"));
    let from_zero =
        Chart { series: vec![Series::line("rate", vec![(1.0, 1.0), (2.0, 6.0)])], rules: vec![], ..chart() };
    assert!(!from_zero.to_terminal(80, 20, false).contains(words));
    let forest = Chart {
        y: Axis::linear("goodput", "Mbit/s"),
        categories: vec!["a".into(), "b".into()],
        series: vec![Series::intervals("means", &[(0.0, 5.0, 5.5, 6.0), (1.0, 5.2, 5.6, 5.9)])],
        ..Chart::default()
    };
    assert!(forest.to_terminal(80, 20, false).contains(words) && forest.to_svg(800, 400).contains("begin at 0)"));
}

#[test]
fn colour_changes_no_character() {
    let plain = chart().to_terminal(80, 20, false);
    let mut stripped = String::new();
    let colored = chart().to_terminal(80, 20, true);
    let mut rest = colored.as_str();
    while let Some(start) = rest.find('\x1b') {
        stripped.push_str(&rest[..start]);
        rest = &rest[start + rest[start..].find('m').unwrap() + 1..];
    }
    stripped.push_str(rest);
    let trimmed: String = stripped.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(trimmed, plain);
    assert!(!plain.contains('\x1b'));
}

#[test]
fn nothing_to_show_says_so() {
    let empty = Chart { title: "T".into(), ..Chart::default() };
    let only_bad =
        Chart { series: vec![Series::line("a", vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)])], ..empty.clone() };
    let names = Chart { categories: vec!["a".into()], ..empty.clone() };
    let zero_on_log =
        Chart { y: Axis::log10("e", ""), series: vec![Series::line("a", vec![(1.0, 0.0)])], ..empty.clone() };
    for chart in [empty, only_bad, names, zero_on_log] {
        assert!(chart.to_terminal(80, 20, false).contains("no data"));
        assert!(chart.to_svg(720, 400).contains("no data"));
    }
}

#[test]
fn labels_cannot_break_out() {
    let evil = "<script>alert(\"1\")</script>&\u{1b}[2J";
    let chart = Chart {
        title: evil.into(),
        subtitle: evil.into(),
        x: Axis::linear(evil, evil),
        y: Axis::linear(evil, evil),
        series: vec![Series::line(evil, vec![(0.0, 1.0), (1.0, 2.0)])],
        rules: vec![Rule::horizontal(1.5, evil), Rule::vertical(0.5, evil)],
        ..Chart::default()
    };
    let named = Chart { categories: vec![evil.into(), evil.into()], ..chart.clone() };
    for chart in [chart, named] {
        let svg = chart.to_svg(720, 400);
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
        assert!(!chart.to_terminal(80, 20, false).contains('\u{1b}'));
    }
}

#[test]
fn each_category_has_its_row_and_its_interval() {
    let chart = Chart {
        categories: vec!["current".into(), "rwin=16384".into(), "rwin=65536".into()],
        y: Axis::linear("ratio", ""),
        series: vec![Series::intervals("", &[(1.0, 0.3, 0.5, 0.7), (2.0, 1.1, 1.5, f64::INFINITY)])],
        rules: vec![Rule::horizontal(1.0, "current")],
        ..Chart::default()
    };
    let text = chart.to_terminal(80, 20, false);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    // Law: an interval left of the rule stays left of it, an open end reaches the edge.
    let slow = row("rwin=16384");
    assert!(slow.find('┤').unwrap() < slow.find('┆').unwrap(), "{text}");
    let fast = row("rwin=65536");
    assert!(fast.find('┆').unwrap() < fast.find('├').unwrap() && fast.ends_with('▷'), "{text}");
    assert_eq!(chart.to_svg(720, 400).matches("<circle").count(), 2);
}

#[test]
fn ticks_are_round_and_lie_inside() {
    let range = scale::Range::of(&Axis::linear("", ""), [1400.0, 1500.0].into_iter()).unwrap();
    let labels: Vec<String> = range.ticks(6).into_iter().map(|(_, text)| text).collect();
    assert_eq!(labels, ["1400", "1420", "1440", "1460", "1480", "1500"]);
    let range = scale::Range::of(&Axis::log2("window", "bytes"), [4096.0, 65536.0].into_iter()).unwrap();
    let labels: Vec<String> = range.ticks(6).into_iter().map(|(_, text)| text).collect();
    assert_eq!(labels, ["4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB"]);
    let range = scale::Range::of(&Axis::log10("evidence", ""), [0.5, 60.0].into_iter()).unwrap();
    let labels: Vec<String> = range.ticks(8).into_iter().map(|(_, text)| text).collect();
    assert_eq!(labels, ["0.5", "1", "2", "5", "10", "20", "50"]);
}

fn ticks(axis: &Axis, ends: [f64; 2], most: usize) -> Vec<String> {
    let range = scale::Range::of(axis, ends.into_iter()).unwrap();
    range.ticks(most).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn every_axis_has_two_ticks_that_differ() {
    // A low plot has room for two, between which no round number may lie.
    for (axis, ends) in [
        (Axis::linear("rate", ""), [5.7, 9.3]),
        (Axis::log2("window", "bytes"), [1_500.0, 3_900.0]),
        (Axis::log2("mtu", "bytes"), [1_444.0, 1_452.0]),
        (Axis::log10("evidence", ""), [1.1, 9.5]),
        (Axis::log10("evidence", ""), [3.0, 31.0]),
    ] {
        for most in 2..12 {
            let mut labels = ticks(&axis, ends, most);
            let all = labels.len();
            labels.dedup();
            assert!(labels.len() == all && all > 1, "{axis:?} {most}: {labels:?}");
        }
    }
    assert_eq!(ticks(&Axis::log2("mtu", "bytes"), [1_444.0, 1_452.0], 5), ["1430", "1440", "1450", "1460", "1470"]);
    proptest!(|(low in 0.01..1e6f64, factor in 1.01..1e3f64, most in 2usize..12)| {
        for axis in [Axis::linear("", ""), Axis::log2("", ""), Axis::log2("", "bytes"), Axis::log10("", "")] {
            let labels = ticks(&axis, [low, low * factor], most);
            prop_assert!(labels.len() > 1 && labels[0] != labels[labels.len() - 1], "{:?}: {:?}", axis, labels);
        }
    });
}

#[test]
fn only_points_have_marks_and_only_what_goes_on_is_open() {
    let stairs = Series::steps("", vec![(0.0, 1.0), (1.0, 4.0), (2.0, 2.0)]);
    let chart = Chart { series: vec![stairs, Series::points("", vec![(2.0, 3.0)])], ..Chart::default() };
    assert_eq!(chart.to_svg(400, 200).matches("<circle").count(), 3, "corners are no points");
    // From 0 on, as the requests of a page are.
    let forest = |axis: Axis, ends: (f64, f64)| Chart {
        y: axis,
        categories: vec!["one".into()],
        series: vec![Series::intervals("", &[(0.0, ends.0, 2.0, ends.1)])],
        ..Chart::default()
    };
    let closed = forest(Axis::linear("time", "ms"), (0.0, 3.0));
    let text = closed.to_terminal(60, 10, false);
    assert!(text.contains('├') && text.contains('┤') && !text.contains('◁'), "{text}");
    assert_eq!(closed.to_svg(400, 200).matches("<polyline").count(), 0);
    for (axis, ends) in [(Axis::log2("ratio", ""), (0.0, 4.0)), (Axis::linear("", ""), (f64::NEG_INFINITY, 4.0))] {
        let text = forest(axis.clone(), ends).to_terminal(60, 10, false);
        assert!(text.contains('◁') && text.contains('┤'), "{text}");
        assert_eq!(forest(axis, ends).to_svg(400, 200).matches("<polyline").count(), 1);
    }
}

#[test]
fn rules_differ_by_their_dashes_and_no_label_lies_on_another_rule() {
    let rules = vec![Rule::horizontal(6.68, "current"), Rule::horizontal(6.79, "the link's limit")];
    let line = Series::line("", vec![(0.0, 6.4), (1.0, 6.5)]);
    let chart = Chart { series: vec![line], rules, ..Chart::default() };
    let text = chart.to_terminal(80, 16, false);
    let signs: Vec<&str> = ["current", "the link"]
        .iter()
        .filter_map(|label| text.split(&format!(" {label}")).next()?.split_whitespace().last())
        .collect();
    assert!(signs.len() == 2 && signs[0] != signs[1], "{text}");
    assert!(signs.iter().all(|sign| text.matches(&sign.repeat(20)).count() == 1), "{text}");
    let ascii = signs.iter().map(|sign| crate::plain::ascii(sign)).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ascii.len(), 2);
    // Heights of the level strokes, and of the labels' middles.
    let close =
        Chart { rules: vec![Rule::horizontal(6.68, "current"), Rule::horizontal(6.70, "the link's limit")], ..chart };
    let svg = close.to_svg(720, 300);
    let number = |line: &str, name: &str| -> Option<f64> {
        line.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    let strokes: Vec<f64> = svg
        .lines()
        .filter(|line| line.contains("stroke-width=\"2\"") && line.starts_with("<line"))
        .filter_map(|line| number(line, "y1"))
        .collect();
    let lines: Vec<&str> = svg.lines().collect();
    let at =
        |label: &str| lines.windows(2).find(|pair| pair[1] == label).and_then(|pair| number(pair[0], "y")).unwrap();
    for label in ["current", "the link&apos;s limit"] {
        let y = at(label);
        assert!(!strokes.is_empty() && strokes.iter().all(|stroke| (stroke - y).abs() > 6.0), "{label} {y} {svg}");
    }
}

#[test]
fn things_with_names_stand_at_their_names() {
    let axis = Axis::named("cc", vec!["reno".into(), "cubic".into()]);
    assert_eq!(ticks(&axis, [0.0, 1.0], 8), ["reno", "cubic"]);
    let line = Series::line("mtu 1500", vec![(0.0, 5.7), (1.0, 9.3)]);
    let chart = Chart { x: axis, series: vec![line], ..Chart::default() };
    let text = chart.to_terminal(80, 16, false);
    let bottom = text.lines().find(|line| line.contains("reno")).unwrap();
    assert!(bottom.contains("cubic") && !text.contains("0.2"), "{text}");
    assert_eq!(chart.to_svg(720, 400).matches(">\nreno\n").count(), 1);
}

#[test]
fn numbers_are_short() {
    for (value, step, text) in [
        (0.0, 1.0, "0"),
        (6.5, 0.5, "6.5"),
        (1450.0, 10.0, "1450"),
        (20_000.0, 5_000.0, "20k"),
        (12_500.0, 500.0, "12.5k"),
        (2e6, 1e6, "2M"),
        (-0.05, 0.01, "−0.05"),
        (1e6, 0.0, "1M"),
        (16.0, 0.0, "16"),
        (0.25, 0.0, "0.25"),
        (0.0625, 0.0, "0.0625"),
        (1.5e6, 0.0, "1.5M"),
    ] {
        assert_eq!(number(value, step), text);
    }
}

#[test]
fn thinning_keeps_the_peaks_and_the_ends() {
    let mut marks: Vec<Mark> =
        (0..100_000).map(|i| Mark { x: f64::from(i) / 1e5, y: 0.5, ..Mark::default() }).collect();
    marks[33_333].y = 0.9;
    marks[66_666].y = 0.1;
    let thinned = thin(marks.clone(), 2_000);
    assert!(thinned.len() <= 2_000);
    assert!(thinned.iter().any(|m| m.y == 0.9) && thinned.iter().any(|m| m.y == 0.1));
    assert_eq!((thinned[0], thinned[thinned.len() - 1]), (marks[0], marks[99_999]));
    assert!(thinned.windows(2).all(|pair| pair[0].x <= pair[1].x), "the order stays");
}

#[test]
fn points_are_thinned_to_a_picture_of_all_of_them() {
    // Most heights are near the middle; 26 places come again and again.
    let any = |i: u32| f64::from((i ^ (i >> 7)).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(0x45d9_f3b5));
    let height = |i: u32| (0..6).map(|k| any(i * 6 + k) / f64::from(u32::MAX)).sum();
    let of = |i: u32| Mark { x: f64::from(i % 26) / 26.0, y: height(i), ..Mark::default() };
    let marks: Vec<Mark> = (0..40_000).map(of).collect();
    let near = |marks: &[Mark]| {
        let y = marks.iter().map(|m| m.y).sum::<f64>() / marks.len() as f64;
        marks.iter().filter(|m| (m.y - y).abs() < 0.7).count() as f64 / marks.len() as f64
    };
    let drawn = sample(marks.clone(), 2_000);
    assert!(drawn.len() <= 2_000 && drawn.len() > 1_500, "{}", drawn.len());
    assert!((near(&drawn) - near(&marks)).abs() < 0.05, "{} {}", near(&drawn), near(&marks));
    let places: std::collections::BTreeSet<u64> = drawn.iter().map(|m| (m.x * 26.0).round() as u64).collect();
    assert_eq!(places.len(), 26, "a period in the data hides no place");
    let highest = |marks: &[Mark]| marks.iter().map(|m| m.y).fold(f64::MIN, f64::max);
    assert_eq!(highest(&drawn), highest(&marks));
    // A chart of points is thinned so, one of a line by its peaks.
    let points = marks.iter().map(|m| (m.x, m.y)).collect();
    let chart = Chart { series: vec![Series::points("", points)], ..Chart::default() };
    let shapes = plan::plane(&chart).unwrap().shapes;
    let middle = shapes[0].marks.iter().map(|m| m.y).sum::<f64>() / shapes[0].marks.len() as f64;
    assert!(shapes[0].marks.iter().filter(|m| (m.y - middle).abs() < 0.15).count() > 800);
}

#[test]
fn twelve_series_have_twelve_marks_in_the_terminal_in_ascii_and_in_svg() {
    let series = (0..12).map(|i| Series::points(format!("control {i}"), vec![(f64::from(i), f64::from(i * i))]));
    let chart = Chart { series: series.collect(), ..Chart::default() };
    let marks = |text: String| -> std::collections::BTreeSet<char> {
        let named = |word: &str| text.split(&format!(" {word}")).next()?.chars().last();
        (0..12).filter_map(|i| named(&format!("control {i}"))).collect()
    };
    let text = chart.to_terminal(100, 30, false);
    assert_eq!(marks(text.clone()).len(), 12, "{text}");
    assert_eq!(marks(crate::plain::ascii(&text)).len(), 12, "{text}");
    // One point at one place, drawn as that of each of twelve series.
    let one = |place: usize| {
        let point = |i: usize| if i == place { vec![(1.0, 1.0)] } else { Vec::new() };
        let series = (0..12).map(|i| Series::points("", point(i))).collect();
        Chart { series, ..Chart::default() }.to_svg(400, 200)
    };
    let drawn: std::collections::BTreeSet<String> = (0..12).map(one).collect();
    assert_eq!(drawn.len(), 12);
}

#[test]
fn a_long_series_makes_a_small_picture() {
    let chart = Chart { series: vec![Series::line("a", sawtooth(1_000_000))], ..Chart::default() };
    assert!(chart.to_svg(720, 400).len() < 100_000);
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), -10.0..10.0f64, Just(0.0), Just(f64::INFINITY), Just(f64::NAN), Just(1e300), Just(1e-300)]
}

#[test]
fn a_bar_is_as_long_as_its_value() {
    let chart = Chart {
        y: Axis::linear("window", "segments"),
        categories: vec!["ten".into(), "forty".into()],
        series: vec![Series::bars("exact", vec![(0.0, 10.0), (1.0, 40.0)])],
        ..Chart::default()
    };
    let text = chart.to_terminal(80, 10, false);
    let filled: Vec<usize> = text.lines().take(2).map(|line| line.matches(['█', '●']).count()).collect();
    assert!(filled[1] > 3 * filled[0] && filled[1] < 5 * filled[0], "{text}");
    let svg = chart.to_svg(600, 200);
    let widths: Vec<f64> = svg
        .lines()
        .filter(|line| line.starts_with("<rect"))
        .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(widths.len() >= 2 && (widths[1] / widths[0] - 4.0).abs() < 0.1, "{svg}");
}

#[test]
fn bars_of_two_series_differ_without_colour() {
    let chart = Chart {
        y: Axis::linear("window", "segments"),
        categories: vec!["ten".into(), "forty".into()],
        series: vec![Series::bars("exact", vec![(0.0, 10.0)]), Series::bars("at least", vec![(1.0, 40.0)])],
        ..Chart::default()
    };
    let svg = chart.to_svg(600, 200);
    // One in the legend, one at the bar's end.
    assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
    let plain = crate::plain::ascii(&chart.to_terminal(80, 10, false));
    let bars: Vec<&str> = plain.lines().take(2).collect();
    assert!(bars[0].contains("####o") && bars[1].contains("%%%%#") && !plain.contains('?'), "{plain}");
}

fn any_scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Linear), Just(Scale::Log2), Just(Scale::Log10)]
}

proptest! {
    #[test]
    fn any_chart_can_be_drawn(
        points in proptest::collection::vec((any_value(), any_value()), 0..40),
        ends in proptest::collection::vec((any_value(), any_value()), 0..40),
        at in any_value(),
        (names, places) in (proptest::collection::vec(".{0,30}", 0..4), proptest::collection::vec(".{0,30}", 0..3)),
        (sx, sy) in (any_scale(), any_scale()),
        (width, height) in (0usize..300, 0usize..300),
        kind in 0..6,
    ) {
        let kind = match kind {
            0 => Kind::Line,
            1 => Kind::Points,
            2 => Kind::Steps,
            3 => Kind::Bars,
            4 => Kind::Intervals(ends),
            _ => Kind::Waits(ends.into_iter().map(|(low, high)| (at, low, high)).collect()),
        };
        let chart = Chart {
            x: Axis { label: "x".into(), unit: "bytes".into(), scale: sx, names: places },
            y: Axis { label: "y".into(), unit: String::new(), scale: sy, names: Vec::new() },
            series: vec![Series { name: "s".into(), kind, points }],
            rules: vec![Rule::horizontal(at, "h"), Rule::vertical(at, "v")],
            categories: names,
            ..Chart::default()
        };
        let text = chart.to_terminal(width, height, false);
        prop_assert!(text.lines().all(|line| line.chars().count() <= width.clamp(30, 100)));
        let svg = chart.to_svg(width as u32, height as u32);
        prop_assert!(svg.trim_end().ends_with("</svg>"));
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}

#[test]
fn a_wait_before_an_interval_is_thin_and_no_part_of_it() {
    let of = |series: Series| Chart {
        y: Axis::linear("after the first request", "ms"),
        categories: vec!["a.bin".to_owned(), "b.bin".to_owned()],
        series: vec![series],
        ..Chart::default()
    };
    let waits = of(Series::waits("", &[(0.0, 0.0, 0.0, 45.0, 50.0), (1.0, 5.0, 900.0, 945.0, 1000.0)]));
    let rows = plan::rows(&waits).unwrap().rows;
    let mark = rows[1].marks[0].1;
    let begins = mark.ends.map(|(low, _)| low).unwrap();
    assert!(mark.wait.is_some_and(|wait| wait < 0.01) && begins > 0.8, "{mark:?}");
    assert_eq!(rows[0].marks[0].1.wait, None, "it was sent at once");
    let text = waits.to_terminal(80, 12, false);
    let line = text.lines().find(|line| line.starts_with("b.bin")).unwrap();
    assert!(line.matches('┄').count() > 40 && line.matches('─').count() < 10, "{line}");
    let strokes = |chart: &Chart| chart.to_svg(800, 200).matches("opacity=\"0.5\"").count();
    let same = of(Series::intervals("", &[(0.0, 0.0, 45.0, 50.0), (1.0, 900.0, 945.0, 1000.0)]));
    assert_eq!((strokes(&waits), strokes(&same)), (1, 0));
}

#[test]
fn a_row_shows_every_point_of_a_series_and_one_interval() {
    let chart = Chart {
        y: Axis::linear("goodput", "kB/s"),
        categories: vec!["reno".to_owned(), "chd".to_owned()],
        series: vec![
            Series::points("runs", vec![(0.0, 50.0), (0.0, 55.0), (0.0, 60.0), (1.0, 90.0)]),
            Series::intervals("mean", &[(0.0, 52.0, 55.0, 58.0), (1.0, 88.0, 90.0, 92.0)]),
        ],
        ..Chart::default()
    };
    let rows = plan::rows(&chart).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.marks.len()).collect::<Vec<_>>(), [4, 2]);
    assert_eq!((rows[0].lanes(), rows[0].lane(0), rows[0].lane(1)), (2, 0, 1));
}
