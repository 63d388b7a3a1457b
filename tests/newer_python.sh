#!/usr/bin/env bash
# Runs tests on a newer Python than this system's: Debian 13's python3.13, in a directory of its own.
#   newer_python.sh install DIR        make DIR, 7 GB; needs root, debootstrap and the package registries
#   newer_python.sh test DIR ARGUMENT  run pytest there, on the files that git tracks
# Constraints of pip that name this machine's own wheels do not apply there: PyPI's torch is installed.
set -euo pipefail
root=$(realpath -m "$2")
export root

inside() {
  # The mounts end with the command.
  # shellcheck disable=SC2016
  unshare --mount bash -euc '
    for name in proc sys dev; do mount --rbind "/$name" "$root/$name"; done
    exec env -u PIP_FIND_LINKS -u PYTHONPATH -u VIRTUAL_ENV HOME=/root LC_ALL=C.UTF-8 PATH=/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin \
      chroot "$root" bash -euc "cd /src; $0"' "$1"
}

copy_files() {
  rm -rf "$root/src" && mkdir "$root/src"
  git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$root/src"
}

case $1 in
  install)
    [[ -e $root/.ready ]] && exit
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,git trixie "$root"
    if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
      cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    fi
    copy_files
    inside 'python3 -m venv /venv
      pip install --quiet --no-cache-dir --no-compile --constraint constraints.txt --editable ".[cpu,train,grpc,s3,web,plot,experiments,dev]"'
    touch "$root/.ready"
    ;;
  test)
    copy_files
    inside "git init -q . && git -c core.safecrlf=false add . && python --version && pytest ${*:3}"
    ;;
esac
