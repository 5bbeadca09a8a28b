#!/usr/bin/env bash
# Builds a kind node image from pinned Go modules and Debian packages alone: no image registry is asked.
# Usage: build.sh [--tag|--force]
#
#   --tag    print the image's name, which holds a digest of everything that decides what it is, and build nothing
#   --force  build it even if the daemon has it
#
# Needs Go, a Docker daemon, gcc, root and debootstrap (which is installed where it is missing and can be). Each step's
# result is kept in the cache folder of onewriter under a digest of what it was made from, so an interrupted build goes
# on where it was, and a change costs only the steps that it concerns. The image's name is the only line on stdout.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); source "$here/../debian.sh"
caches=${ONEWRITER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}}/onewriter/node-image
control_plane=$here/../../control-plane
suite=bookworm
packages=systemd,systemd-sysv,dbus,iptables,ethtool,socat,conntrack,kmod,mount,util-linux,procps,ca-certificates,iproute2,runc

fail() { echo "node image: $*" >&2; exit 1; }

# DIGEST of files and words, in their order: 12 hex digits.
digest() {
  local part
  for part in "$@"; do
    if [ -f "$part" ]; then sha256sum <"$part"; else echo "$part"; fi
  done | sha256sum | cut -c1-12
}

pinned() { sed -nE "s#^\s*$2 (v[^ ]*).*#\1#p" "$1/go.mod" | head -1; }
version=$(pinned "$control_plane/kubernetes" k8s.io/kubernetes)
minor=${version#v1.}; minor=${minor%%.*}
arch=$(uname -m); case $arch in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; esac

# Programs: name, module folder, package.
programs=(
  "etcd $control_plane/etcd go.etcd.io/etcd/server/v3"
  "kube-apiserver $control_plane/kubernetes k8s.io/kubernetes/cmd/kube-apiserver"
  "kube-controller-manager $control_plane/kubernetes k8s.io/kubernetes/cmd/kube-controller-manager"
  "kubectl $control_plane/kubernetes k8s.io/kubernetes/cmd/kubectl"
  "kube-scheduler $control_plane/kubernetes k8s.io/kubernetes/cmd/kube-scheduler"
  "kube-proxy $control_plane/kubernetes k8s.io/kubernetes/cmd/kube-proxy"
  "kubeadm $control_plane/kubernetes k8s.io/kubernetes/cmd/kubeadm"
  "kubelet $control_plane/kubernetes k8s.io/kubernetes/cmd/kubelet"
  "coredns $here/tools/coredns github.com/coredns/coredns"
  "containerd $here/tools/node github.com/containerd/containerd/v2/cmd/containerd"
  "containerd-shim-runc-v2 $here/tools/node github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
  "ctr $here/tools/node github.com/containerd/containerd/v2/cmd/ctr"
  "host-local $here/tools/node github.com/containernetworking/plugins/plugins/ipam/host-local"
  "bridge $here/tools/node github.com/containernetworking/plugins/plugins/main/bridge"
  "loopback $here/tools/node github.com/containernetworking/plugins/plugins/main/loopback"
  "portmap $here/tools/node github.com/containernetworking/plugins/plugins/meta/portmap"
)
mapfile -t module_files < <(
  ls "$control_plane"/{etcd,kubernetes}/go.{mod,sum} "$here"/tools/{coredns,node}/go.{mod,sum} "$here/pause/pause.c")
mapfile -t own_files < <(find "$here/rootfs" -type f | LC_ALL=C sort)
programs_digest=$(digest programs-1 "$arch" "${module_files[@]}")
system_digest=$(digest system-1 "$arch" "$suite" "$packages")
image=onewriter-node:$version-$(digest image-1 "$programs_digest" "$system_digest" "${own_files[@]}" "$0")

[ "${1:-}" = --tag ] && { echo "$image"; exit 0; }
case ${1:-} in "" | --force) ;; *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

