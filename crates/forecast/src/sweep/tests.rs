use super::*;
use crate::predict::{LinkRequest, PathRequest};
use proptest::prelude::*;
use wt_units::BitsPerSecond;

/// Two settings, a small transfer, few seeds: a row takes about a millisecond.
fn usual() -> SweepRequest {
    let path = PathRequest::Link(LinkRequest::of(BitsPerSecond(0)));
    let usual = PredictRequest {
        set: vec!["initcwnd=4".parse().unwrap()],
        size: Some("20kB".parse().unwrap()),
        seeds: 3,
        ..PredictRequest::of(path)
    };
    SweepRequest { usual, has_path: false, shard: Shard::WHOLE, threads: 2 }
}

fn answer(table: &str, request: &SweepRequest) -> Result<(SweepAnswer, String), Problem> {
    let mut out = Vec::new();
    check_table(table.as_bytes(), request)?;
    let answer = sweep(table.as_bytes(), request, &mut out, &Cancel::new(), &mut |_| ())?;
    Ok((answer, String::from_utf8(out).unwrap()))
}

fn refused(table: &str) -> String {
    answer(table, &usual()).unwrap_err().to_string()
}

/// So many paths, some with chance.
fn table(rows: u64) -> String {
    let row = |i: u64| {
        format!("site-{i},{}mbit,{}ms,{}\n", i % 7 + 1, i % 11 * 9 + 2, if i.is_multiple_of(3) { "1%" } else { "" })
    };
    std::iter::once("site,link-rate,RTT,loss\n".to_owned()).chain((0..rows).map(row)).collect()
}

