"""Analyses, problems, options, and the program."""

import datetime
import json
import pathlib

import pytest
from conftest import program

import windtunnel as wt
from windtunnel._options import flags
from windtunnel._problem import from_text

TTL = [{"ttl": ttl, "series1": a, "series2": b, "series3": c, "series4": d} for ttl, a, b, c, d in
       [(0, 1309, 1597, 1888, 1206), (32, 1327, 1597, 1597, 1109), (64, 1420, 1500, 1700, 1200)]]


def test_an_analysis_is_the_json_of_the_command(tmp_path):
    file = tmp_path / "ttl.csv"
    file.write_text("ttl,series1,series2,series3,series4\n" + "".join(",".join(map(str, row.values())) + "\n" for row in TTL))
    said = json.loads(program("analyse", str(file), "--json"))
    assert wt.analyse(file) == said
    mine = wt.analyse(TTL)
    assert {name for name in said if said[name] != mine[name]} <= {"file", "source", "table", "name"}
    pandas = pytest.importorskip("pandas")
    assert wt.analyse(pandas.DataFrame(TTL)) == mine


def test_levels_that_are_true_and_false_are_called_so():
    rows = [{"tuned": tuned, "rate": rate} for tuned, rate in zip([True, False] * 3, [1, 2, 1.1, 2.1, 1.2, 2])]
    assert {group["level"] for group in wt.analyse(rows)["describe"]} == {"True", "False"}
    pandas = pytest.importorskip("pandas")
    assert {group["level"] for group in wt.analyse(pandas.DataFrame(rows))["describe"]} == {"True", "False"}


def test_a_table_without_outcomes_is_a_problem():
    with pytest.raises(wt.UsageProblem):
        wt.analyse([{"a": "x"}, {"a": "y"}])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"up_rate": "1mbit"}, ["--up-rate=1mbit"]),
        ({"strict": True, "screen": False, "comment": None}, ["--strict"]),
        ({"set": {"cc": "bbr", "sack": False, "mtu_probing": True}}, ["--set=cc=bbr,sack=off,mtu-probing=on"]),
        ({"levels": {"rwin": ["4x", 65536], "sack": [True, False]}}, ["--levels=rwin=4x,65536", "--levels=sack=on,off"]),
        ({"levels": ["rwin=4x", "mtu=1400"]}, ["--levels=rwin=4x", "--levels=mtu=1400"]),
        ({"arm": {"tuned": {"rwin": "64KiB"}}}, ["--arm=tuned: rwin=64KiB"]),
        ({"knobs": ["rwin", "cc"]}, ["--knobs=rwin,cc"]),
        ({"knobs": {"rwin", "cc", "mtu"}}, ["--knobs=cc,mtu,rwin"]),
        ({"knobs": (knob for knob in ("rwin", "cc"))}, ["--knobs=rwin,cc"]),
        ({"set": [{"cc": "bbr"}, {"initcwnd": 20, "mtu_probing": True}]}, ["--set=cc=bbr", "--set=initcwnd=20,mtu-probing=on"]),
        ({"set": ["cc=bbr", {"sack": False}]}, ["--set=cc=bbr", "--set=sack=off"]),
        ({"levels": [{"rwin": ("4x", 65536)}, {"sack": [True, False]}]}, ["--levels=rwin=4x,65536", "--levels=sack=on,off"]),
        ({"levels": {"mtu": range(1400, 1402)}}, ["--levels=mtu=1400,1401"]),
        ({"arm": [{"rwin": "64KiB"}, {"tuned": {"cc": "bbr"}}]}, ["--arm=rwin=64KiB", "--arm=tuned: cc=bbr"]),
        ({"journal": pathlib.Path("j.sqlite3")}, ["--journal=j.sqlite3"]),
        ({"seed": 2**64 - 1}, ["--seed=18446744073709551615"]),
        ({"rtt": datetime.timedelta(milliseconds=40)}, ["--rtt=40000us"]),
    ],
)
def test_keywords_are_options(options, words):
    assert flags(options) == words


