package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// change is one decoded line. "old" and "new" are nil interfaces where the object is not there,
// which is what hints expect.
type change struct {
	pod      *v1.Pod
	old, new interface{}
}

func decodeChange(line []byte) (*change, error) {
	var raw struct {
		Pod      *v1.Pod
		Old, New json.RawMessage
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, err
	}
	if raw.Pod == nil {
		return nil, fmt.Errorf("pod: is missing")
	}
	result := &change{pod: raw.Pod}
	for _, side := range []struct {
		name string
		data json.RawMessage
		to   *interface{}
	}{{"old", raw.Old, &result.old}, {"new", raw.New, &result.new}} {
		object, err := decodeObject(side.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.name, err)
		}
		if object != nil {
			*side.to = object
		}
	}
	if result.old == nil && result.new == nil {
		return nil, fmt.Errorf("new: is missing, and so is old")
	}
	return result, nil
}

func decodeObject(data []byte) (runtime.Object, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	return object, err
}

// events returns what the scheduler's event handlers make of the change.
func (c *change) events() []fwk.ClusterEvent {
	there := c.new
	if there == nil {
		there = c.old
	}
	action := fwk.Update
	switch {
	case c.old == nil:
		action = fwk.Add
	case c.new == nil:
		action = fwk.Delete
	}
	switch there.(type) {
	case *v1.Node:
		if action == fwk.Update {
			return framework.NodeSchedulingPropertiesChange(c.new.(*v1.Node), c.old.(*v1.Node))
		}
		return []fwk.ClusterEvent{{Resource: fwk.Node, ActionType: action}}
	case *v1.Pod:
		switch action {
		case fwk.Add:
			return []fwk.ClusterEvent{framework.EventAssignedPodAdd}
		case fwk.Delete:
			return []fwk.ClusterEvent{framework.EventAssignedPodDelete}
		}
		return framework.PodSchedulingPropertiesChange(c.new.(*v1.Pod), c.old.(*v1.Pod))
	}
	return []fwk.ClusterEvent{{Resource: resourceOf(there), ActionType: action}}
}

func resourceOf(object interface{}) fwk.EventResource {
	switch object.(type) {
	case *v1.PersistentVolume:
		return fwk.PersistentVolume
	case *v1.PersistentVolumeClaim:
		return fwk.PersistentVolumeClaim
	case *storagev1.StorageClass:
		return fwk.StorageClass
	case *storagev1.CSINode:
		return fwk.CSINode
	case *storagev1.CSIDriver:
		return fwk.CSIDriver
	case *storagev1.CSIStorageCapacity:
		return fwk.CSIStorageCapacity
	case *storagev1.VolumeAttachment:
		return fwk.VolumeAttachment
	}
	panic(fmt.Sprintf("nobody registers events of %T", object))
}
