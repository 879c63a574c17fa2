//! The schema of reports, which depends on what the experiment was.

use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, AnyOfBuilder, ObjectBuilder, RefBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};
use wt_compare::prove::ProveAnswer;
use wt_report::TuneReport;
use wt_traffic::TrafficReport;

/// An experiment, assessed again. At least one of its schemas describes it: any object may be the report of a screen or of a
/// comparison, a report of settings too, so that `oneOf`, of which exactly one holds, would refuse those.
pub(crate) enum AnyReport {}

/// A schema by its name, with what is reported by it.
fn described<T: ToSchema>(text: &str) -> RefBuilder {
    RefBuilder::new().ref_location_from_schema_name(T::name()).description(Some(text))
}

impl PartialSchema for AnyReport {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new()
            .description(Some("A screen, or a comparison of congestion controls or stacks, as the command prints it."))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(true)));
        let proof = "A change that is in force, with and without it: `windtunnel settings prove --json`.";
        AnyOfBuilder::new()
            .item(described::<TuneReport>("Settings in rounds."))
            .item(described::<TrafficReport>("Settings of a server's own connections."))
            .item(described::<ProveAnswer>(proof))
            .item(any)
            .description(Some("An experiment, assessed again: the schema of what it is depends on what it was."))
            .into()
    }
}

impl ToSchema for AnyReport {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Reported")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        fn push<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            schemas.push((T::name().into(), T::schema()));
            T::schemas(schemas);
        }
        push::<TuneReport>(schemas);
        push::<TrafficReport>(schemas);
        push::<ProveAnswer>(schemas);
    }
}
