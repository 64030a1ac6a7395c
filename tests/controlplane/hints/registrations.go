package main

import (
	"context"
	"fmt"
	"time"
	_ "unsafe" // for go:linkname

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	_ "k8s.io/kubernetes/pkg/scheduler" // has buildQueueingHintMap
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// buildQueueingHintMap is the scheduler's own: what the queue is given, with the registrations
// that the scheduler adds to those of the plugins.
//
//go:linkname buildQueueingHintMap k8s.io/kubernetes/pkg/scheduler.buildQueueingHintMap
func buildQueueingHintMap(ctx context.Context, es []fwk.EnqueueExtensions) (queue.QueueingHintMap, error)

type hintMap queue.QueueingHintMap

// ask returns what each plugin that registered an event says to it; of several registrations of
// one plugin the first that does not skip counts, as in the queue.
func (m hintMap) ask(happened fwk.ClusterEvent, c *change) map[string]string {
	said := map[string]string{}
	for registered, functions := range m {
		if !framework.MatchClusterEvents(registered, happened) {
			continue
		}
		for _, function := range functions {
			hint, err := function.QueueingHintFn(klog.Logger{}, c.pod, c.old, c.new)
			word := hint.String()
			if err != nil {
				word = "Error"
			}
			if known := said[function.PluginName]; known == "" || known == fwk.QueueSkip.String() {
				said[function.PluginName] = word
			}
		}
	}
	return said
}

// registrations makes the plugins of a profile in an empty cluster: no hint looks anything up,
// but for topology spreading, which asks for the services of a pod.
func registrations(ctx context.Context, configuration string) (hintMap, error) {
	profile, err := decodeProfile(configuration)
	if err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := assumecache.NewAssumeCache(
		klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		EnableDeviceTaintRules:   false,
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		KubeClient:               client,
	})
	if err != nil {
		return nil, err
	}
	made, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithComponentConfigVersion("kubescheduler.config.k8s.io/v1"),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, nil)),
		frameworkruntime.WithSharedDRAManager(dynamicresources.NewDRAManager(ctx, claims, slices, factory)),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
	)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	built, err := buildQueueingHintMap(ctx, made.EnqueueExtensions())
	return hintMap(built), err
}

func decodeProfile(data string) (*config.KubeSchedulerProfile, error) {
	if data == "" {
		data = `{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}`
	}
	object, gvk, err := configscheme.Codecs.UniversalDecoder().Decode([]byte(data), nil, nil)
	if err != nil {
		return nil, err
	}
	decoded, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("configuration: is a %s", gvk.Kind)
	}
	return &decoded.Profiles[0], nil
}
