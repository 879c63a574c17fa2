use super::text::TableText;
use super::{Shard, SweepRequest};
use crate::predict::{LinkRequest, PathRequest, PredictRequest};
use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord, Trim};
use ring::digest::{SHA256, digest};
use std::io::Read;
use std::str::FromStr;
use wt_problem::Problem;
use wt_trial::Direction;
use wt_units::parse_duration;

/// The columns that are a question, in the words of the flags; others are kept as they are.
pub const COLUMNS: [&str; 17] = [
    "path",
    "link_rate",
    "up_rate",
    "rtt",
    "loss",
    "queue",
    "encap",
    "mtu",
    "knobs",
    "levels",
    "set",
    "workload",
    "size",
    "trial",
    "direction",
    "seeds",
    "seed",
];
/// Other names of columns.
const ALIASES: [(&str, &str); 3] = [("rate", "link_rate"), ("framing", "encap"), ("time", "trial")];
/// Columns that describe a link.
const OF_LINK: [&str; 7] = ["link_rate", "up_rate", "rtt", "loss", "queue", "encap", "mtu"];
/// A column's name that is so near to one of ours is a slip.
const SLIP: f64 = 0.8;
/// Seeds stay below this: every reader of JSON and CSV keeps them exactly.
const SEED_BITS: u32 = 48;

/// A row's number, from 1, and its cells.
pub(super) type TableRow = (u64, StringRecord);

/// The table as CSV: its first line names the columns.
pub(super) fn reader<R: Read>(table: R) -> Reader<TableText<R>> {
    ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(TableText::new(table))
}

/// The rows of one shard.
pub(super) fn records<R: Read>(
    reader: &mut Reader<R>,
    shard: Shard,
) -> impl Iterator<Item = Result<TableRow, Problem>> + '_ {
    let mut number = 0;
    let mut bytes = ByteRecord::new();
    std::iter::from_fn(move || {
        loop {
            match reader.read_byte_record(&mut bytes) {
                Ok(false) => return None,
                Ok(true) => number += 1,
                Err(error) => return Some(Err(unreadable(&error))),
            }
            if shard.has(number) {
                let record = StringRecord::from_byte_record_lossy(bytes.clone());
                return Some(Ok((number, record)));
            }
        }
    })
}

fn unreadable(error: &csv::Error) -> Problem {
    Problem::usage(format!("can't read the table: {error}"))
        .hint("a table is CSV with commas, the same number of cells in every row, and the columns' names above")
}

/// The columns' names.
pub(super) struct Header {
    pub(super) names: Vec<String>,
    /// For each column which of [`COLUMNS`] it is.
    meanings: Vec<Option<&'static str>>,
}

impl Header {
    pub(super) fn read<R: Read>(reader: &mut Reader<R>) -> Result<Self, Problem> {
        let names: Vec<String> =
            reader.headers().map_err(|error| unreadable(&error))?.iter().map(str::to_owned).collect();
        check_separator(&names)?;
        let meanings = names.iter().map(|name| meaning(name)).collect::<Result<Vec<_>, _>>()?;
        let known: Vec<&str> = meanings.iter().flatten().copied().collect();
        if known.is_empty() {
            return Err(Problem::usage("no column of the table describes a path or a setting")
                .hint(format!("name columns in the first line; known are {}", COLUMNS.join(", "))));
        }
        let twice = |names: &[&str]| {
            names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)).map(|at| (*at.1).to_owned())
        };
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(name) = twice(&known).or_else(|| twice(&named)) {
            return Err(Problem::usage(format!("the table has two columns {name:?}")).hint("leave one of them out"));
        }
        Ok(Self { names, meanings })
    }

    /// Columns that are no question.
    pub(super) fn kept(&self) -> Vec<String> {
        let without = self.names.iter().zip(&self.meanings).filter(|(_, meaning)| meaning.is_none());
        without.map(|(name, _)| name.clone()).collect()
    }

    /// What a row asks.
    pub(super) fn question(&self, cells: &StringRecord, request: &SweepRequest) -> Result<PredictRequest, Problem> {
        let cell = |name: &str| {
            let at = self.meanings.iter().position(|meaning| *meaning == Some(name))?;
            cells.get(at).map(str::trim).filter(|text| !text.is_empty())
        };
        let mut question = request.usual.clone();
        if let Some(path) = path_of(&cell, request)? {
            question.path = path;
        }
        if let Some(knobs) = each(cell("knobs"), "knobs")? {
            question.knobs = Some(knobs);
        }
        if let Some(levels) = split(cell("levels"), "levels", &[' ', ';'])? {
            question.levels = levels;
        }
        if let Some(set) = each(cell("set"), "set")? {
            (question.set, question.knobs, question.levels) = (set, None, Vec::new());
        }
        if let Some(workload) = parsed(cell("workload"), "workload")? {
            question.workload = workload;
        }
        if let Some(size) = parsed(cell("size"), "size")? {
            (question.size, question.time) = (Some(size), None);
        }
        if let Some(text) = cell("trial") {
            question.time = Some(parse_duration(text).map_err(|error| in_column("trial", text, &error))?);
            if cell("size").is_none() {
                question.size = None;
            }
        }
        question.direction = match cell("direction") {
            None => question.direction,
            Some("down") => Direction::Down,
            Some("up") => Direction::Up,
            Some(text) => return Err(in_column("direction", text, &"down or up")),
        };
        if let Some(seeds) = parsed(cell("seeds"), "seeds")? {
            question.seeds = seeds;
        }
        question.seed = match parsed(cell("seed"), "seed")? {
            Some(seed) => seed,
            None => seed_of(&question),
        };
        question.check()?;
        question.path.scenario()?;
        Ok(question)
    }
}

