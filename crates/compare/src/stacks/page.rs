use super::answer::StacksAnswer;
use super::conformance;
use super::figures::median_figure;
use super::trials::StackTrials;
use wt_report::Page;

impl StacksAnswer {
    /// All of it as a page with its pictures.
    pub fn html(&self) -> String {
        let features = conformance::table(self.stacks.iter().map(|one| (one.title.as_str(), &one.conformance)));
        let page = Page {
            title: "TCP/IP stacks side by side".to_owned(),
            about: format!("{} · RTT {:.1} ms", self.lab, self.path.base_rtt_us as f64 / 1e3),
            text: self.sentences.clone(),
            table: self.table.clone(),
            more: vec![("What each can do".to_owned(), features)],
            charts: self.charts.clone(),
            film: None,
            footer: format!("Windtunnel {} · {}", env!("CARGO_PKG_VERSION"), self.id),
        };
        page.to_html()
    }
}

/// The figures of all stacks, the head first.
pub(super) fn table(stacks: &[StackTrials], workloads: &[&'static str]) -> Vec<Vec<String>> {
    let mut head = vec!["stack".to_owned()];
    head.extend(workloads.iter().map(|workload| (*workload).to_owned()));
    head.extend(["CPU, s/GB", "memory", "retransmitted", "ACK delay", "data"].map(str::to_owned));
    let mut table = vec![head];
    table.extend(stacks.iter().map(|stack| row(stack, workloads)));
    table
}

fn row(stack: &StackTrials, workloads: &[&'static str]) -> Vec<String> {
    let dash = || "–".to_owned();
    let cpu = stack.cpu_s_per_gb("bulk").or_else(|| workloads.iter().find_map(|name| stack.cpu_s_per_gb(name)));
    let delay = stack.longest_seen().and_then(|seen| seen.ack_delay).map(|delay| delay.median_us / 1e3);
    let mut cells = vec![stack.title()];
    cells.extend(workloads.iter().map(|workload| median_figure(workload, stack.scores(workload)).unwrap_or_else(dash)));
    cells.push(cpu.map_or_else(dash, |cpu| format!("{cpu:.1}")));
    cells.push(stack.memory().map_or_else(dash, |bytes| format!("{:.1} MiB", bytes / 1_048_576.0)));
    cells.push(stack.retransmitted().map_or_else(dash, |count| count.to_string()));
    cells.push(delay.map_or_else(dash, |ms| format!("{ms:.2} ms")));
    cells.push(if stack.is_checked() { stack.integrity().to_owned() } else { dash() });
    cells
}
