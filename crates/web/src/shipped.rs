use crate::drawn::{HopRequest, LinkRequest, PathRequest, WayRequest};
use crate::error::ApiError;
use crate::kept::{KeptRequest, KeptStage, KeptStages, links_of, number, said, scenario};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A shipped path, ready to be changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DrawnPreset {
    /// 1.
    schema_version: u32,
    /// The path; its links keep what they can't say.
    path: PathRequest,
    /// What that is.
    kept: Vec<KeptStage>,
}

impl DrawnPreset {
    /// A shipped path by its name.
    ///
    /// # Errors
    /// [`ApiError`] where there is none.
    pub(crate) fn of(name: &str) -> Result<Self, ApiError> {
        let whole = scenario(name)?;
        let (mut links, mut stages) = (Vec::new(), Vec::new());
        for (place, link) in links_of(&whole).iter().enumerate() {
            let kept = KeptStages::of(link);
            stages.extend(kept.stages(place));
            let keeps =
                (!kept.is_empty()).then(|| KeptRequest { preset: name.to_owned(), link: place, without: Vec::new() });
            links.push(LinkRequest {
                name: said(&link["name"]),
                mtu: number(&link["mtu"]),
                icmp: link["icmp"].as_bool(),
                framing: said(&link["framing"]),
                down: way(&link["down"]),
                up: link["up"].is_object().then(|| way(&link["up"])),
                hop: hop(&link["hop"]),
                keeps,
            });
        }
        let path = PathRequest {
            title: said(&whole["title"]),
            client_mtu: number(&whole["client"]["mtu"]),
            server_mtu: number(&whole["server"]["mtu"]),
            links,
        };
        Ok(Self { schema_version: 1, path, kept: stages })
    }
}

fn way(of: &Value) -> WayRequest {
    let packets = || of["queue_packets"].as_u64().map(|count| format!("{count} packets"));
    WayRequest {
        rate: said(&of["rate"]).unwrap_or_default(),
        delay: said(&of["delay"]).unwrap_or_default(),
        queue: said(&of["queue"]).or_else(packets),
        loss: said(&of["loss"]),
        jitter: said(&of["jitter"]),
    }
}

fn hop(of: &Value) -> Option<HopRequest> {
    let hop = HopRequest { nat: of["nat"].as_bool(), mss_clamp: said(&of["mss_clamp"]) };
    (hop.nat.is_some() || hop.mss_clamp.is_some()).then_some(hop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_lab::Scenario;

    fn runs(path: &PathRequest) -> Scenario {
        Scenario::parse("drawn.toml", &path.toml().unwrap()).unwrap()
    }

    #[test]
    fn every_shipped_path_drawn_anew_is_the_same_path() {
        for name in wt_lab::presets::names() {
            let shipped = wt_lab::presets::load(name).unwrap();
            let drawn = runs(&DrawnPreset::of(name).unwrap().path);
            assert_eq!(format!("{:?}", drawn.links), format!("{:?}", shipped.links), "{name}");
            assert_eq!((drawn.client_mtu, drawn.server_mtu), (shipped.client_mtu, shipped.server_mtu), "{name}");
        }
    }

    #[test]
    fn what_a_satellite_keeps_is_named_and_can_be_left_out() {
        let DrawnPreset { mut path, kept, .. } = DrawnPreset::of("leo-satellite").unwrap();
        let keys: Vec<&str> = kept.iter().map(|stage| stage.key.as_str()).collect();
        assert_eq!(keys, ["down.jitter_model", "down.loss_model", "down.outages", "up.jitter_model", "up.outages"]);
        assert_eq!(kept[1].figures, "gilbert-elliott, loss bad 50%, to bad 0.01%, to good 10%");
        let whole = path.toml().unwrap();
        assert!(whole.contains("gilbert-elliott"), "{whole}");
        path.links[0].keeps.as_mut().unwrap().without = keys.iter().map(|key| (*key).to_owned()).collect();
        let bare = path.toml().unwrap();
        assert!(!bare.contains("gilbert-elliott") && !bare.contains("outages") && !bare.contains("jitter"), "{bare}");
        runs(&path);
    }
}
