use crate::knob::{ALL, Knob, KnobError};
use crate::plan::{Request, Target};
use wt_units::{Knob as Varied, Recommendation};

impl Knob {
    /// The setting of this host that stands for what experiments vary.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test walks all of them")]
    pub fn of(varied: Varied) -> &'static Self {
        ALL.iter().find(|knob| knob.name == varied.name()).expect("every knob of experiments is a setting")
    }
}

impl Request {
    /// What is to be changed on this host so that what an experiment recommends for it holds.
    ///
    /// # Errors
    /// [`KnobError`] when a level is none of the setting's values.
    pub fn of_recommendation(found: &Recommendation) -> Result<Self, KnobError> {
        let mut request = Self::default();
        for setting in &found.here {
            let knob = Knob::of(setting.knob);
            request.add(knob, knob.parse(&setting.level.to_string())?)?;
            request.places.insert(knob.name, setting.to.parse().unwrap_or_default());
        }
        // One place for all of them is the request's own, as if somebody had named it.
        if let Some(only) = request.only_place() {
            request.places.clear();
            request.target = only;
        }
        Ok(request)
    }

    fn only_place(&self) -> Option<Target> {
        let mut places = self.places.values();
        let first = places.next()?;
        places.all(|place| place == first).then(|| first.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_units::{Level, Role, Settings};

    #[test]
    fn each_knob_of_experiments_has_an_entry_of_its_own_that_is_set_where_it_says() {
        let mut seen = std::collections::BTreeSet::new();
        for varied in Varied::all() {
            let (entry, scopes) = (Knob::of(varied), varied.scopes());
            assert!(seen.insert(entry.name), "{varied}: {} stands for two", entry.name);
            assert_eq!(entry.route.is_some(), scopes.route, "{varied} on a route");
            assert_eq!(entry.host.is_some(), scopes.host, "{varied} for the host");
            // An MTU of one connection is a smaller MSS of it, which is a setting of its own here; and programs can have a
            // path MTU discovery of their own, but no experiment changes that for one of them.
            let socket = (entry.socket.is_some() && varied != Varied::Pmtud) || varied == Varied::Mtu;
            assert_eq!(socket, scopes.socket, "{varied} on a socket");
            // What trials hold on a socket can be had for a target.
            assert!(!varied.is_per_target() || entry.route.is_some() || entry.connection.is_some(), "{varied}");
            for text in ["auto", "on", "off", "1500", "cubic"] {
                if let Ok(level) = varied.parse_level(text) {
                    assert!(entry.parse(&level.to_string()).is_ok(), "{varied}={level} is a level, but no value");
                }
            }
        }
    }

    #[test]
    fn the_change_of_a_recommendation_is_that_of_the_command_which_it_prints() {
        let settings: Settings =
            [(Varied::Rwin, Level::Number(8_192)), (Varied::Mtu, Level::Number(1_400))].into_iter().collect();
        let found = Recommendation::of(&settings, Role::Receiver, "192.0.2.1");
        let command = found.command("x").unwrap();
        let words: Vec<&str> = command.split(' ').skip_while(|word| *word != "apply").skip(1).collect();
        let (to, pairs) = (words[words.len() - 1], &words[..words.len() - 2]);
        let typed = Request { target: to.parse().unwrap(), ..Request::of_pairs(pairs.iter().copied()).unwrap() };
        assert_eq!(Request::of_recommendation(&found).unwrap(), typed);
    }
}
