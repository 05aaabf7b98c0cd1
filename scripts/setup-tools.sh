# Functions of scripts/setup that make the programs which tests run besides the cluster: Dex, the collector, Gitea,
# Prometheus, schemathesis, Chromium, and what installs are tested with. Sourced there: they use its variables.
# shellcheck shell=sh

# Dex imports SQLite in C, also where it keeps everything in memory, so it needs a C compiler as cr-sqlite does.
has_oidc() { [ -x "$oidc/dex" ]; }
make_oidc() {
  need go 'Dex is built from Go modules.' 'Go 1.26 or newer'
  need gcc 'Dex is built with the SQLite that it contains.' 'apt-get install gcc libc6-dev'
  begin "dex $dex (built once, minutes when cold)"
  mkdir -p "$temp/oidc"
  quiet sh -c 'cd "$1" && CGO_ENABLED=1 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=v$3" -o "$2" github.com/dexidp/dex/cmd/dex' sh "$module" "$temp/oidc/dex" "$dex"
  put "$temp/oidc" "$oidc"
  end
}
setup_oidc() {
  module=$root/tests/oidc/dex
  dex=$(sed -n 's/^\/\/ Dex \([0-9.]*\):.*/\1/p' "$module/go.mod")
  oidc=${SKERRY_OIDC_BIN:-$cache/dex-$dex-$(recipe_hash "$module/go.mod" "$module/go.sum" "$module/tools.go")}
  if [ -n "${SKERRY_OIDC_BIN:-}" ]; then
    has_oidc || die "SKERRY_OIDC_BIN ($oidc) lacks dex"
    printf 'setup: dex: given by SKERRY_OIDC_BIN\n'
  else
    ensure "dex $dex" has_oidc make_oidc
  fi
  mkdir -p "$root/build/oidc"
  ln -sfn "$oidc/dex" "$root/build/oidc/dex"
}

has_otel() { [ -x "$otel/otelcol" ]; }
make_otel() {
  need go 'The collector is built from Go modules.' 'Go 1.26 or newer'
  begin "collector $collector (built once, minutes when cold)"
  mkdir -p "$temp/otel"
  quiet sh -c 'cd "$1" && CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -ldflags "-s -w" -o "$2" .' sh "$module" "$temp/otel/otelcol"
  put "$temp/otel" "$otel"
  end
}
setup_otel() {
  module=$root/tests/otel/collector
  collector=$(sed -n 's/^\/\/ Collector \([0-9.]*\):.*/\1/p' "$module/go.mod")
  otel=${SKERRY_OTEL_BIN:-$cache/otelcol-$collector-$(recipe_hash "$module/go.mod" "$module/go.sum" "$module/main.go")}
  if [ -n "${SKERRY_OTEL_BIN:-}" ]; then
    has_otel || die "SKERRY_OTEL_BIN ($otel) lacks otelcol"
    printf 'setup: collector: given by SKERRY_OTEL_BIN\n'
  else
    ensure "collector $collector" has_otel make_otel
  fi
  mkdir -p "$root/build/otel"
  ln -sfn "$otel/otelcol" "$root/build/otel/otelcol"
}

# Its texts, templates and pictures are files beside it: without Node there is no bundle of them to compile in.
has_gitea() { [ -x "$gitea/gitea" ] && [ -d "$gitea/static/templates" ]; }
make_gitea() {
  need go 'Gitea is built from Go modules.' 'Go 1.26.2 or newer'
  need gcc 'Gitea is built with the SQLite that it contains.' 'apt-get install gcc libc6-dev'
  begin "gitea $gitea_version (built once, minutes when cold)"
  mkdir -p "$temp/gitea/static"
  quiet sh -c 'cd "$1" && CGO_ENABLED=1 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -tags "sqlite sqlite_unlock_notify" -ldflags "-s -w" -o "$2" code.gitea.io/gitea' sh "$module" "$temp/gitea/gitea"
  files=$(cd "$module" && GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go list -m -f '{{.Dir}}' code.gitea.io/gitea)
  for part in options public templates; do cp -R "$files/$part" "$temp/gitea/static/$part"; done
  chmod -R u+w "$temp/gitea"
  put "$temp/gitea" "$gitea"
  end
}
setup_gitea() {
  module=$root/tests/forge/gitea
  gitea_version=$(sed -n 's/^\/\/ Gitea \([0-9.]*\):.*/\1/p' "$module/go.mod")
  gitea=${SKERRY_GITEA_BIN:-$cache/gitea-$gitea_version-$(recipe_hash "$module/go.mod" "$module/go.sum" "$module/tools.go")}
  if [ -n "${SKERRY_GITEA_BIN:-}" ]; then
    has_gitea || die "SKERRY_GITEA_BIN ($gitea) lacks gitea or static"
    printf 'setup: gitea: given by SKERRY_GITEA_BIN\n'
  else
    ensure "gitea $gitea_version" has_gitea make_gitea
  fi
  ln -sfn "$gitea" "$root/build/gitea"
}

# Unpacked from Debian's package, not installed: nothing is started, and no user is made.
prometheus=$cache/prometheus-debian
has_prometheus() { [ -x "$prometheus/promtool" ] && [ -x "$prometheus/prometheus" ]; }
make_prometheus() {
  need apt-get 'Prometheus comes from its Debian package.' 'a Debian 12 machine'
  begin 'prometheus'
  mkdir "$temp/prometheus"
  quiet unpack_debian prometheus "$temp/prometheus-package"
  cp "$temp/prometheus-package/usr/bin/prometheus" "$temp/prometheus-package/usr/bin/promtool" "$temp/prometheus/"
  put "$temp/prometheus" "$prometheus"
  end
}
setup_prometheus() {
  ensure prometheus has_prometheus make_prometheus
  ln -sfn "$prometheus" "$root/build/prometheus"
}

