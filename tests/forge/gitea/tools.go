//go:build tools

// Package tools pins a real forge that commit statuses are tested against. Nothing here is compiled into Skerry.
package tools

import _ "code.gitea.io/gitea"
