use crate::checked::{preset, text};
use crate::error::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What a drawn link says of itself: these are never kept from a shipped one.
const LINK: [&str; 7] = ["name", "mtu", "icmp", "framing", "down", "up", "hop"];
/// What a drawn direction says of itself.
const WAY: [&str; 6] = ["rate", "delay", "queue", "queue_packets", "loss", "jitter"];
/// What a drawn router says of itself.
const HOP: [&str; 2] = ["nat", "mss_clamp"];

/// A link of a shipped path whose other stages are kept: bursts of losses, airtime, outages, a modem.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptRequest {
    /// The preset
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "leo-satellite")]
    pub(crate) preset: String,
    /// Which of its links, from 0
    pub(crate) link: usize,
    /// What isn't kept of it: keys as `DrawnPreset` names them
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

/// Those stages.
#[derive(Debug, Default)]
pub(crate) struct KeptStages {
    pub(crate) link: Map<String, Value>,
    pub(crate) down: Map<String, Value>,
    pub(crate) up: Map<String, Value>,
    pub(crate) hop: Map<String, Value>,
}

/// Something that a drawn link keeps and can't edit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeptStage {
    /// Of which link, from 0.
    link: usize,
    /// Its key, to leave it out: `down.loss_model`.
    pub(crate) key: String,
    /// Its field of a scenario file: `loss_model`.
    stage: String,
    /// Which way it works; nothing means both.
    way: Option<&'static str>,
    /// Its figures.
    pub(crate) figures: String,
}

impl KeptRequest {
    /// What is kept.
    ///
    /// # Errors
    /// [`ApiError`] where there is no such link.
    pub(crate) fn stages(&self) -> Result<KeptStages, ApiError> {
        let links = links(&self.preset)?;
        let none = || ApiError::bad(format!("the preset {} has no link {}", self.preset, self.link));
        let mut kept = KeptStages::of(links.get(self.link).ok_or_else(none)?);
        for key in &self.without {
            let (part, key) = match text("without", key)?.split_once('.') {
                Some(("down", key)) => (&mut kept.down, key),
                Some(("up", key)) => (&mut kept.up, key),
                Some(("hop", key)) => (&mut kept.hop, key),
                _ => (&mut kept.link, key.as_str()),
            };
            part.remove(key);
        }
        Ok(kept)
    }
}

impl KeptStages {
    pub(crate) fn of(link: &Value) -> Self {
        let down = &link["down"];
        let up = if link["up"].is_null() { down } else { &link["up"] };
        Self {
            link: others(link, &LINK),
            down: others(down, &WAY),
            up: others(up, &WAY),
            hop: others(&link["hop"], &HOP),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        [&self.link, &self.down, &self.up, &self.hop].iter().all(|part| part.is_empty())
    }

    pub(crate) fn stages(&self, link: usize) -> impl Iterator<Item = KeptStage> {
        let parts = [
            (None, "", &self.link),
            (Some("down"), "down.", &self.down),
            (Some("up"), "up.", &self.up),
            (None, "hop.", &self.hop),
        ];
        parts.into_iter().flat_map(move |(way, prefix, part)| {
            part.iter().map(move |(stage, value)| KeptStage {
                link,
                key: format!("{prefix}{stage}"),
                stage: stage.clone(),
                way,
                figures: figures(value),
            })
        })
    }
}

fn links(name: &str) -> Result<Vec<Value>, ApiError> {
    Ok(links_of(&scenario(name)?))
}

pub(crate) fn links_of(whole: &Value) -> Vec<Value> {
    whole["link"].as_array().cloned().unwrap_or_default()
}

pub(crate) fn scenario(name: &str) -> Result<Value, ApiError> {
    let missing = || ApiError::missing("there is no such preset").hint("GET /api/v1/lab/presets lists them");
    let file = wt_lab::presets::text(preset(name)?).ok_or_else(missing)?;
    toml::from_str(file).map_err(|error| ApiError::ours(error.to_string()))
}

fn others(of: &Value, ours: &[&str]) -> Map<String, Value> {
    let fields = of.as_object().into_iter().flatten();
    fields.filter(|(key, _)| !ours.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(crate) fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(crate) fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// A value for people: `gilbert-elliott, to_bad 0.01%, to_good 10%`.
fn figures(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let one = |(key, value): (&String, &Value)| match key.as_str() {
                "kind" => figures(value),
                _ => format!("{} {}", key.replace('_', " "), figures(value)),
            };
            // The kind first, whatever the alphabet says.
            let (kind, others): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| *key == "kind");
            kind.into_iter().chain(others).map(one).collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => values.iter().map(figures).collect::<Vec<_>>().join(" to "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_what_there_is_not() {
        let kept = |preset: &str, link| KeptRequest { preset: preset.to_owned(), link, without: Vec::new() };
        assert!(kept("adsl", 99).stages().is_err());
        assert!(kept("../etc/passwd", 0).stages().is_err());
        assert!(kept("no-such-path", 0).stages().is_err());
    }
}
