use crate::edge::Failure;
use clap::Args;
use std::fmt::Write as _;
use wt_lab::Scenario;
use wt_units::{BitsPerSecond, Bytes, Ratio, format_duration, parse_duration};

/// A path of one link, described on the command line.
#[derive(Debug, Args, Clone)]
pub(crate) struct PathFlags {
    /// Rate of the link towards the client, of bits on the wire
    #[arg(long, value_name = "RATE", conflicts_with = "path", required_unless_present = "path")]
    rate: Option<BitsPerSecond>,
    /// Rate the other way, if it is another
    #[arg(long, value_name = "RATE", requires = "rate")]
    up_rate: Option<BitsPerSecond>,
    /// Round-trip time of the idle path, without serialisation
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = duration, default_value = "40ms")]
    rtt: std::time::Duration,
    /// Share of the packets to the client that is lost at random
    #[arg(long, value_name = "SHARE", requires = "rate", default_value = "0%")]
    loss: Ratio,
    /// What the queue in front of the link holds [default: the bandwidth-delay product, at least ten packets]
    #[arg(long, value_name = "SIZE", requires = "rate")]
    queue: Option<Bytes>,
    /// What a packet occupies on the link: `windtunnel overhead --list` names them
    #[arg(long, value_name = "STACK", requires = "rate", default_value = "raw")]
    framing: String,
    /// The largest packet that the link takes
    #[arg(long, value_name = "SIZE", requires = "rate", default_value = "1500")]
    mtu: Bytes,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

impl PathFlags {
    /// The path, as a scenario.
    ///
    /// # Errors
    /// A usage failure that names what is wrong.
    pub(crate) fn scenario(&self) -> Result<Scenario, Failure> {
        let rate = self.rate.unwrap_or(BitsPerSecond(0));
        if rate.get() == 0 {
            return Err(Failure::usage("--rate 0: a link without a rate carries nothing")
                .hint("name what the link carries, such as --rate 8mbit"));
        }
        if self.loss.get() >= 1.0 {
            return Err(Failure::usage("--loss 100%: where everything is lost there is nothing to predict"));
        }
        let up = self.up_rate.unwrap_or(rate);
        let product = (rate * self.rtt).get();
        let queue = self.queue.unwrap_or(Bytes(product.max(10 * self.mtu.get())));
        let mut text = format!(
            "title = \"{} with an RTT of {}\"\nsource = \"the command line\"\n[client]\nmtu = {mtu}\n[server]\nmtu = {mtu}\n",
            rate,
            format_duration(self.rtt),
            mtu = self.mtu.get()
        );
        let _ = writeln!(text, "[[link]]\nname = \"link\"\nmtu = {}\nframing = \"{}\"", self.mtu.get(), self.framing);
        for (direction, rate, loss) in [("down", rate, self.loss.get()), ("up", up, 0.0)] {
            let delay = self.rtt.as_nanos() as f64 / 2e3;
            let kbit = rate.get() as f64 / 1e3;
            let _ = write!(
                text,
                "{direction} = {{ rate = \"{kbit}kbit\", delay = \"{delay}us\", queue = \"{}\"",
                queue.get()
            );
            if loss > 0.0 {
                let _ = write!(text, ", loss = \"{}%\"", loss * 100.0);
            }
            let _ = writeln!(text, " }}");
        }
        let scenario = Scenario::parse("command-line", &text);
        scenario
            .map_err(|error| Failure::usage(error.to_string()).because("the path on the command line makes no sense"))
    }
}
