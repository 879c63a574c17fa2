//! What a sheet is: levels in blocks, groups, a 2 × 2, or a list of hosts.

use super::error::{ColumnRole, SheetError};
use super::names::{BetterDirection, GOOD, TIMES, has_word, words};
use super::sheet::Sheet;
use super::trials::ARM;
use crate::classic::{Better, Square, Table, TableError};
use std::collections::HashMap;

/// Words in a column's name that make it an outcome.
const OUTCOMES: [&str; 12] = [
    "rate",
    "goodput",
    "throughput",
    "bandwidth",
    "speed",
    "mbps",
    "kbps",
    "bps",
    "load",
    "time",
    "latency",
    "duration",
];
/// Columns of our own tables of trials that are no settings, whatever begins with `started` besides; and those that name
/// settings.
const OF_TRIALS: [&str; 4] = ["order", "trial", "elapsed_us", "bytes"];
const SETTINGS: [&str; 2] = ["label", "settings"];
/// Words that make a column a block.
const BLOCKS: [&str; 9] = ["block", "series", "round", "run", "day", "session", "replicate", "rep", "pass"];
/// So many columns that take no part are told one by one.
const SINGLY: usize = 4;
/// More levels than this are a list, not an experiment.
const MOST_LEVELS: usize = 64;

/// The columns that somebody named, and what is good; what isn't named is found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedColumns {
    /// The columns of outcomes; several if the series stand side by side.
    pub values: Vec<String>,
    /// The column of settings that are compared.
    pub factor: Option<String>,
    /// The column of blocks.
    pub block: Option<String>,
    /// Whether large outcomes are good or small ones.
    pub better: Option<Better>,
}

/// What the sheet is, with what was left out of it.
#[derive(Debug)]
pub(super) struct Design {
    pub(super) kind: Kind,
    pub(super) value: String,
    pub(super) better: Better,
    pub(super) notes: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Every level once in every block; the mean where each is there more than once.
    Blocked { factor: String, block: String, table: Table },
    /// Levels without blocks, as often as they come.
    Grouped { factor: String, groups: Vec<(String, Vec<f64>)> },
    /// Two factors of two levels, each combination once in every block; without a column of blocks there is one.
    TwoByTwo { factors: [(String, [String; 2]); 2], block: Option<String>, blocks: Vec<(String, Square)> },
    /// A list with other figures beside the outcome.
    Listing { label: String, rows: Vec<(String, f64)>, figures: Vec<(String, Vec<f64>)> },
}

/// Finds out what the sheet is.
pub(super) fn recognise(sheet: &Sheet, named: &NamedColumns) -> Result<Design, SheetError> {
    let values = values(sheet, named)?;
    let value = values.iter().map(|v| sheet.columns[*v].name.clone()).collect::<Vec<_>>().join(", ");
    let direction = BetterDirection::of(values.iter().map(|v| sheet.columns[*v].name.as_str()));
    let better = named.better.unwrap_or(direction.better);
    let (kind, mut notes) =
        if values.len() > 1 { wide(sheet, named, &values)? } else { long(sheet, named, values[0])? };
    if named.better.is_none() && !direction.is_plain && !matches!(kind, Kind::Listing { .. }) {
        notes.push(assumed(if values.len() == 1 { &value } else { "in each of the columns" }, better));
    }
    Ok(Design { kind, value, better, notes })
}

/// What was taken for good, where the name leaves that open.
fn assumed(value: &str, better: Better) -> String {
    let (counts, other) = match better {
        Better::Higher => ("larger", "lower"),
        Better::Lower => ("smaller", "higher"),
    };
    format!("{counts} {value} counts as better (otherwise --{other}-is-better)")
}

/// The columns of outcomes.
fn values(sheet: &Sheet, named: &NamedColumns) -> Result<Vec<usize>, SheetError> {
    if !named.values.is_empty() {
        let found: Vec<usize> =
            named.values.iter().map(|name| sheet.find(ColumnRole::Value, name)).collect::<Result<_, _>>()?;
        // The same series once more is no further measurement.
        let twice = found.iter().enumerate().find(|(at, column)| found[..*at].contains(column));
        if let Some((_, column)) = twice {
            return Err(SheetError::ValueTwice { file: sheet.file(), column: sheet.columns[*column].name.clone() });
        }
        return Ok(found);
    }
    let taken = |i: usize| {
        let name = Some(&sheet.columns[i].name);
        named.factor.as_ref() == name || named.block.as_ref() == name
    };
    let free: Vec<usize> = (0..sheet.columns.len()).filter(|i| !taken(*i)).collect();
    if named.block.is_none()
        && let Some(group) = wide_group(sheet, &free)
    {
        return Ok(group);
    }
    let pick = |is: &dyn Fn(usize) -> bool| free.iter().copied().filter(|i| is(*i)).collect::<Vec<usize>>();
    let named_like = |known: &[&str]| pick(&|i| has_word(&sheet.columns[i].name, known));
    let of_unit = || named_like(&[&GOOD[..], &TIMES[..]].concat());
    // Nothing else can be what was measured where all other columns have words.
    let figures = || pick(&|i| sheet.is_numeric(i) && !has_word(&sheet.columns[i].name, &BLOCKS));
    let named_so = [named_like(&OUTCOMES), of_unit()].into_iter().find(|found| !found.is_empty());
    let several = named_so.is_some();
    match named_so.unwrap_or_else(figures)[..] {
        [one] => Ok(vec![one]),
        _ => Err(SheetError::OutcomeUnclear { file: sheet.file(), several, columns: sheet.names() }),
    }
}