for tool in go docker gcc tar; do command -v "$tool" >/dev/null || fail "needs $tool, which is not on PATH"; done
docker info >/dev/null 2>&1 || fail "no Docker daemon answers; kind-configs/docker.sh can start one"
if [ "${1:-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then echo "$image"; exit 0; fi

mkdir -p "$caches"
free=$(df -Pk "$caches" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$free" -ge 8 ] || fail "needs 8 GiB of free disk below $caches, there are $free"
exec 9>"$caches/lock"
flock -n 9 || { echo "node image: waiting for another build of it" >&2; flock 9; }
if [ "${1:-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then echo "$image"; exit 0; fi

work=$(mktemp -d "$caches/.work-XXXXXX")
clean() {
  local job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
  [ ! -s "$work/container" ] || docker rm -fv "$(cat "$work/container")" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
find "$caches" -maxdepth 1 -name '.work-*' ! -path "$work" -exec rm -rf {} +

steps=$((${#programs[@]} + 5)); at=0
# Each step is a process group, so that an interrupted build leaves no compiler behind.
set -m
# Runs a step and tells how long it took; its output is shown only if it fails.
step() { # WHAT COMMAND...
  local what=$1 began=$SECONDS failed=0; shift
  at=$((at + 1)); printf '[%2d/%d] %s …' "$at" "$steps" "$what" >&2
  # As a job of its own, for where its success is asked for, bash would not end a function at its first failure.
  (set -euo pipefail; "$@") >"$work/log" 2>&1 & wait $! || failed=1
  if [ "$failed" = 0 ]; then printf ' %d s\n' $((SECONDS - began)) >&2; return 0; fi
  printf ' failed\n' >&2; tail -30 "$work/log" >&2
  grep -q 'no space left on device' "$work/log" && fail "the disk is full"
  fail "$what failed"
}

bin=$caches/programs-$programs_digest; mkdir -p "$bin"
stamp=""
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
done
go_build() { # NAME MODULE PACKAGE
  [ -x "$bin/$1" ] && return 0
  # The flags of the local provider's builds, so that both share Go's cache.
  local flags="-s -w"; case $3 in k8s.io/kubernetes/*) flags+=$stamp ;; esac
  CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=readonly" GOTOOLCHAIN=local GOWORK=off GOTMPDIR=$work \
    go build -C "$2" -trimpath -ldflags "$flags" -o "$work/$1" "$3" && mv "$work/$1" "$bin/$1"
}
for program in "${programs[@]}"; do read -r name module package <<<"$program"; step "build $name" go_build "$name" "$module" "$package"; done
build_pause() { [ -x "$bin/pause" ] || { gcc -Os -static -s -o "$work/pause" "$here/pause/pause.c" && mv "$work/pause" "$bin/pause"; }; }
step "build pause" build_pause

# A component's image is its one static program. kubeadm decides the names, so it is asked.
component_images() {
  local name reference folder references=()
  "$bin/kubeadm" config images list --kubernetes-version "$version" >"$work/names"
  while read -r reference; do
    name=${reference%:*}; name=${name##*/}
    [ -x "$bin/$name" ] || { echo "kubeadm wants $reference, and nothing here builds $name"; return 1; }
    folder=$work/component; rm -rf "$folder"; mkdir -p "$folder/usr/local/bin" "$folder/tmp"
    cp "$bin/$name" "$folder/usr/local/bin/"
    tar -C "$folder" -c . | docker import --change 'ENV PATH=/usr/local/bin' \
      --change "ENTRYPOINT [\"/usr/local/bin/$name\"]" - "$reference"
    references+=("$reference")
  done < <(grep -v '/kube-proxy:' "$work/names")
  docker save "${references[@]}" >"$work/images.tar"
  docker rmi "${references[@]}"
}
step "component images" component_images

# Debian's packages, configured in a folder of their own.
system() {
  local archive=$caches/system-$system_digest.tar mirror
  [ -e "$archive" ] && return 0
  mirror=$(debian_mirror) || { echo "this machine's package client has no Debian mirror"; return 1; }
  [ "$(id -u)" = 0 ] || { echo "only root can set up a Debian system"; return 1; }
  command -v debootstrap >/dev/null || { apt-get update -qq; apt-get install -qq -y --no-install-recommends debootstrap; }
  mkdir -p "$caches/packages"
  debootstrap --variant=minbase --keyring="$debian_keyring" --cache-dir="$caches/packages" --include="$packages" \
    "$suite" "$work/system" "$mirror" || { cat "$work/system/debootstrap/debootstrap.log"; return 1; }
  rm -rf "$work"/system/var/cache/apt/* "$work"/system/var/lib/apt/lists/* "$work"/system/usr/share/{doc,man,locale}/*
  mkdir -p "$work/system/kind"
  dpkg-query --admindir="$work/system/var/lib/dpkg" -W -f '${Package} ${Version}\n' >"$work/system/kind/packages"
  tar -C "$work/system" -cf "$work/system.tar" . && mv "$work/system.tar" "$archive"
  rm -rf "$work/system"
}
step "Debian packages" system

root=$work/root
root_folder() {
  mkdir -p "$root"; tar -C "$root" -xf "$caches/system-$system_digest.tar"
  # What changed in Debian since the list was written is told: it is part of the image without being in its digest.
  diff -U0 "$here/packages.txt" "$root/kind/packages" >"$work/changed" || true
  cp -R "$here/rootfs/." "$root/"
  printf %s "$version" >"$root/kind/version"; mkdir -p "$root/kind/manifests" "$root/opt/cni/bin"
  install -m755 "$bin"/{kubeadm,kubelet,kubectl,kube-proxy,containerd,containerd-shim-runc-v2,ctr} "$root/usr/local/bin/"
  install -m755 "$bin"/{bridge,host-local,loopback,portmap} "$root/opt/cni/bin/"
  local unit wants=$root/etc/systemd/system/multi-user.target.wants; mkdir -p "$wants"
  for unit in containerd.service kubelet.service kube-proxy.path; do ln -sf "../$unit" "$wants/$unit"; done
  for unit in systemd-udevd.service systemd-udev-trigger.service systemd-logind.service getty.target console-getty.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
}
step "root file system" root_folder
if [ -s "$work/changed" ]; then
  echo "node image: Debian's packages differ from packages.txt:" >&2; grep '^[-+][^-+]' "$work/changed" >&2 || true
fi

entry=(--change 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' --change 'STOPSIGNAL SIGRTMIN+3')
node_image() {
  tar -C "$root" -c . | docker import "${entry[@]}" \
    --change 'ENV container=docker PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$image-base"
  # /var must be no volume here, or what containerd imports would not be part of the image.
  docker run -d --cidfile "$work/container" --privileged --cgroupns=private --tmpfs /tmp --tmpfs /run \
    --label dev.onewriter.build=node-image "$image-base"
  local container tries=0; container=$(cat "$work/container")
  until docker exec "$container" ctr version >/dev/null 2>&1; do
    [ "$tries" -lt 300 ] || { docker logs --tail 30 "$container"; echo "containerd did not answer within 60 s"; return 1; }
    sleep 0.2; tries=$((tries + 1))
  done
  docker exec -i "$container" ctr -n k8s.io images import --no-unpack - <"$work/images.tar"
  docker exec "$container" systemctl stop containerd
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' "$container" "$image"
  docker rm -fv "$container"; rm "$work/container"
  # The base stays as the layers below; its name goes.
  docker rmi --no-prune "$image-base"
}
step "node image" node_image
printf 'node image: %s, %d MB\n' "$image" $(($(docker image inspect -f '{{.Size}}' "$image") / 1000000)) >&2
echo "$image"
