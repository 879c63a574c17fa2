//! Going on with what has stopped: what is left open is looked at again, and what isn't is known beforehand.

use super::*;

#[test]
fn who_goes_on_where_all_others_were_left_out_by_estimate_rules_out_their_gains_or_shows_one() {
    let left_out = || {
        let mut experiment = Experiment::new(budget(3, 120)).unwrap();
        drive(&mut experiment, &[0.5, 0.0, 0.1], 0.05, &mut rng(2));
        let a = experiment.assessment();
        assert_eq!((a.stop, a.gain_at_most, a.may_go_on), (Some(StopReason::OnlyCurrentLeft), None, true));
        experiment.resume(Some(a.trials + 120));
        assert_eq!((experiment.stop_reason(), experiment.planned()), (None, vec![0, 1, 2]));
        experiment
    };
    let mut experiment = left_out();
    drive(&mut experiment, &[0.5, 0.0, 0.1], 0.05, &mut rng(3));
    let a = experiment.assessment();
    assert_eq!((a.kind, a.stop), (VerdictKind::NoDifference, Some(StopReason::OnlyCurrentLeft)));
    assert!(a.gain_at_most.unwrap() < 0.05_f64.ln_1p() && !a.may_go_on && a.is_over() && a.rounds < 20, "{a:?}");
    // It isn't run for longer than that takes.
    experiment.resume(None);
    assert_eq!(experiment.stop_reason(), Some(StopReason::OnlyCurrentLeft));
    // What was left out too early may turn out to be faster.
    let mut experiment = left_out();
    drive(&mut experiment, &[0.5, 0.0, 1.5], 0.05, &mut rng(3));
    let a = experiment.assessment();
    assert_eq!((a.kind, a.pick), (VerdictKind::Faster, 2));
}

#[test]
fn whether_anything_goes_on_with_it_is_known_before_somebody_tries() {
    let (mut open, mut over) = (0, 0);
    for seed in 0..40 {
        for levels in [Vec::new(), vec![1, 2]] {
            let plateau = Some(PlateauConfig::new(levels)).filter(|plateau| !plateau.levels.is_empty());
            let mut experiment = Experiment::new(Config { plateau, ..budget(3, 24) }).unwrap();
            let effects = [[0.5, 0.0, 0.1], [0.0; 3], [0.0, 0.9, 0.1], [0.1, 0.0, 0.09]][seed as usize % 4];
            drive(&mut experiment, &effects, 0.05, &mut rng(seed));
            let a = experiment.assessment();
            experiment.resume(None);
            assert_eq!(experiment.stop_reason().is_none(), a.may_go_on, "{seed}: {:?}", a.stop);
            open += usize::from(a.may_go_on);
            over += usize::from(!a.may_go_on);
        }
    }
    assert!(open >= 10 && over >= 10, "{open} {over}");
}
