package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// question is one decoded line.
type question struct {
	pod       *v1.Pod
	pods      []*v1.Pod // assigned to a node that exists, and not ended
	nominated nominations
	nodes     []*v1.Node
	objects   []runtime.Object // what a client finds: all but nodes
	profile   *config.KubeSchedulerProfile
	bind      bool // whether the claims of the pod are to be written
}

func decodeCase(line []byte) (*question, error) {
	var raw struct {
		Objects []json.RawMessage
		Pod     *v1.Pod
		Config  json.RawMessage
		Bind    bool
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, err
	}
	if raw.Pod == nil {
		return nil, fmt.Errorf("pod: is missing")
	}
	q := &question{pod: raw.Pod, nominated: nominations{}, bind: raw.Bind}
	decoder := clientscheme.Codecs.UniversalDeserializer()
	var pods []*v1.Pod
	names := map[string]bool{}
	for index, data := range raw.Objects {
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", index, err)
		}
		switch typed := object.(type) {
		case *v1.Node:
			q.nodes = append(q.nodes, typed)
			names[typed.Name] = true
		case *v1.Pod:
			pods = append(pods, typed)
			q.objects = append(q.objects, object)
		default:
			q.objects = append(q.objects, object)
		}
	}
	q.objects = append(q.objects, q.pod)
	for _, pod := range pods {
		if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if names[pod.Spec.NodeName] {
			q.pods = append(q.pods, pod)
		}
		if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
			if err := q.nominated.add(pod); err != nil {
				return nil, err
			}
		}
	}
	profile, err := decodeProfile(raw.Config)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	q.profile = profile
	return q, nil
}

func decodeProfile(data []byte) (*config.KubeSchedulerProfile, error) {
	if len(data) == 0 || string(data) == "null" {
		data = []byte(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}`)
	}
	object, gvk, err := configscheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	decoded, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("is a %s", gvk.Kind)
	}
	decoded.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(decoded); err != nil {
		return nil, err
	}
	return &decoded.Profiles[0], nil
}
