"""A cluster of containers seen from outside: docker-compose, docker and `ranklab` inside them.

Every wait has a deadline, and what was waited for is in the Failure that it ends with.
"""

import glob
import json
import os
import shutil
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKERS, SERVERS = 4, 2  # docker/compose.yaml
BEGIN = time.monotonic()


class Failure(Exception):
    pass


def check(claim, words):
    if not claim:
        raise Failure(words)


def say(words):
    print(f"compose_test.py: {time.monotonic() - BEGIN:5.1f} s  {words}", flush=True)


def run(command, seconds, env=None):
    """Standard output; a Failure with what the command said when it fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=env,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command)}: still running after {seconds} s") from None
    check(done.returncode == 0,
          f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_until(what, seconds, ready):
    """The first true value of ready(); a Failure that says what was waited for, and what was seen."""
    until = time.monotonic() + seconds
    while True:
        seen = ready()
        if seen:
            return seen
        check(time.monotonic() < until, f"waited {seconds} s for {what}")
        time.sleep(0.3)


class Lab:
    """`docker-compose run --rm lab FILE` in the background, and the record that it leaves."""

    def __init__(self, cluster, name):
        self.name = name
        self.out = os.path.join(cluster.folder, f"{name}.out")
        self.before = set(cluster.records())
        self.cluster = cluster
        with open(self.out, "w") as out:
            self.process = subprocess.Popen(
                cluster.command("run", "--rm", "-T", "lab", f"labs/{name}.yaml"), env=cluster.env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def said(self):
        with open(self.out) as out:
            return out.read()

    def await_step(self, step):
        """Until all workers are past `step` of this lab."""
        def past():
            check(self.process.poll() is None, f"lab {self.name} ended early:\n{self.said()}")
            status = self.cluster.status()
            workers = [member for member in status.get("members", [])
                       if member["role"] == "ROLE_WORKER" and member["rank"] >= 0]
            return (status.get("lab", "").startswith(self.name) and len(workers) == WORKERS
                    and all(int(member["step"]) > step for member in workers) and workers)
        return wait_until(f"step {step} of {self.name}", 60, past)

    def end(self, exit_code, seconds=60):
        """Waits; returns the record's folder."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"lab {self.name} still runs after {seconds} s:\n{self.said()}") from None
        check(code == exit_code, f"lab {self.name}: exit code {code}, not {exit_code}\n{self.said()}")
        new = set(self.cluster.records()) - self.before
        check(len(new) == 1, f"lab {self.name} left the records {sorted(new)}")
        return new.pop()


class Cluster:
    def __init__(self, folder, project):
        self.folder = folder
        self.project = project
        self.lab_folder = os.path.join(folder, "caller")
        self.env = dict(os.environ, RANKLAB_FOLDER=self.lab_folder, RANKLAB_PUBLISH="0.0.0.0:",
                        RANKLAB_CPUS="0.8", RANKLAB_MEMORY="512m", COMPOSE_PROJECT_NAME=project)
        self.program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        self.coordinator = ""

    def command(self, *words):
        return [*self.program, "-f", os.path.join(SOURCE, "docker", "compose.yaml"), *words]

    def compose(self, *words, seconds=60):
        return run(self.command(*words), seconds, self.env)

    def containers(self, service):
        return self.compose("ps", "-q", service).split()

    def records(self):
        return glob.glob(os.path.join(self.lab_folder, "runs", "*"))

    def ranklab(self, *words):
        return run(["docker", "exec", self.coordinator, "ranklab", *words], 30)

    def status(self):
        try:
            return json.loads(self.ranklab("status", "--json"))
        except Failure:
            return {}  # nobody answers

    def container_of(self, rank):
        """Of a worker of the running lab. A container's name to its peers is its short id."""
        return next(member["host"] for member in self.status()["members"]
                    if member["role"] == "ROLE_WORKER" and member["rank"] == rank)

    def await_pool(self, workers=WORKERS, servers=SERVERS):
        def joined():
            roles = [member["role"] for member in self.status().get("members", [])]
            return (roles.count("ROLE_WORKER"), roles.count("ROLE_SERVER")) == (workers, servers)
        wait_until(f"a pool of {workers} workers and {servers} servers", 60, joined)
