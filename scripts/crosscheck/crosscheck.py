#!/usr/bin/env python3
"""Compares what `windtunnel analyse --json` says with scipy, statsmodels and pingouin.

Makes random tables (two to six levels, two to twelve blocks, with ties, with and without effects; others without blocks), has
them analysed, and computes the same figures with libraries that share no line with the program. What no library has (multiple comparisons
with the best, evidence, sizes of experiments) is computed here a second time from its definition.

    crosscheck.py BINARY [TABLES] [SEED]

Prints each figure that differs by more than 1e-4 of its size, and ends with code 1 if there is one.
"""
import itertools
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import statsmodels.api as sm
from scipy import integrate, stats
from statsmodels.formula.api import ols

TOLERANCE = 1e-4


class Ledger:
    """What was compared, and what differed."""

    def __init__(self):
        self.compared = 0
        self.differing = []

    def same(self, table, what, ours, theirs, tolerance=TOLERANCE):
        self.compared += 1
        if ours is None or theirs is None:
            if ours is not theirs:
                self.differing.append(f"{table}: {what}: {ours} against {theirs}")
            return
        if not math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance * 1e-2):
            self.differing.append(f"{table}: {what}: {ours} against {theirs}")


def table(rng, index):
    """Levels x blocks of positive numbers: a log-normal two-way layout."""
    levels = int(rng.integers(2, 7))
    blocks = int(rng.integers(2, 13 if levels < 4 else 9))
    noise = float(rng.choice([0.02, 0.1, 0.2, 0.4]))
    effects = rng.normal(0, float(rng.choice([0, 0.1, 0.5])), levels)
    days = rng.normal(0, 0.2, blocks)
    values = 1500 * np.exp(effects[:, None] + days[None, :] + rng.normal(0, noise, (levels, blocks)))
    if index % 3 == 0:
        values = np.round(values / 100) * 100  # ties
    return np.maximum(np.round(values, 3), 1.0)


def blocked(values):
    """Sums of squares of a randomised complete block design, by statsmodels."""
    levels, blocks = values.shape
    frame = pd.DataFrame(
        [(f"l{i}", f"b{j}", values[i, j]) for i in range(levels) for j in range(blocks)],
        columns=["level", "block", "y"],
    )
    fit = ols("y ~ C(level) + C(block)", frame).fit()
    return frame, sm.stats.anova_lm(fit, typ=2), fit


