use serde::{Deserialize, Serialize};
use std::error::Error as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wt_experiment::classic::Better;
use wt_experiment::means::SummaryMean;
use wt_experiment::tables::{NamedColumns, SheetError};
use wt_flow::CaptureRequest;
use wt_problem::Problem;
use wt_report::{AnalyseAnswer, AnalyseError};

/// What is asked of measurements that are in a file: a table, or a capture, told by its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnalyseRequest {
    /// The file; `-` is standard input.
    pub file: Option<PathBuf>,
    /// Instead of a file: two published means with their standard deviations.
    pub means: Option<[SummaryMean; 2]>,
    /// Of a table: the columns of outcomes.
    pub values: Vec<String>,
    /// Of a table: the column of settings that are compared.
    pub factor: Option<String>,
    /// Of a table: the column of blocks within which settings are compared.
    pub block: Option<String>,
    /// Of a table: which outcomes are good; nothing means small ones if the column is called a time.
    pub better: Option<Better>,
    /// Of a table: seeds what is sampled where there are too many relabellings to try all.
    pub seed: u64,
    /// Of a capture: only these packets, in tcpdump's words.
    pub filter: Option<String>,
    /// Of a capture: so many connections, those with the most payload.
    pub connections: usize,
}

impl Default for AnalyseRequest {
    fn default() -> Self {
        Self {
            file: None,
            means: None,
            values: Vec::new(),
            factor: None,
            block: None,
            better: None,
            seed: 1,
            filter: None,
            connections: 10_000,
        }
    }
}

/// Analyses measurements.
///
/// # Errors
/// A usage [`Problem`] that names line and column of what is wrong with the file.
pub fn analyse(request: &AnalyseRequest) -> Result<AnalyseAnswer, Problem> {
    let found = match (&request.means, &request.file) {
        (Some([a, b]), None) => wt_report::analyse_means(*a, *b),
        (None, Some(file)) => {
            let (name, input) = open(file)?;
            wt_report::analyse(input, &request.of_file(name)?)
        }
        (Some(_), Some(_)) => return Err(Problem::usage("either a file is analysed or two means, not both")),
        (None, None) => return Err(Problem::usage("there is no file to analyse")),
    };
    found.map_err(|error| problem(&error))
}

impl AnalyseRequest {
    fn of_file(&self, file: String) -> Result<wt_report::AnalyseRequest, Problem> {
        let filter = self.filter.as_deref().map(str::parse).transpose();
        let filter = filter.map_err(|error: wt_flow::FilterError| Problem::usage(error.to_string()))?;
        let (values, factor, block) = (self.values.clone(), self.factor.clone(), self.block.clone());
        Ok(wt_report::AnalyseRequest {
            file,
            columns: NamedColumns { values, factor, block, better: self.better },
            seed: self.seed,
            capture: CaptureRequest { filter, connections: self.connections },
        })
    }
}

/// A file or standard input, with what it is called in messages.
fn open(path: &Path) -> Result<(String, Box<dyn Read>), Problem> {
    if path.as_os_str() == "-" {
        return Ok(("standard input".to_owned(), Box::new(std::io::stdin())));
    }
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((name, Box::new(file))),
        Err(source) => Err(problem(&AnalyseError::Unreadable { file: name, source })),
    }
}

/// What to say when measurements can't be analysed.
fn problem(error: &AnalyseError) -> Problem {
    let problem = Problem::usage(error.to_string());
    match error {
        AnalyseError::Unreadable { source, .. } => {
            problem.because(source.to_string()).hint("windtunnel analyse FILE.csv")
        }
        AnalyseError::Capture { source, .. } => {
            let cause = source.source().map_or_else(|| source.to_string(), |inner| format!("{source}: {inner}"));
            problem.because(cause).hint("tcpdump -r FILE or capinfos FILE shows what other programs make of it")
        }
        AnalyseError::FilterOfTable => {
            Problem::usage("--filter is for captures, and this is none").hint("leave it away for a table")
        }
        AnalyseError::ColumnsOfCapture => problem.hint("leave them away for a capture; --filter chooses packets"),
        AnalyseError::Means => {
            let wanted = "means must be above zero, standard deviations at least zero and not both zero";
            problem.because(format!("{wanted}, and the interval of their ratio must have ends"))
        }
        AnalyseError::Sheet(error) => sheet_problem(error),
        _ => problem,
    }
}

/// Whether points in a number separate thousands: `1.234.567`.
fn is_grouped(text: &str) -> bool {
    let groups = || text.split('.').skip(1);
    groups().count() > 1 && groups().all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()))
}

fn sheet_problem(error: &SheetError) -> Problem {
    let problem = Problem::usage(error.to_string());
    match error {
        SheetError::Unreadable { source, .. } => problem.because(source.to_string()),
        SheetError::Utf16 { file } => problem.hint(format!("iconv -f UTF-16 -t UTF-8 {file} > new.csv")),
        SheetError::NotUtf8 { file, .. } => problem.hint(format!("iconv -f ISO-8859-1 -t UTF-8 {file} > new.csv")),
        SheetError::TooManyCells { .. } | SheetError::TooManyColumns { .. } => {
            problem.hint("analyse means of rounds, or a part of the file")
        }
        SheetError::ZeroByte { .. } => problem.because("the file is no table of text, or is damaged"),
        SheetError::UnequalRow { .. } => problem.hint("quote cells that contain the separator"),
        SheetError::SameName { .. } => problem.hint("give every column a name of its own"),
        SheetError::NoSuchColumn { columns, .. } => problem.hint(format!("its columns are {}", columns.join(", "))),
        SheetError::OutcomeUnclear { several, columns, .. } => problem
            .because(if *several { "several could be" } else { "none is called rate, time or the like" })
            .hint(format!("--value COLUMN; the columns are {}", columns.join(", "))),
        SheetError::NotAboveZero { .. } => problem
            .because("settings are compared by their ratios")
            .hint("leave failed trials out and report how many there were"),
        SheetError::NoStandardError { .. } => problem
            .because("the table was read as effects with their standard errors, by its columns' names")
            .hint("leave out what has none, or name the columns of outcomes: --value COLUMN"),
        SheetError::NotANumber { text, .. } if text.contains(',') || is_grouped(text) => {
            problem.hint("write decimals with a point, and no separators of thousands")
        }
        SheetError::PointUnclear { .. } => problem
            .because("semicolons separate the cells, as where decimals have a comma, and every point has three digits behind it")
            .hint("write no separators of thousands, and all decimals of a column with as many digits: 1.026 and 928.000"),
        SheetError::OneLevel { .. } | SheetError::TooManyLevels { .. } => {
            problem.hint("--factor COLUMN names the column of the settings")
        }
        SheetError::ValueTwice { .. } => problem
            .because("a series counts once, however often it is named")
            .hint("name each column of outcomes once: --value run1,run2,run3"),
        SheetError::LevelTwice { .. } => problem.hint("one row for each level, one column for each series"),
        SheetError::LevelTwiceInBlock { .. } => {
            problem.hint("--block COLUMN names a column in which each level occurs once, or each as often")
        }
        SheetError::CombinationTwice { .. } => {
            problem.hint("--block COLUMN names a column in which each combination occurs once")
        }
        SheetError::NotPositive { .. } => Problem::internal(error.to_string()),
        _ => problem,
    }
}
