"""The launchers for real: processes that mpirun and srun start find their places by their environment.

  launchers_test.py mpirun|slurm PROGRAM SOURCE

Exit code: 0 passed, 77 the launcher cannot be had here (says why), else failed. Installs it from Debian
where it is missing. Slurm is a cluster of this one machine, with daemons, keys and ports of its own, which
are gone at the end; its tasks share the machine's cores.
"""
import glob
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

MPIRUN_TASKS = 4
SLURM_TASKS = 4

LAB = """\
name: launched
seed: 3
model: {kind: mlp, layers: [64, 16, 10]}
data: {kind: digits}
train: {steps: 5, batch_per_worker: 8}
cluster: {workers: all, servers: 1}
exchange: {kind: ps}
"""


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def check(holds, words):
    if not holds:
        sys.exit(f"FAILED: {words}")


def install(command, packages):
    """Until `command` is there."""
    if shutil.which(command):
        return
    if os.geteuid() != 0:
        skip(f"{command} is missing, and installing {' '.join(packages)} needs root")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")
    apt = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    installed = subprocess.run(apt, env=environment, capture_output=True, text=True, timeout=300)
    if not shutil.which(command):
        skip(f"{' '.join(packages)} cannot be installed: {installed.stderr.strip().splitlines()[-1:]}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(what, limit, condition):
    until = time.monotonic() + limit
    while not condition():
        check(time.monotonic() < until, f"{what} did not come about within {limit} s")
        time.sleep(0.2)


def check_record(folder, workers):
    """The lab's one cell ran on all launched workers, and they agree on what they learnt."""
    found = glob.glob(f"{folder}/launched-*/summary.json")
    check(len(found) == 1, f"one record below {folder}, not {found}")
    cells = json.loads(pathlib.Path(found[0]).read_text())["cells"]
    sizes = [cell["workers"] for cell in cells if not cell["baseline"]]
    check(sizes == [workers], f"one cell of {workers} workers, not of {sizes}")
    check(all(cell["hash_equal_across_ranks"] for cell in cells), "all workers hold the same parameters")


def run_mpirun(program, folder):
    install("mpirun", ["openmpi-bin"])
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated"]
    address = f"127.0.0.1:{free_port()}"
    environment = dict(os.environ, RANKLAB_COORDINATOR=address, RANKLAB_SERVERS="1")
    coordinator = subprocess.Popen([program, "coordinator", "--listen", address, "--once"])
    members = subprocess.Popen([*mpirun, "-n", str(MPIRUN_TASKS), program, "join", "--once"], env=environment)
    try:
        lab = subprocess.run([program, "run", f"{folder}/lab.yaml", "--coordinator", address, "--out", f"{folder}/runs"],
                             timeout=90, check=False)
        check(lab.returncode == 0, f"the lab ended with {lab.returncode}")
        check(members.wait(timeout=30) == 0, "mpirun ended with the lab's exit code")
        check(coordinator.wait(timeout=30) == 0, "so did the coordinator")
    finally:
        for process in (members, coordinator):
            process.kill()
            process.wait()
    check_record(f"{folder}/runs", MPIRUN_TASKS - 1)

    contradiction = subprocess.run([*mpirun, "-n", "1", "-x", "RANK=1", program, "join", "--once"],
                                   env=dict(environment, RANK="1"), capture_output=True, text=True, timeout=60)
    check(contradiction.returncode == 2, f"a contradiction ends with 2, not {contradiction.returncode}")
    check("RANK=1 but OMPI_COMM_WORLD_RANK=0" in contradiction.stderr, contradiction.stderr)


SLURM_CONF = """\
ClusterName=ranklab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=lab Nodes={host} Default=YES MaxTime=INFINITE OverSubscribe=FORCE:8 State=UP
"""


class SlurmCluster:
    """munged, slurmctld and slurmd of this machine alone, ended with the object's context."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf")
        self.daemons = []

    def __enter__(self):
        folder = self.folder
        os.chmod(folder, 0o755)
        key = pathlib.Path(folder, "munge.key")
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        cpus = os.cpu_count()
        pathlib.Path(folder, "slurm.conf").write_text(SLURM_CONF.format(
            host=socket.gethostname().split(".")[0], folder=folder, cpus=cpus,
            ctld_port=free_port(), slurmd_port=free_port()))
        for name in ("state", "spool"):
            os.mkdir(f"{folder}/{name}")
        self.start(["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}",
                    f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"])
        wait_for("munged's socket", 20, lambda: os.path.exists(f"{folder}/munge.socket"))
        self.start(["slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf"])
        self.start(["slurmd", "-D", "-f", f"{folder}/slurm.conf"])
        wait_for("an idle Slurm node", 60, lambda: "idle" in self.say(["sinfo", "-h", "-o", "%T"]).stdout)
        return self

    def start(self, words):
        output = open(f"{self.folder}/{words[0]}.out", "wb")
        self.daemons.append(subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT))

    def say(self, words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def __exit__(self, *why):
        self.say(["scancel", "--user=root"])
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if why[0]:
            for log in glob.glob(f"{self.folder}/*.log") + glob.glob(f"{self.folder}/*.out"):
                print(f"== {log}\n{pathlib.Path(log).read_text(errors='replace')[-3000:]}")


def run_slurm(program, source, folder):
    if os.geteuid() != 0:
        skip("a Slurm cluster of this machine needs root")
    install("slurmctld", ["slurm-wlm", "munge"])
    with SlurmCluster(folder) as slurm:
        settings = (f"ALL,RANKLAB={program},RANKLAB_SERVERS=1,RANKLAB_PORT={free_port()},"
                    f"RANKLAB_SRUN=--overcommit,RANKLAB_OUT={folder}/runs")
        submitted = slurm.say(["sbatch", "--parsable", f"--ntasks={SLURM_TASKS}", "--overcommit", f"--chdir={folder}",
                               f"--export={settings}", f"{source}/docker/slurm.sbatch", f"{folder}/lab.yaml"])
        check(submitted.returncode == 0, f"sbatch: {submitted.stderr}")
        job = submitted.stdout.strip()
        describe = ["scontrol", "--oneliner", "show", "job", job]
        wait_for(f"the end of job {job}", 120,
                 lambda: any(f"JobState={state}" in slurm.say(describe).stdout
                             for state in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")))
        said = slurm.say(describe).stdout
        log = pathlib.Path(folder, f"ranklab-{job}.log").read_text()
        check("JobState=COMPLETED" in said and "ExitCode=0:0" in said, f"{said}\n{log}")
        check_record(f"{folder}/runs", SLURM_TASKS - 1)


def main():
    launcher, program, source = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ranklab-launchers-") as folder:
        pathlib.Path(folder, "lab.yaml").write_text(LAB)
        if launcher == "mpirun":
            run_mpirun(program, folder)
        else:
            run_slurm(program, source, folder)
    print(f"{launcher}: passed")


main()
