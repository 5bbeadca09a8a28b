#!/usr/bin/env bash
# A Docker daemon for a machine that has none: from Debian packages, in a folder of its own, nothing installed.
# Usage: docker.sh start|stop|status|env. Needs root and Debian's package client.
#
#   start   starts it unless one answers already, waits until it answers, and prints what `env` prints
#   stop    ends the daemon that `start` started, and nothing else
#   status  says which daemon answers; exit 1 if none does
#   env     prints `export DOCKER_HOST=…`, for `eval`; nothing if the usual daemon answers
#
# Everything lies in $ONEWRITER_DOCKER_DIR (default: the cache folder of onewriter). Images stay there between starts.
set -euo pipefail

home=${ONEWRITER_DOCKER_DIR:-${ONEWRITER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/onewriter}/docker}
socket=$home/docker.sock
# Debian 12's Docker 20.10 asks for a capability that restricted machines lack, so the daemon is Debian 13's. Its
# runc needs a newer C library than Debian 12 has, so that one is Debian 12's.
daemon_suite=trixie daemon_packages=(docker.io containerd docker-cli)
runtime_suite=bookworm runtime_packages=(runc)
source "$(dirname "$0")/debian.sh"

say() { echo "docker.sh: $*" >&2; }
fail() { say "$*"; exit 1; }

# Whether the daemon at ADDRESS (empty: wherever the client looks) answers.
answers() {
  local client=docker
  command -v docker >/dev/null || client=$home/unpacked/usr/bin/docker
  [ -x "$(command -v "$client")" ] || return 1
  if [ -n "$1" ]; then "$client" -H "$1" info >/dev/null 2>&1; else "$client" info >/dev/null 2>&1; fi
}

environment() {
  answers "" && return 0
  echo "export DOCKER_HOST=unix://$socket"
  command -v docker >/dev/null || echo "export PATH=\"\$PATH:$home/unpacked/usr/bin\""
}

# Downloads packages of another suite with a configuration of our own, and unpacks them; nothing is installed.
unpack() { # SUITE PACKAGE...
  local suite=$1 apt=$home/apt-$1; shift
  mkdir -p "$apt"/{lists/partial,archives/partial}; : >"$apt/status"
  echo "deb [signed-by=$debian_keyring] $mirror $suite main" >"$apt/sources.list"
  local options=(-qq -o "Dir::State=$apt" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root
    -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Acquire::Languages=none)
  apt-get "${options[@]}" update
  (cd "$apt/archives" && apt-get "${options[@]}" download "$@")
  local package
  for package in "$apt"/archives/*.deb; do
    dpkg-deb -x "$package" "$home/unpacked.new"
    dpkg-deb -W --showformat '${Package} ${Version}\n' "$package" >>"$home/unpacked.new/packages"
  done
  rm -rf "$apt"
}

install_programs() {
  [ -x "$home/unpacked/usr/sbin/dockerd" ] && [ -x "$home/unpacked/usr/sbin/runc" ] && return 0
  mirror=$(debian_mirror) && [ -e "$debian_keyring" ] ||
    fail "this needs Debian's package client with a mirror and Debian's keyring; install Docker as your system does it"
  say "fetching ${daemon_packages[*]} ($daemon_suite) and ${runtime_packages[*]} ($runtime_suite)"
  rm -rf "$home/unpacked.new" "$home/unpacked"; mkdir -p "$home/unpacked.new"
  unpack "$daemon_suite" "${daemon_packages[@]}"
  unpack "$runtime_suite" "${runtime_packages[@]}"
  mv "$home/unpacked.new" "$home/unpacked"
}

install_iptables() {
  command -v iptables >/dev/null && return 0
  say "installing iptables"
  apt-get update -qq
  apt-get install -qq -y --no-install-recommends iptables >/dev/null
}

# The daemon that `start` started, if it still runs: its command line names our socket.
daemon() {
  local pid
  pid=$(cat "$home/docker.pid" 2>/dev/null) || return 1
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "unix://$socket" || return 1
  echo "$pid"
}

start() {
  if answers "" || answers "unix://$socket"; then say "a daemon answers already"; environment; return 0; fi
  [ "$(id -u)" = 0 ] || fail "no Docker daemon answers, and only root can start one"
  mkdir -p "$home"
  exec 8>"$home/lock"; flock 8
  install_programs; install_iptables
  rm -f "$home/docker.pid"
  say "starting dockerd; its log is $home/dockerd.log"
  PATH=$home/unpacked/usr/bin:$home/unpacked/usr/sbin:$PATH setsid "$home/unpacked/usr/sbin/dockerd" \
    --host "unix://$socket" --data-root "$home/data" --exec-root "$home/run" --pidfile "$home/docker.pid" \
    --storage-driver overlay2 >"$home/dockerd.log" 2>&1 </dev/null 8>&- &
  local child=$! waited=0
  until answers "unix://$socket"; do
    kill -0 "$child" 2>/dev/null || { tail -20 "$home/dockerd.log" >&2; fail "dockerd ended at once"; }
    [ "$waited" -lt 300 ] || { tail -20 "$home/dockerd.log" >&2; fail "dockerd did not answer within 30 s"; }
    sleep 0.1; waited=$((waited + 1))
  done
  environment
}

stop() {
  local pid
  pid=$(daemon) || { say "no daemon of ours runs"; return 0; }
  kill "$pid"
  # Containers get 10 s each, all at once.
  for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || { say "stopped"; return 0; }; sleep 0.1; done
  fail "dockerd (process $pid) does not end"
}

case ${1:-} in
  start) start ;;
  stop) stop ;;
  status)
    if answers ""; then say "the usual daemon answers"
    elif answers "unix://$socket"; then say "ours answers at unix://$socket"
    else say "no daemon answers"; exit 1; fi ;;
  env) environment ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
