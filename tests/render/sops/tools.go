//go:build tools

// Package tools pins the sops that encrypts what the agent has to decrypt. Nothing here is compiled into Skerry.
package tools

import _ "github.com/getsops/sops/v3/cmd/sops"
