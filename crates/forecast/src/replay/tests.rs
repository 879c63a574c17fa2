use super::*;
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
