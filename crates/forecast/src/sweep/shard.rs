use std::str::FromStr;
use wt_problem::Problem;

/// One of so many parts of a table: of its rows, every n-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    index: u64,
    /// Of how many; at least 1.
    of: u64,
}

impl Shard {
    /// All rows.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part with this number, from 1.
    ///
    /// # Errors
    /// A usage problem where the number isn't one of them.
    pub fn new(number: u64, of: u64) -> Result<Self, Problem> {
        if number == 0 || number > of {
            let problem = Problem::usage(format!("shard {number} of {of} doesn't exist"));
            return Err(problem.hint("shards count from 1: --shard 1/7 to --shard 7/7"));
        }
        Ok(Self { index: number - 1, of })
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.index + 1
    }

    /// How many there are.
    #[must_use]
    pub const fn of(self) -> u64 {
        self.of
    }

    /// Whether the row with this number, from 1, belongs to it.
    pub(super) const fn has(self, row: u64) -> bool {
        (row - 1) % self.of == self.index
    }

    /// The part that a scheduler's environment names, and by which variable: a task of a Slurm array, or a pod of a Kubernetes
    /// Indexed Job, which has to be told of how many (`of`). Nothing where there is no such variable.
    ///
    /// # Errors
    /// A usage problem that names the variable.
    pub fn of_environment(
        variable: &dyn Fn(&str) -> Option<String>,
        of: Option<u64>,
    ) -> Result<Option<(Self, &'static str)>, Problem> {
        let number = |name: &'static str| -> Result<Option<u64>, Problem> {
            let Some(text) = variable(name) else { return Ok(None) };
            let wrong = |_| {
                Problem::usage(format!("{name} is {text:?}, which is no number"))
                    .hint("name the shard yourself: --shard 1/7")
            };
            text.trim().parse().map(Some).map_err(wrong)
        };
        const SLURM: &str = "SLURM_ARRAY_TASK_ID";
        const KUBERNETES: &str = "JOB_COMPLETION_INDEX";
        if let Some(id) = number(SLURM)? {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let count = number("SLURM_ARRAY_TASK_COUNT")?;
            if let (Some(of), Some(count)) = (of, count)
                && of != count
            {
                // Whoever runs a few tasks again may count from 0 or from 1.
                let problem = format!("the array has {count} tasks, not {of}: which shard is task {id}?");
                return Err(Problem::usage(problem).hint(format!(
                    "name it: --shard {id}/{of}; or --shard \"${SLURM}/{of}\" where tasks count from 1"
                )));
            }
            let last = number("SLURM_ARRAY_TASK_MAX")?;
            let gaps = count.zip(last).is_some_and(|(count, last)| last.saturating_sub(first) / step + 1 != count);
            let again = of.is_none() && first > 1 && (count == Some(1) || step == 1);
            if gaps || again {
                // Some tasks of an array, run again: what they count from is that array's.
                let problem = format!("the array's tasks don't count from 1 without gaps: which shard is task {id}?");
                return Err(Problem::usage(problem)
                    .because("as where some tasks of an array are run again")
                    .hint(format!("name it and how many there are in all: --shard \"${SLURM}/100\"")));
            }
            let of = of.or(count).ok_or_else(|| {
                Problem::usage(format!(
                    "{SLURM} is set and SLURM_ARRAY_TASK_COUNT isn't: of how many tasks is this one?"
                ))
                .hint("say it: --shard /7")
            })?;
            return Ok(Some((Self::new(id.saturating_sub(first) / step + 1, of)?, SLURM)));
        }
        let Some(index) = number(KUBERNETES)? else { return Ok(None) };
        let of = of.ok_or_else(|| {
            Problem::usage(format!("{KUBERNETES} is set; of how many pods it is one, Kubernetes doesn't tell them"))
                .hint("say the Job's completions: --shard /7")
        })?;
        Ok(Some((Self::new(index.saturating_add(1), of)?, KUBERNETES)))
    }

    /// How many processors Slurm gives to this task, where it says so: others' tasks are on the rest of them.
    #[must_use]
    pub fn processors_of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Option<u16> {
        let number = |name: &str| variable(name)?.trim().parse().ok().filter(|number| *number > 0);
        variable("SLURM_JOB_ID")?;
        number("SLURM_CPUS_PER_TASK").or_else(|| number("SLURM_CPUS_ON_NODE"))
    }
}

/// `17/1000`.
impl FromStr for Shard {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let wrong = || {
            Problem::usage(format!("{text:?} is no shard"))
                .hint("write which of how many: --shard 17/1000, or --shard /1000 in a job array")
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let read = |part: &str| part.trim().parse::<u64>().map_err(|_| wrong());
        Self::new(read(number)?, read(of)?)
    }
}
