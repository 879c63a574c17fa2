use wt_wire::{OverheadLayer, Part};

/// The frame as boxes in the order of the wire, at most so many columns wide.
pub(super) fn boxes(layers: &[OverheadLayer], width: usize) -> String {
    let mut text = String::new();
    let mut row: Vec<&OverheadLayer> = Vec::new();
    for piece in layers {
        let wide = row.iter().copied().chain([piece]).map(|piece| inner(piece) + 1).sum::<usize>() + 1;
        if wide > width && !row.is_empty() {
            row_of_boxes(&mut text, &row);
            row.clear();
        }
        row.push(piece);
    }
    row_of_boxes(&mut text, &row);
    text
}

/// Columns between the walls of a box.
fn inner(piece: &OverheadLayer) -> usize {
    name(piece).chars().count().max(piece.len.to_string().len()) + 2
}

fn name(piece: &OverheadLayer) -> String {
    // A trailer that has the name of its header: AAL5 and FCS have none.
    let has_header = !matches!(piece.name, "AAL5" | "FCS" | "gap");
    if piece.part == Part::Trailer && has_header { format!("{} end", piece.name) } else { piece.name.to_owned() }
}

fn row_of_boxes(text: &mut String, row: &[&OverheadLayer]) {
    let line = |left: &str, middle: &str, right: &str| {
        let parts: Vec<String> = row.iter().map(|piece| "─".repeat(inner(piece))).collect();
        format!("  {left}{}{right}\n", parts.join(middle))
    };
    let cells = |of: &dyn Fn(&OverheadLayer) -> String| {
        let parts: Vec<String> = row.iter().map(|piece| format!("{:^1$}", of(piece), inner(piece))).collect();
        format!("  │{}│\n", parts.join("│"))
    };
    text.push_str(&line("┌", "┬", "┐"));
    text.push_str(&cells(&name));
    text.push_str(&cells(&|piece| piece.len.to_string()));
    text.push_str(&line("└", "┴", "┘"));
}
