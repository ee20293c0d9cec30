#!/usr/bin/env python3
"""docker/compose.yaml for real: a pool of containers, labs on it, faults, verdicts, and nothing left.

compose_test.py FOLDER PROJECT    FOLDER is made; PROJECT names the compose project. The image is
RANKLAB_IMAGE. scripts/compose_test.sh finds an engine, makes the image and calls this.
"""

import csv
import glob
import json
import os
import re
import statistics
import subprocess
import sys

from cluster import SERVERS, WORKERS, Cluster, Failure, Lab, check, run, say, wait_until

CALLER = 12345  # the user and group of the caller's folder, where the test may choose: as root

COMMON = """seed: 3
model:    {kind: mlp, layers: [64, 256, 256, 10]}
data:     {kind: digits}
compute:  {model: a100}
"""
LABS = {
    "exchange": """
train:    {steps: 5, batch_per_worker: 32}
cluster:  {workers: 4, servers: 2}
fabric:   {time_scale: 700}
sweep:
  fabric.preset: [nvlink4, ethernet_10g]
  exchange: [{kind: collective, algorithm: ring}, {kind: ps, order: rank}]
expect: [param_hash equal across ranks]
""",
    # A modelled step of about 80 us: 240 ms here, far above what a busy machine adds.
    "slow": """
train:    {steps: 45, batch_per_worker: 16, warmup_steps: 0}
cluster:  {workers: 4}
fabric:   {preset: nvlink4, time_scale: 3000}
""",
    "long": """
train:    {steps: 100000, batch_per_worker: 16}
cluster:  {workers: 4, on_loss: stop, suspect_after: 3s}
fabric:   {preset: nvlink4, time_scale: 1000}
""",
    "everybody": """
train:    {steps: 5, batch_per_worker: 32}
cluster:  {workers: all}
fabric:   {preset: nvlink4, time_scale: 700}
""",
}


def prepare(folder):
    labs = os.path.join(folder, "caller", "labs")
    os.makedirs(labs)
    for name, text in LABS.items():
        with open(os.path.join(labs, f"{name}.yaml"), "w") as lab:
            lab.write(f"name: {name}\n{COMMON}{text}")
    os.chmod(folder, 0o755)
    if os.geteuid() == 0:
        for path in (os.path.dirname(labs), labs):
            os.chown(path, CALLER, CALLER)


def bring_up(cluster):
    cluster.compose("up", "-d", seconds=90)
    cluster.coordinator = cluster.containers("coordinator")[0]
    cluster.await_pool()
    hosts = [member["host"] for member in cluster.status()["members"]]
    check(not any(host.startswith("127.") for host in hosts), f"advertised: {hosts}")
    say(f"up: {1 + len(hosts)} containers, found each other by name")


def check_settings(cluster):
    worker = cluster.containers("worker")[0]
    settings = json.loads(run(["docker", "inspect", worker], 30))[0]
    check(settings["HostConfig"]["NanoCpus"] == 800_000_000, "RANKLAB_CPUS is not the CPU quota")
    check(settings["HostConfig"]["Memory"] == 512 << 20, "RANKLAB_MEMORY is not the memory limit")
    user = run(["docker", "exec", worker, "id", "-u"], 30).strip()
    check(user == "7070", f"the program runs as user {user}")


def check_health(cluster):
    def healthy():
        ids = [line for service in ("coordinator", "ps", "worker")
               for line in cluster.containers(service)]
        states = run(["docker", "inspect", "--format", "{{.State.Health.Status}}", *ids], 30).split()
        return len(states) == 1 + WORKERS + SERVERS and set(states) == {"healthy"}
    wait_until("healthy containers", 60, healthy)
    say("all containers are healthy")