/// Refuses a table whose cells are apart, but not by commas: its first line is one name.
fn check_separator(names: &[String]) -> Result<(), Problem> {
    let [one] = names else { return Ok(()) };
    let between = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")];
    match between.iter().find(|(mark, _)| one.contains(*mark)) {
        Some((_, marks)) => Err(Problem::usage(format!("the cells of the table are separated by {marks}"))
            .hint("write commas between them; lists within a cell may have semicolons")),
        None => Ok(()),
    }
}

/// Which question a column's name is; nothing where it is none.
fn meaning(name: &str) -> Result<Option<&'static str>, Problem> {
    let word = name.trim_start_matches("--").to_ascii_lowercase().replace([' ', '-'], "_");
    let word = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word.as_str(), |(_, name)| name);
    if let Some(column) = COLUMNS.into_iter().find(|column| *column == word) {
        return Ok(Some(column));
    }
    match COLUMNS.into_iter().find(|column| column.len() > 3 && strsim::jaro_winkler(column, word) >= SLIP + 0.1) {
        Some(near) => Err(Problem::usage(format!("the table has a column {name:?}; is {near:?} meant?"))
            .hint("if it is a column of your own, give it another name; such columns are kept as they are")),
        None => Ok(None),
    }
}

/// Where a row asks: a scenario, a link, or nothing, where the flags say it for all rows.
fn path_of<'a>(cell: &dyn Fn(&str) -> Option<&'a str>, request: &SweepRequest) -> Result<Option<PathRequest>, Problem> {
    let of_link = OF_LINK.into_iter().find(|name| cell(name).is_some());
    if let Some(name) = cell("path") {
        return match of_link {
            Some(column) => Err(Problem::usage(format!("a path {name:?} and a {column} exclude each other"))
                .hint("leave one of the two cells empty")),
            None => Ok(Some(PathRequest::Scenario(name.to_owned()))),
        };
    }
    if of_link.is_none() && request.has_path {
        return Ok(None);
    }
    // It says what holds for links of rows, also where rows must say how fast theirs are.
    let usual = match &request.usual.path {
        PathRequest::Link(link) => Some(link.clone()),
        PathRequest::Scenario(_) => None,
    };
    let rate = parsed(cell("link_rate"), "link_rate")?;
    let mut link = match (rate, usual) {
        (Some(rate), Some(usual)) => LinkRequest { rate, ..usual },
        (Some(rate), None) => LinkRequest::of(rate),
        (None, Some(usual)) if request.has_path => usual,
        (None, _) => {
            return Err(Problem::usage("no path: neither a path nor a link_rate")
                .hint("fill the column path with a preset's name, or link_rate with a rate such as 8mbit"));
        }
    };
    link.up_rate = parsed(cell("up_rate"), "up_rate")?.or(link.up_rate);
    if let Some(text) = cell("rtt") {
        link.rtt = parse_duration(text).map_err(|error| in_column("rtt", text, &error))?;
    }
    link.loss = parsed(cell("loss"), "loss")?.unwrap_or(link.loss);
    link.queue = parsed(cell("queue"), "queue")?.or(link.queue);
    link.mtu = parsed(cell("mtu"), "mtu")?.unwrap_or(link.mtu);
    if let Some(framing) = cell("encap") {
        // An MTU that is only what another encapsulation leaves isn't named.
        if cell("mtu").is_none() && link.mtu == LinkRequest::usual_mtu(&link.framing) {
            link.mtu = LinkRequest::usual_mtu(framing);
        }
        framing.clone_into(&mut link.framing);
    }
    Ok(Some(PathRequest::Link(link)))
}

fn in_column(column: &str, text: &str, why: &dyn std::fmt::Display) -> Problem {
    Problem::usage(format!("{column} {text:?}: {why}"))
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(cell: Option<&str>, column: &str) -> Result<Option<T>, Problem> {
    cell.map(|text| text.parse().map_err(|error| in_column(column, text, &error))).transpose()
}

/// A list with commas, semicolons or spaces between its parts.
fn each<T: FromStr<Err: std::fmt::Display>>(cell: Option<&str>, column: &str) -> Result<Option<Vec<T>>, Problem> {
    split(cell, column, &[',', ';', ' '])
}

fn split<T: FromStr<Err: std::fmt::Display>>(
    cell: Option<&str>,
    column: &str,
    between: &[char],
) -> Result<Option<Vec<T>>, Problem> {
    let Some(text) = cell else { return Ok(None) };
    let parts = text.split(between).map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|error| in_column(column, part, &error))).collect::<Result<_, _>>().map(Some)
}

/// The first seed of a question: what is asked decides, and where the usual seeds begin.
fn seed_of(question: &PredictRequest) -> u64 {
    let text = serde_json::to_vec(question).unwrap_or_default();
    let hash = digest(&SHA256, &text);
    let first = hash.as_ref().first_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(first) >> (64 - SEED_BITS)
}
