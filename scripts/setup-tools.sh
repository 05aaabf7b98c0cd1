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

# A program of a module with its own main.go, whose go.mod begins with its name and version.
has_go_program() { [ -x "$folder/$program" ]; }
make_go_program() {
  need go "$label is built from Go modules." 'Go 1.26 or newer'
  begin "$label $version (built once, minutes when cold)"
  mkdir -p "$temp/$program"
  quiet sh -c 'cd "$1" && CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -ldflags "-s -w" -o "$2" .' sh "$module" "$temp/$program/$program"
  put "$temp/$program" "$folder"
  end
}
# PROGRAM, its name in go.mod, its module, its folder in build, and the variable with a prebuilt one: its name and value.
setup_go_program() {
  program=$1 label=$2 module=$root/$3
  version=$(sed -n "s/^\/\/ $label \([0-9.]*\):.*/\1/p" "$module/go.mod")
  folder=${6:-$cache/$program-$version-$(recipe_hash "$module/go.mod" "$module/go.sum" "$module/main.go")}
  if [ -n "$6" ]; then
    has_go_program || die "$5 ($folder) lacks $program"
    printf 'setup: %s: given by %s\n' "$label" "$5"
  else
    ensure "$label $version" has_go_program make_go_program
  fi
  mkdir -p "$root/build/$4"
  ln -sfn "$folder/$program" "$root/build/$4/$program"
}
setup_otel() { setup_go_program otelcol Collector tests/otel/collector otel SKERRY_OTEL_BIN "${SKERRY_OTEL_BIN:-}"; }
setup_vault() { setup_go_program vault Vault tests/vault/server vault SKERRY_VAULT_BIN "${SKERRY_VAULT_BIN:-}"; }

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

# cr-sqlite linked by zig: for arm64, and for x64 machines with an older glibc than this one.
has_crsqlite_zig() { [ -f "$crsqlite-zig-$zig_processor/crsqlite.so" ]; }
make_crsqlite_zig() {
  need rustup 'cr-sqlite for other machines needs their Rust library.' 'Rust from rustup'
  begin "cr-sqlite $crsqlite_version for $zig_processor"
  quiet rustup target add "$zig_processor-unknown-linux-gnu"
  mkdir "$temp/crsqlite-$zig_processor"
  quiet env SKERRY_ZIG="$zig/ziglang/zig" SKERRY_ZIG_PROCESSOR="$zig_processor" "$root/scripts/cr-sqlite/build" \
    "$root/node_modules/@vlcn.io/crsqlite" "$temp/crsqlite-$zig_processor/crsqlite.so"
  put "$temp/crsqlite-$zig_processor" "$crsqlite-zig-$zig_processor"
  end
}

# The Debian part of an arm64 image: packages of arm64 with what they need, unpacked. Lists and cache of their own, so that this machine stays as it is.
debian_arm64=$cache/debian-arm64-1
has_debian_arm64() { [ -x "$debian_arm64/usr/bin/git" ]; }
make_debian_arm64() {
  need apt-get 'The arm64 images are made of Debian packages.' 'a Debian 12 machine'
  begin 'Debian packages of arm64'
  apt=$temp/apt-arm64
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$temp/debian-arm64"
  : >"$apt/state/status"
  options="-q -o Dir::State=$apt/state -o Dir::State::status=$apt/state/status -o Dir::Cache=$apt/cache -o APT::Architecture=arm64 \
    -o APT::Architectures::=arm64 -o APT::Sandbox::User=root"
  # shellcheck disable=SC2086
  quiet sh -c 'apt-get "$@" update && apt-get "$@" install -y --download-only --no-install-recommends libc6 dash git openssh-client bubblewrap util-linux' sh $options
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$temp/debian-arm64"; done
  ls "$apt/cache/archives" | sed -n 's/_\(.*\)_.*\.deb$/ \1/p' | sed 's/%3a/:/' >"$temp/debian-arm64/packages"
  rm -rf "$temp/debian-arm64/var"
  put "$temp/debian-arm64" "$debian_arm64"
  end
}

