//go:build tools

// Package kwok has no code: the import keeps go.mod and go.sum whole for the program kwok, which
// does not resolve beside the Kubernetes of the control plane and so has a module of its own.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
