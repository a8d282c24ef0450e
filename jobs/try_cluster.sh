#!/usr/bin/env bash
# Run studies on three clusters, all on this machine: one started by hand, which runs a study as a job; one whose head
# vanishes in the middle of a job, and whose successor goes on from the bucket; and one that
# `ray up docker/cluster-local.yaml` starts over SSH. All must reproduce the bytes of a local run, and leave no
# process, port or file behind.
#
# Needs Linux and root, for namespaces. Inside them, the network is loopback only, with every port free; `ray stop`
# (which `ray up` and `ray down` run) ends every Ray it can see, and sees no other; whatever is written to /tmp goes
# to a scratch folder; and each of two simulated machines, 127.0.0.1 and 127.0.0.2, has separate processes, /tmp/ray,
# home and sshd. The bucket is that of the tests' server, in memory. docker/install needs the package registry; a
# missing sshd or rsync is downloaded with apt.
set -euo pipefail
cd "$(dirname "$0")/.."
unset OPENBLAS_CORETYPE NUMBA_CPU_NAME NPY_DISABLE_CPU_FEATURES PYTHONPATH "${!RAY_@}"  # the first three change bits, and SSH passes none on
study=(twonorm:200:0 --k 3:8 --n-splits 10 --C 0.1,1,10 --gamma 0.01,0.1 --exhaustive)
longer=(twonorm:400:0 --k 3:8 --n-splits 4000 --C 0.1,1,10 --gamma 0.01,0.1 --exhaustive)
head=127.0.0.1 worker=127.0.0.2 jobs=http://127.0.0.1:8265

idle='while :; do sleep 60; done'
serve_bucket='
import signal, sys
sys.path.insert(0, "tests")
from s3_server import S3Server
server = S3Server()
server.buckets["bucket"] = {}
print(server.endpoint)
signal.pause()'

