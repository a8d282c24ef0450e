#!/usr/bin/env bash
# Run a study on a real Slurm, one node on loopback of this machine: by Ray (docs/guides/slurm.sbatch), and in short
# jobs (docs/guides/slurm_short.sbatch). A job of each is stopped at work, one by a requeue and one as by its time limit.
# Both results must have the bytes of a run in one process.
#
#     jobs/try_slurm.sh
#
# Needs Linux, root (slurmd runs jobs of others), and a Python that has this package. Slurm's programs are Debian's,
# downloaded with apt-get and unpacked into a scratch folder: nothing is installed, no service is started, and neither
# munge nor a file of this machine's own Slurm is used. All runs in namespaces, where `ray symmetric-run`, which ends
# every Ray it can see, sees no other; their end ends every process.
set -euo pipefail
cd "$(dirname "$0")/.."
study=(twonorm:240:1 --C log:-2:4:13 --gamma log:-4:1:13 --k 3:16 --n-splits 3000)
packages=(slurmd slurmctld slurm-client slurm-wlm-basic-plugins libmunge2 libhwloc15)

say() { printf '%-18s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; tail -n 5 "$scratch"/*.log >&2 || true; exit 1; }
quietly() { "$@" &> "$scratch/log" || { cat "$scratch/log" >&2; die "$*"; }; }
until_true() {  # waits at most ten minutes for a command to succeed: Slurm begins a requeued job after two
    for _ in {1..1200}; do "$@" &> "$scratch/log" && return; sleep 0.5; done
    die "waited for: $*"
}
is_idle() { sinfo -h -o %T | grep -qx idle; }
is_empty() { local jobs; jobs=$(squeue -h) && [ -z "$jobs" ]; }
is_at_work() { compgen -G "$scratch/$1/log/part-*.parquet"; }
resumes() { say "$2" "$(grep -o 'resuming: .* holds .*' "$scratch/ckcv-$1.log" | sed "s|$scratch/||")"; }
same() {
    for file in candidates.parquet certificate.json ensemble/models.parquet; do
        cmp "$scratch/single/$file" "$scratch/$1/$file" || die "$file differs from that of the single run"
    done
    say "result" "candidates, certificate and models equal the single run's, byte for byte"
}

outside() {
    [ "$(id -u)" = 0 ] || { echo "root is needed, to start slurmd" >&2; exit 1; }
    scratch=$(mktemp -d /var/tmp/ckcvXXXXXX)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$scratch"/{deb,bin,state,spool,tmp,work,home}
    (cd "$scratch/deb" && quietly apt-get download "${packages[@]}")
    for package in "$scratch"/deb/*.deb; do dpkg -x "$package" "$scratch/deb"; done
    CKCV_ENVIRONMENT=$(dirname "$(dirname "$(command -v python)")")
    export CKCV_ENVIRONMENT CKCV_SCRATCH=$scratch PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
    unshare --net --ipc --uts --mount --pid --fork --kill-child --mount-proc jobs/try_slurm.sh
}

start_slurm() {
    libraries=$(dirname "$(find "$scratch/deb" -path '*slurm*' -name auth_none.so)")
    for program in bin/{sbatch,srun,squeue,scontrol,scancel,sinfo} sbin/{slurmctld,slurmd}-wlm; do
        printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
            "$libraries:$(dirname "$libraries")" "$scratch/deb/usr/$program" > "$scratch/bin/$(basename "$program")"
    done
    chmod +x "$scratch"/bin/*
    cat > "$scratch/slurm.conf" << END
ClusterName=ckcv
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$libraries
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=10
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    export PATH="$scratch/bin:$PATH" SLURM_CONF=$scratch/slurm.conf
    slurmctld-wlm -D &> "$scratch/slurmctld.log" &
    slurmd-wlm -D -N localhost -d "$scratch/deb/usr/sbin/slurmstepd-wlm" &> "$scratch/slurmd.log" &
    until_true is_idle
    say "slurm" "$(sinfo --version | cut -d ' ' -f 2), one node on loopback, two processors"
}

submit() {  # the name of a script, the run folder, and options that are more
    quietly sbatch --parsable --output="$scratch/ckcv-%j.log" --time=10:00 --cpus-per-task=2 "${@:3}" \
        "docs/guides/$1.sbatch" "${study[@]}" --out "$scratch/$2"
    job=$(cat "$scratch/log")
}

inside() {
    scratch=$CKCV_SCRATCH
    mount -t overlay overlay -o "lowerdir=/tmp,upperdir=$scratch/tmp,workdir=$scratch/work" /tmp
    ip link set lo up
    ip address add 192.0.2.1/32 dev lo  # with loopback addresses alone Slurm resolves nothing
    hostname localhost
    export HOME=$scratch/home
    quietly python -m ckcv_ray run "${study[@]}" --backend serial --out "$scratch/single"
    start_slurm

    submit slurm ray --nodes=1
    say "sbatch" "docs/guides/slurm.sbatch: Ray in an allocation"
    until_true is_at_work ray
    quietly scontrol requeue "$job"
    say "scontrol requeue" "while it was at work"
    until_true is_empty
    resumes "$job" "Ray again"
    same ray

    submit slurm_short short
    say "sbatch" "docs/guides/slurm_short.sbatch, twice"
    first=$job
    submit slurm_short short
    until_true is_at_work short
    quietly scancel --signal=TERM --batch "$first"
    say "scancel" "SIGTERM to the first, as at the end of its time"
    until_true is_empty
    grep -q "interrupted: completed work is saved" "$scratch/ckcv-$first.log" || die "the first was not interrupted"
    resumes "$job" "the second"
    same short
}

if [ -z "${CKCV_SCRATCH:-}" ]; then outside; else inside; fi
