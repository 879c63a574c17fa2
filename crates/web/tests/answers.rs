//! Answers of the API hold to the schemas of its document.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use serde_json::Value;
use std::path::Path;

const DOCUMENT: &str = include_str!("../openapi.json");

/// As much of JSON Schema as the document uses: where `value` isn't what `schema` says, if it isn't.
fn refused(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let no = |why: String| Some(format!("{place}: {why}"));
    if schema == &Value::Bool(false) {
        return no("nothing may stand here".to_owned());
    }
    if let Some(pointer) = schema["$ref"].as_str() {
        let of = document.pointer(&pointer[1..]).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
        if let Some(why) = refused(document, of, value, place) {
            return Some(why);
        }
    }
    let each = |name: &str| schema[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let holds = |of: &&Value| refused(document, of, value, place).is_none();
    if let Some(why) = each("allOf").iter().find_map(|of| refused(document, of, value, place)) {
        return Some(why);
    }
    if !schema["anyOf"].is_null() && !each("anyOf").iter().any(|of| holds(&of)) {
        return no("none of anyOf".to_owned());
    }
    let so_many = each("oneOf").iter().filter(holds).count();
    if !schema["oneOf"].is_null() && so_many != 1 {
        return no(format!("{so_many} of oneOf"));
    }
    let types: Vec<&str> =
        schema["type"].as_str().into_iter().chain(each("type").iter().filter_map(Value::as_str)).collect();
    if !types.is_empty() && !types.iter().any(|name| is(name, value)) {
        return no(format!("{value} is no {types:?}"));
    }
    if !schema["enum"].is_null() && !each("enum").contains(value) {
        return no(format!("{value} isn't of {}", schema["enum"]));
    }
    match value {
        Value::Object(fields) => {
            let missing = each("required").iter().find(|name| !fields.contains_key(name.as_str().unwrap()));
            if let Some(name) = missing {
                return no(format!("{name} is missing"));
            }
            fields.iter().find_map(|(name, of)| {
                let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                refused(document, schema, of, &format!("{place}/{name}"))
            })
        }
        Value::Array(items) => {
            let first = each("prefixItems");
            let bound = |name: &str| schema[name].as_u64().and_then(|n| usize::try_from(n).ok());
            if bound("minItems").is_some_and(|n| items.len() < n) || bound("maxItems").is_some_and(|n| items.len() > n)
            {
                return no(format!("{} items", items.len()));
            }
            items.iter().enumerate().find_map(|(n, of)| {
                refused(document, first.get(n).unwrap_or(&schema["items"]), of, &format!("{place}/{n}"))
            })
        }
        _ => None,
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        name => panic!("no type {name}"),
    }
}

/// Why an answer to GET of a path isn't what the document says of it.
fn refused_answer(path: &str, answer: &Value) -> Option<String> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let schema = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{path} has no schema");
    refused(&document, schema, answer, "")
}

#[test]
fn every_kind_of_report_holds_to_the_schema_of_reports() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windtunnel/tests/golden/journal");
    let mut reports = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.to_str().unwrap().ends_with(".report.json") {
            let report = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(refused_answer("/api/v1/reports/{name}", &report), None, "{}", file.display());
            reports += 1;
        }
    }
    assert!(reports >= 10, "{reports} reports");
    let text = serde_json::json!("faster");
    assert!(refused_answer("/api/v1/reports/{name}", &text).is_some(), "a text is no report");
}

#[test]
fn the_list_of_stacks_holds_to_its_schema() {
    let mut list = serde_json::to_value(wt_compare::stacks::list()).unwrap();
    assert_eq!(refused_answer("/api/v1/stacks", &list), None);
    let known = list["profiles"].as_array().unwrap().iter().position(|of| of["window"]["known"].is_array()).unwrap();
    list["profiles"][known]["window"]["known"] = serde_json::json!(["8192", "a source"]);
    assert!(refused_answer("/api/v1/stacks", &list).is_some(), "a window is a number");
}
