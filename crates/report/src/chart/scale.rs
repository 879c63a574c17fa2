use super::{Axis, Scale, clean, cut_middle};

/// Beyond this a value counts as not finite, so that no difference of two values overflows.
const LARGEST: f64 = 1e300;
/// No name at a tick has more characters.
const LONGEST: usize = 24;

/// The stretch of values that an axis shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    scale: Scale,
    binary: bool,
    /// Ends in transformed space: the value itself or its logarithm.
    low: f64,
    high: f64,
    /// What stands at 0, 1 and so on in place of numbers.
    names: Vec<String>,
}

impl Range {
    /// Whether values have a zero that this doesn't show: differences look larger than they are.
    pub(super) fn is_cut(&self) -> bool {
        self.scale == Scale::Linear && self.low > 0.0
    }

    /// The range that shows all these values with some room around them; `None` if none of them can be shown.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<Self> {
        let scale = axis.scale;
        let (low, high) = values
            .filter_map(|value| transform(scale, value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return None;
        }
        let names: Vec<String> = axis.names.iter().map(|name| cut_middle(&clean(name), LONGEST)).collect();
        let (low, high) = if !names.is_empty() {
            (low.min(0.0) - 0.25, high.max((names.len() - 1) as f64) + 0.25)
        } else if scale == Scale::Linear {
            pad_linear(low, high)
        } else {
            pad_log(scale, low, high)
        };
        let binary = scale == Scale::Log2 && matches!(axis.unit.as_str(), "B" | "byte" | "bytes");
        Some(Self { scale, binary, low, high, names })
    }

    /// Where a value stands, 0 being the lower and 1 the upper end; `None` if the axis can't show such a value.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        Some((transform(self.scale, value)? - self.low) / (self.high - self.low))
    }

    /// As [`share`](Self::share), with everything outside put on the edge; for ends of intervals.
    pub(super) fn share_clamped(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        Some(match transform(self.scale, value) {
            Some(inner) => ((inner - self.low) / (self.high - self.low)).clamp(0.0, 1.0),
            None if value > 0.0 => 1.0,
            None => 0.0,
        })
    }

    /// At most about `most` ticks: where they stand and what is written at them. One alone tells no distance: then more.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            let place = |(at, name): (usize, &String)| Some((self.share(at as f64)?, name.clone()));
            return self.names.iter().enumerate().filter_map(place).collect();
        }
        let most = most.clamp(2, 20);
        let tries = [(most, false), (most * 2, false), (most * 4, false), (most * 2, true)];
        let mut ticks = Vec::new();
        for (most, even) in tries {
            ticks = self.ticks_of(most, even);
            if ticks.len() > 1 {
                break;
            }
        }
        ticks
    }

    /// Ticks at powers where the axis is logarithmic, as long as they needn't be `even`.
    fn ticks_of(&self, most: usize, even: bool) -> Vec<(f64, String)> {
        let powers = match self.scale {
            Scale::Log2 if !even && self.high - self.low >= 1.5 => Some(power_ticks(2.0, self.low, self.high, most)),
            Scale::Log10 if !even && self.high - self.low >= 1.0 => Some(decade_ticks(self.low, self.high, most)),
            _ => None,
        };
        let at_powers = powers.is_some();
        let (values, step) = powers.map_or_else(
            || match self.scale {
                Scale::Linear => linear_ticks(self.low, self.high, most),
                Scale::Log2 => linear_ticks(self.low.exp2(), self.high.exp2(), most),
                Scale::Log10 => linear_ticks(10f64.powf(self.low), 10f64.powf(self.high), most),
            },
            |values| (values, 0.0),
        );
        values
            .into_iter()
            .filter_map(|value| Some((self.share(value)?, value)))
            .filter(|(share, _)| (-1e-9..=1.0 + 1e-9).contains(share))
            // 1444 bytes aren't told from 1448 in KiB.
            .map(|(share, value)| (share, if self.binary && at_powers { binary(value) } else { number(value, step) }))
            .collect()
    }
}

