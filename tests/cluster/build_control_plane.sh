#!/usr/bin/env bash
# Builds the control plane of a real Kubernetes for tests/cluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
#
#   tests/cluster/build_control_plane.sh [DIRECTORY]      default: build/control-plane
#
# Source and compiler are Debian's packages (kubernetes 1.20.2, Go 1.19), for which the apt sources of the machine need Debian 12.
# Everything is written below DIRECTORY, apt's lists too; no package is installed. What is there already is not made again.
# On two cores it takes 15 to 30 minutes and 3 GB, of which 270 MB stay, in DIRECTORY/bin.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:-$here/build/control-plane}"
root=$(cd "${1:-$here/build/control-plane}" && pwd)
work=$root/work
release=bookworm
servers=(kube-apiserver kube-controller-manager kube-scheduler)
packages=(golang-1.19-go golang-1.19-src etcd-server rsync libpopt0 libxxhash0 golang-github-modern-go-reflect2-dev)

main() {
  if complete; then
    say "all of it is in $root/bin"
    return
  fi
  need_tools
  mkdir -p "$root/bin" "$work"
  exec 9> "$root/lock"
  flock -n 9 || fail "another build works in $root; wait for it"
  download
  unpack
  generate
  for server in "${servers[@]}"; do compile "$server"; done
  install -m 755 "$work/tools/usr/bin/etcd" "$root/bin/etcd"
  complete || fail "a program is missing in $root/bin"
  chmod -R u+w "$work"
  rm -rf "$work"
  say "done: $(cd "$root/bin" && echo *) in $root/bin"
}

complete() {
  for program in etcd "${servers[@]}"; do [[ -x $root/bin/$program ]] || return 1; done
}

need_tools() {
  for tool in apt-get dpkg-source make gcc flock; do
    command -v "$tool" > /dev/null || fail "$tool is missing; it takes Debian with the packages dpkg-dev, make and gcc"
  done
  [[ $(dpkg --print-architecture) == amd64 ]] || fail "this was only tried on amd64"
}

# Debian's packages, by an apt whose lists and cache are in $work. Where Debian is found is what the machine's own apt says.
download() {
  [[ -e $work/downloaded ]] && return
  local site
  site=$(apt-get indextargets --format "\$(REPO_URI) \$(RELEASE)" 'Created-By: Packages' | awk -v r="$release" '$2 == r { print $1; exit }')
  [[ $site ]] || fail "apt knows no Debian 12 ($release) here; add it to the apt sources"
  say "downloading from $site"
  mkdir -p "$work"/apt/{lists/partial,cache/archives/partial} "$work/packages"
  : > "$work/apt/status"
  local key=/usr/share/keyrings/debian-archive-keyring.gpg
  [[ -e $key ]] || fail "$key is missing; install debian-archive-keyring"
  printf 'deb [signed-by=%s] %s %s main\ndeb-src [signed-by=%s] %s %s main\n' \
    "$key" "$site" "$release" "$key" "$site" "$release" > "$work/apt/sources.list"
  cat > "$work/apt/apt.conf" << END
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/apt/lists";
Dir::State::Status "$work/apt/status";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
END
  export APT_CONFIG=$work/apt/apt.conf
  apt-get update -q || fail "apt could not read the lists of $site"
  (cd "$work/packages" && apt-get download -q "${packages[@]}" && apt-get source -q --download-only kubernetes) \
    || fail "apt could not download the packages"
  touch "$work/downloaded"
}

unpack() {
  [[ -e $work/unpacked ]] && return
  say "unpacking"
  rm -rf "$work/tools" "$work/go"
  for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/tools"; done
  mkdir -p "$work/go/src/k8s.io"
  dpkg-source --no-check -x "$work"/packages/kubernetes_*.dsc "$work/go/src/k8s.io/kubernetes" > "$work/unpack.log" \
    || fail "the source package could not be unpacked: $work/unpack.log"
  # With Go 1.18 and newer, reflect2 1.0.1 ends the server as soon as it handles an object of a custom resource.
  local vendored=$work/go/src/k8s.io/kubernetes/vendor/github.com/modern-go/reflect2
  rm -rf "$vendored"
  cp -r "$work/tools/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"
  touch "$work/unpacked"
}

in_source() {
  cd "$work/go/src/k8s.io/kubernetes"
  export PATH=$work/tools/usr/lib/go-1.19/bin:$work/tools/usr/bin:$PATH
  export LD_LIBRARY_PATH=$work/tools/usr/lib/x86_64-linux-gnu:$work/tools/lib/x86_64-linux-gnu
  export GOROOT=$work/tools/usr/lib/go-1.19 GOPATH=$work/go GOCACHE=$work/cache HOME=$work
  export GO111MODULE=off GOPROXY=off GOFLAGS='' CGO_ENABLED=0
  "$@"
}

# The one generated file that the source package does not have. Without these variables the makefile writes into /.
generate() {
  [[ -e $work/generated ]] && return
  say "generating the OpenAPI definitions"
  (in_source make -f Makefile.generated_files gen_openapi CALLED_FROM_MAIN_MAKEFILE=1 OUT_DIR=_output BIN_DIR=_output/bin \
    PRJ_SRC_PATH=k8s.io/kubernetes GENERATED_FILE_PREFIX=zz_generated. META_DIR=.make KUBE_VERBOSE=1) > "$work/generate.log" 2>&1 \
    || fail "the OpenAPI definitions could not be generated: $work/generate.log"
  touch "$work/generated"
}

compile() {
  [[ -x $root/bin/$1 ]] && return
  say "compiling $1"
  local version=k8s.io/kubernetes/vendor/k8s.io/component-base/version
  (in_source go build -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" \
    -o "$work/$1" "k8s.io/kubernetes/cmd/$1") > "$work/$1.log" 2>&1 || fail "$1 could not be compiled: $work/$1.log"
  mv "$work/$1" "$root/bin/$1"
}

say() { printf '%s control plane: %s\n' "$(date +%T)" "$*"; }

fail() {
  printf 'control plane: %s\n' "$*" >&2
  exit 1
}

main
