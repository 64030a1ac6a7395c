package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func (q *question) answer() (answer, error) {
	result := answer{Nodes: map[string]verdict{}}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	snapshot := cache.NewSnapshot(q.pods, q.nodes)
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return result, err
	}
	profile, preempting, known, err := q.framework(ctx, snapshot)
	if err != nil {
		return result, err
	}
	if len(nodes) == 0 {
		return result, nil // a cycle ends here before any plugin is asked
	}
	state := framework.NewCycleState()
	statuses := framework.NewDefaultNodeToStatus()
	narrowed, status, narrowing := profile.RunPreFilterPlugins(ctx, state, q.pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return result, status.AsError()
		}
		result.PreFilter = asRejection(status)
		statuses.SetAbsentNodesStatus(status)
		result.Deallocation = known.deallocation(ctx, state, q.pod, statuses)
		result.Preemption = preempting.answer(ctx, state, q.pod, statuses)
		return result, nil
	}
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		name := node.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			result.Nodes[name] = verdict{rejection: outside(narrowing)}
			continue
		}
		status := profile.RunFilterPluginsWithNominatedPods(ctx, state, q.pod, node)
		if status.IsSuccess() {
			feasible = append(feasible, node)
			continue
		}
		if !status.IsRejected() {
			result.fail(name, status.AsError())
			continue
		}
		result.Nodes[name] = verdict{rejection: asRejection(status)}
		statuses.Set(name, status)
	}
	if result.Error != "" {
		return result, nil
	}
	if len(feasible) == 0 {
		result.Deallocation = known.deallocation(ctx, state, q.pod, statuses)
		result.Preemption = preempting.answer(ctx, state, q.pod, statuses)
		return result, nil
	}
	if status := profile.RunPreScorePlugins(ctx, state, q.pod, feasible); !status.IsSuccess() {
		return result, status.AsError()
	}
	ranked, status := profile.RunScorePlugins(ctx, state, q.pod, feasible)
	if !status.IsSuccess() {
		return result, status.AsError()
	}
	for _, node := range ranked {
		scores := map[string]int64{}
		for _, score := range node.Scores {
			scores[score.Name] = score.Score
		}
		allocations, err := known.allocations(ctx, state, q.pod, node.Name)
		if err != nil {
			return result, err
		}
		result.Nodes[node.Name] = verdict{ranking: &ranking{
			Scores: scores, Total: node.TotalScore, Allocations: allocations,
		}}
	}
	if q.bind {
		slices.SortFunc(ranked, func(a, b fwk.NodePluginScores) int {
			return cmp.Or(cmp.Compare(b.TotalScore, a.TotalScore), cmp.Compare(a.Name, b.Name))
		})
		result.Bound = known.bind(ctx, state, q.pod, ranked[0].Name)
	}
	return result, nil
}

// fail keeps the error of a node; kube-scheduler reports one of them.
func (a *answer) fail(node string, err error) {
	if a.Errors == nil {
		a.Error, a.Errors = err.Error(), map[string]string{}
	}
	a.Errors[node] = err.Error()
}

func asRejection(status *fwk.Status) *rejection {
	return &rejection{Rejected: status.Plugin(), Code: int(status.Code()), Reasons: status.Reasons()}
}

// outside is what kube-scheduler says of nodes that a PreFilterResult leaves out. It blames all
// the plugins that narrowed; here the first of them by name stands for them.
func outside(narrowing sets.Set[string]) *rejection {
	names := sets.List(narrowing)
	return &rejection{
		Rejected: names[0],
		Code:     int(fwk.UnschedulableAndUnresolvable),
		Reasons:  []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", names)},
	}
}

// framework makes the profile's plugins over a snapshot, with the other objects behind informers
// that have synced.
func (q *question) framework(
	ctx context.Context, snapshot *cache.Snapshot,
) (framework.Framework, *preemptor, *devices, error) {
	client := fake.NewSimpleClientset(q.objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	preempting := &preemptor{snapshot: snapshot}
	registry := plugins.NewInTreeRegistry()
	preempting.register(registry)
	known, err := newDevices(ctx, client, factory)
	if err != nil {
		return nil, nil, nil, err
	}
	known.register(registry)
	profile, err := frameworkruntime.NewFramework(ctx, registry, q.profile,
		frameworkruntime.WithComponentConfigVersion("kubescheduler.config.k8s.io/v1"),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithPodNominator(q.nominated),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithSharedDRAManager(known),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, nil, nil, err
	}
	preempting.enabled = slices.ContainsFunc(
		profile.ListPlugins().PostFilter.Enabled,
		func(each config.Plugin) bool { return each.Name == defaultpreemption.Name })
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for _, synced := range known.handlers {
		for !synced() {
			time.Sleep(50 * time.Microsecond)
		}
	}
	return profile, preempting, known, nil
}
