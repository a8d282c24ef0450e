#!/usr/bin/env bash
# Run a study in shards on a real Slurm, one node on loopback of this machine: `ckcv submit --call-sbatch`. One task of the
# array is requeued and one is stopped as by its time limit, both at work; what is missing is submitted again, and the
# result must have the bytes of a single run.
#
#     jobs/try_slurm.sh
#
# Needs Linux, root (slurmd runs jobs of others), and a Python that has this package. Slurm's programs are Debian's,
# downloaded with apt-get and unpacked into a scratch folder: nothing is installed, no service is started, and neither
# munge nor a file of this machine's own Slurm is used. Every process is ended by its number.
set -euo pipefail
cd "$(dirname "$0")/.."
study=(twonorm:240:1 --C log:-2:4:13 --gamma log:-4:1:13 --k 3:16 --n-splits 150)
port=$((20000 + $$ % 10000))
packages=(slurmd slurmctld slurm-client slurm-wlm-basic-plugins libmunge2 libhwloc15)

say() { printf '%-18s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; tail -n 5 "$scratch"/*.log "$scratch"/out_slurm/*.log >&2 || true; exit 1; }
quietly() { "$@" &> "$scratch/log" || { cat "$scratch/log" >&2; die "$*"; }; }
until_true() {  # waits at most five minutes for a command to succeed: Slurm begins a requeued job after two
    for _ in {1..600}; do "$@" &> "$scratch/log" && return; sleep 0.5; done
    die "waited for: $*"
}
is_idle() { sinfo -h -o %T | grep -qx idle; }
is_empty() { [ -z "$(squeue -h)" ]; }
is_at_work() { [ -e "$scratch/out/log/shard-0000$1/.lock" ]; }

[ "$(id -u)" = 0 ] || { echo "root is needed, to start slurmd" >&2; exit 1; }
scratch=$(mktemp -d /var/tmp/ckcvXXXXXX)
started=()
finish() {
    if [ ${#started[@]} -gt 0 ]; then
        squeue -h -o %A 2> /dev/null | sort -u | xargs -r scancel 2> /dev/null || true  # jobs outlive the daemons
        for _ in {1..40}; do is_empty && break; sleep 0.5; done
        kill "${started[@]}" 2> /dev/null || true
    fi
    wait
    rm -rf "$scratch"
}
trap finish EXIT

mkdir -p "$scratch"/{deb,bin,state,spool}
(cd "$scratch/deb" && quietly apt-get download "${packages[@]}")
for package in "$scratch"/deb/*.deb; do dpkg -x "$package" "$scratch/deb"; done
rm "$scratch"/deb/*.deb
libraries=$(dirname "$(find "$scratch/deb" -path '*slurm*' -name auth_none.so)")
for program in bin/{sbatch,squeue,scontrol,scancel,sinfo} sbin/{slurmctld,slurmd}-wlm; do
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
        "$libraries:$(dirname "$libraries")" "$scratch/deb/usr/$program" > "$scratch/bin/$(basename "$program")"
done
chmod +x "$scratch"/bin/*
cat > "$scratch/slurm.conf" << END
ClusterName=ckcv
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
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
started+=($!)
slurmd-wlm -D -N localhost -d "$scratch/deb/usr/sbin/slurmstepd-wlm" &> "$scratch/slurmd.log" &
started+=($!)
until_true is_idle
say "slurm" "$(sinfo --version | cut -d ' ' -f 2), one node on loopback, two processors"

quietly python -m ckcv_ray run "${study[@]}" --backend serial --out "$scratch/single"
submit=(python -m ckcv_ray submit "${study[@]}" --shards 6 --out "$scratch/out" --call-sbatch --slurm "--time=10:00 --comment='a #b'")
quietly "${submit[@]}"
array=$(awk '$1 == "job" { print $2; exit }' "$scratch/log")
say "ckcv submit" "$(head -n 1 <(grep divided "$scratch/log"))"

until_true is_at_work 1
quietly scontrol requeue "${array}_1"
say "scontrol requeue" "shard 1, while it was at work"
until_true is_at_work 2
scancel --signal=TERM --batch "${array}_2" &> "$scratch/log" || true  # fails where the job ends meanwhile; see its log
say "scancel" "SIGTERM to shard 2, as at the end of its time"
until_true is_empty
grep -q "interrupted: completed work is saved" "$scratch/out_slurm/shard-2.log" || die "shard 2 was not interrupted"
grep -q "not computed: " "$scratch/out_slurm/gather.log" || die "the gathering did not say what is missing"
say "ckcv gather" "$(grep "not computed" "$scratch/out_slurm/gather.log")"

quietly "${submit[@]}"
until_true is_empty
say "submitted again" "$(grep -c "is computed" <(cat "$scratch"/out_slurm/shard-*.log)) times a shard was computed, or found to be"
for file in candidates.parquet certificate.json ensemble/models.parquet; do
    cmp "$scratch/single/$file" "$scratch/out/$file" || die "$file differs from that of the single run"
done
say "result" "candidates, certificate and models equal the single run's, byte for byte"
