/// A congestion control that was loaded into the kernel for the trials, because that needs rights which they don't have.
pub trait LoadedControl: std::fmt::Debug {
    /// What the kernel calls it.
    fn kernel_name(&self) -> &str;
    /// Seeds its random choices for the next connection.
    fn seed(&self, seed: u64);
    /// How often it has repaired impossible values so far: the kernel had skipped a program of it.
    fn guard_hits(&self) -> u64;
}