#[test]
fn each_row_is_answered_as_if_it_were_asked_alone() {
    let (answer, text) =
        answer("who,link_rate,rtt,set\na,8mbit,40ms,initcwnd=4\nb,1mbit,200ms,\"cc=bbr,initcwnd=20\"\n", &usual())
            .unwrap();
    assert_eq!((answer.rows, answer.unanswered, answer.kept), (2, 0, vec!["who".to_owned()]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    let link = LinkRequest { rtt: std::time::Duration::from_millis(200), ..LinkRequest::of("1mbit".parse().unwrap()) };
    let set = vec!["cc=bbr".parse().unwrap(), "initcwnd=20".parse().unwrap()];
    let alone = PredictRequest { path: PathRequest::Link(link), set, ..usual().usual };
    let alone = crate::predict(&alone, &Cancel::new()).unwrap();
    assert!(lines[4].starts_with("2,b,1mbit,200ms,\"cc=bbr,initcwnd=20\",1,"), "{}", lines[4]);
    let gain = alone.arms[1].gain.unwrap();
    assert!(lines[4].contains(&format!(",{gain},")), "{gain} {}", lines[4]);
}

#[test]
fn every_division_into_shards_gives_the_same_rows() {
    let table = table(60);
    let (_, whole) = answer(&table, &usual()).unwrap();
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for of in [1, 7, 100] {
        let shards =
            (1..=of).map(|number| SweepRequest { shard: Shard::new(number, of).unwrap(), threads: 1, ..usual() });
        let parts: Vec<String> = shards.flat_map(|request| sorted(&answer(&table, &request).unwrap().1)).collect();
        assert_eq!(sorted(&parts.join("\n").replacen("", "head\n", 1)), sorted(&whole), "{of} shards");
    }
}

#[test]
fn the_same_path_in_another_row_meets_the_same_chance_and_another_path_other_chance() {
    let (_, text) = answer("link_rate,loss,rtt\n8mbit,2%,40ms\n8mbit,2%,40ms\n8mbit,2%,41ms\n", &usual()).unwrap();
    let figures = |line: usize| text.lines().nth(line).unwrap().split_once(',').unwrap().1.to_owned();
    assert_eq!(figures(1), figures(3));
    assert_ne!(figures(1), figures(5));
}

#[test]
fn what_a_row_leaves_open_is_as_the_options_say() {
    let link = LinkRequest { mtu: "576".parse().unwrap(), ..LinkRequest::of("2mbit".parse().unwrap()) };
    let request = SweepRequest {
        usual: PredictRequest { path: PathRequest::Link(link), ..usual().usual },
        has_path: true,
        ..usual()
    };
    let (_, text) = answer("rtt\n20ms\n80ms\n", &request).unwrap();
    let goodput = |line: usize| text.lines().nth(line).unwrap().split(',').nth(4).unwrap().parse::<f64>().unwrap();
    assert!(goodput(1) < 2e6 && goodput(3) < goodput(1), "{text}");
}

#[test]
fn wrong_tables_are_refused_before_anything_is_computed() {
    let many = format!("link_rate\n{}", "fast\n".repeat(9));
    for (table, part) in [
        ("", "no column"),
        ("a,b\n1,2\n", "no column"),
        ("link_rate,rate\n1mbit,2mbit\n", "two columns"),
        ("link_rate,gain\n1mbit,2\n", "and so has the answer"),
        ("link_rates\n1mbit\n", "is \"link_rate\" meant?"),
        ("link_rate,rtt\n1mbit\n", "can't read the table"),
        ("link_rate\nfast\n", "row 1: link_rate \"fast\""),
        ("link_rate,direction\n1mbit,sideways\n", "down or up"),
        ("link_rate,rtt\n1mbit,1ms\n,5ms\n", "1 of 2 rows"),
        ("path,rtt\nadsl,5ms\n", "exclude each other"),
        ("path\nno-such-line\n", "row 1"),
        ("link_rate,loss\n1mbit,100%\n", "everything is lost"),
        ("link_rate;rtt\n1mbit;20ms\n", "separated by semicolons"),
        ("link_rate\trtt\n1mbit\t20ms\n", "separated by tabs"),
        ("link_rate,mtu\n1mbit,50\n", "an MTU of 50 is out of range: allowed is 576 to 65535"),
        ("link_rate,workload,direction,trial\n1mbit,page,up,1s\n", "there is no upload of it"),
        (&many, "… and 4 more rows"),
    ] {
        let text = refused(table);
        assert!(text.contains(part), "{table:?}: {text}");
    }
}

#[test]
fn a_row_that_the_model_cannot_run_says_why_and_the_others_are_answered() {
    let (answer, text) =
        answer("link_rate,set\n1mbit,initcwnd=4\n1mbit,cc=nonsense\n2mbit,initcwnd=4\n", &usual()).unwrap();
    assert_eq!((answer.rows, answer.unanswered, answer.problems[0].0), (3, 1, 2), "{text}");
    assert_eq!(text.lines().count(), 1 + 2 + 1 + 2);
}

#[test]
fn a_sweep_that_is_stopped_says_so() {
    let cancel = Cancel::new();
    cancel.cancel();
    let stopped = sweep(table(3).as_bytes(), &usual(), &mut Vec::new(), &cancel, &mut |_| ()).unwrap_err();
    assert_eq!(stopped.fault, wt_problem::Fault::Stopped);
}

#[test]
fn schedulers_name_the_shard() {
    let of = |variables: &[(&str, &str)], of: Option<u64>| {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Shard::of_environment(&variable, of).map(|found| found.map(|(shard, _)| (shard.number(), shard.of())))
    };
    assert_eq!(of(&[], None).unwrap(), None);
    let slurm = [
        ("SLURM_ARRAY_TASK_ID", "14"),
        ("SLURM_ARRAY_TASK_MIN", "10"),
        ("SLURM_ARRAY_TASK_STEP", "2"),
        ("SLURM_ARRAY_TASK_COUNT", "5"),
    ];
    assert_eq!(of(&slurm, None).unwrap(), Some((3, 5)));
    assert_eq!(of(&slurm, Some(5)).unwrap(), Some((3, 5)));
    let again = of(&slurm, Some(100)).unwrap_err();
    assert!(again.hint.is_some_and(|hint| hint.contains("--shard 14/100")), "a task that is run again alone");
    assert_eq!(of(&[("JOB_COMPLETION_INDEX", "0")], Some(4)).unwrap(), Some((1, 4)));
    let array = |[id, first, last, count]: [&'static str; 4]| {
        let named = ["ID", "MIN", "MAX", "COUNT", "STEP"].map(|name| format!("SLURM_ARRAY_TASK_{name}").leak() as &str);
        let [a, b, c, d, e] = named;
        [(a, id), (b, first), (c, last), (d, count), (e, "1")]
    };
    for (variables, part) in [
        (&[("JOB_COMPLETION_INDEX", "0")][..], "of how many"),
        (&[("SLURM_ARRAY_TASK_ID", "1")], "SLURM_ARRAY_TASK_COUNT"),
        (&[("SLURM_ARRAY_TASK_ID", "x"), ("SLURM_ARRAY_TASK_COUNT", "2")], "no number"),
        (&[("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_COUNT", "2")], "doesn't exist"),
        // Task 17, and tasks 16 and 17, of an array of a hundred run again.
        (&array(["17", "17", "17", "1"]), "which shard is task 17"),
        (&array(["17", "16", "17", "2"]), "which shard is task 17"),
        (&array(["3", "1", "3", "2"]), "which shard is task 3"),
    ] {
        let text = of(variables, None).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
    let processors = |variables: &[(&str, &str)]| {
        Shard::processors_of_environment(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let job = ("SLURM_JOB_ID", "7");
    assert_eq!(processors(&[job, ("SLURM_CPUS_PER_TASK", "2"), ("SLURM_CPUS_ON_NODE", "9")]), Some(2));
    assert_eq!(processors(&[job, ("SLURM_CPUS_ON_NODE", "9")]), Some(9));
    assert_eq!(processors(&[("SLURM_CPUS_ON_NODE", "9")]), None);
    for wrong in ["0/3", "4/3", "3", "a/b", "/", "1/"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_table_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = check_table(&bytes[..], &usual());
    }

    #[test]
    fn no_cell_makes_it_panic(cells in prop::collection::vec("[ -~]{0,12}", COLUMNS.len())) {
        let quoted: Vec<String> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
        let table = format!("{}\n{}\n", COLUMNS.join(","), quoted.join(","));
        let _ = check_table(table.as_bytes(), &usual());
    }
}

#[test]
fn a_row_without_an_mtu_has_what_its_encapsulation_leaves_and_one_that_is_named_stays() {
    let figures = |table: &str, flags: &LinkRequest| {
        let usual = PredictRequest { path: PathRequest::Link(flags.clone()), ..usual().usual };
        let text = answer(table, &SweepRequest { usual, ..self::usual() }).unwrap().1;
        text.lines().nth(1).unwrap().split(",0,").nth(1).unwrap().to_owned()
    };
    let flags = LinkRequest::of(BitsPerSecond(0));
    let of = |encap: &str, mtu: &str| figures(&format!("link_rate,encap,mtu\n2mbit,{encap},{mtu}\n"), &flags);
    assert_eq!(of("pppoe", ""), of("pppoe", "1492"));
    assert_ne!(of("pppoe", ""), of("pppoe", "1500"));
    let named = LinkRequest { mtu: "1400".parse().unwrap(), ..flags.clone() };
    assert_eq!(figures("link_rate,encap\n2mbit,pppoe\n", &named), of("pppoe", "1400"));
}
