"""The rules that a trace file keeps, so that Perfetto and Holistic Trace Analysis read it as it is
meant: problems_of(path, world_size) lists what is broken.

Source: HolisticTraceAnalysis f4d0062 and Kineto's files; tests/report/trace_file_test.cc checks the
same rules on made traces, this one on those of real runs.
"""
import collections
import json
import re

LIMIT_BYTES = 50_000_000
COMPUTE_STREAM = 7
COMMUNICATION_STREAM = 20
# What the file's whole microseconds may be off at either end of an event.
ROUNDING_US = 2


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
    # The first match wins, and without the blank there is none: then every rank is rank 0.
    found = re.search(r'"rank":\s+(\d+)', text)
    if not found or int(found.group(1)) != rank:
        yield f"a text search finds rank {found and found.group(1)}"
    if re.search(r'"rank":', text[text.index('"traceEvents"'):]):
        yield "an event has a lower-case rank in its arguments"
    if trace["distributedInfo"] != {"backend": "nccl", "rank": rank, "world_size": world_size}:
        yield f"distributedInfo is {trace['distributedInfo']}"
    for key in ("schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds"):
        if key not in trace:
            yield f"{key} is missing"
    if trace["schemaVersion"] != 1 or trace["displayTimeUnit"] != "ms":
        yield f"schema {trace['schemaVersion']} in {trace['displayTimeUnit']}"
    if len(text.encode()) > LIMIT_BYTES:
        yield f"{len(text.encode())} bytes"
    labels = [e["args"]["labels"] for e in trace["traceEvents"] if e["name"] == "process_labels"]
    if trace["ranklab"]["capped"] != any(label.startswith("capped at") for label in labels):
        yield f"capped is {trace['ranklab']['capped']}, the process's labels are {labels}"


def step_problems(events):
    marks = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    if any("stream" in e["args"] for e in events if e.get("cat") == "user_annotation"):
        yield "a step's mark is on a stream"
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
        if event["args"]["stream"] not in (COMPUTE_STREAM, COMMUNICATION_STREAM):
            yield f"{event['name']} is on stream {event['args']['stream']}"
        if arrows[correlation, "s"] != 1 or arrows[correlation, "f"] != 1:
            yield f"{event['name']} has no whole arrow"
        communicates = event["args"]["stream"] == COMMUNICATION_STREAM
        if communicates != event["name"].startswith("ncclKernel_"):
            yield f"{event['name']} is on stream {event['args']['stream']}"
        # A name that begins like a copy's or a library's would be classified as one.
        if not communicates and not event["name"].startswith("ranklab_"):
            yield f"{event['name']} is no compute kernel's name"
        if communicates and event["args"].get("transport") not in ("tcp", "grpc"):
            yield f"{event['name']} hides its transport"
        if communicates and not event["args"].get("bytes"):
            yield f"{event['name']} moved nothing"
    if launches:
        yield f"{len(launches)} launches have no kernel"


def name_problems(events):
    """Everything is named before it appears, and nobody is told that this was a GPU."""
    names = {(e["name"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and "name" in e["args"]}
    process = names.get(("process_name", 0), "")
    if not re.fullmatch(r"rank \d+ \(CPU, device lane emulated\)", process):
        yield f"the process is called {process!r}"
    for lane in {e["tid"] for e in events if e["ph"] == "X"}:
        if ("thread_name", lane) not in names:
            yield f"lane {lane} has no name"
    for event in events:
        if event["ph"] not in ("M", "X", "s", "f", "C"):
            yield f"{event['name']} is of phase {event['ph']}"
        if event["ph"] == "X" and not (event.get("cat") and "dur" in event):
            yield f"{event['name']} has no category or no duration and is dropped"
        if event.get("cat") == "Trace":
            yield f"{event['name']} is of a category that is dropped"
        if event["ph"] == "C" and not all(isinstance(v, (int, float)) for v in event["args"].values()):
            yield f"counter {event['name']} has the values {event['args']}"


def counter_problems(events):
    steps = sum(e.get("cat") == "user_annotation" for e in events)
    depths = [e["args"]["value"] for e in events if e["ph"] == "C" and e["name"] == "input queue depth"]
    if len(depths) != steps or any(depth < 0 for depth in depths):
        yield f"{steps} steps have {len(depths)} input queue depths, the least {min(depths, default=None)}"


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
    if world_size > 1 and not any(e["name"].startswith("ncclKernel_") for e in events):
        return [f"{path}: nothing was communicated"]
    return [
        f"{path}: {problem}"
        for problems in (
            head_problems(text, trace, rank, world_size),
            step_problems(events),
            name_problems(events),
            kernel_problems(events),
            counter_problems(events),
            lane_problems(events),
        )
        for problem in problems
    ]


def alignment_problems(paths):
    """Ranks share their time: nobody leaves a collective before all have entered it."""
    spans = collections.defaultdict(list)
    for path in paths:
        for event in json.loads(path.read_text())["traceEvents"]:
            args = event.get("args", {})
            if event.get("cat") == "kernel" and "Seq" in args:
                key = args["Process Group Name"], args["Seq"], args["bucket"]
                spans[key].append((event["ts"], event["ts"] + event["dur"]))
    problems = []
    for key, of_ranks in spans.items():
        if len(of_ranks) != len(paths):
            problems.append(f"{len(of_ranks)} of {len(paths)} ranks took part in collective {key}")
        elif max(s[0] for s in of_ranks) > min(s[1] for s in of_ranks) + ROUNDING_US:
            problems.append(f"some rank left collective {key} before another had entered: {of_ranks}")
    return problems[:5]


def busy_union(intervals):
    """Their instants, each in one interval only."""
    apart = []
    for begins, ends in sorted(intervals):
        if apart and begins <= apart[-1][1]:
            apart[-1][1] = max(apart[-1][1], ends)
        else:
            apart.append([begins, ends])
    return apart


def breakdown_of(path, warmup):
    """Mean seconds of a counted step: compute, and communication beside it. As HTA computes its
    temporal breakdown and its overlap, from the kernels alone."""
    events = json.loads(path.read_text())["traceEvents"]
    steps = [e for e in events if e.get("cat") == "user_annotation"][warmup:]
    first, last = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    lanes = {COMPUTE_STREAM: [], COMMUNICATION_STREAM: []}
    for event in events:
        if event.get("cat") == "kernel" and first <= event["ts"] < last:
            lanes[event["args"]["stream"]].append((event["ts"], event["ts"] + event["dur"]))
    compute, communication = (busy_union(lanes[s]) for s in (COMPUTE_STREAM, COMMUNICATION_STREAM))
    hidden = sum(
        max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in compute for b in communication
    )
    seconds = len(steps) * 1e6
    return {
        "compute": sum(ends - begins for begins, ends in compute) / seconds,
        "hidden": hidden / seconds,
        "step": sum(step["dur"] for step in steps) / seconds,
    }
