use wt_problem::{Fault, Problem};
use wt_trial::TunnelError;

/// What to say when the tunnel can't run a trial at all.
pub fn tunnel_problem(error: &TunnelError) -> Problem {
    match error {
        TunnelError::Broken { .. } => Problem::internal(error.to_string()),
        TunnelError::RemoteHost { advice: Some(advice), .. } => {
            Problem::new(Fault::Remote, error.to_string()).because(advice.cause).hint(advice.remedy)
        }
        TunnelError::RemoteHost { .. } => Problem::new(Fault::Remote, error.to_string()),
        TunnelError::Lost { here, .. } => {
            let fault = if *here { Fault::Environment } else { Fault::Remote };
            Problem::new(fault, error.to_string())
                .hint("windtunnel journal list shows what was kept; once the network is back, --resume goes on with it")
        }
        TunnelError::Environment { why, remedy } => Problem::environment(why).hint(remedy.as_deref().unwrap_or(
            "knobs that one socket takes need no privilege: rwin, mtu, mss, ttl; for uploads cc and sndbuf",
        )),
        _ => Problem::usage(error.to_string()),
    }
}