def studentised_upper(k, df, one_sided, x):
    """P(max of k correlated t (rho 1/2), one- or two-sided, > x), by direct integration."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / math.sqrt(2 * math.pi)

    def inner(s):
        up = stats.norm.cdf(math.sqrt(2) * x * s + nodes)
        low = 0 if one_sided else stats.norm.cdf(-math.sqrt(2) * x * s + nodes)
        return float(np.sum(weights * (up - low) ** k))

    def density(s):
        return math.exp(
            (df / 2) * math.log(df) - (df / 2 - 1) * math.log(2) - math.lgamma(df / 2)
            + (df - 1) * math.log(s) - df * s * s / 2
        )

    spread = 12 / math.sqrt(2 * df)
    low, high = max(1e-9, 1 - spread), 1 + spread
    value, _ = integrate.quad(lambda s: inner(s) * density(s), low, high, limit=400, epsabs=1e-12, epsrel=1e-10)
    return 1 - value


def exact(values, statistic):
    """The share of all relabellings within blocks whose statistic is at least as large; the first block is kept."""
    levels, blocks = values.shape
    if math.factorial(levels) ** (blocks - 1) > 3000:
        return None
    columns = [[list(p) for p in itertools.permutations(values[:, j])] for j in range(1, blocks)]
    base = values[:, 0]
    seen = statistic(values.sum(axis=1))
    hits = total = 0
    for choice in itertools.product(*columns):
        sums = base + np.sum(np.array(choice), axis=0) if choice else base
        total += 1
        hits += statistic(sums) >= seen * (1 - 1e-12)
    return hits / total


def evidence(differences):
    """The e-process: bets of five sizes against signs."""
    bets = [(0.125, 0.10), (0.25, 0.20), (0.5, 0.35), (1, 0.20), (2, 0.15)]
    wealth = [0.0] * len(bets)
    out, squares = [], 0.0
    for n, d in enumerate(differences, 1):
        squares += d * d
        x = 0.0 if squares == 0 else max(-2.0, min(2.0, d / math.sqrt(squares / n)))
        wealth = [w + g * x - math.log(math.cosh(g * x)) for w, (g, _) in zip(wealth, bets)]
        out.append(sum(p * math.exp(w) for w, (_, p) in zip(wealth, bets)))
    return out


def power(shift, sigma, blocks, levels, alpha):
    """Power of a two-sided t-test of two levels in a randomised complete block design."""
    df = (levels - 1) * (blocks - 1)
    nc = shift / (sigma * math.sqrt(2 / blocks))
    t = stats.t.ppf(1 - alpha / 2, df)

    def density(s):
        return math.exp(
            (df / 2) * math.log(df) - (df / 2 - 1) * math.log(2) - math.lgamma(df / 2)
            + (df - 1) * math.log(s) - df * s * s / 2
        )

    def at(s):
        return (stats.norm.cdf(nc - t * s) + stats.norm.cdf(-nc - t * s)) * density(s)

    high = 1 + 14 / math.sqrt(2 * df)
    return integrate.quad(at, 1e-12, high, limit=400, epsabs=1e-12)[0]


def needed(ratio, sigma, levels, alpha):
    blocks = 2
    while power(math.log(ratio), sigma, blocks, levels, alpha) < 0.8:
        blocks += 1
    return blocks


def compare(name, values, found, ledger):
    levels, blocks = values.shape
    logs = np.log(values)
    df = (levels - 1) * (blocks - 1)
    for row, of in zip(found["describe"], values):
        ledger.same(name, "mean", row["mean"], of.mean())
        ledger.same(name, "geometric mean", row["geometric_mean"], stats.gmean(of))
        ledger.same(name, "sd", row["sd"], of.std(ddof=1))
        ledger.same(name, "sd of mean", row["sd_of_mean"], stats.sem(of))
    for which, data in [("raw", values), ("log", logs)]:
        one = stats.f_oneway(*data)
        ledger.same(name, f"one-way {which} F", found["anova"][f"one_way_{which}"]["f"], one.statistic)
        ledger.same(name, f"one-way {which} p", found["anova"][f"one_way_{which}"]["p"], one.pvalue)
        _, anova, _ = blocked(data)
        ours = found["anova"][f"blocked_{which}"]
        ledger.same(name, f"blocked {which} F", ours["f"], anova.loc["C(level)", "F"])
        ledger.same(name, f"blocked {which} p", ours["p"], anova.loc["C(level)", "PR(>F)"])
        ledger.same(name, f"blocked {which} mse", ours["mse"], anova.loc["Residual", "sum_sq"] / df)
        ledger.same(name, f"blocks {which} p", ours["blocks"]["p"], anova.loc["C(block)", "PR(>F)"])
    frame, anova, fit = blocked(logs)
    mse = anova.loc["Residual", "sum_sq"] / df
    se = math.sqrt(2 * mse / blocks)
    if levels > 2 and blocks > levels:
        friedman = stats.friedmanchisquare(*values)
        tied = found["friedman"] is None
        ledger.same(name, "all ranks tied", float(tied), float(math.isnan(friedman.statistic)))
        if tied:
            return
        ledger.same(name, "friedman Q", found["friedman"]["q"], friedman.statistic)
        ledger.same(name, "friedman p", found["friedman"]["p"], friedman.pvalue)
        sphericity = pingouin.rm_anova(frame, dv="y", within="level", subject="block", correction=True)
        column = next(c for c in sphericity.columns if "GG" in c)
        ledger.same(name, "p of Greenhouse-Geisser", found["anova"]["blocked_log"]["sphericity"][1],
                    float(sphericity[column].iloc[0]))
    kruskal = stats.kruskal(*values)
    ledger.same(name, "kruskal H", found["kruskal"]["h"], kruskal.statistic)
    ranks = np.apply_along_axis(stats.rankdata, 0, values)
    p = exact(ranks, lambda sums: float(np.sum(sums**2)))
    if p is not None:
        ledger.same(name, "friedman exact", found["friedman"]["p_exact"], p)
        for which, data in [("raw", values), ("log", logs)]:
            if np.isclose(data, np.round(data)).all() or which == "log":
                centred = data - data.mean(axis=0)
                ours = found["permutation"][which]["p"]
                ledger.same(name, f"permutation {which}", ours, exact(centred, lambda s: float(np.sum(s**2))))
    means = logs.mean(axis=1)
    singles = []
    for pair in found["tukey"]:
        a, b = int(pair["a"][1:]), int(pair["b"][1:])
        difference = means[a] - means[b]
        ledger.same(name, "tukey ratio", pair["ratio"], math.exp(difference))
        ledger.same(name, "tukey p", pair["p"],
                    stats.studentized_range.sf(abs(difference) / se * math.sqrt(2), levels, df))
        half = stats.studentized_range.ppf(0.95, levels, df) / math.sqrt(2) * se
        ledger.same(name, "tukey low", pair["low"], math.exp(difference - half))
        ledger.same(name, "tukey high", pair["high"], math.exp(difference + half))
        singles.append(2 * stats.t.sf(abs(difference) / se, df))
        ledger.same(name, "single p", pair["p_single"], singles[-1])
    holm = sm.stats.multipletests(singles, method="holm")[1]
    for pair, p in zip(found["tukey"], holm):
        ledger.same(name, "holm p", pair["p_holm"], p)
    for row in found["dunnett"]:
        i = int(row["a"][1:])
        t = (means[i] - means[0]) / se
        ledger.same(name, "dunnett p", row["p"], studentised_upper(levels - 1, df, False, abs(t)), 5e-4)
    for row in found["mcb"]:
        i = int(row["level"][1:])
        t = (max(means[j] for j in range(levels) if j != i) - means[i]) / se
        ledger.same(name, "mcb p", row["p"], studentised_upper(levels - 1, df, True, t), 5e-4)
    for pair in found["evidence"]:
        a, b = int(pair["a"][1:]), int(pair["b"][1:])
        for ours, theirs in zip(pair["e"], evidence(logs[a] - logs[b])):
            ledger.same(name, "evidence", ours, theirs)
    sigma = math.sqrt(mse)
    for percent in ["20", "5"]:
        ours = found["blocks_needed"][percent]
        theirs = needed(1 + int(percent) / 100, sigma, levels, 0.05)
        ledger.same(name, f"blocks for {percent}", ours, theirs)
    ratio = found["mde"]["ratio_percent"]
    if ratio is not None:
        ledger.same(name, "power at the mde", power(math.log1p(ratio / 100), sigma, blocks, levels, 0.05), 0.8)


def square(rng, path):
    """A 2 x 2 in blocks."""
    blocks = int(rng.integers(2, 12))
    effects = rng.normal(0, 0.2, 3)
    rows = []
    for block in range(blocks):
        day = rng.normal(0, 0.3)
        for i, j in itertools.product(range(2), range(2)):
            log = effects[0] * i + effects[1] * j + effects[2] * (i == j) + day + rng.normal(0, 0.1)
            rows.append((f"p{i}", f"q{j}", f"b{block}", round(1500 * math.exp(log), 3)))
    frame = pd.DataFrame(rows, columns=["first", "second", "day", "rate"])
    frame.to_csv(path, index=False)
    return frame


def compare_square(name, frame, found, ledger):
    frame = frame.assign(y=np.log(frame["rate"]))
    fit = ols("y ~ C(first, Sum) * C(second, Sum) + C(day)", frame).fit()
    anova = sm.stats.anova_lm(fit, typ=2)
    rows = ["C(first, Sum)", "C(second, Sum)", "C(first, Sum):C(second, Sum)"]
    singles = [anova.loc[row, "PR(>F)"] for row in rows]
    ledger.same(name, "mse", found["mse"], fit.mse_resid)
    ledger.same(name, "df", found["df"], fit.df_resid)
    half = stats.t.ppf(1 - 0.05 / 6, fit.df_resid)
    for row, effect, holm in zip(rows, found["effects"], sm.stats.multipletests(singles, method="holm")[1]):
        ledger.same(name, f"{row} F", effect["t"] ** 2, anova.loc[row, "F"])
        ledger.same(name, f"{row} p", effect["p"], anova.loc[row, "PR(>F)"])
        ledger.same(name, f"{row} Holm", effect["p_holm"], holm)
        # Sum coding takes the first level as +1: a coefficient is minus half of second over first.
        sign = 2 if ":" in row else -2
        key = [k for k in fit.params.index if k.count("[S.") == row.count("C(") and all(
            part.split("[")[0] in row for part in k.split(":")) and k != "Intercept"][0]
        ledger.same(name, f"{row} ratio", effect["ratio"], math.exp(sign * fit.params[key]))
        ledger.same(name, f"{row} high", effect["high"], math.exp(sign * fit.params[key] + half * 2 * fit.bse[key]))


def groups(rng, path):
    """Levels without blocks, each with a noise and a number of measurements of its own."""
    found = []
    for _ in range(int(rng.integers(2, 5))):
        noise = float(rng.choice([0.02, 0.1, 0.3]))
        values = 1500 * np.exp(rng.normal(0, 0.1) + rng.normal(0, noise, int(rng.integers(2, 20))))
        found.append(np.round(values, 3))
    with path.open("w") as out:
        print("level,rate", file=out)
        for i, values in enumerate(found):
            for value in values:
                print(f"L{i},{value}", file=out)
    return found


def compare_groups(name, measured, found, ledger):
    one = stats.f_oneway(*(np.log(values) for values in measured))
    ledger.same(name, "one-way log F", found["anova"]["one_way_log"]["f"], one.statistic)
    ledger.same(name, "one-way log p", found["anova"]["one_way_log"]["p"], one.pvalue)
    enough = [i for i, values in enumerate(measured) if len(values) >= 4]
    pairs = list(itertools.combinations(enough, 2))
    ledger.same(name, "pairs", float(len(found["welch"])), float(len(pairs)))
    shown = False
    for (a, b), ours in zip(pairs, found["welch"]):
        theirs = stats.ttest_ind(np.log(measured[a]), np.log(measured[b]), equal_var=False)
        interval = theirs.confidence_interval(1 - 0.05 / len(pairs))
        ledger.same(name, "Welch's t", ours["t"], theirs.statistic)
        ledger.same(name, "Welch's df", ours["df"], theirs.df)
        ledger.same(name, "Welch's p", ours["p"], min(1.0, len(pairs) * theirs.pvalue))
        ledger.same(name, "Welch's low", ours["low"], math.exp(interval.low))
        ledger.same(name, "Welch's high", ours["high"], math.exp(interval.high))
        shown |= len(pairs) * theirs.pvalue < 0.05
    ledger.same(name, "shown", float(found["difference_shown"]), float(shown))


def write(path, values, long):
    levels, blocks = values.shape
    with path.open("w") as out:
        if long:
            print("level,block,rate", file=out)
            for j in range(blocks):
                for i in range(levels):
                    print(f"L{i},b{j},{values[i, j]}", file=out)
        else:
            print("level," + ",".join(f"b{j}" for j in range(blocks)), file=out)
            for i in range(levels):
                print(f"L{i}," + ",".join(str(v) for v in values[i]), file=out)


def main():
    binary = sys.argv[1]
    tables = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    ledger = Ledger()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.csv"
        for index in range(tables):
            values = table(rng, index)
            # Rounding alone decides where nothing varies.
            still = np.allclose(values.std(axis=1), 0) or np.allclose(values.std(axis=0), 0)
            long = bool(rng.integers(0, 2))
            write(path, values, long)
            ran = subprocess.run([binary, "analyse", str(path), "--json"], capture_output=True, text=True, check=False)
            name = f"table {index} ({values.shape[0]} levels, {values.shape[1]} blocks)"
            if ran.returncode not in (0, 1):
                ledger.differing.append(f"{name}: {ran.stderr.strip()}")
                continue
            if still:
                continue
            compare(name, values, json.loads(ran.stdout), ledger)
        for index in range(tables // 4):
            frame = square(rng, path)
            ran = subprocess.run([binary, "analyse", str(path), "--json"], capture_output=True, text=True, check=False)
            compare_square(f"square {index}", frame, json.loads(ran.stdout), ledger)
        for index in range(tables // 4):
            measured = groups(rng, path)
            ran = subprocess.run([binary, "analyse", str(path), "--json"], capture_output=True, text=True, check=False)
            compare_groups(f"table {index} without blocks", measured, json.loads(ran.stdout), ledger)
    for line in ledger.differing[:80]:
        print(line)
    print(f"{ledger.compared} figures compared, {len(ledger.differing)} differ")
    return 1 if ledger.differing else 0


if __name__ == "__main__":
    sys.exit(main())
