package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nominations are the pods that are nominated to each node; they do not change while a question
// is answered.
type nominations map[string][]fwk.PodInfo

func (n nominations) add(pod *v1.Pod) error {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return err
	}
	node := pod.Status.NominatedNodeName
	n[node] = append(n[node], info)
	return nil
}

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n[node] }

func (n nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {
	panic("a pod is nominated while a question is answered")
}

func (n nominations) DeleteNominatedPodIfExists(*v1.Pod) {
	panic("a nomination is deleted while a question is answered")
}

func (n nominations) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo) {
	panic("a nomination is updated while a question is answered")
}
