use crate::cli::forms::give;
use crate::edge::{Outcome, say};
use wt_setup::controls::{ControlShown, show};

/// Runs the command.
pub(super) fn run(name: &str, as_json: bool) -> Outcome {
    give(&show(name)?, as_json, |shown| match (&shown.variant, &shown.kernel_name) {
        (Some(variant), Some(kernel_name)) => ours(shown, variant, kernel_name),
        _ => kernel(shown),
    })
}

fn kernel(shown: &ControlShown) {
    say!("{}: {}\n", shown.name, shown.title);
    shown.lines.iter().for_each(|line| say!("  {line}"));
    say!("\nSource: {}", shown.source);
    let there = shown.available;
    let state = if there { "The kernel has it now." } else { "The kernel hasn't got it now: modprobe may bring it." };
    say!("{state}");
}

fn ours(shown: &ControlShown, variant: &str, kernel_name: &str) {
    let name = wt_setup::controls::choice(&format!("{}@{variant}", shown.name));
    let name = name.map_or_else(|_| shown.name.to_owned(), |choice| choice.to_string());
    say!("{name}: {}\n", shown.title);
    shown.lines.iter().for_each(|line| say!("  {line}"));
    say!("\nParameters (of {variant}):");
    for parameter in &shown.parameters {
        say!("  {:<16} {:<8} {} (default {})", parameter.name, parameter.value, parameter.help, parameter.default);
    }
    if shown.variants.len() > 1 {
        say!("\nVariants:");
        shown.variants.iter().for_each(|variant| say!("  {:<16} {}", variant.name, variant.help));
    }
    say!("\nSource: {}", shown.source);
    say!("In the kernel it is called {kernel_name}.");
}
