//go:build tools

// Package tools pins the real Helm 3 that the tests render with. Nothing here is compiled into Skerry.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
