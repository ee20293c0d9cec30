#!/usr/bin/env python3
"""Runs the `ranklab run` and `ranklab collective` commands that a document shows, and looks at the
records that the former leave, traces included, and at the latter's results.

    run_documented_labs.py PROGRAM DOCUMENT

What depends on this machine's speed (a ratio, an efficiency) is printed, not judged: exit code 1, a
failed expectation, is accepted where only such expectations failed.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import trace_contract

SPEED = ("efficiency", "ratio", "samples_per_second", "step_ms", "exposed_ms", "could_not_keep_up")


def commands_of(document):
    pattern = re.compile(r"^\s+build/release/ranklab ((?:run|collective) [^#\n]+)", re.MULTILINE)
    return [match.strip() for match in pattern.findall(document.read_text())]


def judge(folder):
    summary = json.loads((folder / "summary.json").read_text())
    problems = [] if summary["cells"] else ["no cell was run"]
    for outcome in summary["expectations"]:
        if not outcome["held"]:
            line = f"{outcome['part']}: {outcome['text']} ({outcome['found']})"
            if any(word in outcome["text"] for word in SPEED):
                print("depends on speed:", line)
            else:
                problems.append(line)
    for name in ("report.html", "table.md", "steps.csv", "lab.yaml", "environment.json"):
        if not (folder / name).is_file():
            problems.append(f"{name} is missing")
    for cell in sorted((folder / "cells").iterdir()):
        traces = sorted((cell / "trace").iterdir())
        for trace in traces:
            problems += trace_contract.problems_of(trace, len(traces))
        problems += trace_contract.alignment_problems(traces)
    if summary["exit_code"] not in (0, 1):
        problems.append(summary["verdict"])
    return problems


def run_lab(words):
    with tempfile.TemporaryDirectory() as out:
        words = [*words, "--out", out]
        print("running:", " ".join(words), flush=True)
        code = subprocess.run(words, timeout=400, stdout=subprocess.DEVNULL).returncode
        folders = list(pathlib.Path(out).iterdir())
        return judge(folders[0]) if folders else [f"no record; exit code {code}"]


def run_collective(words):
    print("running:", " ".join(words), flush=True)
    done = subprocess.run(words, timeout=400, capture_output=True, text=True)
    if "--rivals" in words and "apt-get install" in done.stderr and done.returncode == 2:
        print("not here:", done.stderr.strip())
        return []
    return [] if done.returncode == 0 else [f"exit code {done.returncode}: {done.stderr}"]


def main():
    program, document = sys.argv[1], pathlib.Path(sys.argv[2])
    commands = commands_of(document)
    if not commands:
        sys.exit(f"{document} shows no command")
    failed = 0
    for command in commands:
        words = [program, *shlex.split(command)]
        problems = run_collective(words) if words[1] == "collective" else run_lab(words)
        for problem in problems:
            print("PROBLEM:", problem)
        failed += bool(problems)
    sys.exit(1 if failed else 0)


main()
