//go:build tools

// Package tools pins the cosign that verifies signatures in tests. Nothing here is compiled into Skerry.
package tools

import _ "github.com/sigstore/cosign/v2/cmd/cosign"
