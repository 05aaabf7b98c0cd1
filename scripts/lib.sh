# Sourced by the entry scripts (POSIX sh), never run: where things are. Set `root` to the clone before.
# Everything that can be made again lies in the cache folder, keyed by version, so that a second clone starts in seconds.

# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154
cache=${SKERRY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skerry}
bun_version=$(sed -n 's/.*"packageManager": *"bun@\([^"]*\)".*/\1/p' "$root/package.json")
bun_name=bun-$bun_version-linux-x64
PATH=$cache/$bun_name:$root/node_modules/.bin:$PATH:$cache/bubblewrap
export PATH

die() {
  printf '%s: %s\n' "$(basename -- "$0")" "$1" >&2
  exit 1
}

# need TOOL WHY WHERE: stops with a message that a stranger can act on.
need() {
  command -v "$1" >/dev/null 2>&1 || die "$1 is missing. $2 Install it ($3) and run this again."
}

# help_of ARGUMENT...: `--help` or `-h` among them prints the comment at the head of the script and ends, before anything is built.
help_of() {
  for argument in "$@"; do
    case $argument in
      -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    esac
  done
}

# The first 12 digits of the SHA-256 of some files' contents: the part of a cache key that follows a recipe.
recipe_hash() {
  cat "$@" | sha256sum | cut -c1-12
}

# put FROM TO: moves a finished folder into the cache. Whoever comes second keeps what the first one put there.
put() {
  mkdir -p "$(dirname -- "$2")"
  if [ -e "$2" ] || ! mv "$1" "$2" 2>/dev/null; then
    [ -e "$2" ] || die "cannot move $1 to $2"
    rm -rf "$1"
  fi
}
