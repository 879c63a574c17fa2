use super::answer::ControlsAnswer;
use super::units::{goodput_figure, goodput_of_run, goodput_unit};
use wt_report::Page;

impl ControlsAnswer {
    /// All of it as a page with its pictures.
    pub fn html(&self) -> String {
        let (unit, _) = goodput_unit();
        let goodput = format!("goodput, {unit}");
        let head = ["congestion control", &goodput, "against the first", "retransmitted", "p95 queue, ms"];
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
        let precise = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
        let mut table = vec![head.map(str::to_owned).to_vec()];
        table.extend(self.algorithms.iter().map(|one| {
            vec![
                one.label.clone(),
                goodput_figure(one.goodput.mean),
                one.against_first.map_or_else(|| "–".to_owned(), |against| against.to_string()),
                one.retransmit_share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0)),
                number(one.p95_queue_ms),
            ]
        }));
        // In tables of their own: beside the figures there is no room for them.
        let head = ["seconds until", "100 kB", "1 MB", "90 % of the path", "T90", "back in"];
        let mut times = vec![head.map(str::to_owned).to_vec()];
        times.extend(self.algorithms.iter().map(|one| {
            let figures = [one.first_100kb_s, one.first_1mb_s, one.t90_path_s, one.t90_s, one.recovery_s].map(precise);
            std::iter::once(one.label.clone()).chain(figures).collect()
        }));
        let mut runs = vec![vec!["congestion control".to_owned(), format!("single runs, {unit}")]];
        runs.extend(self.algorithms.iter().map(|one| {
            let rates = one.goodput.runs.iter().map(|goodput| goodput_of_run(*goodput));
            vec![one.label.clone(), rates.collect::<Vec<_>>().join(" ")]
        }));
        let mut text = vec![self.verdict.text.clone()];
        text.extend(Some(self.verdict.start.clone()).filter(|start| !start.is_empty()));
        text.extend(self.disturbance_lines());
        text.extend(self.thrown_away());
        if self.algorithms.iter().any(|one| one.against_first.is_some()) {
            let means = "Goodput is the mean of all trials; against the first stands the geometric mean of what each round shows.";
            text.push(means.to_owned());
        }
        let page = Page {
            title: "Congestion controls compared".to_owned(),
            about: format!(
                "{} · {} of {:.0} s each",
                self.lab,
                wt_units::counted(self.rounds(), "round"),
                self.trial_s
            ),
            text,
            table,
            more: vec![("Start and recovery".to_owned(), times), ("Each trial".to_owned(), runs)],
            charts: self.pictures.iter().map(|picture| (picture.heading.clone(), picture.chart.clone())).collect(),
            film: None,
            footer: format!("Windtunnel {} · {}", env!("CARGO_PKG_VERSION"), self.id),
        };
        page.to_html()
    }
}
