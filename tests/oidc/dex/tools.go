//go:build tools

// Package tools pins a real OpenID Connect provider that sign-in is tested against. Nothing here is compiled into Skerry.
package tools

import _ "github.com/dexidp/dex/cmd/dex"
