//! The document of the API is kept beside the code, so that a change of it is seen.

use serde_json::Value;

const GOLDEN: &str = include_str!("../openapi.json");

#[test]
fn the_document_is_the_one_that_is_kept() {
    let now = wt_web::openapi_json().unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json"), &now).unwrap();
    }
    assert!(now == GOLDEN, "the API has changed: UPDATE_GOLDEN=1 cargo test -p wt-web, and look at the difference");
}

#[test]
fn every_operation_says_what_it_does_and_how_it_fails() {
    let document: Value = serde_json::from_str(GOLDEN).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15, "{} paths", paths.len());
    for (path, operations) in paths {
        assert!(path.starts_with("/api/v1/"), "{path}");
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 10), "{method} {path}");
            let fails = operation["responses"].get("4XX").is_some();
            assert!(fails || path.ends_with("/health"), "{method} {path}");
        }
    }
}
