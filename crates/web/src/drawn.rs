use crate::checked::text;
use crate::error::ApiError;
use crate::kept::{KeptRequest, KeptStages};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;
use utoipa::ToSchema;

/// The most links of a drawn path.
const MOST_LINKS: usize = 32;
/// The file's name; it is also what the path is called in the journal.
const FILE: &str = "drawn.toml";

/// A path drawn from links, as a scenario file describes it; texts have the same grammar.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathRequest {
    /// What it is called
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// MTU of the client's device, bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_mtu: Option<u32>,
    /// MTU of the server's device, bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_mtu: Option<u32>,
    /// From the client to the server; a router stands between two
    #[schema(min_items = 1, max_items = 32)]
    pub(crate) links: Vec<LinkRequest>,
}

/// One link.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkRequest {
    /// Its name
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The largest IP packet that it takes, bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u32>,
    /// Whether the router in front of it tells of packets that are too long; false makes a black hole
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icmp: Option<bool>,
    /// What a packet occupies on it: words of `overhead --list` joined by +
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) framing: Option<String>,
    /// To the client
    pub(crate) down: WayRequest,
    /// To the server; nothing means as down
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) up: Option<WayRequest>,
    /// What the router in front of it does
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hop: Option<HopRequest>,
    /// A link of a shipped path whose other stages it has
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keeps: Option<KeptRequest>,
}

/// One direction of a link.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WayRequest {
    /// Bits on the wire, such as `8mbit`
    #[schema(max_length = 256, example = "8mbit")]
    pub(crate) rate: String,
    /// Propagation, one way, such as `15ms`
    #[schema(max_length = 256, example = "15ms")]
    pub(crate) delay: String,
    /// What the queue in front of it holds, such as `64KiB` or `100 packets`
    #[schema(max_length = 256, example = "64KiB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<String>,
    /// Share of packets lost at random, such as `0.1%`
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss: Option<String>,
    /// Standard deviation of the delay, such as `2ms`
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter: Option<String>,
}

/// What a router does.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HopRequest {
    /// Translates addresses of the client's side
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nat: Option<bool>,
    /// The largest MSS that it leaves in SYNs: bytes, or `pmtu`
    #[schema(max_length = 256)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mss_clamp: Option<String>,
}

/// A file of a request, such as the scenario of a drawn path, in a folder that nobody else can read; it goes away when this is dropped.
#[derive(Debug)]
pub(crate) struct RequestFile {
    folder: TempDir,
    name: &'static str,
}

impl RequestFile {
    /// Writes a file.
    ///
    /// # Errors
    /// [`ApiError`] where there is no room for it.
    pub(crate) fn write(name: &'static str, text: &str) -> Result<Self, ApiError> {
        let failed = |error: std::io::Error| ApiError::ours(format!("can't write {name}: {error}"));
        let drawn = Self { folder: tempfile::tempdir().map_err(failed)?, name };
        std::fs::write(drawn.file(), text).map_err(failed)?;
        Ok(drawn)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    /// A message without the folder, which says nothing to people.
    pub(crate) fn plain(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// A text as TOML's basic string. JSON's escapes are TOML's, and control characters were refused before.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn string(out: &mut String, name: &str, value: &str) -> Result<(), ApiError> {
    let _ = writeln!(out, "{name} = {}", quoted(text(name, value)?));
    Ok(())
}

/// A value as TOML's inline one.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("[{}]", values.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            table(fields.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect())
        }
        other => other.to_string(),
    }
}

fn table(fields: Vec<String>) -> String {
    format!("{{ {} }}", fields.join(", "))
}

fn with_kept(mut fields: Vec<String>, kept: &Map<String, Value>) -> Vec<String> {
    fields.extend(kept.iter().map(|(key, value)| format!("{key} = {}", inline(value))));
    fields
}

