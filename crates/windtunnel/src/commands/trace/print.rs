use crate::edge::{say, say_table};
use wt_prober::trace::{TraceAnswer, TraceEnd, TraceHopAnswer};
use wt_units::counted;

/// The hops to each host; of several also which of them nobody is known to be on the way to, and why.
pub(super) fn show(answers: &[TraceAnswer]) {
    for answer in answers {
        let says_nothing = !matches!(answer.end, TraceEnd::Open | TraceEnd::Refused);
        match answer.problem().filter(|_| answers.len() > 1 && says_nothing) {
            Some(problem) => say!("{}: {}", answer.target, problem.what),
            None => show_host(answer, answers.len()),
        }
    }
}

/// The hops to a host, and how far it is.
fn show_host(answer: &TraceAnswer, hosts: usize) {
    say!("{} ({})", answer.target, address(answer));
    for line in lines(&answer.route.hops) {
        say!("{line}");
    }
    let end = end(answer);
    // What leaves for several hosts at once is told together.
    let (probes, all) = (answer.probes, answer.packets);
    let sent =
        if hosts > 1 { format!("{probes} probes of {all} packets to all hosts") } else { format!("{all} packets") };
    say!("{end}; {sent}, {:.2} s", answer.seconds);
}

fn end(answer: &TraceAnswer) -> String {
    let hops = |hops: u8| counted(hops.into(), "hop");
    match (answer.route.hop_count, answer.by_tcp, answer.end) {
        (Some(count), false, _) => hops(count),
        (Some(count), true, _) => format!("{}; the target answers TCP only", hops(count)),
        (None, _, TraceEnd::Open) => "the target accepts TCP, but doesn't say how far it is".to_owned(),
        (None, _, TraceEnd::Refused) => "the target refuses TCP, but doesn't say how far it is".to_owned(),
        (None, _, TraceEnd::OutOfTime) => "the time was up before the target was found".to_owned(),
        (None, _, TraceEnd::Silent) => {
            answer.route.unreachable.map_or("the target doesn't answer".to_owned(), |said| {
                format!("the target doesn't answer: {}", said.text())
            })
        }
    }
}

fn address(answer: &TraceAnswer) -> String {
    answer.address.map_or("-".to_owned(), |address| address.to_string())
}

/// The hops, a line each.
pub(super) fn lines(hops: &[TraceHopAnswer]) -> Vec<String> {
    lines_of(hops, false)
}

/// The same; where the answers are `rationed`, what isn't answered isn't called lost.
pub(crate) fn lines_of(hops: &[TraceHopAnswer], rationed: bool) -> Vec<String> {
    let behind = |index: usize| &hops[index + 1..];
    // Who loses packets loses those for hops behind it, too.
    let passes = |hop: &TraceHopAnswer, behind: &[TraceHopAnswer]| behind.iter().any(|other| other.loss < hop.loss);
    hops.iter().enumerate().map(|(index, hop)| line(hop, rationed || passes(hop, behind(index)))).collect()
}

/// One hop as a line; what it doesn't answer isn't lost where it passes on what hops behind it do.
fn line(hop: &TraceHopAnswer, passes: bool) -> String {
    let named = hop.addresses.iter().zip(&hop.names);
    let who: Vec<String> = named
        .map(|(address, name)| name.as_ref().map_or(address.to_string(), |name| format!("{name} ({address})")))
        .collect();
    let who = if who.is_empty() { "*".to_owned() } else { who.join(" | ") };
    let rtt = hop.rtt_us.map_or(String::new(), |rtt| format!("{:.2} ms", rtt / 1e3));
    let lost = hop.sent.saturating_sub(hop.answered);
    let loss = match (lost, passes) {
        (0, _) => String::new(),
        (_, true) => format!("  answers {} of {}", hop.answered, hop.sent),
        (_, false) => format!("  {:.0} % lost", hop.loss * 100.0),
    };
    let mtu = hop.mtu.map_or(String::new(), |mtu| format!("  mtu {mtu}"));
    let changed = if hop.changed.is_empty() { String::new() } else { format!("  changed: {}", hop.changed.join(", ")) };
    format!("{:>3}  {who:<40} {rtt:>10}{loss}{mtu}{changed}", hop.ttl).trim_end().to_owned()
}

/// A line for each host.
pub(super) fn summaries(answers: &[TraceAnswer]) {
    let mut rows = vec![["host", "address", "hops", "ttl"].map(str::to_owned).to_vec()];
    rows.extend(answers.iter().map(|answer| {
        let TraceAnswer { target, route, .. } = answer;
        let text = |number: Option<u8>| number.map_or("-".to_owned(), |number| number.to_string());
        vec![target.clone(), address(answer), text(route.hop_count), text(route.reply_ttl)]
    }));
    say_table(&rows, &[2, 3]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_prober::trace::RouteAnswer;

    #[test]
    fn a_router_that_rations_its_answers_loses_nothing_where_hops_behind_it_answer_more() {
        let hop = |ttl, answered: u32| TraceHopAnswer {
            ttl,
            address: None,
            addresses: Vec::new(),
            name: None,
            rtt_us: None,
            rtts_us: Vec::new(),
            sent: 10,
            answered,
            loss: 1.0 - f64::from(answered) / 10.0,
            mtu: None,
            quoted: false,
            changed: Vec::new(),
            target: false,
            names: Vec::new(),
        };
        let told = |answered: [u32; 3]| lines(&[hop(1, answered[0]), hop(2, answered[1]), hop(3, answered[2])]);
        let ends =
            |lines: &[String]| lines.iter().map(|line| line.split('*').nth(1).unwrap().trim().to_owned()).collect();
        let ended: Vec<String> = ends(&told([1, 0, 10]));
        assert_eq!(ended, ["answers 1 of 10", "answers 0 of 10", ""]);
        let ended: Vec<String> = ends(&told([10, 5, 5]));
        assert_eq!(ended, ["", "50 % lost", "50 % lost"], "what is lost from a hop on is lost");
        let ended: Vec<String> = ends(&lines_of(&[hop(1, 10), hop(2, 5)], true));
        assert_eq!(ended, ["", "answers 5 of 10"], "what answers are limited to says nothing of losses");
    }

    #[test]
    fn a_target_that_refuses_is_not_said_to_accept() {
        let route =
            RouteAnswer { hops: Vec::new(), reached: false, hop_count: None, reply_ttl: None, unreachable: None };
        let mut answer = TraceAnswer {
            schema_version: 1,
            target: "example.org".to_owned(),
            address: None,
            by_tcp: false,
            route,
            packets: 60,
            probes: 60,
            rounds: 2,
            seconds: 0.1,
            end: TraceEnd::Refused,
            problem: None,
        };
        assert!(end(&answer).starts_with("the target refuses TCP"), "{}", end(&answer));
        answer.end = TraceEnd::OutOfTime;
        assert!(end(&answer).starts_with("the time was up"), "{}", end(&answer));
    }
}
