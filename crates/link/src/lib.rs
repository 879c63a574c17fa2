//! A one-way path as a chain of stages, without I/O and without a clock.
