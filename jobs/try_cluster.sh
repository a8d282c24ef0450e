#!/usr/bin/env bash
# Run a study on two clusters, both on this machine: one started by hand, which runs it as a job, and one that
# `ray up docker/cluster-local.yaml` starts over SSH. Both must reproduce the bytes of a local run, and leave no
# process, port or file behind.
#
# Needs Linux and root, for namespaces. Inside them, the network is loopback only, with every port free; `ray stop`
# (which `ray up` and `ray down` run) ends every Ray it can see, and sees no other; whatever is written to /tmp goes
# to a scratch folder; and each of two simulated machines, 127.0.0.1 and 127.0.0.2, has separate processes, /tmp/ray,
# home and sshd. docker/install needs the package registry; a missing sshd or rsync is downloaded with apt.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH "${!RAY_@}"
study=(twonorm:200:0 --k 3:8 --n-splits 10 --C 0.1,1,10 --gamma 0.01,0.1 --exhaustive)
head=127.0.0.1 worker=127.0.0.2 jobs=http://127.0.0.1:8265

say() { printf '%-16s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; exit 1; }
quietly() { "$@" &> "$scratch/log" || { cat "$scratch/log" >&2; die "$*"; }; }
rays() { pgrep -r D,R,S -fc 'raylet|gcs_server|dashboard|ray::' || true; }
others() { ps -eo stat=,args= | grep -Ev '^Z|^\S+ +(ps|grep) |try_cluster' || true; }
same() {
    for file in candidates.parquet certificate.json ensemble/models.parquet; do
        cmp "$scratch/local/$file" "$1/$file" || die "$file differs from that of the local run"
    done
    say "$2" "candidates, certificate and models equal the local run's, byte for byte"
}
gone() {  # workers take a while to notice that their head is gone
    for _ in {1..120}; do [ "$(rays)" = 0 ] && say "$1" "no Ray process is left" && return; sleep 1; done
    ps -ef >&2
    die "$1 left processes running"
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
    say "ckcv run" "$(grep "^best  " "$scratch/log")"
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
    by_hand
    over_ssh
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
    same "$scratch/job" "ray job submit"
    quietly ray stop
    gone "ray stop"
}

machine() {  # a simulated machine: separate processes, /tmp/ray, home and sshd
    home=$scratch/$1 && mkdir -p "$home/ray" /tmp/ray
    ln -s "$scratch/env" "$home/env"
    echo '. ~/.bashrc' > "$home/.profile" && touch "$home/.bashrc"
    printf '%s\n' "root:x:0:0::$home:/bin/bash" "sshd:x:74:65534::/run/sshd:/bin/false" > "$home/passwd"
    echo 'root:*:::::::' > "$home/shadow"
    chmod 644 "$home/passwd"
    unshare --mount --pid --fork --kill-child --mount-proc bash -euc "
        mount --bind $home/ray /tmp/ray
        mount --bind $home/passwd /etc/passwd
        mount --bind $home/shadow /etc/shadow
        mount -t tmpfs tmpfs /run; mkdir -m 755 /run/sshd
        exec /usr/sbin/sshd -D -e -f /dev/null -h $scratch/host -o ListenAddress=$1 -o PidFile=none \
            -o StrictModes=no -o PasswordAuthentication=no -o AuthorizedKeysFile=$scratch/key.pub" \
        &> "$scratch/sshd$1" &
    sshds+=($!)
}

over_ssh() {
    sshds=()
    ssh-keygen -qt ed25519 -N '' -f "$scratch/key" && ssh-keygen -qt ed25519 -N '' -f "$scratch/host"
    machine $head
    machine $worker
    # Ray finds a machine's address by a route to the internet; there is none here, so pass the address.
    sed -e "s/192.0.2.1/$head/; s/192.0.2.2/$worker/" \
        -e "s/ssh_user: .*/ssh_user: root/; s|~/.ssh/id_.*|$scratch/key|" \
        -e "s/ray start --head/& --node-ip-address=$head/" \
        -e "s/ray start --address.*6379/& --node-ip-address=$worker/" \
        docker/cluster-local.yaml > "$scratch/cluster.yaml"
    export RAY_UP_enable_autoscaler_v2=0
    quietly ray up --yes --no-config-cache "$scratch/cluster.yaml"
    for _ in {1..90}; do  # `ray up` ends as soon as the head is up
        ray exec "$scratch/cluster.yaml" "ray status" &> "$scratch/log" || true
        grep -q "^ 2 local.cluster.node" "$scratch/log" && break
        sleep 1
    done
    grep -q "^ 2 local.cluster.node" "$scratch/log" || { cat "$scratch/log" >&2; die "the worker did not join the cluster"; }
    say "ray up" "a head and a worker, over SSH"
    quietly ray submit "$scratch/cluster.yaml" jobs/run_study.py -- \
        "${study[@]}" --backend ray --address auto --out runs/study
    same "$scratch/$head/runs/study" "ray submit"
    quietly ray down --yes "$scratch/cluster.yaml"
    gone "ray down"
    kill -KILL "${sshds[@]}"  # unshare ignores other signals; --kill-child ends its children
    wait "${sshds[@]}" 2> /dev/null || true
}

if [ -z "${CKCV_SCRATCH:-}" ]; then outside; else inside; fi
