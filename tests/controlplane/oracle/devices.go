package main

import (
	"context"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// deallocations is how often PostFilter is asked, which picks one of several claims by chance.
const deallocations = 25

// allocation is what a claim of the pod would get on a node.
type allocation struct {
	Claim      string                        `json:"claim"`
	Requests   []resourceapi.DeviceRequest   `json:"requests,omitempty"` // of the special claim only
	Allocation *resourceapi.AllocationResult `json:"allocation"`
}

// deallocation is what DynamicResources does for a pod that fits on no node.
type deallocation struct {
	Message string   `json:"message"`
	Claims  []string `json:"claims"` // of which one is deallocated or deleted
}

// bound is what DynamicResources writes for a pod on a node.
type bound struct {
	Node   string                       `json:"node"`
	Claims []*resourceapi.ResourceClaim `json:"claims"`
	Error  string                       `json:"error,omitempty"`
}

// devices are the objects of dynamic resource allocation and the plugin that looks at them. It
// stands for the manager of the claims, to see what Reserve puts in flight.
type devices struct {
	fwk.SharedDRAManager
	plugin   *dynamicresources.DynamicResources
	client   *fake.Clientset
	handlers []cache.InformerSynced
	reserved []*resourceapi.ResourceClaim
}

func newDevices(
	ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory,
) (*devices, error) {
	claims := assumecache.NewAssumeCache(
		klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracker, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		EnableDeviceTaintRules:   false,
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		KubeClient:               client,
	})
	if err != nil {
		return nil, err
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, factory)
	known := &devices{SharedDRAManager: manager, client: client}
	// As kube-scheduler's own event handlers: without the first the allocated devices may not be
	// known yet, without the second no extended resource has a class.
	known.handlers = append(known.handlers,
		claims.AddEventHandler(cache.ResourceEventHandlerFuncs{}).HasSynced)
	resolver, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache)
	if !ok {
		return nil, fmt.Errorf("classes are resolved by %T", manager.DeviceClassResolver())
	}
	registration, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resolver)
	if err != nil {
		return nil, err
	}
	known.handlers = append(known.handlers, registration.HasSynced)
	return known, nil
}

// register puts a factory in place that keeps the plugin which it makes.
func (d *devices) register(registry frameworkruntime.Registry) {
	gates := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	registry[dynamicresources.Name] = func(
		ctx context.Context, args runtime.Object, handle fwk.Handle,
	) (fwk.Plugin, error) {
		plugin, err := dynamicresources.New(ctx, args, handle, gates)
		if err == nil {
			d.plugin = plugin.(*dynamicresources.DynamicResources)
		}
		return plugin, err
	}
}

// ResourceClaims are the manager's, but what is to be put in flight is kept apart.
func (d *devices) ResourceClaims() fwk.ResourceClaimTracker {
	return &claims{ResourceClaimTracker: d.SharedDRAManager.ResourceClaims(), devices: d}
}

type claims struct {
	fwk.ResourceClaimTracker
	devices *devices
}

func (c *claims) SignalClaimPendingAllocation(_ types.UID, claim *resourceapi.ResourceClaim) error {
	c.devices.reserved = append(c.devices.reserved, claim)
	return nil
}

// allocations returns what the claims of a pod that have no allocation would get on a node.
func (d *devices) allocations(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string,
) ([]allocation, error) {
	if d.plugin == nil {
		return nil, nil
	}
	d.reserved = nil
	if status := d.plugin.Reserve(ctx, state, pod, node); !status.IsSuccess() {
		return nil, status.AsError()
	}
	var found []allocation
	for _, claim := range d.reserved {
		one := allocation{Claim: claim.Name, Allocation: claim.Status.Allocation}
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" {
			one.Requests = claim.Spec.Devices.Requests
		}
		found = append(found, one)
	}
	return found, nil
}

// bind reserves a node for a pod and writes the pod's claims, the latest of each.
func (d *devices) bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *bound {
	result := &bound{Node: node}
	if status := d.plugin.Reserve(ctx, state, pod, node); !status.IsSuccess() {
		result.Error = status.Message()
		return result
	}
	d.client.ClearActions()
	if status := d.plugin.PreBind(ctx, state, pod, node); !status.IsSuccess() {
		result.Error = status.Message()
	}
	latest := map[string]*resourceapi.ResourceClaim{}
	for _, action := range d.client.Actions() {
		if update, ok := action.(clienttesting.UpdateAction); ok {
			if claim, ok := update.GetObject().(*resourceapi.ResourceClaim); ok {
				latest[claim.Name] = claim
			}
		}
	}
	for _, claim := range latest {
		result.Claims = append(result.Claims, claim)
	}
	return result
}

// deallocation asks what the plugin does for a pod that fits nowhere; nil for a pod without claims
// and one that a PreFilter before the plugin's rejected.
func (d *devices) deallocation(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses *framework.NodeToStatus,
) *deallocation {
	if d.plugin == nil {
		return nil
	}
	if _, err := state.Read(dynamicresources.Name); err != nil {
		return nil
	}
	result := &deallocation{Claims: []string{}}
	chosen := map[string]bool{}
	for range deallocations {
		d.client.ClearActions()
		_, status := d.plugin.PostFilter(ctx, state, pod, statuses)
		result.Message = status.Message()
		for _, action := range d.client.Actions() {
			if name := written(action); name != "" {
				chosen[name] = true
			}
		}
		if len(chosen) == 0 || result.Message == "deletion of ResourceClaim completed" {
			break // a second deletion would not find the claim
		}
	}
	if result.Message == "no new claims to deallocate" {
		return nil
	}
	for name := range chosen {
		result.Claims = append(result.Claims, name)
	}
	sort.Strings(result.Claims)
	return result
}

// written returns the name of the claim that an action writes or deletes.
func written(action clienttesting.Action) string {
	switch typed := action.(type) {
	case clienttesting.UpdateAction:
		if claim, ok := typed.GetObject().(*resourceapi.ResourceClaim); ok {
			return claim.Name
		}
	case clienttesting.DeleteAction:
		return typed.GetName()
	}
	return ""
}
