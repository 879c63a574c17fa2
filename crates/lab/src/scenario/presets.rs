use super::{Scenario, ScenarioError};
use wt_units::suggestion;

/// Name and text of every shipped scenario.
const SHIPPED: [(&str, &str); 24] = [
    ("5g", include_str!("../../../../scenarios/5g.toml")),
    ("adsl", include_str!("../../../../scenarios/adsl.toml")),
    ("adsl-2200", include_str!("../../../../scenarios/adsl-2200.toml")),
    ("adsl-yahoo", include_str!("../../../../scenarios/adsl-yahoo.toml")),
    ("black-hole", include_str!("../../../../scenarios/black-hole.toml")),
    ("blog-2012", include_str!("../../../../scenarios/blog-2012.toml")),
    ("cdn-chain", include_str!("../../../../scenarios/cdn-chain.toml")),
    ("datacentre-10g", include_str!("../../../../scenarios/datacentre-10g.toml")),
    ("dialup", include_str!("../../../../scenarios/dialup.toml")),
    ("dialup-33k", include_str!("../../../../scenarios/dialup-33k.toml")),
    ("docsis", include_str!("../../../../scenarios/docsis.toml")),
    ("ethernet-hub", include_str!("../../../../scenarios/ethernet-hub.toml")),
    ("fibre-1g", include_str!("../../../../scenarios/fibre-1g.toml")),
    ("freebsd-scp", include_str!("../../../../scenarios/freebsd-scp.toml")),
    ("geo-satellite", include_str!("../../../../scenarios/geo-satellite.toml")),
    ("isdn", include_str!("../../../../scenarios/isdn.toml")),
    ("lan", include_str!("../../../../scenarios/lan.toml")),
    ("leo-satellite", include_str!("../../../../scenarios/leo-satellite.toml")),
    ("lte", include_str!("../../../../scenarios/lte.toml")),
    ("market-data", include_str!("../../../../scenarios/market-data.toml")),
    ("transatlantic", include_str!("../../../../scenarios/transatlantic.toml")),
    ("vdsl-ptm", include_str!("../../../../scenarios/vdsl-ptm.toml")),
    ("vpn-wireguard", include_str!("../../../../scenarios/vpn-wireguard.toml")),
    ("wifi", include_str!("../../../../scenarios/wifi.toml")),
];

/// Why a name gives no scenario.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// Neither a preset nor a file.
    #[error("there is no preset or file \"{name}\"{near}; the presets are {}", names().join(", "))]
    Unknown {
        /// What was written.
        name: String,
        /// ` (did you mean …?)`, or nothing.
        near: String,
    },
    /// The file can't be read.
    #[error("can't read {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file has a mistake.
    #[error(transparent)]
    Mistake(#[from] ScenarioError),
}

/// The names of the shipped scenarios.
#[must_use]
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The text of a shipped scenario.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A shipped scenario by its name, or a file by its path.
///
/// # Errors
/// [`PresetError`], with the nearest names or the mistake's place.
pub fn load(name: &str) -> Result<Scenario, PresetError> {
    if let Some(text) = text(name) {
        return Ok(Scenario::parse(&format!("{name}.toml"), text)?);
    }
    let path = std::path::Path::new(name);
    if !path.is_file() {
        return Err(PresetError::Unknown { name: name.to_owned(), near: suggestion(name, names()) });
    }
    let unreadable = |source| PresetError::Unreadable { path: name.to_owned(), source };
    let limit = super::read::LARGEST_FILE as u64 + 1;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    std::io::Read::read_to_string(&mut std::io::Read::take(file, limit), &mut text).map_err(unreadable)?;
    Ok(Scenario::parse(name, &text)?)
}
