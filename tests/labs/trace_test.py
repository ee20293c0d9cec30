#!/usr/bin/env python3
"""Runs tests/labs/traced.yaml and holds its traces against their contract.

    trace_test.py PROGRAM LAB contract    every rule, and the summary's breakdown against the traces
    trace_test.py PROGRAM LAB hta         the calls of Holistic Trace Analysis, where it is installed

Exit code 77: not run, with the reason.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import trace_contract

SKIPPED = 77
WARMUP_STEPS = 2


def record_of(program, lab, out):
    subprocess.run([program, "run", lab, "--out", out], check=True, timeout=300, stdout=subprocess.DEVNULL)
    (folder,) = pathlib.Path(out).iterdir()
    return folder


def traces_of(folder):
    for cell in sorted((folder / "cells").iterdir()):
        part, index, _ = cell.name.rsplit("-", 2)
        yield part, int(index), sorted((cell / "trace").glob("rank_*.json"))


def breakdown_problems(folder):
    """The table's figures and what the kernels of the trace say, computed apart: within 1 % of the
    step, as a reader of both would see."""
    summary = json.loads((folder / "summary.json").read_text())
    cells = {(cell["part"], cell["cell"]): cell for cell in summary["cells"]}
    for part, index, traces in traces_of(folder):
        for bar in cells[part, index]["breakdown"]:
            traced = trace_contract.breakdown_of(traces[bar["rank"]], WARMUP_STEPS)
            told = {
                "compute": bar["forward"] + bar["backward"] + bar["optimizer"],
                "hidden": bar["hidden"],
            }
            for what, seconds in told.items():
                # Whole microseconds at either end of at most 16 kernels a step.
                allowed = 0.01 * traced["step"] + 16e-6
                if abs(seconds - traced[what]) > allowed:
                    yield f"{part} {index} rank {bar['rank']}: {what} is {seconds} s a step, {traced[what]} in the trace"


def starvation_problems(folder):
    """A slowed loader shows as an empty queue."""
    for part, _, traces in traces_of(folder):
        if part != "shaped" or len(traces) < 2:  # the row `none` is undisturbed
            continue
        events = json.loads(traces[1].read_text())["traceEvents"]
        depths = [e["args"]["value"] for e in events if e["ph"] == "C"]
        # What was gathered before the injection lasts for some steps more.
        if min(depths[5:8]) != 0:
            yield f"a starved rank's queue had the depths {depths}"


def report_problems(program, folder):
    """`ranklab report` has a row a rank, and no figure that cannot be."""
    summary = json.loads((folder / "summary.json").read_text())
    ranks = sum(len(cell["breakdown"]) for cell in summary["cells"])
    words = [program, "report", str(folder)]
    done = subprocess.run(words, timeout=60, capture_output=True, text=True)
    rows = sum(bool(re.search(r"\d %.*\d %", line)) for line in done.stdout.splitlines())
    # A peak that was measured while the cores were busy may be too low; then it is refused, here too.
    refused = any(f["code"] == "IMPOSSIBLE_UTILIZATION" for cell in summary["cells"] for f in cell["findings"])
    if done.returncode != (2 if refused else 0) or ("cannot be" in done.stderr) != refused:
        yield f"report ended with {done.returncode}, a figure was {'' if refused else 'not '}refused: {done.stderr}"
    if rows < ranks or "N = " not in done.stdout or "peak: " not in done.stdout:
        yield f"the report of {ranks} ranks is {done.stdout}"
    for bar in (bar for cell in summary["cells"] for bar in cell["breakdown"]):
        known = bar["mfu"] is not None
        if known and not 0 < bar["mfu"] <= bar["hfu"] <= 1 or not known and not refused:
            yield f"rank {bar['rank']} has the MFU {bar['mfu']} and the HFU {bar['hfu']}"
    summary["cells"][0]["breakdown"][0]["mfu"] = 1.56
    (folder / "summary.json").write_text(json.dumps(summary))
    done = subprocess.run(words, timeout=60, capture_output=True, text=True)
    if done.returncode != 2 or "more than 100 % cannot be" not in done.stderr:
        yield f"an MFU of 156 % ended with {done.returncode}: {done.stderr}"


def contract(folder, program):
    problems = [*breakdown_problems(folder), *starvation_problems(folder)]
    summary = json.loads((folder / "summary.json").read_text())
    workers = {(cell["part"], cell["cell"]): cell["workers"] for cell in summary["cells"]}
    for part, index, traces in traces_of(folder):
        if len(traces) != workers[part, index]:
            problems.append(f"{part} {index} of {workers[part, index]} workers has {len(traces)} traces")
        for trace in traces:
            problems += trace_contract.problems_of(trace, len(traces))
        problems += trace_contract.alignment_problems(traces)
    return [*problems, *report_problems(program, folder)]


def hta(folder, trace_analysis):
    """The ten calls that a course makes of a folder of traces; whatever they raise is a problem."""
    problems = []
    for part, index, traces in traces_of(folder):
        if len(traces) < 2:  # nothing to communicate
            continue
        analysis = trace_analysis.TraceAnalysis(
            trace_files={rank: str(trace) for rank, trace in enumerate(traces)}, trace_dir=str(traces[0].parent)
        )
        ranks = list(range(len(traces)))
        calls = {
            "temporal breakdown": lambda: analysis.get_temporal_breakdown(visualize=False),
            "overlap": lambda: analysis.get_comm_comp_overlap(visualize=False),
            "idle time": lambda: analysis.get_idle_time_breakdown(ranks=ranks, visualize=False),
            "kernels": lambda: analysis.get_gpu_kernel_breakdown(visualize=False),
            "stragglers": lambda: analysis.get_potential_stragglers(num_candidates=1),
            "queue length": lambda: analysis.get_queue_length_summary(ranks),
            "launches": lambda: analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False),
            "memory bandwidth": lambda: analysis.get_memory_bw_summary(ranks),
            "profiler steps": analysis.get_profiler_steps,
            "critical path": lambda: analysis.critical_path_analysis(
                rank=0, annotation="ProfilerStep", instance_id=3
            ),
        }
        for name, call in calls.items():
            try:
                call()
            except Exception as error:  # whatever a library of others raises
                problems.append(f"{part} {index}: {name}: {error!r}")
        if analysis.get_comm_comp_overlap(visualize=False).isnull().values.any():
            problems.append(f"{part} {index}: the overlap is no number")
        if analysis.get_profiler_steps()[:3] != [1, 2, 3]:
            problems.append(f"{part} {index}: the steps are {analysis.get_profiler_steps()}")
    return problems


def main():
    program, lab, mode = sys.argv[1:]
    analyze = lambda folder: contract(folder, program)
    if mode == "hta":
        try:
            from hta import trace_analysis
        except ImportError as error:
            print(f"skipped: {error}; pip install HolisticTraceAnalysis, and its calls are run on our traces")
            sys.exit(SKIPPED)
        analyze = lambda folder: hta(folder, trace_analysis)
    with tempfile.TemporaryDirectory() as out:
        problems = analyze(record_of(program, lab, out))
    for problem in problems:
        print("PROBLEM:", problem)
    sys.exit(1 if problems else 0)


main()
