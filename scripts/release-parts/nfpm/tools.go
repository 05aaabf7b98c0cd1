//go:build tools

// Package tools pins the nfpm that makes packages. Nothing here is compiled into Skerry.
package tools

import _ "github.com/goreleaser/nfpm/v2/cmd/nfpm"
