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

/// The types of the page's source, made from the document.
const TYPES: &str = include_str!("../../../ui/src/schema.ts");

/// A schema as a type of TypeScript.
fn type_of(schema: &Value) -> String {
    let each = |of: &Value, sign: &str| {
        let mut types: Vec<String> = of.as_array().into_iter().flatten().map(type_of).collect();
        types.dedup();
        types.join(sign)
    };
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    for (field, sign) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if !schema[field].is_null() {
            return each(&schema[field], sign);
        }
    }
    if let Some(types) = schema["type"].as_array() {
        let one = |name: &Value| {
            let mut one = schema.clone();
            one["type"] = name.clone();
            type_of(&one)
        };
        return types.iter().map(one).collect::<Vec<_>>().join(" | ");
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some("array") if !schema["prefixItems"].is_null() => format!("[{}]", each(&schema["prefixItems"], ", ")),
        Some("array") => format!("Array<{}>", type_of(&schema["items"])),
        Some("object") if !schema["properties"].is_null() => fields_of(schema),
        Some("object") => match &schema["additionalProperties"] {
            Value::Object(values) => format!("Record<string, {}>", type_of(&Value::Object(values.clone()))),
            _ => "Record<string, unknown>".to_owned(),
        },
        Some(name) => name.to_owned(),
        None => "unknown".to_owned(),
    }
}

fn fields_of(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, of): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let comment = of["description"].as_str().map_or(String::new(), |text| format!("  /** {} */\n", one_line(text)));
        format!("{comment}  {name}{mark}: {};\n", type_of(of).replace('\n', "\n  "))
    };
    let fields: String = schema["properties"].as_object().into_iter().flatten().map(field).collect();
    format!("{{\n{fields}}}")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "* /")
}

fn types(document: &Value) -> String {
    let mut text = "// Made from crates/web/openapi.json: UPDATE_GOLDEN=1 cargo test -p wt-web\n".to_owned();
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let about = schema["description"].as_str().map_or(String::new(), |text| format!("/** {} */\n", one_line(text)));
        text += &format!("\n{about}export type {name} = {};\n", type_of(schema));
    }
    text
}

#[test]
fn the_types_of_the_page_are_those_of_the_document() {
    let now = types(&serde_json::from_str(&wt_web::openapi_json().unwrap()).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui/src/schema.ts"), &now).unwrap();
    }
    assert!(now == TYPES, "the API has changed: UPDATE_GOLDEN=1 cargo test -p wt-web, and npm run check in ui/");
}

#[test]
fn every_body_has_a_schema_and_every_reference_leads_somewhere() {
    let document: Value = serde_json::from_str(GOLDEN).unwrap();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let bodies = operation["responses"].as_object().unwrap().values().chain([&operation["requestBody"]]);
            for body in bodies.filter_map(|body| body["content"].as_object()) {
                let untyped = |of: &Value| of["schema"]["type"] == "object" && of["schema"]["properties"].is_null();
                assert!(body.values().all(|of| !untyped(of)), "{method} {path}: {body:?}");
            }
        }
    }
    let refers = |text: &str| text.split('"').next().map(str::to_owned);
    for name in GOLDEN.split("#/components/schemas/").skip(1).filter_map(refers) {
        assert!(document["components"]["schemas"].get(&name).is_some(), "{name}");
    }
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
