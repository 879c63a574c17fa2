use super::{PredictAnswer, PredictedArm};
use wt_report::{Axis, Chart, Rule, Series};
use wt_trial::Workload;
use wt_units::{Knob, RateUnit};

/// As what an arm is drawn.
struct ArmLine {
    name: &'static str,
    unit: &'static str,
    is_goodput: bool,
    /// From the figure to the unit.
    scale: f64,
}

impl ArmLine {
    fn of(answer: &PredictAnswer) -> Self {
        let measured = &answer.measured;
        let is_goodput = measured.is_goodput() || matches!(answer.workload, Workload::Bulk { .. });
        let rates = RateUnit::of_axis(answer.arms.iter().map(|arm| arm.goodput_p95_bps).fold(0.0, f64::max));
        // Goodput both ways is a figure in bit/s, too.
        let (unit, scale) = if is_goodput || measured.unit == "bit/s" { rates } else { (measured.unit, 1.0) };
        Self { name: if is_goodput { "goodput" } else { measured.name }, unit, is_goodput, scale }
    }

    fn figure(&self, arm: &PredictedArm) -> Option<f64> {
        if self.is_goodput { Some(arm.goodput_bps) } else { arm.figure }.map(|figure| figure * self.scale)
    }
}

impl PredictAnswer {
    /// What is compared against the knob with most levels; without one, each setting in a row of its own.
    #[must_use]
    pub fn chart(&self) -> Chart {
        let drawn = ArmLine::of(self);
        let varies = |arm: &PredictedArm, knob: Knob| arm.varied().is_some_and(|(varied, _)| varied == knob);
        let count = |knob: Knob| self.arms.iter().filter(|arm| varies(arm, knob)).count();
        let ordered = Knob::all().into_iter().filter(|knob| knob.is_ordered());
        let most = ordered.max_by_key(|knob| (count(*knob), *knob == Knob::Rwin));
        match most.filter(|knob| count(*knob) > 1) {
            Some(knob) => self.over_levels(knob, &drawn),
            None => self.by_name(&drawn),
        }
    }

    fn over_levels(&self, knob: Knob, drawn: &ArmLine) -> Chart {
        let point = |arm: &PredictedArm| match arm.varied() {
            Some((varied, level)) if varied == knob => Some((level.number()? as f64, drawn.figure(arm)?)),
            _ => None,
        };
        let mut points: Vec<(f64, f64)> = self.arms.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let unit = if matches!(knob, Knob::Initcwnd | Knob::Initrwnd) { "segments" } else { "bytes" };
        let mut rules = Vec::new();
        if let Some(current) = self.arms.first().and_then(|arm| drawn.figure(arm)) {
            rules.push(Rule::horizontal(current, "current"));
        }
        // What takes turns, or shares, doesn't come near the link's limit.
        let alone = matches!(self.workload, Workload::Bulk { .. } | Workload::Soak { .. });
        if let Some(bps) = self.path_facts.physical_goodput_bps.filter(|_| alone) {
            rules.push(Rule::horizontal(bps as f64 * drawn.scale, "the link's limit"));
        }
        Chart {
            title: format!("{} against {knob} on {}", title(drawn.name), self.path),
            subtitle: "a model's answer, not a measurement".to_owned(),
            x: Axis::log2(knob.name(), unit),
            y: Axis::linear(drawn.name, drawn.unit),
            series: vec![Series::line("model", points)],
            rules,
            ..Chart::default()
        }
    }

    /// Each setting, one row each; goodput with the range of nine in ten seeds.
    fn by_name(&self, drawn: &ArmLine) -> Chart {
        let points = self.arms.iter().enumerate().filter_map(|(number, arm)| {
            let middle = drawn.figure(arm)?;
            let range = (arm.goodput_p5_bps * drawn.scale, arm.goodput_p95_bps * drawn.scale);
            let (low, high) = if drawn.is_goodput { range } else { (middle, middle) };
            Some((number as f64, low, middle, high))
        });
        Chart {
            title: format!("{} on {}", title(drawn.name), self.path),
            subtitle: "a model's answer, not a measurement".to_owned(),
            y: Axis::linear(drawn.name, drawn.unit),
            series: vec![Series::intervals("model", &points.collect::<Vec<_>>())],
            categories: self.arms.iter().map(|arm| arm.label.clone()).collect(),
            ..Chart::default()
        }
    }
}

/// A name as the beginning of a title.
fn title(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
