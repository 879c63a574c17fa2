use wt_units::RateUnit;

/// The unit of goodput for people, and by what kB/s are multiplied for it: kB/s, where no other is chosen.
pub fn goodput_unit() -> (&'static str, f64) {
    RateUnit::chosen().map(RateUnit::scale).map_or(("kB/s", 1.0), |(one, name)| (name, 8e3 / one))
}

/// How far a ratio is from 1, percent.
pub(super) fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// A single run's goodput, kB/s, as people read it beside its mean, without its unit.
pub fn goodput_of_run(kbytes_per_s: f64) -> String {
    RateUnit::chosen().map_or_else(|| format!("{kbytes_per_s:.0}"), |_| goodput_figure(kbytes_per_s))
}

/// Goodput, kB/s, as people read it, without its unit.
pub fn goodput_figure(kbytes_per_s: f64) -> String {
    let (_, times) = goodput_unit();
    let figure = kbytes_per_s * times;
    RateUnit::chosen().map_or_else(|| format!("{figure:.1}"), |_| wt_units::three_digits(figure, figure))
}
