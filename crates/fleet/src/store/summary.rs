use serde_json::Value;

/// What lists show of an experiment, from its configuration: as the list of the journal in SQLite reads them.
pub(super) struct Summary {
    pub(super) kind: &'static str,
    pub(super) workload: Option<String>,
}

/// What they show of its verdict.
#[derive(Default)]
pub(super) struct OfVerdict {
    pub(super) kind: Option<String>,
    pub(super) action: Option<String>,
    pub(super) answer: Option<String>,
    pub(super) setting: Option<String>,
    pub(super) change_bp: Option<i64>,
}

impl Summary {
    pub(super) fn of(config: &Value) -> Self {
        let objects = [("compare", "cc"), ("stacks", "stacks"), ("test", "test"), ("traffic", "traffic")];
        let said = objects.iter().find(|(field, _)| at(config, &[field]).is_object()).map(|(_, kind)| *kind);
        let kind = match said {
            Some(kind) => kind,
            None if at(config, &["flent"]).is_string() => "flent",
            None if at(config, &["screen"]).is_object() => "screen",
            None => "tune",
        };
        let workload = text(at(config, &["workload", "kind"]));
        Self { kind, workload }
    }
}

impl OfVerdict {
    pub(super) fn of(verdict: &Value) -> Self {
        let said = at(verdict, &["answer", "what"]);
        let answer = if said.is_null() { at(verdict, &["headline"]) } else { said };
        let change = at(verdict, &["answer", "change_percent"]).as_f64();
        Self {
            kind: text(at(verdict, &["kind"])),
            action: text(at(verdict, &["answer", "action"])),
            answer: text(answer),
            setting: text(at(verdict, &["answer", "setting"])),
            change_bp: change.map(|percent| (percent * 100.0).round() as i64),
        }
    }
}

fn at<'a>(value: &'a Value, fields: &[&str]) -> &'a Value {
    fields.iter().fold(value, |value, field| value.get(field).unwrap_or(&Value::Null))
}

/// A text, without the one sign that PostgreSQL's texts can't have.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(|text| text.replace('\0', ""))
}
