use super::answer::{DesignKind, ListingAnswer, ListingDesign, ListingRelation};
use super::{Outcome, SCHEMA_VERSION, short, short_or_dash};
use crate::classic::{Relation, describe, p_value, relation};
use rand::Rng;

/// A list of hosts.
pub(super) fn answer(
    outcome: Outcome,
    label: String,
    rows: &[(String, f64)],
    figures: Vec<(String, Vec<f64>)>,
    rng: &mut impl Rng,
) -> ListingAnswer {
    let Outcome { value, better, notes } = outcome;
    let y: Vec<f64> = rows.iter().map(|(_, y)| *y).collect();
    let all = describe(&y);
    let relations: Vec<(&str, Relation)> =
        figures.iter().filter_map(|(name, x)| Some((name.as_str(), relation(x, &y, rng)?))).collect();
    let is_clear = |r: &Relation| r.p * relations.len() as f64 <= 0.05;
    let mut verdict = match all {
        Some(d) => format!(
            "{} measurements of {value}: mean {} ± {} (SD of the mean), SD of a single one {}.",
            d.n,
            short(d.mean),
            short_or_dash(d.sd_of_mean),
            short_or_dash(d.sd)
        ),
        None => String::new(),
    };
    for (name, r) in &relations {
        verdict += &if is_clear(r) {
            let way = if r.spearman > 0.0 { "rises" } else { "falls" };
            format!(" It {way} with {name} (rank correlation {:.2}, p {}).", r.spearman, p_value(r.p))
        } else {
            format!(" No relation to {name} is shown (rank correlation {:.2}, p {}).", r.spearman, p_value(r.p))
        };
    }
    verdict += &format!(" One measurement of each {label} says nothing about any single one.");
    let repeated = rows.len() - rows.iter().map(|(name, _)| name).collect::<std::collections::HashSet<_>>().len();
    if repeated > 0 {
        verdict += &format!(" {repeated} rows repeat a {label}; they count as if independent.");
    }
    ListingAnswer {
        schema_version: SCHEMA_VERSION,
        design: ListingDesign { kind: DesignKind::Listing, label, rows: rows.len(), blocks: Vec::new(), value, better },
        notes,
        describe: [all],
        difference_shown: relations.iter().any(|(_, r)| is_clear(r)),
        relations: relations.iter().map(|(name, r)| ListingRelation::new((*name).to_owned(), r)).collect(),
        verdict,
        outcomes: y,
        figures,
    }
}
