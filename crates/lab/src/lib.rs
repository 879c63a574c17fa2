//! Rehearsal on real kernels: hosts in namespaces, joined by an emulated path.
