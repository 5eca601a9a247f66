#!/usr/bin/env bash
# Builds what a release consists of: the binaries of the functions, their zips, and the command.
#
#   infra/release.sh                  x86_64, on a machine of that kind
#   infra/release.sh --arm64          arm64, too
#
# Prints the size of each zip and, for binaries of this machine's kind, the time from the start of the
# process to its first poll and to the answer to its first event. Goals: 12 MB a zip, 50 ms to the first poll.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
repository=$(dirname "$here")

usage() {
  cat <<'TEXT'
usage: infra/release.sh [options]

  --arm64          build for arm64 as well (needs `cargo lambda`, zig and an aarch64 standard library)
  --only-arm64     build for arm64 alone
  --out DIR        where ARCHITECTURE/{stream,export-job} and the zips go (else target/lambda)
  --schemas DIR    schema folder of the layer's zip (else schemas/ecommerce)
  --runs N         cold starts to measure (else 11; 0 measures none)

The command `dynalake`, which makes the zips, is built too, unless DYNALAKE names one.

For arm64, `pip install cargo-lambda ziglang` gives the linker. Where rustup has no standard library for
aarch64-unknown-linux-gnu, a distribution's compiler has one; on Debian 12 with security updates:

  dpkg --add-architecture arm64 && apt-get update
  apt-get install rustc-web cargo-web libstd-rust-web-dev libstd-rust-web-dev:arm64
  RUSTC=/usr/bin/rustc infra/release.sh --arm64

Binaries may ask for no newer C library than Amazon Linux 2023 has, 2.34; that is checked.
TEXT
}

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 2
}

step() { printf '== %s\n' "$*" >&2; }

architectures=(x86_64) out='' schemas=$repository/schemas/ecommerce runs=11
while [ $# -gt 0 ]; do
  case $1 in
    --arm64) architectures=(x86_64 arm64); shift; continue ;;
    --only-arm64) architectures=(arm64); shift; continue ;;
    --help | -h) usage; exit 0 ;;
    --out | --schemas | --runs) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) usage >&2; fail "unknown option $1" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --schemas) schemas=$2 ;;
    --runs) runs=$2 ;;
  esac
  shift 2
done
[[ $runs =~ ^[0-9]+$ ]] || fail "--runs $runs: expected a number"

cd "$repository"
command -v cargo >/dev/null || fail 'cargo is not installed' 'install Rust by rustup'
target=${CARGO_TARGET_DIR:-$repository/target}
out=${out:-$target/lambda}
functions=(stream export-job)
packages=(--package dynalake-pipeline --bin stream --package dynalake-export-job --bin export-job)

# The newest C library that a binary asks for; nothing for one that is linked statically.
needs() {
  { grep -aoE 'GLIBC_2\.[0-9]+' "$1" || true; } | sort --unique --version-sort | tail -n 1
}

# The C library of provided.al2023.
readonly al2023=GLIBC_2.34

collect() {
  local architecture=$1 from=$2 name binary newest
  mkdir -p "$out/$architecture"
  for name in "${functions[@]}"; do
    binary=$out/$architecture/$name
    if [ -f "$from/$name/bootstrap" ]; then
      cp "$from/$name/bootstrap" "$binary"
    else
      cp "$from/$name" "$binary"
    fi
    newest=$(needs "$binary")
    if [ "$(printf '%s\n' "$newest" "$al2023" | sort --version-sort | tail -n 1)" != "$al2023" ]; then
      fail "$name for $architecture asks for $newest; Lambda has $al2023" \
        'build it with cargo-lambda, or on an older system'
    fi
  done
}

if [ -z "${DYNALAKE:-}" ]; then
  step 'building the command'
  cargo build --release --locked --package dynalake
  DYNALAKE=$target/release/dynalake
fi

for architecture in "${architectures[@]}"; do
  step "building the functions for $architecture"
  case $architecture in
    x86_64)
      [ "$(uname -m)" = x86_64 ] || fail 'this machine is not x86_64' 'use --only-arm64'
      cargo build --release --locked "${packages[@]}"
      collect x86_64 "$target/release"
      ;;
    arm64)
      cargo lambda --version >/dev/null 2>&1 ||
        fail 'cargo-lambda is not installed' 'pip install cargo-lambda ziglang'
      cargo lambda build --release --arm64 --locked "${packages[@]}"
      collect arm64 "$target/lambda"
      ;;
  esac
  step "zips for $architecture"
  "$DYNALAKE" bundle "$schemas" --artifacts "$out/$architecture" --out "$out/$architecture/zips"
done

# 12 MB a zip.
readonly largest=12000000
for zip in "$out"/*/zips/*.zip; do
  size=$(wc -c <"$zip")
  [ "$size" -le "$largest" ] || printf 'warning: %s has %s bytes, the goal is %s\n' "$zip" "$size" "$largest" >&2
done

if [ "$runs" -gt 0 ] && [ -d "$out/$(uname -m)" ]; then
  step "cold starts on $(uname -m)"
  for name in "${functions[@]}"; do
    cargo run --quiet --package dynalake-tests --example cold_start -- \
      "$name" "$out/$(uname -m)/$name" "$runs" ||
      printf 'warning: %s starts slower than the goal, or not at all\n' "$name" >&2
  done
fi
