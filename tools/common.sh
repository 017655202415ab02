# shellcheck shell=bash
# What the set-up scripts share: how they fail, become root and use apt. It is sourced, never run.

PYTHONS=(python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11)

fail() { printf 'setup: %s\n' "$*" >&2; exit 4; }

need_root() {  # COMMAND...: end here, and clearly, if it cannot be run as root
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    fail "needs root for: $* (run as root, or install sudo)"
  fi
}

as_root() {
  need_root "$@"
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

closed_to_others() {  # PATH: the first folder or file on the way to it that users other than its owner may not enter
  local at mode; at=$(readlink -f "$1") || fail "there is no $1"
  local way=("$at")
  while [ "$at" != / ]; do at=$(dirname "$at"); way=("$at" "${way[@]}"); done
  for at in "${way[@]}"; do
    mode=$(stat -c %a "$at")
    if [ $((0$mode & 1)) -eq 0 ]; then echo "$at"; return; fi
  done
}

place_of() {  # PYTHON: where its own files are
  "$1" -c 'import sys; print(sys.base_prefix)'
}

open_to_all() {  # PYTHON: whether other users than root may read it; without root that is not asked
  [ "$(id -u)" -ne 0 ] || [ -z "$(closed_to_others "$(place_of "$1")")" ]
}

optimised() {  # PYTHON: built with profiles, as a distribution's own is; a plain build takes 7 to 18 % more CPU time
  "$1" -c 'import sys, sysconfig; sys.exit(
    sys.base_prefix != "/usr" and "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""))'
}

# The first interpreter that is new enough; Debian 12 has 3.11, Ubuntu 24.04 3.12, Debian 13 3.13. As root one that all
# users may read, not that of a pyenv below /root; of those one that is optimised, where there is one.
find_python() {
  local python first='' readable=''
  for python in "${PYTHONS[@]}"; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    first=${first:-$python}
    open_to_all "$python" || continue
    if optimised "$python"; then echo "$python"; return; fi
    readable=${readable:-$python}
  done
  [ -n "$first" ] || fail "needs Python 3.11 or newer (Debian 12 and 13 and Ubuntu 24.04 have it as python3)"
  echo "${readable:-$first}"
}

warn_of_closed_python() {  # PYTHON: root alone may read it, and so nobody else can run what is set up with it
  local place closed
  [ "$(id -u)" -eq 0 ] || return 0
  for place in "$(place_of "$1")" "$1" "$(dirname "$1")"; do
    closed=$(closed_to_others "$place")
    if [ -n "$closed" ]; then
      echo "setup: warning: only root may enter $closed, so other users, and the server of \`run --web\`, cannot run $1. Fix: chmod o+x $closed, or a Python and a checkout outside of it and: rm -r .venv && make setup" >&2
      return
    fi
  done
}

apt_has() {  # whether apt can install this package
  # apt-cache's output is taken whole before grep looks: grep ends at its first match, and an apt-cache that still
  # writes then dies of SIGPIPE, which pipefail would make a "no".
  local policy; policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)
  grep -q 'Candidate: [0-9]' <<<"$policy"
}

apt_install() {  # PACKAGE...
  as_root_apt update -q
  as_root_apt install -y -q --no-install-recommends "$@"
}

# Another apt or dpkg is waited for: a fresh machine often updates itself at its first boot. apt's own wait
# (DPkg::Lock::Timeout) is for dpkg's lock only; it fails at once when the lists or the archives are locked.
as_root_apt() {
  local patience=${MRC_APT_PATIENCE:-300} pause=${MRC_APT_PAUSE:-3} waiting='' output status holder
  local deadline=$((SECONDS + patience))
  need_root apt-get "$@"  # here, where its line is not in the file
  output=$(mktemp)
  while true; do
    status=0
    # A file takes the output, not a pipe: a daemon that a package starts would keep a pipe open.
    as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$output" 2>&1 || status=$?
    if [ "$status" -eq 0 ] || ! apt_was_busy "$output"; then break; fi
    holder=$(apt_holder "$output")
    if [ "$SECONDS" -ge "$deadline" ]; then
      rm -f "$output"
      fail "waited $patience s for apt, and $holder still has it; run this again when that is done"
    fi
    [ -n "$waiting" ] || echo "setup: waiting up to $patience s for apt: $holder has it"
    waiting=yes
    sleep "$pause"
  done
  if [ "$status" -ne 0 ]; then
    tail -n 25 "$output" >&2
    rm -f "$output"
    fail "apt-get $1 failed with status $status; its last lines are above"
  fi
  grep -E '^[WE]: ' "$output" >&2 || true
  rm -f "$output"
}

apt_was_busy() {  # OUTPUT of apt-get
  grep -qE 'Could not get lock|is another process using it|was locked by another process' "$1"
}

apt_holder() {  # OUTPUT of apt-get: who has the lock, as far as apt knows
  local known; known=$(sed -nE 's/.*held by (process [0-9]+( \([^)]*\))?).*/\1/p' "$1")
  known=${known%%$'\n'*}
  echo "${known:-another process}"
}
