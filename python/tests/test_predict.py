"""Predictions: every number as the program says it, every cell as the caller gave it."""

import csv
import datetime
import io
import json
import subprocess
import sys
import time

import pytest
from conftest import program

import windtunnel as wt

ROWS = [
    {"site": "Berlin", "link_rate": "100mbit", "rtt": "12ms", "loss": None},
    {"site": "Oslo", "link_rate": "20mbit", "rtt": "60ms", "loss": "0.1%"},
]
QUESTION = {"knobs": ["cc"], "size": "300kB"}


def test_every_number_of_a_table_is_the_one_of_json():
    answers = wt.predict(ROWS, **QUESTION)
    for number, row in enumerate(ROWS, 1):
        words = [f"--{name.replace('_', '-')}={value}" for name, value in row.items() if value and name != "site"]
        said = json.loads(program("predict", *words, "--knobs=cc", "--size=300kB", "--json"))
        mine = [answer for answer in answers if answer["row"] == number]
        assert len(mine) == len(said["arms"]) == 3
        for answer, arm in zip(mine, said["arms"]):
            if row["loss"] is None:
                # Nothing is random here; where it is, a table's row draws seeds of its own.
                for name in ("goodput_bps", "goodput_p5_bps", "goodput_p95_bps", "completion_us", "queueing_delay_us", "retransmitted_share", "gain", "figure"):
                    assert answer[name] == arm[name], name
                assert answer["worth_measuring"] == arm["worth_measuring"]
            assert f"cc={arm['settings'].get('cc', 'cubic')}" in answer["setting"]
            assert answer["problem"] is None
        assert [answer["arm"] for answer in mine] == [0, 1, 2]


def test_every_number_of_a_table_is_the_one_of_the_commands_table():
    text = "site,link_rate,rtt,loss\nBerlin,100mbit,12ms,\nOslo,20mbit,60ms,0.1%\n"
    said = list(csv.DictReader(io.StringIO(program("predict", "--table", "-", "--knobs=cc", "--size=300kB", given=text))))
    answers = wt.predict(ROWS, **QUESTION)
    assert len(said) == len(answers) == 6
    for answer, line in zip(answers, said):
        assert list(answer) == list(line)
        for name, cell in line.items():
            mine = answer[name]
            if cell == "":
                assert mine is None, name
            elif isinstance(mine, bool):
                assert cell == ("true" if mine else "false")
            elif isinstance(mine, (int, float)):
                assert float(cell) == mine and ("." not in cell) == isinstance(mine, int), name
            else:
                assert mine == cell


def test_a_cell_that_begins_like_a_comment_is_a_cell():
    rows = [{"site": "#1 Berlin", "link_rate": "100mbit", "rtt": "5ms"}, {"site": "Oslo", "link_rate": "1mbit", "rtt": "80ms"}]
    answers = wt.predict(rows, set="cc=bbr", size="100kB")
    assert [(answer["row"], answer["site"]) for answer in answers] == [(1, "#1 Berlin")] * 2 + [(2, "Oslo")] * 2
    assert answers[0]["goodput_bps"] > 10 * answers[2]["goodput_bps"]
    levels = [{"#cc": level, "rate": rate} for level, rate in zip(["#a", "b"] * 3, [1, 2, 1.1, 2.1, 1.2, 2])]
    assert [group["level"] for group in wt.analyse(levels)["describe"]] == ["#a", "b"]


@pytest.mark.parametrize("scheduler", [{"SLURM_ARRAY_TASK_ID": "50", "SLURM_ARRAY_TASK_COUNT": "100", "SLURM_ARRAY_TASK_MIN": "1"}, {"JOB_COMPLETION_INDEX": "3"}])
def test_in_a_job_array_all_rows_are_answered(scheduler, monkeypatch):
    for name, value in scheduler.items():
        monkeypatch.setenv(name, value)
    assert {answer["row"] for answer in wt.predict(ROWS, **QUESTION)} == {1, 2}


def test_a_path_by_name_is_the_json_object():
    assert wt.predict("adsl", **QUESTION) == json.loads(program("predict", "adsl", "--knobs=cc", "--size=300kB", "--json"))


def test_seeds_of_64_bits_and_own_values_come_back_exactly():
    stamp = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
    rows = [{"path": "lan", "seed": 2**64 - 1, "own": 2**63, "when": stamp, "list": [1, "two"]}, {"path": "lan", "seed": 2**53 + 1, "own": -0.0}]
    answers = wt.predict(rows, set={"cc": "reno"}, size="100kB", seeds=1)
    assert [answer["seed"] for answer in answers] == [2**64 - 1] * 2 + [2**53 + 1] * 2
    assert answers[0]["when"] is stamp and answers[0]["list"] == [1, "two"] and answers[0]["own"] == 2**63
    assert answers[3]["when"] is None and str(answers[3]["own"]) == "-0.0"


def test_own_cells_with_quotes_and_line_breaks_come_back_wherever_they_stand():
    rows = [{"path": "lan", "own": 'a "b",\nc' if at == 700 else f"{at}"} for at in range(1000)]
    answers = wt.predict(rows, set={"cc": "reno"}, size="20kB", seeds=1)
    assert [answer["own"] for answer in answers[::2]] == [row["own"] for row in rows]
    assert [answer["row"] for answer in answers[::2]] == list(range(1, 1001))
    assert len({tuple(sorted(answer.items())) for answer in ({**answer, "row": 0, "own": ""} for answer in answers)}) == 2


