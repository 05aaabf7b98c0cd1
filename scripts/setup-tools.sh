# Functions of scripts/setup that make the programs which tests run besides the cluster: Dex, the collector, Prometheus, schemathesis, Chromium, and what
# installs are tested with. Sourced there: they use its variables.
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

# Unpacked from Debian's package, not installed: nothing is started, and no user is made.
prometheus=$cache/prometheus-debian
has_prometheus() { [ -x "$prometheus/promtool" ] && [ -x "$prometheus/prometheus" ]; }
make_prometheus() {
  need apt-get 'Prometheus comes from its Debian package.' 'a Debian 12 machine'
  begin 'prometheus'
  mkdir -p "$temp/prometheus" "$temp/deb"
  quiet sh -c 'cd "$1" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } && dpkg -x ./*.deb .' sh "$temp/deb"
  cp "$temp/deb/usr/bin/prometheus" "$temp/deb/usr/bin/promtool" "$temp/prometheus/"
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
