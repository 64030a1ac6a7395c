// Command driver is a small DRA driver for one node, of devices that do not exist.
//
// It registers at the kubelet, publishes its devices as the node's pool, and prepares a claim by a
// CDI file, in which each device is one environment variable:
//
//	E2E_DEVICE=<pool>/<device>
//
// The file is there from the claim's preparation until the kubelet takes that back, and carries
// the claim's UID in its name: so the files say which claims are prepared. The driver runs as the
// node's own user, whose rights are enough for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

type settings struct {
	name, node, kubeconfig, kubeletFolder, cdiFolder, devices string
}

func main() {
	var s settings
	flag.StringVar(&s.name, "name", "", "the driver's name")
	flag.StringVar(&s.node, "node", "", "the node's name, and the name of its pool")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "how the API server is reached")
	flag.StringVar(&s.kubeletFolder, "kubelet-folder", "", "the kubelet's root folder")
	flag.StringVar(&s.cdiFolder, "cdi-folder", "", "where the container runtime looks for CDI files")
	flag.StringVar(&s.devices, "devices", "", "name=model,...")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		klog.ErrorS(err, "driver failed")
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	devices, err := parseDevices(s.devices)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	data := filepath.Join(s.kubeletFolder, "plugins", s.name)
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, newPlugin(s.name, s.cdiFolder),
		kubeletplugin.DriverName(s.name),
		kubeletplugin.NodeName(s.node),
		kubeletplugin.KubeClient(client),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(s.kubeletFolder, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: devices}}}
	resources := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{s.node: pool}}
	if err := helper.PublishResources(ctx, resources); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func parseDevices(text string) ([]resourceapi.Device, error) {
	var devices []resourceapi.Device
	for _, entry := range strings.Split(text, ",") {
		name, model, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, fmt.Errorf("-devices: %q is not name=model", entry)
		}
		devices = append(devices, resourceapi.Device{
			Name: name,
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"model": {StringValue: &model},
			},
		})
	}
	if len(devices) == 0 {
		return nil, errors.New("-devices: none")
	}
	return devices, nil
}