/// Columns that differ in one part of their names only: series1, series2; host_a_rate, host_b_rate.
fn wide_group(sheet: &Sheet, free: &[usize]) -> Option<Vec<usize>> {
    let name = |i: &usize| sheet.columns[*i].name.as_str();
    let stem = |i: &usize| name(i).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    // Bare numbers are names of series where something else has a name in letters.
    let lettered = sheet.columns.iter().any(|column| column.name.chars().any(char::is_alphabetic));
    let numbered = |i: &usize| stem(i) != name(i) && (lettered || !stem(i).is_empty());
    let alike = |a: &usize, b: &usize| {
        let (x, y) = (words(name(a)), words(name(b)));
        let differing = x.iter().zip(&y).filter(|(x, y)| x != y).count();
        let shares_outcome = has_word(name(a), &OUTCOMES) && has_word(name(b), &OUTCOMES);
        x.len() == y.len() && x.len() > 1 && differing == 1 && shares_outcome
    };
    for first in free {
        let group: Vec<usize> = free
            .iter()
            .copied()
            .filter(|other| {
                first == other
                    || (numbered(first) && numbered(other) && stem(first) == stem(other))
                    || alike(first, other)
            })
            .collect();
        if group.len() > 1 {
            return Some(group);
        }
    }
    None
}

type RecognisedDesign = (Kind, Vec<String>);

/// Levels in rows, blocks in columns.
fn wide(sheet: &Sheet, named: &NamedColumns, values: &[usize]) -> Result<RecognisedDesign, SheetError> {
    let factor = match &named.factor {
        Some(name) => sheet.find(ColumnRole::Factor, name)?,
        None => (0..sheet.columns.len())
            .find(|i| !values.contains(i))
            .ok_or_else(|| SheetError::NoFactor { file: sheet.file(), several: true })?,
    };
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (row, level) in sheet.cells(factor).iter().enumerate() {
        if let Some(before) = seen.insert(level, row) {
            let (level, before) = (level.clone(), sheet.line(before));
            return Err(SheetError::LevelTwice { cell: sheet.at(row, factor), level, before });
        }
    }
    let columns: Vec<Vec<f64>> = values.iter().map(|v| sheet.outcomes(*v)).collect::<Result<_, _>>()?;
    let cells = (0..sheet.rows()).flat_map(|row| columns.iter().map(move |c| c[row])).collect();
    let blocks = values.iter().map(|v| sheet.columns[*v].name.clone()).collect();
    let block = if sheet.columns[values[0]].name.starts_with("series") { "series" } else { "columns" };
    let table = table(sheet, factor, blocks, sheet.cells(factor).to_vec(), cells)?;
    let factor_name = sheet.columns[factor].name.clone();
    let used: Vec<usize> = values.iter().copied().chain([factor]).collect();
    Ok((Kind::Blocked { factor: factor_name, block: block.to_owned(), table }, unused(sheet, &used)))
}

fn table(
    sheet: &Sheet,
    factor: usize,
    blocks: Vec<String>,
    levels: Vec<String>,
    cells: Vec<f64>,
) -> Result<Table, SheetError> {
    if levels.len() > MOST_LEVELS {
        return Err(too_many_levels(sheet, factor));
    }
    Table::new(levels, blocks, cells).map_err(|e| match e {
        TableError::OneLevel => one_level(sheet, factor),
        source => SheetError::Table { file: sheet.file(), source },
    })
}

fn one_level(sheet: &Sheet, factor: usize) -> SheetError {
    SheetError::OneLevel { cell: sheet.at(0, factor), level: sheet.cells(factor)[0].clone() }
}

fn too_many_levels(sheet: &Sheet, factor: usize) -> SheetError {
    let column = sheet.columns[factor].name.clone();
    SheetError::TooManyLevels { file: sheet.file(), column, most: MOST_LEVELS }
}

