use super::*;
use std::path::Path;
use wt_problem::Fault;

fn request(tables: &[PathBuf]) -> ReplayRequest {
    ReplayRequest { tables: tables.to_vec() }
}

#[test]
fn tables_of_a_folder_are_replayed_by_their_columns_and_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("b-ttl.csv", "# a comment\nttl,series1\n0,2100\n64,2000\n");
    write("a-fruit.csv", "apples,pears\n1,2\n");
    write("notes.txt", "no table");
    let answer = replay(&request(&[folder.path().to_owned()]), &Cancel::new()).unwrap();
    assert_eq!(answer.skipped, [folder.path().join("a-fruit.csv").display().to_string()]);
    let study = &answer.studies[0];
    assert_eq!((study.name.as_str(), study.unit, study.rows.len()), ("b-ttl", "bytes/s", 2));
    assert_eq!(study.rows[0].modelled, study.rows[1].modelled, "a time to live changes nothing");
    assert_eq!(study.rows[0].measured_mean(), Some(2_100.0));
    let object = serde_json::to_value(&answer).unwrap();
    assert_eq!(object["schema_version"], 1);
    assert_eq!(object["studies"][0]["study"], "b-ttl");
    let row = &object["studies"][0]["rows"][1];
    assert_eq!((&row["setting"], &row["study"][0]), (&"ttl 64".into(), &2000.0.into()));
    assert!(row["model"].as_f64().unwrap() > 1_000.0);
}

#[test]
fn without_a_known_table_the_problem_names_what_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let fruit = folder.path().join("fruit.csv");
    std::fs::write(&fruit, "apples,pears\n1,2\n").unwrap();
    let problem = replay(&request(&[fruit]), &Cancel::new()).unwrap_err();
    assert_eq!(problem.fault, Fault::Usage);
    assert!(problem.what.contains("fruit.csv"), "{problem}");
    let missing = replay(&request(&[folder.path().join("none.csv")]), &Cancel::new()).unwrap_err();
    assert!(missing.what.contains("none.csv"), "{missing}");
}

/// The notes of a table with this text, joined.
fn notes_of(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    std::fs::write(&file, text).unwrap();
    replay(&request(&[file]), &Cancel::new()).unwrap().studies[0].notes.join("\n")
}

/// A table of `studies/`.
fn of_studies(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../studies/{name}.csv", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn what_is_said_of_windows_is_what_the_figures_bear() {
    let noise = "No window gains anything beyond that";
    let own = notes_of(&of_studies("dialup-rwin"));
    assert!(own.contains(noise) && own.contains("which no setting here reaches"), "{own}");
    let grown = "multiplier,rwin_bytes,a,b,c\n1,1460,500,505,498\n2,2920,1000,1010,995\n4,5840,1950,1960,1940\n";
    let notes = notes_of(grown);
    assert!(!notes.contains(noise) && !notes.contains("no setting here reaches"), "{notes}");
    assert!(notes.contains("at multiplier 4 are 1.95 times those at multiplier 2"), "{notes}");
    let single = notes_of("multiplier,rwin_bytes,a\n2,2920,1964\n4,5840,1476\n6,8760,2047\n");
    assert!(single.contains("one figure for each window") && !single.contains(noise), "{single}");
    let alone = notes_of("multiplier,rwin_bytes,a\n4,5840,3300\n");
    assert!(!alone.contains(noise) && alone.contains("theirs was a faster line"), "{alone}");
}

#[test]
fn what_is_said_of_an_adsl_line_is_what_the_figures_bear() {
    let own = notes_of(&of_studies("adsl-factorial"));
    for words in ["8 Mbit/s were not the limit", "why a third more window gained next to nothing", "slower line"] {
        assert!(own.contains(words), "{own}");
    }
    let grown = notes_of("mtu,rwin_bytes,rate_mbps\n1400,16000,3.4\n1400,32000,6.6\n1500,16000,3.5\n1500,32000,6.7\n");
    assert!(grown.contains("8 Mbit/s were about the limit") && !grown.contains("next to nothing"), "{grown}");
    assert!(grown.contains("2.0 times the window brought 1.94 times the rate"), "{grown}");
}

#[test]
fn what_is_said_of_pages_and_options_is_what_the_table_has() {
    let own = notes_of(&of_studies("first-window-pages"));
    assert!(own.contains("a factor of three is more than that explains"), "{own}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages.csv");
    std::fs::write(&file, "initcwnd_segments,requests,load_ms,page_kb\n3,10,500,50\n10,10,450,50\n").unwrap();
    let study = replay(&request(&[file]), &Cancel::new()).unwrap().studies.remove(0);
    assert!(
        !study.path.contains("our own page of 44 objects,") && !study.notes.join("").contains("factor"),
        "{study:?}"
    );
    let options = notes_of("option,series1\nnone,1500\nfoo,1400\n");
    assert!(options.contains("the model has no such option: foo"), "{options}");
}

#[test]
fn a_cell_that_cannot_be_is_told_with_its_line_and_the_other_tables_of_a_folder_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    for (text, told) in [
        ("# one\nmtu,rwin_bytes,rate_mbps\n1400,16000,abc\n", "bad.csv, line 3, column rate_mbps: \"abc\""),
        ("mtu,rwin_bytes,rate_mbps\n1400,16000,1\n1400,16000,0\n", "line 3, column rate_mbps: \"0\""),
        ("mtu,rwin_bytes,rate_mbps\n9000,16000,1\n", "line 2, column mtu: \"9000\""),
        ("multiplier,rwin_bytes,a\n1,,2000\n", "line 2, column rwin_bytes: \"\""),
        ("ttl,series1\n300,2000\n", "line 2, column ttl: \"300\""),
        ("cc,rate_low,rate_high\nchd,-1,2\n", "line 2, column rate_low: \"-1\""),
        ("initcwnd_segments,requests,load_ms,page_kb\n3,0,500,50\n", "line 2, column requests: \"0\""),
    ] {
        std::fs::write(folder.path().join("bad.csv"), text).unwrap();
        let problem = replay(&request(&[folder.path().to_owned()]), &Cancel::new()).unwrap_err();
        assert!(problem.fault == Fault::Usage && problem.what.contains(told), "{problem}");
    }
    std::fs::write(folder.path().join("ttl.csv"), "ttl,series1\n64,2000\n").unwrap();
    let answer = replay(&request(&[folder.path().to_owned()]), &Cancel::new()).unwrap();
    assert_eq!((answer.studies.len(), answer.problems.len()), (1, 1));
    let empty = tempfile::tempdir().unwrap();
    let problem = replay(&request(&[empty.path().to_owned()]), &Cancel::new()).unwrap_err();
    assert!(problem.what.contains("there is no CSV file in"), "{problem}");
}

#[test]
fn no_table_is_read_without_end_and_one_without_measurements_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Sheet::read(&path).and_then(|sheet| studies::replay(&sheet)).err().unwrap().to_string()
    };
    assert!(refused("names.csv", "mtu,series1\n").contains("no measurement"));
    assert!(refused("semicolons.csv", "mtu;series1\n576;1,5\n").contains("semicolons"));
    let endless = Sheet::read(Path::new("/dev/zero")).err().unwrap().to_string();
    assert!(endless.contains("too long"), "{endless}");
}
