//! Designs, the e-process, blocked models and verdicts: is the difference real?