def test_frames_of_pandas_come_back_as_such_with_gaps_and_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    frame["seed"] = pandas.array(pandas.Series([2**64 - 1, 3], dtype="uint64"), dtype="UInt64")
    # A gap makes floats of whole numbers.
    frame["seeds"] = [2.0, float("nan")]
    frame["when"] = pandas.to_datetime(["2026-01-01T12:00:00Z", None], utc=True)
    answers = wt.predict(frame, seeds=3, **QUESTION)
    assert isinstance(answers, pandas.DataFrame) and len(answers) == 6
    assert answers["seed"].iloc[0] == 2**64 - 1 and answers["goodput_bps"].dtype == "float64"
    assert answers["gain"].isna().tolist() == [True, False, False] * 2
    assert str(answers["when"].iloc[0]) == "2026-01-01 12:00:00+00:00" and pandas.isna(answers["when"].iloc[5])
    assert answers["worth_measuring"].dtype == bool
    assert answers["site"].tolist() == ["Berlin"] * 3 + ["Oslo"] * 3
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    assert answers["goodput_bps"].tolist() == [row["goodput_bps"] for row in wt.predict(rows, seeds=3, **QUESTION)]


def test_an_index_with_a_name_is_the_answers_and_asks_for_nothing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    plain = wt.predict(frame, **QUESTION)
    assert isinstance(plain.index, pandas.RangeIndex)
    assert isinstance(wt.predict(frame[::-1], **QUESTION).index, pandas.RangeIndex)
    by_site = wt.predict(frame.set_index("site"), **QUESTION)
    assert by_site.index.name == "site" and by_site.index.tolist() == ["Berlin"] * 3 + ["Oslo"] * 3
    assert by_site.loc["Oslo", "goodput_bps"].tolist() == plain[plain["site"] == "Oslo"]["goodput_bps"].tolist()
    # Whatever its name is, as one of the answer's columns.
    two = frame.assign(row=pandas.to_datetime(["2026-01-01", "2026-01-02"]), rtt_class=[1, 2]).set_index(["row", "rtt_class"])
    answers = wt.predict(two, **QUESTION)
    assert answers.index.equals(two.index.take([0, 0, 0, 1, 1, 1])) and answers["row"].tolist() == [1] * 3 + [2] * 3


def test_frames_of_polars_come_back_as_such():
    polars = pytest.importorskip("polars")
    answers = wt.predict(polars.DataFrame(ROWS), **QUESTION)
    assert isinstance(answers, polars.DataFrame)
    assert answers["goodput_bps"].to_list() == [row["goodput_bps"] for row in wt.predict(ROWS, **QUESTION)]


def test_pandas_is_not_imported_for_nobody():
    text = "import sys, windtunnel as wt; wt.predict([{'path': 'lan'}], set='cc=reno', size='100kB'); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0


def test_rows_may_be_yielded_and_none_are_none():
    assert len(wt.predict((dict(row) for row in ROWS), **QUESTION)) == 6
    assert wt.predict([]) == []


def test_a_column_whose_name_is_no_text_keeps_its_cells():
    answers = wt.predict([{"path": "lan", 7: "x"}, {7: "y", "path": "lan"}], set="cc=reno", size="100kB")
    assert [answer["7"] for answer in answers] == ["x", "x", "y", "y"]


def test_times_are_python_s():
    late = wt.predict([{"link_rate": "8mbit", "rtt": datetime.timedelta(milliseconds=40)}], **QUESTION)
    assert late[0]["goodput_bps"] == wt.predict([{"link_rate": "8mbit", "rtt": "40ms"}], **QUESTION)[0]["goodput_bps"]


@pytest.mark.parametrize("own", ['a "quoted", cell\r\nof two lines', "old\rnew"])
def test_cells_with_quotes_and_line_ends_stay_within_their_row(own):
    answers = wt.predict([{"path": "lan", "own": own}, {"path": "lan", "own": ""}], set="cc=reno", size="100kB")
    assert [answer["own"] for answer in answers] == [own, own, "", ""]


@pytest.mark.parametrize(
    "asked, word",
    [
        ([{"link_rate": "8foo"}], "8foo"),
        ([{"link_rat": "8mbit"}], "link_rat"),
        ([{"path": "lan", "seed": -1}], "-1"),
        ([{"path": "lan", "seed": 2**64}], str(2**64)),
        ([{"path": "lan"}, 3], "row 2"),
        ({"path": "lan"}, "one dictionary"),
        ("no-such-path", "no-such-path"),
    ],
)
def test_what_cant_be_asked_is_a_usage_problem_that_names_it(asked, word):
    with pytest.raises(wt.UsageProblem) as caught:
        wt.predict(asked)
    assert word in str(caught.value) and caught.value.code == 2
    assert isinstance(caught.value, ValueError)


def test_a_mistyped_column_says_what_to_try():
    with pytest.raises(wt.Problem) as caught:
        wt.predict([{"link_rat": "8mbit"}])
    assert caught.value.hint and "another name" in caught.value.hint
    assert not caught.value.what.startswith("windtunnel:")


def test_many_rows_cost_little_beyond_the_command():
    rows = [{"site": f"s{number}", "link_rate": f"{1 + number % 90}mbit", "rtt": f"{1 + number % 200}ms"} for number in range(600)]
    text = "site,link_rate,rtt\n" + "".join(",".join(row.values()) + "\n" for row in rows)
    began = time.process_time()
    answers = wt.predict(rows, set="cc=reno", size="20kB")
    mine = time.process_time() - began
    said = program("predict", "--table", "-", "--set=cc=reno", "--size=20kB", given=text)
    assert said.count("\n") == len(answers) + 1 == 1201
    # What Python itself computes for 600 rows: 15 ms on a quiet machine.
    assert mine < 1.0
