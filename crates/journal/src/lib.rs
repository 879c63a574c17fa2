//! Every trial ever run, with all that was in force.
