use crate::tune::TuneReport;

const COLUMNS: [&str; 18] = [
    "round",
    "order",
    "arm",
    "label",
    "settings",
    "phase",
    "status",
    "goodput_bps",
    "bytes",
    "elapsed_us",
    "retransmits",
    "min_rtt_us",
    "trial",
    "notes",
    "figure",
    "unit",
    "figure_is",
    "server",
];

impl TuneReport {
    /// The table of trials with a header line, as RFC 4180 has it.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let _ = csv.write_record(COLUMNS);
        for trial in self.trial_table.iter().chain(&self.delay_trials) {
            let label = self.arms.get(trial.arm).map_or("", |arm| arm.label.as_str());
            // Writing into memory doesn't fail.
            let _ = csv.write_record([
                trial.round.to_string(),
                trial.order.to_string(),
                trial.arm.to_string(),
                label.to_owned(),
                trial.settings.to_string(),
                match trial.phase {
                    wt_trial::Phase::Plateau => "plateau",
                    wt_trial::Phase::Delay => "delay",
                    _ => "round",
                }
                .to_owned(),
                trial.status.to_owned(),
                format!("{:.0}", trial.goodput_bps),
                trial.bytes.to_string(),
                trial.elapsed_us.to_string(),
                trial.retransmits.to_string(),
                trial.min_rtt_us.to_string(),
                trial.trial.to_string(),
                trial.notes.join("; "),
                trial.figure.map_or_else(String::new, |figure| format!("{figure}")),
                self.measured.unit.to_owned(),
                self.measured.name.to_owned(),
                trial.server.clone().unwrap_or_default(),
            ]);
        }
        String::from_utf8(csv.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}