# Programs that render, for the server on arm64.
render_arm64=$cache/render-arm64-$(recipe_hash "$root"/tests/render/helm/go.* "$root"/tests/render/helm3/go.* "$root"/tests/render/kustomize/go.*)
has_render_arm64() { [ -x "$render_arm64/$program" ]; }
make_render_arm64() {
  need go 'helm and kustomize are built from Go modules.' 'Go 1.26 or newer'
  begin "$program for arm64 (built once, minutes when cold)"
  quiet env GOARCH=arm64 "$root/scripts/render-program" "$program" "$temp/$program"
  mkdir -p "$render_arm64"
  mv "$temp/$program" "$render_arm64/$program"
  end
}

setup_targets() {
  mkdir -p "$root/build/targets"
  for bun_target in $bun_targets; do
    ensure "bun $bun_version for $bun_target" has_bun_target make_bun_target
    ln -sfn "$cache/bun-$bun_version-$bun_target/bun" "$root/build/targets/bun-$bun_target"
  done
  ensure "zig $zig_version" has_zig make_zig
  for pair in x64=x86_64 arm64=aarch64; do
    zig_processor=${pair#*=}
    ensure "cr-sqlite $crsqlite_version for $zig_processor" has_crsqlite_zig make_crsqlite_zig
    ln -sfn "$crsqlite-zig-$zig_processor/crsqlite.so" "$root/build/targets/crsqlite-${pair%%=*}.so"
  done
  ensure 'Debian packages of arm64' has_debian_arm64 make_debian_arm64
  ln -sfn "$debian_arm64" "$root/build/targets/debian-arm64"
  for program in helm helm3 kustomize; do ensure "$program for arm64" has_render_arm64 make_render_arm64; done
  ln -sfn "$render_arm64" "$root/build/targets/render-arm64"
}

# go_program MODULE PACKAGE OUT: the program of a module of its own, from the versions that it pins.
go_program() {
  quiet sh -c 'cd "$1" && CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
    -ldflags "-s -w" -o "$2" "$3"' sh "$1" "$3" "$2"
}

has_nfpm() { [ -x "$nfpm/nfpm" ]; }
make_nfpm() {
  need go 'nfpm is built from Go modules.' 'Go 1.26 or newer'
  begin 'nfpm (built once)'
  mkdir -p "$temp/nfpm"
  go_program "$root/scripts/release-parts/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm "$temp/nfpm/nfpm"
  put "$temp/nfpm" "$nfpm"
  end
}
setup_release() {
  nfpm=$cache/nfpm-$(recipe_hash "$root/scripts/release-parts/nfpm/go.mod" "$root/scripts/release-parts/nfpm/go.sum")
  ensure nfpm has_nfpm make_nfpm
  ln -sfn "$nfpm" "$root/build/release"
}

has_cosign() { [ -x "$cosign/cosign" ]; }
make_cosign() {
  need go 'cosign is built from Go modules.' 'Go 1.26 or newer'
  begin 'cosign (built once, minutes when cold)'
  mkdir -p "$temp/cosign"
  go_program "$root/tests/release/cosign" github.com/sigstore/cosign/v2/cmd/cosign "$temp/cosign/cosign"
  put "$temp/cosign" "$cosign"
  end
}
setup_cosign() {
  cosign=$cache/cosign-$(recipe_hash "$root/tests/release/cosign/go.mod" "$root/tests/release/cosign/go.sum")
  ensure cosign has_cosign make_cosign
  ln -sfn "$cosign" "$root/build/cosign"
}

# What backups are tested against: an S3-compatible storage, and a program that replicates SQLite files.
has_storage() { [ -x "$storage/$program" ]; }
make_storage() {
  need go "$program is built from Go modules." 'Go 1.26.6 or newer'
  begin "$program (built once, minutes when cold)"
  mkdir -p "$temp/storage"
  go_program "$module" "$package" "$temp/storage/$program"
  put "$temp/storage" "$storage"
  end
}
setup_storage() {
  mkdir -p "$root/build/storage"
  for package in github.com/seaweedfs/seaweedfs/weed github.com/benbjohnson/litestream/cmd/litestream; do
    program=${package##*/}
    module=$root/tests/storage/$program
    storage=$cache/$program-$(recipe_hash "$module/go.mod" "$module/go.sum")
    ensure "$program" has_storage make_storage
    ln -sfn "$storage/$program" "$root/build/storage/$program"
  done
}
