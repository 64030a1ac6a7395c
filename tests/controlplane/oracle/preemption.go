package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	// allCandidates is more than there are nodes: none is left out by chance.
	allCandidates = 1000
	// picks is how often two candidates are compared. Equals are told apart by the order of a
	// map of two, in which the later one comes first in about one of eight walks.
	picks = 400
)

type preemptionAnswer struct {
	Candidates map[string]victims `json:"candidates"`
	Best       []string           `json:"best"`
	Message    string             `json:"message"`
}

type victims struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations"`
}

// preemptor asks the DefaultPreemption of a profile what it would do, and lets it do nothing.
type preemptor struct {
	plugin   *defaultpreemption.DefaultPreemption
	enabled  bool // as a PostFilter; the plugin may be there for another of its points
	snapshot *cache.Snapshot
}

// register puts a factory in place that keeps the plugin which it makes.
func (p *preemptor) register(registry frameworkruntime.Registry) {
	features := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	registry[defaultpreemption.Name] = func(
		ctx context.Context, args runtime.Object, handle fwk.Handle,
	) (fwk.Plugin, error) {
		plugin, err := defaultpreemption.New(ctx, args, handle, features)
		p.plugin = plugin
		return plugin, err
	}
}

// answer follows Evaluator.Preempt up to the choice. Where that finds no candidate, or fails, it
// would evict nobody, and is asked itself for what it says.
func (p *preemptor) answer(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses *framework.NodeToStatus,
) *preemptionAnswer {
	if !p.enabled {
		return nil
	}
	candidates := p.candidates(ctx, state, pod, statuses)
	result := &preemptionAnswer{Candidates: map[string]victims{}, Best: []string{}}
	if len(candidates) == 0 {
		_, status := p.plugin.PostFilter(ctx, state, pod, statuses)
		result.Message = status.Message()
		return result
	}
	for _, candidate := range candidates {
		found := victims{PDBViolations: candidate.Victims().NumPDBViolations}
		for _, victim := range candidate.Victims().Pods {
			found.Victims = append(found.Victims, victim.Namespace+"/"+victim.Name)
		}
		result.Candidates[candidate.Name()] = found
	}
	result.Best = p.best(ctx, candidates)
	return result
}

func (p *preemptor) candidates(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses *framework.NodeToStatus,
) []preemption.Candidate {
	nominatedNode := statuses.Get(pod.Status.NominatedNodeName)
	if eligible, _ := p.plugin.PodEligibleToPreemptOthers(ctx, pod, nominatedNode); !eligible {
		return nil
	}
	nodes, err := statuses.NodesForStatusCode(p.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil
	}
	budgets, err := p.plugin.Evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		return nil
	}
	// With candidates, Preempt passes over what failed on other nodes.
	candidates, _, _ := p.plugin.Evaluator.DryRunPreemption(
		ctx, state, pod, nodes, budgets, 0, allCandidates)
	return candidates
}

// best returns every candidate that SelectCandidate may pick.
func (p *preemptor) best(ctx context.Context, candidates []preemption.Candidate) []string {
	picked := p.plugin.Evaluator.SelectCandidate(ctx, candidates)
	names := []string{picked.Name()}
	for _, other := range candidates {
		if other.Name() == picked.Name() {
			continue
		}
		pair := []preemption.Candidate{picked, other}
		for range picks {
			if p.plugin.Evaluator.SelectCandidate(ctx, pair).Name() == other.Name() {
				names = append(names, other.Name())
				break
			}
		}
	}
	sort.Strings(names)
	return names
}
