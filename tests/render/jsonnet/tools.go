//go:build tools

// Package tools pins the real jsonnet that the tests render with. Nothing here is compiled into Skerry.
package tools

import _ "github.com/google/go-jsonnet/cmd/jsonnet"
