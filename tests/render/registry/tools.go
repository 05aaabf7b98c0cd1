//go:build tools

// Package tools pins a real OCI registry that the tests fetch charts and artifacts from. Nothing here is compiled into Skerry.
package tools

import _ "github.com/distribution/distribution/v3/cmd/registry"