def test_problems_are_read_from_objects_and_from_text():
    told = 'a warning\n{"fault":"remote","code":4,"what":"the server is gone","cause":"why","try":"again"}\n'
    problem = from_text(4, told)
    assert (type(problem), problem.what, problem.cause, problem.hint) == (wt.RemoteProblem, "the server is gone", "why", "again")
    assert str(problem) == "the server is gone\n  cause: why\n  try:   again"
    problem = from_text(3, "note\nwindtunnel: can't\nin two lines\n  cause: this\n  try:   that\n")
    assert (type(problem), problem.what, problem.cause, problem.hint) == (wt.EnvironmentProblem, "can't\nin two lines", "this", "that")
    assert "signal 9" in from_text(-9, "").what


def test_what_is_said_of_a_mistyped_call_has_what_and_hint_apart():
    for options, what, hint in [
        ({"set": "x"}, "invalid value 'x' for '--set <KNOB=LEVEL,…>': write KNOB=LEVEL, such as rwin=64KiB", "windtunnel --help"),
        ({"knob": "cc"}, "unexpected argument '--knob' found", "a similar argument exists: '--knobs'"),
    ]:
        with pytest.raises(wt.UsageProblem) as of_a_table:
            wt.predict([{"path": "lan"}], **options)
        assert (of_a_table.value.what, of_a_table.value.hint.startswith(hint)) == (what, True)
        with pytest.raises(wt.UsageProblem) as of_a_path:
            wt.predict("lan", **options)
        assert of_a_path.value.what == what


@pytest.mark.parametrize(
    "name, why", [("/no/such", "no such file"), ("{folder}", "it is a folder"), ("{file}", "it isn't executable"), ("no-such-program", "$PATH has no such program")]
)
def test_what_windtunnel_names_and_isnt_there_is_this_machines_problem(name, why, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    name = name.format(folder=tmp_path, file=tmp_path / "file")
    monkeypatch.setenv("WINDTUNNEL", name)
    for asked in [wt.version, lambda: wt.predict([{"path": "lan"}]), lambda: wt.lab("lan"), lambda: wt.tune(lab="lan"), wt.program]:
        with pytest.raises(wt.EnvironmentProblem) as caught:
            asked()
        assert caught.value.what == f"WINDTUNNEL names {name}, which can't be run: {why}"
        assert "unset it" in caught.value.hint


def test_a_name_without_a_folder_is_looked_for_in_path(monkeypatch):
    monkeypatch.setenv("PATH", wt.program().rpartition("/")[0], prepend=":")
    monkeypatch.setenv("WINDTUNNEL", "windtunnel")
    assert wt.program().endswith("/env/bin/windtunnel")


def test_a_program_that_vanishes_or_is_another_one_is_told_as_such(monkeypatch):
    said = from_text(127, "4: 1: exec: /no/such: not found\n")
    assert type(said) is wt.EnvironmentProblem and said.what == "the program can't be run: /no/such: not found"
    for name, asked in [("true", wt.version), ("true", lambda: wt.predict([{"path": "lan"}])), ("echo", lambda: wt.predict([{"path": "lan"}])), ("echo", lambda: wt.lab("lan"))]:
        monkeypatch.setenv("WINDTUNNEL", name)
        with pytest.raises(wt.InternalProblem):
            asked()


def test_any_command_answers_and_fails_as_itself():
    assert wt.command("lab", "show", "adsl") == json.loads(program("lab", "show", "adsl", "--json"))
    with pytest.raises(wt.UsageProblem):
        wt.command("lab", "show", "no-such-path")


def test_the_program_is_the_one_of_the_wheel():
    assert wt.program().endswith("/env/bin/windtunnel")
    assert program("--version").split() == ["windtunnel", wt.version()]
