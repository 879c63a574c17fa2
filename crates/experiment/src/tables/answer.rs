use super::{Outcome, SCHEMA_VERSION};
use crate::classic::{Better, Description, FTest, Kruskal, Relation, Square, Table, TableAnalysis, WelchComparison};
use crate::means::{MeansComparison, SummaryMean};
use crate::meta;
use serde::Serialize;

/// What a table allows one to say. Its JSON is the contract of `windtunnel analyse --json`; its `design.kind` tells
/// which it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TableAnswer {
    /// Levels in blocks.
    Blocked(Box<BlockedAnswer>),
    /// Levels without blocks.
    Grouped(GroupedAnswer),
    /// Two factors of two levels, each combination once.
    OneSquare(OneSquareAnswer),
    /// Two factors of two levels, each combination once in every block.
    Squares(Box<SquaresAnswer>),
    /// A list of hosts.
    Listing(ListingAnswer),
    /// Many paths together.
    Paths(PathsAnswer),
    /// Two published means.
    Means(MeansAnswer),
}

impl TableAnswer {
    /// What the data allow one to say.
    #[must_use]
    pub fn verdict(&self) -> &str {
        match self {
            Self::Blocked(answer) => &answer.analysis.verdict,
            Self::Grouped(answer) => &answer.verdict,
            Self::OneSquare(answer) => &answer.verdict,
            Self::Squares(answer) => &answer.verdict,
            Self::Listing(answer) => &answer.verdict,
            Self::Paths(answer) => &answer.verdict,
            Self::Means(answer) => &answer.verdict,
        }
    }

    /// Whether a difference is shown.
    #[must_use]
    pub fn difference_shown(&self) -> bool {
        match self {
            Self::Blocked(answer) => answer.analysis.difference_shown,
            Self::Grouped(answer) => answer.difference_shown,
            Self::OneSquare(answer) => answer.difference_shown,
            Self::Squares(answer) => answer.difference_shown,
            Self::Listing(answer) => answer.difference_shown,
            Self::Paths(answer) => answer.difference_shown,
            Self::Means(answer) => answer.difference_shown,
        }
    }

    /// What was left out of the table.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Blocked(answer) => &answer.notes,
            Self::Grouped(answer) => &answer.notes,
            Self::OneSquare(answer) => &answer.notes,
            Self::Squares(answer) => &answer.notes,
            Self::Listing(answer) => &answer.notes,
            Self::Paths(_) | Self::Means(_) => &[],
        }
    }
}

/// What a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesignKind {
    /// Every level once in every block.
    Blocked,
    /// Levels without blocks, as often as they come.
    OneWay,
    /// Two factors of two levels.
    TwoByTwo,
    /// A list with other figures beside the outcome.
    Listing,
    /// Many paths, each with the log of a ratio.
    Paths,
    /// Two published means.
    TwoMeans,
}

/// Levels in blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockedAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: BlockedDesign,
    /// What was left out of it.
    pub notes: Vec<String>,
    /// What was found.
    #[serde(flatten)]
    pub analysis: TableAnalysis,
}

/// A table of levels in blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedDesign {
    /// `blocked`.
    pub kind: DesignKind,
    /// The column of settings.
    pub factor: String,
    /// The settings.
    pub levels: Vec<String>,
    /// The column of blocks.
    pub block: String,
    /// The blocks.
    pub blocks: Vec<String>,
    /// The column of outcomes.
    pub value: String,
    /// Which outcomes are good.
    pub better: Better,
}

impl BlockedAnswer {
    pub(super) fn new(outcome: Outcome, factor: String, block: String, table: &Table, analysis: TableAnalysis) -> Self {
        let Outcome { value, better, notes } = outcome;
        let (levels, blocks) = (table.levels().to_vec(), table.blocks().to_vec());
        let design = BlockedDesign { kind: DesignKind::Blocked, factor, levels, block, blocks, value, better };
        Self { schema_version: SCHEMA_VERSION, design, notes, analysis }
    }
}

/// Levels without blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupedAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: GroupedDesign,
    /// What was left out of it.
    pub notes: Vec<String>,
    /// Each level.
    pub describe: Vec<GroupDescription>,
    /// The analyses of variance.
    pub anova: GroupedAnovas,
    /// All pairs of the levels that were measured often enough, which the verdict rests on.
    pub welch: Vec<WelchComparison>,
    /// The test by ranks.
    pub kruskal: Option<Kruskal>,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether a difference is shown.
    pub difference_shown: bool,
}

/// A table of levels without blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupedDesign {
    /// `one-way`.
    pub kind: DesignKind,
    /// The column of settings.
    pub factor: String,
    /// The settings.
    pub levels: Vec<String>,
    /// None.
    pub blocks: Vec<String>,
    /// The column of outcomes.
    pub value: String,
    /// Which outcomes are good.
    pub better: Better,
}

/// The outcomes of one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupDescription {
    /// The level.
    pub level: String,
    /// Its outcomes.
    #[serde(flatten)]
    pub description: Description,
}

/// Analyses of variance without regard to blocks, with one error for all levels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GroupedAnovas {
    /// Of the outcomes.
    pub one_way_raw: Option<FTest>,
    /// Of their logs.
    pub one_way_log: Option<FTest>,
}

/// A table of two factors of two levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SquareDesign {
    /// `two-by-two`.
    pub kind: DesignKind,
    /// The column of blocks, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The blocks.
    pub blocks: Vec<String>,
    /// Both factors.
    pub factors: [FactorLevels; 2],
    /// The column of outcomes.
    pub value: String,
    /// Which outcomes are good.
    pub better: Better,
}

/// A factor of two levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactorLevels {
    /// Its column.
    pub factor: String,
    /// Its levels.
    pub levels: [String; 2],
}

