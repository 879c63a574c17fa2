use std::io::Read as _;
use wt_problem::Problem;

/// A seed for the order of trials, which the operating system draws: no one order is run by everybody. It has 53 bits, so
/// that every reader of JSON keeps it exactly.
///
/// # Errors
/// An environment problem where the system gives no random numbers.
pub fn draw_order_seed() -> Result<u64, Problem> {
    let mut bytes = [0; 8];
    let drawn = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    drawn.map_err(|error| {
        Problem::environment(format!("the operating system gives no random numbers: {error}"))
            .hint("--order-seed N draws the order of the trials from N")
    })?;
    Ok(u64::from_ne_bytes(bytes) >> 11)
}
