//go:build tools

// Package tools pins the real kustomize that the tests render with. Nothing here is compiled into Skerry.
package tools

import _ "sigs.k8s.io/kustomize/kustomize/v5"
