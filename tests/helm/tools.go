//go:build tools

// Package helm has no code: the import keeps go.mod and go.sum whole for the program helm, which
// does not resolve beside the Kubernetes of the control plane and so has a module of its own.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