/// Which columns don't take part.
fn unused(sheet: &Sheet, used: &[usize]) -> Vec<String> {
    let names = (0..sheet.columns.len()).filter(|i| !used.contains(i)).map(|i| match sheet.columns[i].name.as_str() {
        "" => format!("{} (without a name)", i + 1),
        name => name.to_owned(),
    });
    let names: Vec<String> = names.collect();
    if names.len() > SINGLY {
        return vec![format!("columns {} take no part", names.join(", "))];
    }
    names.into_iter().map(|name| format!("column {name} takes no part")).collect()
}

/// One outcome in each row.
fn long(sheet: &Sheet, named: &NamedColumns, value: usize) -> Result<RecognisedDesign, SheetError> {
    let outcomes = sheet.outcomes(value)?;
    let block = match &named.block {
        Some(name) => Some(sheet.find(ColumnRole::Block, name)?),
        None => (0..sheet.columns.len()).find(|i| *i != value && has_word(&sheet.columns[*i].name, &BLOCKS)),
    };
    let varies = |i: &usize| sheet.cells(*i).iter().any(|cell| *cell != sheet.cells(*i)[0]);
    let others: Vec<usize> = (0..sheet.columns.len()).filter(|i| *i != value && Some(*i) != block).collect();
    if named.factor.is_none() {
        if let Some(found) = two_by_two(sheet, &others, block, &outcomes) {
            return found;
        }
        if let Some(kind) = listing(sheet, &others, &outcomes).filter(|_| block.is_none()) {
            return Ok((kind, Vec::new()));
        }
    }
    let factor = match &named.factor {
        Some(name) => sheet.find(ColumnRole::Factor, name)?,
        None => {
            let name = |i: &usize| sheet.columns[*i].name.as_str();
            let ours = others.iter().any(|i| name(i) == ARM);
            let named = SETTINGS.iter().filter(|_| ours).filter_map(|known| others.iter().find(|i| name(i) == *known));
            let free = others.iter().filter(|i| !OF_TRIALS.contains(&name(i)) && !name(i).starts_with("started"));
            let likely: Vec<usize> = named.chain(free).copied().collect();
            let first = likely.iter().chain(&others).copied().find(varies).or(others.first().copied());
            first.ok_or_else(|| SheetError::NoFactor { file: sheet.file(), several: false })?
        }
    };
    let used: Vec<usize> = [value, factor].into_iter().chain(block).collect();
    let mut notes = unused(sheet, &used);
    let kind = match block {
        Some(block) => in_blocks(sheet, factor, block, &outcomes, &mut notes)?,
        None => in_groups(sheet, factor, &outcomes)?,
    };
    Ok((kind, notes))
}

/// The different cells of a column in the order in which they come, and for each row which it is.
fn coded(sheet: &Sheet, column: usize) -> (Vec<String>, Vec<usize>) {
    let mut codes: HashMap<&str, usize> = HashMap::new();
    let mut levels = Vec::new();
    let mut rows = Vec::with_capacity(sheet.rows());
    for cell in sheet.cells(column) {
        let next = codes.len();
        let code = *codes.entry(cell).or_insert(next);
        if code == next {
            levels.push(cell.clone());
        }
        rows.push(code);
    }
    (levels, rows)
}

fn in_groups(sheet: &Sheet, factor: usize, outcomes: &[f64]) -> Result<Kind, SheetError> {
    let (levels, rows) = coded(sheet, factor);
    if levels.len() < 2 {
        return Err(one_level(sheet, factor));
    }
    if levels.len() > MOST_LEVELS {
        return Err(too_many_levels(sheet, factor));
    }
    let mut groups: Vec<(String, Vec<f64>)> = levels.into_iter().map(|level| (level, Vec::new())).collect();
    for (code, y) in rows.into_iter().zip(outcomes) {
        groups[code].1.push(*y);
    }
    Ok(Kind::Grouped { factor: sheet.columns[factor].name.clone(), groups })
}