impl WayRequest {
    fn toml(&self, kept: &Map<String, Value>) -> Result<String, ApiError> {
        let packets = self.queue.as_deref().and_then(|queue| queue.trim().strip_suffix("packets")?.trim().parse().ok());
        let fields = [
            ("rate", Some(&self.rate)),
            ("delay", Some(&self.delay)),
            ("queue", self.queue.as_ref().filter(|_| packets.is_none())),
            ("loss", self.loss.as_ref()),
            ("jitter", self.jitter.as_ref()),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)));
        let fields: Result<Vec<_>, ApiError> =
            given.map(|(name, value)| Ok(format!("{name} = {}", quoted(text(name, value)?)))).collect();
        let mut fields = fields?;
        fields.extend(packets.map(|count: u32| format!("queue_packets = {count}")));
        Ok(table(with_kept(fields, kept)))
    }
}

impl HopRequest {
    fn fields(&self) -> Result<Vec<String>, ApiError> {
        let mut fields = Vec::new();
        if self.nat == Some(true) {
            fields.push("nat = true".to_owned());
        }
        match self.mss_clamp.as_deref().map(|clamp| (clamp, clamp.parse::<u32>())) {
            Some((_, Ok(bytes))) => fields.push(format!("mss_clamp = {bytes}")),
            Some((clamp, Err(_))) => fields.push(format!("mss_clamp = {}", quoted(text("mss_clamp", clamp)?))),
            None => {}
        }
        Ok(fields)
    }
}

impl PathRequest {
    /// The scenario file. Whether it makes sense is for the library to say that reads it.
    ///
    /// # Errors
    /// [`ApiError`] where a text is too long or there are too many links.
    pub(crate) fn toml(&self) -> Result<String, ApiError> {
        if self.links.is_empty() || self.links.len() > MOST_LINKS {
            return Err(ApiError::bad(format!(
                "a path has 1 to {MOST_LINKS} links, and this one {}",
                self.links.len()
            )));
        }
        let mut out = String::new();
        string(&mut out, "title", self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or("drawn"))?;
        out.push_str("source = \"drawn on the page\"\n");
        for (end, mtu) in [("client", self.client_mtu), ("server", self.server_mtu)] {
            if let Some(mtu) = mtu {
                let _ = writeln!(out, "\n[{end}]\nmtu = {mtu}");
            }
        }
        for (place, link) in self.links.iter().enumerate() {
            out.push_str("\n[[link]]\n");
            let numbered = format!("link-{}", place + 1);
            let name = link.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&numbered);
            string(&mut out, "name", name)?;
            if let Some(mtu) = link.mtu {
                let _ = writeln!(out, "mtu = {mtu}");
            }
            if let Some(icmp) = link.icmp {
                let _ = writeln!(out, "icmp = {icmp}");
            }
            if let Some(framing) = &link.framing {
                string(&mut out, "framing", framing)?;
            }
            let kept = link.keeps.as_ref().map_or_else(|| Ok(KeptStages::default()), KeptRequest::stages)?;
            for field in with_kept(Vec::new(), &kept.link) {
                let _ = writeln!(out, "{field}");
            }
            let down = link.down.toml(&kept.down)?;
            let up = link.up.as_ref().unwrap_or(&link.down).toml(&kept.up)?;
            let _ = writeln!(out, "down = {down}\nup = {up}");
            let hop = link.hop.as_ref().map_or_else(|| Ok(Vec::new()), HopRequest::fields)?;
            let hop = with_kept(hop, &kept.hop);
            if !hop.is_empty() {
                let _ = writeln!(out, "hop = {}", table(hop));
            }
        }
        Ok(out)
    }

    /// Writes the scenario file.
    ///
    /// # Errors
    /// As [`Self::toml`], and where there is no room for a file.
    pub(crate) fn write(&self) -> Result<RequestFile, ApiError> {
        RequestFile::write(FILE, &self.toml()?)
    }
}

/// Where something runs: a shipped path by name, or a drawn one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabRequest {
    /// A preset's name
    #[schema(pattern = "^[a-z0-9][a-z0-9-]*$", max_length = 64, example = "adsl")]
    lab: Option<String>,
    /// Or a path of one's own
    path: Option<PathRequest>,
}

