//go:build tools

// Package tools pins the API server of an older Kubernetes minor, which the contract tests are held against, too. Nothing here is compiled into Skerry.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
