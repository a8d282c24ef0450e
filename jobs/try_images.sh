#!/usr/bin/env bash
# Build the image of docker/Dockerfile as docker/compose.yaml asks for it, without a container engine, and run a study in it:
# buildah builds in chroot isolation, on a base that debootstrap makes (no registry of images is needed). Then the
# commands of the two services of docker/compose.yaml run in it, in a network of their own, and a study as a job.
#
# Needs Linux, root, the package registries, and buildah and debootstrap (apt-get install buildah debootstrap). The
# base is Debian with its own Python, not the image that the Dockerfile names by its digest. Nothing is left behind.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH "${!RAY_@}"
most_megabytes=1300
study=(twonorm:200:0 --k 3:8 --n-splits 10 --C 0.1,1,10 --gamma 0.01,0.1)

say() { printf '%-12s %s\n' "$1" "$2"; }
die() { say FAILED "$1" >&2; exit 1; }
quietly() { "$@" &> "$scratch/log" || { tail -50 "$scratch/log" >&2; die "$*"; }; }
in_image() { buildah run --isolation chroot --user 1000 "$@"; }
measure() { du -s --block-size=MB "$1" | cut -f1 | tr -d MB; }

missing=()
for program in buildah debootstrap; do type "$program" &> /dev/null || missing+=("$program"); done
[ ${#missing[@]} = 0 ] || die "${missing[*]} not found: apt-get install ${missing[*]}"
[ "$(id -u)" = 0 ] || die "root is needed for chroot isolation"

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/ckcvXXXXXX")
export STORAGE_DRIVER=vfs CONTAINERS_STORAGE_CONF=$scratch/storage.conf BUILDAH_ISOLATION=chroot
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/storage"\nrunroot = "%s/run"\n' "$scratch" "$scratch" > "$scratch/storage.conf"
end() {
    [ -z "${head:-}" ] || kill -- "-$head" 2> /dev/null || true
    buildah rm --all &> /dev/null || true
    rm -rf "$scratch"
}
trap end EXIT

quietly debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv \
    "${DEBIAN_SUITE:-bookworm}" "$scratch/base" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
rm -rf "$scratch"/base/var/{cache/apt,lib/apt/lists}/* "$scratch"/base/usr/share/{doc,man,locale}
# Only so that pip reaches the registry from inside as it does from outside.
cp /etc/ssl/certs/ca-certificates.crt "$scratch/base/etc/ssl/certs/"
cp /etc/resolv.conf /etc/hosts "$scratch/base/etc/"
pip=$(python3 -m pip config get global.index-url 2> /dev/null || true)
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n%s' "${pip:+index-url = $pip}" > "$scratch/base/etc/pip.conf"
container=$(buildah from scratch)
quietly buildah add "$container" "$scratch/base" /
quietly buildah commit --rm "$container" base
say debootstrap "$(in_image "$(buildah from --name look base)" python3 --version), $(measure "$scratch/base") MB"
quietly buildah rm look
rm -rf "$scratch/base"

read -r context file < <(sed -n 's/^ *build: {context: \(.*\), dockerfile: \(.*\)}$/\1 \2/p' docker/compose.yaml)
[ -n "$file" ] || die "docker/compose.yaml has no line build: {context: ..., dockerfile: ...}"
context=$(realpath "docker/$context")
quietly buildah bud --from localhost/base --tag ckcv_ray --file "$context/$file" "$context"
image=$(buildah from --name ckcv ckcv_ray)
root=$(buildah mount "$image")
megabytes=$(measure "$root")
say buildah "$file: $megabytes MB, $(measure "$root/home/ckcv/env") of them the environment"

quietly in_image "$image" -- ckcv run "${study[@]}" --backend serial --out /runs/alone
say "ckcv run" "$(in_image "$image" -- sh -c 'echo "user $(id -u)"'): $(grep -m1 . <(in_image "$image" -- ckcv status /runs/alone))"
quietly in_image "$image" -- ckcv verify /runs/alone
say "ckcv verify" "$(grep -m1 contradicts "$scratch/log")"

# The services, in a network of their own: loopback only, where no other Ray is met, and the name head is not known.
command_of() { sed -n "/^  $1:/,/^  [a-z]/s/^    command: //p" docker/compose.yaml; }
mkdir -p "$root/run/secrets"
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$root/run/secrets/ray_token")
chown 1000 "$root/run/secrets/ray_token"
cat > "$root/home/ckcv/services" << END
set -eu
$(command_of head) --node-ip-address=127.0.0.1 &
until python -c "from urllib.request import urlopen; urlopen('http://127.0.0.1:52365/api/local_raylet_healthz')"; do
    sleep 1
done 2> /dev/null
$(command_of worker | sed 's/head:/127.0.0.1:/') --num-cpus=2 --node-ip-address=127.0.0.1 &
ray job submit --address http://127.0.0.1:8265 -- \
    ckcv run ${study[*]} --backend ray --address auto --out /runs/job
ray stop
END
quietly timeout 300 unshare --net --pid --fork --kill-child --mount-proc bash -c "
    ip link set lo up
    buildah run --isolation chroot --user 1000 $image -- bash /home/ckcv/services"
for file in candidates.parquet certificate.json; do
    cmp "$root/runs/alone/$file" "$root/runs/job/$file" || die "$file differs from that of the run alone"
done
say compose "head and worker run a job: candidates and certificate equal those of the run alone, byte for byte"
[ "$megabytes" -le $most_megabytes ] || die "$megabytes MB are more than $most_megabytes"