impl SquareDesign {
    pub(super) fn new(outcome: &Outcome, factors: [(String, [String; 2]); 2], block: Option<String>) -> Self {
        let factors = factors.map(|(factor, levels)| FactorLevels { factor, levels });
        let (value, better) = (outcome.value.clone(), outcome.better);
        Self { kind: DesignKind::TwoByTwo, block, blocks: Vec::new(), factors, value, better }
    }

    /// The names of both main effects and of the interaction.
    #[must_use]
    pub fn effect_names(&self) -> [String; 3] {
        let [first, second] = &self.factors;
        [first.factor.clone(), second.factor.clone(), format!("{} × {}", first.factor, second.factor)]
    }
}

/// Two factors of two levels, each combination once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneSquareAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: SquareDesign,
    /// What was left out of it.
    pub notes: Vec<String>,
    /// What the four numbers are, for what they are worth.
    pub effects: [SquareChange; 3],
    /// The four numbers: rows by the first factor, columns by the second.
    pub cells: Square,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether a difference is shown: never.
    pub difference_shown: bool,
}

/// A difference of which the noise isn't known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SquareChange {
    /// Of what.
    pub effect: String,
    /// From the first level to the second.
    pub difference: f64,
    /// The second over the first.
    pub ratio: Option<f64>,
}

/// Two factors of two levels, each combination once in every block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SquaresAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: SquareDesign,
    /// What was left out of it.
    pub notes: Vec<String>,
    /// Both main effects and the interaction.
    pub effects: [SquareEffect; 3],
    /// The geometric means of the four combinations.
    pub cells: Square,
    /// The variance of one measurement's log that nothing explains.
    pub mse: f64,
    /// Its degrees of freedom.
    pub df: f64,
    /// The evidence with which an effect is shown.
    pub evidence_needed: f64,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether a difference is shown.
    pub difference_shown: bool,
}

/// A main effect or the interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SquareEffect {
    /// Of what.
    pub effect: String,
    /// How large and how sure.
    #[serde(flatten)]
    pub estimate: crate::classic::Effect,
}

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListingAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: ListingDesign,
    /// What was left out of it.
    pub notes: Vec<String>,
    /// All outcomes together.
    pub describe: [Option<Description>; 1],
    /// How the outcome goes with other columns.
    pub relations: Vec<ListingRelation>,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether a relation is shown.
    pub difference_shown: bool,
    /// The outcomes, for drawing.
    #[serde(skip)]
    pub outcomes: Vec<f64>,
    /// The other columns with their figures, for drawing.
    #[serde(skip)]
    pub figures: Vec<(String, Vec<f64>)>,
}

/// A list with other figures beside the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListingDesign {
    /// `listing`.
    pub kind: DesignKind,
    /// The column of names.
    pub label: String,
    /// How many rows there are.
    pub rows: usize,
    /// None.
    pub blocks: Vec<String>,
    /// The column of outcomes.
    pub value: String,
    /// Which outcomes are good.
    pub better: Better,
}

/// How the outcome goes with another column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListingRelation {
    /// The other column.
    pub column: String,
    /// Spearman's rank correlation.
    pub spearman: f64,
    /// How often chance alone gives as large a one.
    pub p: f64,
    /// By how much the outcome changes with one more of the other, percent.
    pub slope_percent: Option<f64>,
}

impl ListingRelation {
    pub(super) fn new(column: String, relation: &Relation) -> Self {
        let Relation { spearman, p, slope } = *relation;
        Self { column, spearman, p, slope_percent: slope.map(|slope| slope * 100.0) }
    }
}

/// Many paths together: what to expect on the next one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathsAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What the table is.
    pub design: PathsDesign,
    /// Each path.
    pub describe: Vec<PathRatio>,
    /// The mean of the logs, and how much the paths differ.
    pub summary: Option<meta::Summary>,
    /// The same as ratios.
    pub ratios: Option<PathRatios>,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether an effect on average is shown.
    pub difference_shown: bool,
    /// The logs of the ratios, for drawing.
    #[serde(skip)]
    pub effects: Vec<meta::Effect>,
}

/// A table of many paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathsDesign {
    /// `paths`.
    pub kind: DesignKind,
    /// None.
    pub blocks: Vec<String>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathRatio {
    /// Its name, or its number.
    pub path: String,
    /// The ratio on it.
    pub ratio: f64,
    /// The standard error of the ratio's log.
    pub standard_error: f64,
}

/// The mean ratio, and the ratio to expect on a new path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PathRatios {
    /// The mean.
    pub ratio: f64,
    /// The lower end of the mean's 95% interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The lower end of the 95% interval for a new path.
    pub prediction_low: f64,
    /// The upper end.
    pub prediction_high: f64,
}

/// Two published means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeansAnswer {
    /// The version of this object.
    pub schema_version: u32,
    /// What is compared.
    pub design: MeansDesign,
    /// The means.
    pub means: [SummaryMean; 2],
    /// How they compare.
    pub comparison: MeansComparison,
    /// What the data allow one to say.
    pub verdict: String,
    /// Whether a difference is shown.
    pub difference_shown: bool,
}

/// Two means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MeansDesign {
    /// `two-means`.
    pub kind: DesignKind,
    /// Which outcomes are good.
    pub better: Better,
}

impl MeansAnswer {
    pub(super) fn new(
        a: SummaryMean,
        b: SummaryMean,
        comparison: MeansComparison,
        verdict: String,
        shown: bool,
    ) -> Self {
        let design = MeansDesign { kind: DesignKind::TwoMeans, better: Better::Higher };
        let means = [a, b];
        Self { schema_version: SCHEMA_VERSION, design, means, comparison, verdict, difference_shown: shown }
    }
}