/// Every level once in every block, or each as often; blocks that lack one are left out.
fn in_blocks(
    sheet: &Sheet,
    factor: usize,
    block: usize,
    y: &[f64],
    notes: &mut Vec<String>,
) -> Result<Kind, SheetError> {
    let (levels, level_of) = coded(sheet, factor);
    let (blocks, block_of) = coded(sheet, block);
    if levels.len() < 2 {
        return Err(one_level(sheet, factor));
    }
    // Before the grid is laid out: it could be far larger than the file.
    if levels.len() > MOST_LEVELS {
        return Err(too_many_levels(sheet, factor));
    }
    let mut grid: Vec<Vec<usize>> = vec![Vec::new(); levels.len() * blocks.len()];
    for row in 0..sheet.rows() {
        grid[block_of[row] * levels.len() + level_of[row]].push(row);
    }
    let in_block = |b: usize| &grid[b * levels.len()..(b + 1) * levels.len()];
    let complete: Vec<usize> = (0..blocks.len()).filter(|b| in_block(*b).iter().all(|rows| !rows.is_empty())).collect();
    for b in &complete {
        let fewest = in_block(*b).iter().map(Vec::len).min().unwrap_or(0);
        if let Some(level) = in_block(*b).iter().position(|rows| rows.len() > fewest) {
            let rows = &in_block(*b)[level];
            return Err(SheetError::LevelTwiceInBlock {
                cell: sheet.at(rows[fewest], factor),
                level: levels[level].clone(),
                block: blocks[*b].clone(),
                before: sheet.line(rows[0]),
            });
        }
    }
    let repeated = complete.iter().filter(|b| in_block(**b)[0].len() > 1).count();
    if repeated > 0 {
        let of = format!("{repeated} of {} blocks", blocks.len());
        notes.push(format!("in {of} each level stands more than once, as often as the others: its mean counts"));
    }
    if complete.is_empty() {
        return Err(SheetError::NoWholeBlock { file: sheet.file(), block: sheet.columns[block].name.clone() });
    }
    if complete.len() < blocks.len() {
        notes.push(format!(
            "{} of {} blocks lack a level and are left out",
            blocks.len() - complete.len(),
            blocks.len()
        ));
    }
    let cells = (0..levels.len())
        .flat_map(|level| complete.iter().map(move |b| (level, *b)))
        .map(|(level, b)| {
            let rows = &in_block(b)[level];
            rows.iter().map(|row| y[*row]).sum::<f64>() / rows.len() as f64
        })
        .collect();
    let names = complete.iter().map(|b| blocks[*b].clone()).collect();
    let table = table(sheet, factor, names, levels, cells)?;
    let (factor, block) = (sheet.columns[factor].name.clone(), sheet.columns[block].name.clone());
    Ok(Kind::Blocked { factor, block, table })
}

/// Two columns of two levels: every combination once, or once in every block.
fn two_by_two(
    sheet: &Sheet,
    others: &[usize],
    block: Option<usize>,
    y: &[f64],
) -> Option<Result<RecognisedDesign, SheetError>> {
    let [a, b] = *others else { return None };
    let ((first, in_first), (second, in_second)) = (coded(sheet, a), coded(sheet, b));
    let (Ok(first), Ok(second)) = (<[String; 2]>::try_from(first), <[String; 2]>::try_from(second)) else {
        return None;
    };
    if block.is_none() && y.len() != 4 {
        return None;
    }
    let (names, in_block) = block.map_or_else(|| (vec![String::new()], vec![0; y.len()]), |b| coded(sheet, b));
    let mut rows: Vec<[[Option<usize>; 2]; 2]> = vec![[[None; 2]; 2]; names.len()];
    for row in 0..y.len() {
        let cell = &mut rows[in_block[row]][in_first[row]][in_second[row]];
        if let Some(before) = cell.replace(row) {
            // Without blocks these are no 2 × 2 but measurements of two factors of which one is compared.
            block?;
            let (cell, before) = (sheet.at(row, a), sheet.line(before));
            return Some(Err(SheetError::CombinationTwice { cell, before }));
        }
    }
    let whole = |square: &[[Option<usize>; 2]; 2]| square.iter().flatten().all(Option::is_some);
    let squares = names.into_iter().zip(rows).filter(|(_, square)| whole(square));
    let blocks: Vec<(String, Square)> = squares
        .map(|(name, square)| (name, square.map(|row| row.map(|cell| cell.map_or(f64::NAN, |r| y[r])))))
        .collect();
    let all = in_block.into_iter().max().map_or(0, |last| last + 1);
    // Where no block holds all four, each factor may still be compared by itself.
    let lacking = all - blocks.len();
    if blocks.is_empty() {
        return None;
    }
    let note = (lacking > 0).then(|| format!("{lacking} of {all} blocks lack a combination and are left out"));
    let name = |i: usize| sheet.columns[i].name.clone();
    let kind = Kind::TwoByTwo { factors: [(name(a), first), (name(b), second)], block: block.map(name), blocks };
    Some(Ok((kind, note.into_iter().collect())))
}

/// Text in the first column that hardly repeats, with an outcome each.
fn listing(sheet: &Sheet, others: &[usize], y: &[f64]) -> Option<Kind> {
    let label = others.iter().copied().find(|i| !sheet.is_numeric(*i))?;
    let (labels, _) = coded(sheet, label);
    if y.len() < 4 || labels.len() * 2 <= y.len() {
        return None;
    }
    let rows = sheet.cells(label).iter().cloned().zip(y.iter().copied()).collect();
    let figures =
        others.iter().filter_map(|i| Some((sheet.columns[*i].name.clone(), sheet.figures(*i).ok()?))).collect();
    Some(Kind::Listing { label: sheet.columns[label].name.clone(), rows, figures })
}
