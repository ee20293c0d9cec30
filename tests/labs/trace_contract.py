"""The rules that a trace file keeps, so that Perfetto and Holistic Trace Analysis read it as it is
meant: problems_of(path, world_size) lists what is broken.

Source: HolisticTraceAnalysis f4d0062 and Kineto's files; tests/report/trace_file_test.cc checks the
same rules on made traces, this one on those of real runs.
"""
import collections
import json
import re

LIMIT_BYTES = 50_000_000
COMMUNICATION_STREAM = 20


def crossing(events):
    """Two events of one lane of which neither holds the other."""
    open_ends = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        begins, ends = event["ts"], event["ts"] + event["dur"]
        while open_ends and open_ends[-1][0] <= begins:
            open_ends.pop()
        if open_ends and open_ends[-1][0] < ends:
            return open_ends[-1][1], event["name"]
        open_ends.append((ends, event["name"]))
    return None


def head_problems(text, trace, rank, world_size):
    found = re.search(r'"rank":\s+(\d+)', text)
    if not found or int(found.group(1)) != rank:
        yield f"a text search finds rank {found and found.group(1)}"
    if trace["distributedInfo"] != {"backend": "nccl", "rank": rank, "world_size": world_size}:
        yield f"distributedInfo is {trace['distributedInfo']}"
    for key in ("schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds"):
        if key not in trace:
            yield f"{key} is missing"
    if len(text) > LIMIT_BYTES:
        yield f"{len(text)} bytes"


def step_problems(events):
    marks = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    if not marks or marks != [f"ProfilerStep#{k + 1}" for k in range(len(marks))]:
        yield f"steps are marked {marks[:3]}"


def kernel_problems(events):
    launches = {}
    for event in events:
        if event.get("cat") == "cuda_runtime":
            if event["name"] != "cudaLaunchKernel" or "stream" in event["args"]:
                yield f"a launch is {event}"
            if event["args"]["correlation"] in launches:
                yield f"correlation {event['args']['correlation']} is launched twice"
            launches[event["args"]["correlation"]] = event["ts"]
    arrows = collections.Counter((e["id"], e["ph"]) for e in events if e.get("cat") == "ac2g")
    for event in events:
        if event.get("cat") != "kernel":
            continue
        correlation = event["args"]["correlation"]
        if launches.pop(correlation, event["ts"] + 1) > event["ts"]:
            yield f"{event['name']} has no launch of its own before it"
        if event["args"]["stream"] <= 0:
            yield f"{event['name']} is on stream {event['args']['stream']}"
        if arrows[correlation, "s"] != 1 or arrows[correlation, "f"] != 1:
            yield f"{event['name']} has no whole arrow"
        communicates = event["args"]["stream"] == COMMUNICATION_STREAM
        if communicates != event["name"].startswith("ncclKernel_"):
            yield f"{event['name']} is on stream {event['args']['stream']}"
        if communicates and not event["args"].get("transport"):
            yield f"{event['name']} hides its transport"
    if launches:
        yield f"{len(launches)} launches have no kernel"


def lane_problems(events):
    lanes = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            if event["dur"] < 0 or not isinstance(event["ts"], int):
                yield f"{event['name']} lasts {event['dur']} from {event['ts']}"
            lanes[event["pid"], event["tid"]].append(event)
    for lane, of_lane in lanes.items():
        pair = crossing(of_lane)
        if pair:
            yield f"lane {lane}: {pair[1]} crosses {pair[0]}"


def problems_of(path, world_size):
    rank = int(re.fullmatch(r"rank_(\d+)\.json", path.name).group(1))
    text = path.read_text()
    trace = json.loads(text)
    events = trace["traceEvents"]
    if not events or events[0]["ph"] != "M":
        return [f"{path}: the first event is no name"]
    if world_size > 1 and not any("ncclKernel_" in e["name"] for e in events):
        return [f"{path}: nothing was communicated"]
    return [
        f"{path}: {problem}"
        for problems in (
            head_problems(text, trace, rank, world_size),
            step_problems(events),
            kernel_problems(events),
            lane_problems(events),
        )
        for problem in problems
    ]
