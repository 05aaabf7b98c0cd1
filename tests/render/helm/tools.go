//go:build tools

// Package tools pins the real Helm 4 that the tests render with. Nothing here is compiled into Skerry.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