# Packages beside each other in one folder, for PYTHONPATH: a virtual environment cannot be moved into the cache.
api_requirements=$root/tests/api/requirements.txt
schemathesis=$(sed -n 's/^schemathesis==//p' "$api_requirements")
api=$cache/schemathesis-$schemathesis-$(recipe_hash "$api_requirements")
has_api() { [ -d "$api/schemathesis" ]; }
make_api() {
  need python3 'Schemathesis runs on Python.' 'apt-get install python3 python3-pip'
  begin "schemathesis $schemathesis"
  quiet python3 -m pip install --disable-pip-version-check --no-deps --target "$temp/api" -r "$api_requirements"
  put "$temp/api" "$api"
  end
}
setup_api() {
  ensure "schemathesis $schemathesis" has_api make_api
  ln -sfn "$api" "$root/build/schemathesis"
}

# Its package is installed, not unpacked: it needs a hundred libraries.
chromium=${SKERRY_CHROMIUM:-/usr/bin/chromium}
has_browser() { [ -x "$chromium" ]; }
make_browser() {
  need apt-get 'Chromium comes from its Debian package.' 'a Debian 12 machine, or SKERRY_CHROMIUM'
  begin 'chromium'
  quiet sh -c 'apt-get install -y -q chromium || { apt-get update && apt-get install -y -q chromium; }'
  end
}
setup_browser() { ensure chromium has_browser make_browser; }

install_parts=$cache/install-parts-$(recipe_hash "$root/scripts/install-parts")
has_install() { [ -d "$install_parts/crds" ]; }
make_install() {
  begin 'kinds of other projects, programs for images'
  quiet "$root/scripts/install-parts" "$temp/install"
  put "$temp/install" "$install_parts"
  end
}
setup_install() {
  ensure 'kinds of other projects, programs for images' has_install make_install
  ln -sfn "$install_parts" "$root/build/install"
}

# Bun for other systems: the programs of `bun build --compile` are that Bun and ours behind it. Names are those of npm's packages.
bun_targets='linux-aarch64 darwin-aarch64 darwin-x64 windows-x64'
has_bun_target() { [ -e "$cache/bun-$bun_version-$bun_target" ]; }
make_bun_target() {
  need npm 'Bun comes from its npm package.' 'Node.js with npm, for example apt-get install nodejs npm'
  begin "bun $bun_version for $bun_target"
  mkdir -p "$temp/bun-$bun_target"
  quiet sh -c 'cd "$1" && npm pack --silent --ignore-scripts "@oven/bun-$2@$3" && tar -xzf ./*.tgz && rm ./*.tgz' \
    sh "$temp/bun-$bun_target" "$bun_target" "$bun_version"
  for file in "$temp/bun-$bun_target"/package/bin/bun*; do
    grep -qx "$(sha256sum "$file" | cut -d' ' -f1)  bun-$bun_version-$bun_target" "$root/scripts/bun.sha256" ||
      die "the bun that npm delivered for $bun_target has a checksum that scripts/bun.sha256 does not name"
    mv "$file" "$temp/bun-$bun_target/bun"
  done
  rm -r "$temp/bun-$bun_target/package"
  chmod 755 "$temp/bun-$bun_target/bun"
  put "$temp/bun-$bun_target" "$cache/bun-$bun_version-$bun_target"
  end
}

# zig is the compiler and linker of another processor and an older glibc, without a system of its own.
zig_version=0.17.1
zig=$cache/zig-$zig_version
has_zig() { [ -x "$zig/ziglang/zig" ]; }
make_zig() {
  need python3 'zig comes from PyPI.' 'apt-get install python3 python3-pip'
  begin "zig $zig_version"
  quiet python3 -m pip install --disable-pip-version-check --no-deps --target "$temp/zig" "ziglang==$zig_version"
  put "$temp/zig" "$zig"
  end
}

crsqlite_arm64=$crsqlite-arm64
has_crsqlite_arm64() { [ -f "$crsqlite_arm64/crsqlite.so" ]; }
make_crsqlite_arm64() {
  need rustup 'cr-sqlite for arm64 needs its Rust library.' 'Rust from rustup'
  begin "cr-sqlite $crsqlite_version for arm64"
  quiet rustup target add aarch64-unknown-linux-gnu
  mkdir "$temp/crsqlite-arm64"
  quiet env SKERRY_ZIG="$zig/ziglang/zig" "$root/scripts/cr-sqlite/build" "$root/node_modules/@vlcn.io/crsqlite" "$temp/crsqlite-arm64/crsqlite.so"
  put "$temp/crsqlite-arm64" "$crsqlite_arm64"
  end
}

setup_targets() {
  mkdir -p "$root/build/targets"
  for bun_target in $bun_targets; do
    ensure "bun $bun_version for $bun_target" has_bun_target make_bun_target
    ln -sfn "$cache/bun-$bun_version-$bun_target/bun" "$root/build/targets/bun-$bun_target"
  done
  ensure "zig $zig_version" has_zig make_zig
  ensure "cr-sqlite $crsqlite_version for arm64" has_crsqlite_arm64 make_crsqlite_arm64
  ln -sfn "$crsqlite_arm64/crsqlite.so" "$root/build/targets/crsqlite-arm64.so"
}
