//go:build tools

// Package tools pins the Litestream that replicates a fleet store in a test. Nothing here is compiled into Skerry.
package tools

import _ "github.com/benbjohnson/litestream/cmd/litestream"