def run_both_exchanges(cluster):
    """Ring and parameter server, over a fast and a slow network: the links between containers."""
    lab = Lab(cluster, "exchange")
    record = lab.end(0, 90)
    with open(os.path.join(record, "summary.json")) as text:
        summary = json.load(text)
    step = {}
    for cell in summary["cells"]:
        if not cell["baseline"]:
            check(cell["kind"] == "shaped", f"a cell is {cell['kind']}")
            check(cell["bytes_sent_per_step"] > 0, "nothing was sent")
            step[cell["exchange"], cell["fabric"]] = cell["step_seconds"]["median"]
    check(len(step) == 4, f"cells: {sorted(step)}")
    for exchange in ("ring", "ps"):
        slow, fast = step[exchange, "ethernet_10g"], step[exchange, "nvlink4"]
        check(slow > 3 * fast, f"{exchange}: {slow} s on ethernet_10g, {fast} s on nvlink4")
    owner = CALLER if os.geteuid() == 0 else os.geteuid()
    for path in (record, os.path.join(record, "summary.json"), os.path.join(record, "report.html")):
        check(os.stat(path).st_uid == owner, f"{path} belongs to {os.stat(path).st_uid}")
    say("ring and ps ran over two networks; the record is the caller's")


def slow_a_rank(cluster):
    lab = Lab(cluster, "slow")
    lab.await_step(8)
    cluster.ranklab("inject", "--rank", "2", "--slow", "backward=3x")
    lab.await_step(22)
    cluster.ranklab("inject", "--reset")
    record = lab.end(0)
    lines = []
    for name in glob.glob(os.path.join(record, "cells", "*", "injections.jsonl")):
        with open(name) as text:
            lines += [json.loads(line) for line in text]
    applied = [line for line in lines if line["member"] == "worker 2" and "backward" in line["asked"]]
    check(applied, f"no injection into worker 2 in {lines}")
    begin = min(line["step"] for line in applied)
    ended = min(line["step"] for line in lines if "reset" in line["asked"])
    check(8 <= begin < ended, f"applied at step {begin}, reset at step {ended}")
    with open(os.path.join(record, "steps.csv")) as text:
        steps = list(csv.DictReader(text))
    for rank in range(WORKERS):
        def backward(first, last, rank=rank):
            return statistics.median(float(row["backward_s"]) for row in steps
                                     if row["rank"] == str(rank) and first <= int(row["step"]) < last)
        clean, hit, after = backward(1, begin), backward(begin + 1, ended), backward(ended + 1, 999)
        check((hit > 2 * clean) == (rank == 2), f"rank {rank}: backward {clean} s, then {hit} s")
        check(after < 1.5 * clean, f"rank {rank}: backward {after} s after the reset")
    say(f"worker 2 was slow from step {begin} to {ended} and nobody else")


def lose(cluster, rank, fault, verdict):
    """A fault hits the container of a worker in mid-lab: the verdict names its rank."""
    lab = Lab(cluster, "long")
    lab.await_step(3)
    container = cluster.container_of(rank)
    fault(container)
    record = lab.end(3)
    with open(os.path.join(record, "summary.json")) as text:
        said = json.load(text)["verdict"]
    check(re.search(f"^worker {rank} was lost in step [0-9]+ of .*{verdict}", said), said)
    say(f"verdict: {said}")
    return container


def kill_one(cluster):
    lose(cluster, 1, lambda container: run(["docker", "kill", container], 30), "closed")
    cluster.compose("up", "-d", seconds=90)
    cluster.await_pool()
    say("the killed worker is back in the pool")


def cut_one_off(cluster):
    network = f"{cluster.project}_lab"
    container = lose(cluster, 3, lambda container: run(
        ["docker", "network", "disconnect", network, container], 30), "no heartbeat for")
    run(["docker", "network", "connect", network, container], 30)
    cluster.await_pool()
    say("the one that was cut off has joined again")


def restart_and_scale(cluster):
    """Restarting the workers ends the lab in progress, as its on_loss says; then a larger pool."""
    lab = Lab(cluster, "long")
    lab.await_step(3)
    cluster.compose("restart", "-t", "5", "worker", seconds=60)
    lab.end(3)
    cluster.await_pool()
    cluster.compose("up", "-d", "--scale", f"worker={WORKERS + 1}", seconds=90)
    cluster.await_pool(WORKERS + 1)
    record = Lab(cluster, "everybody").end(0)
    with open(os.path.join(record, "summary.json")) as text:
        cells = [cell["workers"] for cell in json.load(text)["cells"] if not cell["baseline"]]
    check(cells == [WORKERS + 1], f"workers: all ran with {cells}")
    say("restarted, scaled to 5 without an edit, and ran with all of them")


