// Command trainer prints what Kubeflow Trainer writes for a TrainJob whose runtime asks for a gang.
//
// It runs the Trainer's own runtime against its own fake client: a TrainJob of three nodes when it
// is new, a running one that is scaled down, and a suspended one that is scaled down.
package main

import (
	"context"
	"encoding/json"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/constants"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	utiltesting "github.com/kubeflow/trainer/v2/pkg/util/testing"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

func trainingRuntime() *trainer.ClusterTrainingRuntime {
	base := utiltesting.MakeClusterTrainingRuntimeWrapper("torch-distributed").Obj()
	node := jobset.ReplicatedJob{Name: constants.Node}
	node.Template.Labels = map[string]string{constants.LabelTrainJobAncestor: constants.AncestorTrainer}
	node.Template.Spec.Template.Spec = corev1.PodSpec{
		SchedulerName: "berth",
		Containers:    []corev1.Container{{Name: constants.Node, Image: "pytorch/pytorch:2.7.1"}},
	}
	base.Spec.Template.Spec.ReplicatedJobs = []jobset.ReplicatedJob{node}
	base.Spec.MLPolicy = &trainer.MLPolicy{NumNodes: ptr.To(int32(1))}
	base.Spec.PodGroupPolicy = &trainer.PodGroupPolicy{
		PodGroupPolicySource: trainer.PodGroupPolicySource{
			Coscheduling: &trainer.CoschedulingPodGroupPolicySource{
				ScheduleTimeoutSeconds: ptr.To(int32(120)),
			},
		},
	}
	return base
}

func trainJob(nodes int32, suspend bool) *trainer.TrainJob {
	return &trainer.TrainJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob"},
		ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "default", UID: "train-uid"},
		Spec: trainer.TrainJobSpec{
			Suspend: ptr.To(suspend),
			RuntimeRef: trainer.RuntimeRef{
				APIGroup: ptr.To("trainer.kubeflow.org"),
				Kind:     ptr.To("ClusterTrainingRuntime"),
				Name:     "torch-distributed",
			},
			Trainer: &trainer.Trainer{
				NumNodes: ptr.To(nodes),
				ResourcesPerNode: &corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("2"),
						"nvidia.com/gpu":   resource.MustParse("4"),
					},
					Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
				},
			},
		},
	}
}

// written returns what the Trainer applies for a TrainJob while these objects exist.
func written(job *trainer.TrainJob, objects ...client.Object) []any {
	builder := utiltesting.NewClientBuilder()
	builder = builder.WithObjects(append(objects, trainingRuntime())...)
	ctx := context.Background()
	runtimes, err := core.New(ctx, builder.Build(), utiltesting.AsIndex(builder))
	must(err)
	made, err := runtimes[core.ClusterTrainingRuntimeGroupKind].NewObjects(ctx, job)
	must(err)
	return made
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	group := &coscheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "default"},
		Spec:       coscheduling.PodGroupSpec{MinMember: 3},
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	must(out.Encode(map[string][]any{
		"new":                    written(trainJob(3, false)),
		"scaled down, running":   written(trainJob(2, false), group.DeepCopy()),
		"scaled down, suspended": written(trainJob(2, true), group.DeepCopy()),
	}))
}