say() { printf '%-16s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; exit 1; }
quietly() { "$@" &> "$scratch/log" || { cat "$scratch/log" >&2; die "$*"; }; }
rays() { pgrep -r D,R,S -fc 'raylet|gcs_server|dashboard|ray::' || true; }
others() { ps -eo stat=,args= | grep -Ev '^Z|^\S+ +(ps|grep) |try_cluster' || true; }
within() {  # repeat a command until it succeeds, for at most $1 seconds
    local end=$((SECONDS + $1)) && shift
    until "$@" &> "$scratch/log"; do
        [ $SECONDS -lt $end ] || { cat "$scratch/log" >&2; die "$*"; }
        sleep 0.2
    done
}
same() {  # a run folder, a label, and the local run
    for file in candidates.parquet certificate.json ensemble/models.parquet; do
        cmp "$3/$file" "$1/$file" || die "$file differs from that of the local run"
    done
    say "$2" "candidates, certificate and models equal the local run's, byte for byte"
}
same_in_bucket() {
    quietly env "${store[@]}" python -m jobs.faults.servers "$1" "$scratch/copy/${1##*/}"
    same "$scratch/copy/${1##*/}" "$2" "$3"
}
gone() {  # workers take minutes to notice that their head is gone
    local end=$((SECONDS + 300))
    until [ "$(rays)" = 0 ]; do
        [ $SECONDS -lt $end ] || { ps -eo pid,ppid,stat,etime,args >&2; die "$1 left processes running"; }
        sleep 1
    done
    say "$1" "no Ray process is left"
}

outside() {  # install from the package registry, run the rest in namespaces, then check that nothing is left
    [ "$(id -u)" = 0 ] || die "root is needed to create namespaces"
    scratch=$(mktemp -d /var/tmp/ckcvXXXXXX)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$scratch"/{deb/usr,tmp,work,home}
    if ! type sshd ssh rsync &> "$scratch/log"; then  # unpacked, not installed: no service is started, nothing remains
        (cd "$scratch/deb" && quietly apt-get download openssh-server openssh-client rsync libwrap0 libpopt0)
        for package in "$scratch"/deb/*.deb; do dpkg -x "$package" "$scratch/deb"; done
    fi
    quietly docker/install "$scratch/env"
    say docker/install "a new environment, installed from its lock by hash"
    quietly "$scratch/env/bin/ckcv" run "${study[@]}" --backend serial --out "$scratch/local"
    say "ckcv run" "$(grep -o "C = .*; [0-9]* rows" "$scratch/log")"
    quietly "$scratch/env/bin/ckcv" run "${longer[@]}" --backend serial --out "$scratch/longer"
    say "ckcv run" "$(grep -o "C = .*; [0-9]* rows" "$scratch/log")"
    CKCV_SCRATCH=$scratch unshare --net --ipc --mount --pid --fork --kill-child --mount-proc jobs/try_cluster.sh
    rm -rf "$scratch"
    if pgrep -f "$scratch" > /dev/null || [ -e "$scratch" ]; then die "$scratch is still in use"; fi
    say "at the end" "no process, port or file is left"
}

inside() {
    scratch=$CKCV_SCRATCH
    mount -t overlay overlay -o "lowerdir=$scratch/deb/usr:/usr" /usr
    mount -t overlay overlay -o "lowerdir=/tmp,upperdir=$scratch/tmp,workdir=$scratch/work" /tmp
    ip link set lo up
    export HOME=$scratch/home RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 PYTHONWARNINGS=ignore
    export PATH=$scratch/env/bin:$PATH
    umask 077
    quietly ray get-auth-token --generate
    say token "generated, mode $(stat -c %a "$HOME/.ray/auth_token")"
    python -uc "$serve_bucket" > "$scratch/endpoint" &
    server=$!
    within 60 test -s "$scratch/endpoint"
    endpoint=$(cat "$scratch/endpoint")
    store=(AWS_ENDPOINT_URL="$endpoint" AWS_ALLOW_HTTP=true AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test)
    by_hand
    head_vanishes
    over_ssh
    end $server
    for _ in {1..20}; do left=$(others; ss -ltnHp) && [ -z "$left" ] && break; sleep 1; done
    [ -z "$left" ] || die "left behind: $left"
}

by_hand() {
    quietly ray start --head --node-ip-address=$head --dashboard-host=$head --num-cpus=1
    quietly ray start --address=$head:6379 --node-ip-address=$head --num-cpus=1
    say "ray start" "a head and a second node"
    code=$(curl -so /dev/null -w '%{http_code}' -H 'Content-Type: application/json' \
        -d "{\"entrypoint\": \"touch $scratch/intruder\"}" $jobs/api/jobs/)
    [ "$code" = 401 ] && [ ! -e "$scratch/intruder" ] || die "a job without a token got HTTP status $code"
    say "without a token" "the job is refused: HTTP status $code"
    quietly ray job submit --address $jobs --working-dir . -- \
        python jobs/run_study.py "${study[@]}" --backend ray --out "$scratch/job"
    same "$scratch/job" "ray job submit" "$scratch/local"
    quietly ray stop
    gone "ray stop"
}

# Run a script on a simulated machine, $1: separate processes and /tmp/ray, which end with the process $!. Its first
# process is bash, which collects those that end: a raylet that nobody collects still exists for its idle workers.
apart() {
    mkdir -p "$scratch/$1/ray" /tmp/ray
    unshare --mount --pid --fork --kill-child --mount-proc bash -euc "
        mount --bind $scratch/$1/ray /tmp/ray
        $2" &> "$scratch/$1.log" &
}

head_and_worker() {  # on two machines, $1 and $2; only the head may write to the bucket
    apart "$1" "env ${store[*]} ray start --head --node-ip-address=$head --dashboard-host=$head --num-cpus=0
        touch $scratch/$1.up; $idle"
    machines=($!)
    within 60 test -e "$scratch/$1.up"
    apart "$2" "ray start --address=$head:6379 --node-ip-address=$worker --num-cpus=2; $idle"
    machines+=($!)
}

end() {  # of a simulated machine all processes, at once
    kill -KILL "$1"  # unshare ignores other signals; --kill-child ends its children
    wait "$1" 2> /dev/null || true
}

count_parts() {  # of the log in the bucket
    curl -sH "Authorization: Credential=test/" "$endpoint/bucket?prefix=runs/job/log/" | grep -o "<Key>" | wc -l
}

head_vanishes() {
    out=s3://bucket/runs/job
    command=(python jobs/run_study.py "${longer[@]}" --backend ray --out $out)

    head_and_worker first first_worker
    quietly ray job submit --address $jobs --working-dir . --no-wait -- "${command[@]}"
    within 300 eval '[ "$(count_parts)" -ge 3 ]'
    end "${machines[0]}"
    quietly env "${store[@]}" ckcv status $out
    at=$(grep -o "[0-9,]* of [0-9,]* evaluations" "$scratch/log") || die "the head did not vanish in the middle"
    say "kill -KILL" "the head vanishes with all its processes; in the bucket are $at"
    gone "its worker"
    end "${machines[1]}"

    head_and_worker second second_worker
    quietly ray job submit --address $jobs --working-dir . -- "${command[@]}"
    grep -q "^resuming: $out holds ${at%% *} records" "$scratch/log" || die "the new head did not go on from $at"
    say "ray job submit" "to a new head: $(grep -o "resuming: .*" "$scratch/log")"
    same_in_bucket $out "ray job submit" "$scratch/longer"
    for process in "${machines[@]}"; do end "$process"; done
}

machine() {  # a simulated machine with a home and sshd
    home=$scratch/$1 && mkdir -p "$home"
    ln -s "$scratch/env" "$home/env"
    echo '. ~/.bashrc' > "$home/.profile" && touch "$home/.bashrc"
    printf '%s\n' "root:x:0:0::$home:/bin/bash" "sshd:x:74:65534::/run/sshd:/bin/false" > "$home/passwd"
    echo 'root:*:::::::' > "$home/shadow"
    chmod 644 "$home/passwd"
    apart "$1" "
        mount --bind $home/passwd /etc/passwd
        mount --bind $home/shadow /etc/shadow
        mount -t tmpfs tmpfs /run; mkdir -m 755 /run/sshd
        exec /usr/sbin/sshd -D -e -f /dev/null -h $scratch/host -o ListenAddress=$1 -o PidFile=none \
            -o StrictModes=no -o PasswordAuthentication=no -o AuthorizedKeysFile=$scratch/key.pub"
    sshds+=($!)
}

both_joined() { ray exec "$scratch/cluster.yaml" "ray status" | grep "^ 2 local.cluster.node"; }

over_ssh() {
    sshds=()
    ssh-keygen -qt ed25519 -N '' -f "$scratch/key" && ssh-keygen -qt ed25519 -N '' -f "$scratch/host"
    machine $head
    machine $worker
    printf 'export %s\n' "${store[@]}" > "$scratch/$head/.ckcv_store"
    # Ray finds a machine's address by a route to the internet; there is none here, so pass the address.
    sed -e "s/192.0.2.1/$head/; s/192.0.2.2/$worker/" \
        -e "s/ssh_user: .*/ssh_user: root/; s|~/.ssh/id_.*|$scratch/key|" \
        -e "s/ray start --head/& --node-ip-address=$head/" \
        -e "s/ray start --address.*6379/& --node-ip-address=$worker/" \
        docker/cluster-local.yaml > "$scratch/cluster.yaml"
    export RAY_UP_enable_autoscaler_v2=0
    quietly ray up --yes --no-config-cache "$scratch/cluster.yaml"
    within 300 both_joined  # `ray up` ends as soon as the head is up
    say "ray up" "a head and a worker, over SSH"
    quietly ray submit "$scratch/cluster.yaml" jobs/run_study.py -- \
        "${study[@]}" --backend ray --address auto --out s3://bucket/runs/ssh
    same_in_bucket s3://bucket/runs/ssh "ray submit" "$scratch/local"
    quietly ray down --yes "$scratch/cluster.yaml"
    gone "ray down"
    for process in "${sshds[@]}"; do end "$process"; done
}

if [ -z "${CKCV_SCRATCH:-}" ]; then outside; else inside; fi