impl Scenario {
    /// The lab of this path.
    pub(crate) fn request(&self) -> wt_setup::lab::LabRequest {
        wt_setup::lab::LabRequest { path: self.argument.clone(), ..Default::default() }
    }
}

/// A path's name or file, and what must be kept for as long as it is used.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) argument: String,
    pub(crate) drawn: Option<RequestFile>,
}

/// A preset or a drawn path, whichever is given.
///
/// # Errors
/// [`ApiError`] unless it is exactly one.
pub(crate) fn scenario(lab: Option<&str>, path: Option<&PathRequest>) -> Result<Scenario, ApiError> {
    match (lab, path) {
        (Some(lab), None) => Ok(Scenario { argument: crate::checked::shipped(lab)?.to_owned(), drawn: None }),
        (None, Some(path)) => {
            let drawn = path.write()?;
            Ok(Scenario { argument: drawn.file().display().to_string(), drawn: Some(drawn) })
        }
        _ => Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "name a path of the lab, or draw one")
            .hint(r#"{"lab": "adsl"}, or {"path": {"links": [{"down": {"rate": "8mbit", "delay": "15ms"}}]}}"#)),
    }
}

impl LabRequest {
    pub(crate) fn scenario(&self) -> Result<Scenario, ApiError> {
        scenario(self.lab.as_deref(), self.path.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathRequest {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_drawn_path_is_a_scenario_file() {
        let drawn = path(
            r#"{"title": "a \"b\"", "client_mtu": 1492, "links": [{"mtu": 1492, "framing": "pppoe-ptm", "icmp": false,
                "down": {"rate": "8mbit", "delay": "15ms", "queue": "64KiB", "loss": "0.1%"},
                "up": {"rate": "1mbit", "delay": "15ms"}, "hop": {"nat": true, "mss_clamp": "1400"}}]}"#,
        );
        let expected = r#"title = "a \"b\""
source = "drawn on the page"

[client]
mtu = 1492

[[link]]
name = "link-1"
mtu = 1492
icmp = false
framing = "pppoe-ptm"
down = { rate = "8mbit", delay = "15ms", queue = "64KiB", loss = "0.1%" }
up = { rate = "1mbit", delay = "15ms" }
hop = { nat = true, mss_clamp = 1400 }
"#;
        assert_eq!(drawn.toml().unwrap(), expected);
    }

    #[test]
    fn no_text_leaves_its_string() {
        let way = r#"{"rate": "8mbit\" }\nfile = \"/etc/shadow", "delay": "1ms"}"#;
        assert!(path(&format!(r#"{{"links": [{{"down": {way}}}]}}"#)).toml().is_err(), "a line break");
        let way = r#"{"rate": "8mbit\", delay = \"1s", "delay": "1ms\\"}"#;
        let toml = path(&format!(r#"{{"links": [{{"down": {way}}}]}}"#)).toml().unwrap();
        assert!(toml.contains(r#"rate = "8mbit\", delay = \"1s", delay = "1ms\\" }"#), "{toml}");
    }

    #[test]
    fn neither_no_link_nor_too_many() {
        assert!(path(r#"{"links": []}"#).toml().is_err());
        let link = r#"{"down": {"rate": "1mbit", "delay": "1ms"}}"#;
        assert!(path(&format!(r#"{{"links": [{}]}}"#, vec![link; MOST_LINKS + 1].join(","))).toml().is_err());
        assert!(serde_json::from_str::<PathRequest>(r#"{"links": [{"down": {"trace": {"file": "x"}}}]}"#).is_err());
    }

    #[test]
    fn a_drawn_file_goes_away() {
        let file = {
            let drawn = path(r#"{"links": [{"down": {"rate": "1mbit", "delay": "1ms"}}]}"#).write().unwrap();
            assert!(drawn.file().is_file());
            assert_eq!(drawn.plain(&format!("{}:3: bad", drawn.file().display())), "drawn.toml:3: bad");
            drawn.file()
        };
        assert!(!file.exists());
    }
}
