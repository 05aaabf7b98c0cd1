//go:build tools

// Package tools pins the storage that archives of backups are tested against. Nothing here is compiled into Skerry.
package tools

import _ "github.com/seaweedfs/seaweedfs/weed"
