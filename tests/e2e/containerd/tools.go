//go:build tools

// Package containerd has no code: the imports keep go.mod and go.sum whole for the programs of
// containerd that binaries.py builds.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	_ "github.com/containerd/containerd/v2/cmd/containerd/command"
	_ "github.com/containerd/containerd/v2/cmd/ctr/app"
)
