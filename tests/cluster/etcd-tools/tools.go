//go:build tools

// Package tools pins etcd's own tools, in the version of the etcd that the tests run.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
)