/// The value as the axis lays it out; `None` if it can't.
fn transform(scale: Scale, value: f64) -> Option<f64> {
    if !value.is_finite() || value.abs() > LARGEST {
        return None;
    }
    match scale {
        Scale::Linear => Some(value),
        Scale::Log2 if value > 0.0 => Some(value.log2()),
        Scale::Log10 if value > 0.0 => Some(value.log10()),
        Scale::Log2 | Scale::Log10 => None,
    }
}

/// Room around linear values; from zero where that costs at most half of the height.
fn pad_linear(low: f64, high: f64) -> (f64, f64) {
    let span = high - low;
    let size = low.abs().max(high.abs());
    if span <= size * 1e-9 {
        let half = if size > 0.0 { size * 0.1 } else { 1.0 };
        return if low >= 0.0 { (0.0, high + half) } else { (low - half, high + half) };
    }
    let bottom = if low >= 0.0 && low <= high / 2.0 { 0.0 } else { low - span * 0.05 };
    (bottom, high + (high - bottom) * 0.06)
}

fn pad_log(scale: Scale, low: f64, high: f64) -> (f64, f64) {
    let least = if scale == Scale::Log2 { 0.5 } else { 0.15 };
    let room = ((high - low) * 0.05).max(if high > low { 0.02 } else { least });
    (low - room, high + room)
}

/// Multiples of 1, 2 or 5 times a power of ten, and the step between them.
fn linear_ticks(low: f64, high: f64, most: usize) -> (Vec<f64>, f64) {
    let raw = (high - low) / most as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(power * 10.0);
    if !step.is_normal() {
        return (Vec::new(), 1.0);
    }
    let first = (low / step - 1e-9).ceil();
    let ticks = (0..=most + 1).map(|i| (first + i as f64) * step).take_while(|v| *v <= high + step * 1e-9);
    // −0 reads badly.
    (ticks.map(|v| if v == 0.0 { 0.0 } else { v }).collect(), step)
}

/// Powers of a base, thinned to at most `most`.
fn power_ticks(base: f64, low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = ((low - 1e-9).ceil(), (high + 1e-9).floor());
    let stride = ((last - first + 1.0) / most as f64).ceil().max(1.0);
    let first = (first / stride).ceil() * stride;
    (0..=most).map(|i| first + stride * i as f64).take_while(|p| *p <= last).map(|p| base.powf(p)).collect()
}

/// Powers of ten, with 2 and 5 between them where there is room.
fn decade_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    if (high - low) * 3.0 > most as f64 {
        return power_ticks(10.0, low, high, most);
    }
    let decades = (low.floor() as i32)..=(high.ceil() as i32);
    decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(decade))).collect()
}

/// A number on an axis whose ticks are `step` apart (0: not evenly spaced); thousands get a suffix.
pub(super) fn number(value: f64, step: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-4) {
        return format!("{value:.1e}").replace(".0e", "e").replace('-', "−");
    }
    // A step that the suffix would hide must not be hidden: 12.5k is fine, 1450 stays 1450.
    let coarse = if step > 0.0 { step } else { size };
    let suffixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (factor, suffix) = suffixes
        .into_iter()
        .find(|(factor, _)| size >= *factor && coarse >= factor * 0.1 && (*factor > 1e3 || size >= 1e4))
        .unwrap_or((1.0, ""));
    let (scaled, finest) = (value / factor, coarse / factor);
    // Ticks that aren't evenly spaced have no step to show: three digits, for 0.125.
    let more = if step > 0.0 { 0.0 } else { 2.0 };
    let decimals = if finest > 0.0 { (more - (finest.log10() + 1e-9).floor()).clamp(0.0, 6.0) as usize } else { 0 };
    let text = format!("{scaled:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    format!("{}{suffix}", text.replace('-', "−"))
}

/// A size on an axis of doublings: `512`, `16 KiB`.
fn binary(value: f64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    units
        .into_iter()
        .find(|(power, _)| value >= 2f64.powi(*power))
        .map_or_else(|| number(value, 0.0), |(power, unit)| format!("{} {unit}", number(value / 2f64.powi(power), 0.0)))
}
