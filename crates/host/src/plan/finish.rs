use crate::change::{Plan, RouteChange};
use crate::lasting;
use crate::read::Survey;
use crate::snapshot::steps;

/// Fills in what follows from the wanted state.
pub(super) fn finish(mut plan: Plan, survey: &Survey) -> Plan {
    let names = survey.names();
    plan.actions = steps(&survey.snapshot, &plan.wanted, &plan.scope);
    let back = steps(&plan.wanted, &survey.snapshot, &plan.scope);
    plan.commands = plan.actions.iter().map(|action| action.command(&names)).collect();
    plan.revert_commands = back.iter().map(|action| action.command(&names)).collect();
    plan.routes = RouteChange::between(&survey.snapshot, &plan.wanted, &plan.scope, &plan.changes);
    plan.lasting = lasting::of_plan(&plan, survey);
    plan
}