def run_over_hosts(cluster):
    """Workers that share no network with each other or the pool: only published ports connect them, as
    between hosts. The engine's own machine, as containers see it, stands for every host."""
    host = run(["docker", "network", "inspect", f"{cluster.project}_lab", "--format",
                "{{(index .IPAM.Config 0).Gateway}}"], 30).strip()
    check(host, "the pool's network has no gateway")
    coordinator = run(["docker", "port", cluster.coordinator, "7070/tcp"], 30).split()[0]
    cluster.compose("up", "-d", "--scale", "worker=0", "--scale", "ps=0", seconds=90)
    label = f"com.docker.compose.project={cluster.project}"
    for number, port in enumerate((17081, 17083)):
        name = f"{cluster.project}_host{number}"
        run(["docker", "network", "create", "--label", label, name], 30)
        run(["docker", "run", "-d", "--name", name, "--label", label, "--network", name,
             "-v", f"{cluster.lab_folder}/labs:/work/labs:ro",
             "-p", f"{port}:{port}", "-p", f"{port + 1}:{port + 1}",
             "--health-cmd", f"ranklab health 127.0.0.1:{port}", os.environ["RANKLAB_IMAGE"], "worker", "--coordinator", f"{host}:{coordinator.rsplit(':', 1)[1]}",
             "--advertise", host, "--listen", f"0.0.0.0:{port}", "--tcp-port", str(port + 1)], 30)
    cluster.await_pool(2, 0)
    record = Lab(cluster, "everybody").end(0)
    with open(os.path.join(record, "summary.json")) as text:
        cells = [cell["workers"] for cell in json.load(text)["cells"] if not cell["baseline"]]
    check(cells == [2], f"workers: all ran with {cells}")
    for number in range(2):
        name = f"{cluster.project}_host{number}"
        run(["docker", "rm", "-f", "-v", name], 30)
        run(["docker", "network", "rm", name], 30)
    say("two workers that only published ports connect ran a lab")


def restarts_of(container):
    return int(run(["docker", "inspect", "--format", "{{.RestartCount}}", container], 30))


def check_pool_stayed(cluster):
    """Through all losses: whoever was not hit is the process that it was."""
    ids = [*cluster.containers("ps"), cluster.coordinator]
    check(not any(restarts_of(container) for container in ids), "a service ended by itself")


def take_down(cluster):
    cluster.compose("down", "-v", "--remove-orphans", "-t", "5", seconds=60)
    label = f"label=com.docker.compose.project={cluster.project}"
    for kind, command in {"containers": ["ps", "-aq"], "networks": ["network", "ls", "-q"],
                          "volumes": ["volume", "ls", "-q"]}.items():
        left = run(["docker", *command, "--filter", label], 30).split()
        check(not left, f"{kind} are left: {left}")
    say("down: no container, network or volume is left")


def main():
    folder, project = sys.argv[1:]
    prepare(folder)
    cluster = Cluster(folder, project)
    try:
        bring_up(cluster)
        check_settings(cluster)
        run_both_exchanges(cluster)
        check_health(cluster)
        slow_a_rank(cluster)
        kill_one(cluster)
        cut_one_off(cluster)
        restart_and_scale(cluster)
        check_pool_stayed(cluster)
        run_over_hosts(cluster)
    except BaseException as failure:
        logs = subprocess.run(cluster.command("logs", "--no-color", "--tail=15"), env=cluster.env,
                              capture_output=True, text=True, timeout=30, check=False)
        print(f"{logs.stdout[-6000:]}\nFAILED: {failure}", flush=True)
        subprocess.run(cluster.command("down", "-v", "--remove-orphans", "-t", "1"), env=cluster.env,
                       capture_output=True, timeout=60, check=False)
        if not isinstance(failure, Failure):
            raise
        return 1
    take_down(cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main())
