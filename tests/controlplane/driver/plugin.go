package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

// The few fields of a CDI file that one variable needs:
// https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
type cdiFile struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env []string `json:"env"`
}

// plugin prepares claims; the helper that calls it makes one call at a time.
type plugin struct {
	driver, folder string
	// Which claim holds a device, by pool and name: a second one is refused.
	holders map[string]types.UID
}

func newPlugin(driver, folder string) *plugin {
	return &plugin{driver: driver, folder: folder, holders: map[string]types.UID{}}
}

func (p *plugin) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (
	map[types.UID]kubeletplugin.PrepareResult, error,
) {
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := p.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
		klog.InfoS("prepared", "claim", klog.KObj(claim), "uid", claim.UID, "err", err)
	}
	return results, nil
}

func (p *plugin) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	kind := p.driver + "/device"
	file := cdiFile{Version: "0.6.0", Kind: kind}
	var devices []kubeletplugin.Device
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != p.driver {
			continue
		}
		id := result.Pool + "/" + result.Device
		if holder, held := p.holders[id]; held && holder != claim.UID {
			return nil, fmt.Errorf("device %s is prepared for claim %s", id, holder)
		}
		p.holders[id] = claim.UID
		// The name is of this claim: no runtime can take it for one that it has read before.
		name := string(claim.UID) + "-" + result.Device
		file.Devices = append(file.Devices, cdiDevice{
			Name: name, Edits: cdiEdits{Env: []string{"E2E_DEVICE=" + id}},
		})
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{kind + "=" + name},
		})
	}
	return devices, p.write(claim.UID, file)
}

// write makes the claim's file in one step: the runtime reads the folder whenever it changes.
func (p *plugin) write(claim types.UID, file cdiFile) error {
	content, err := json.Marshal(file)
	if err != nil {
		return err
	}
	partial := p.path(claim) + ".partial"
	if err := os.WriteFile(partial, content, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, p.path(claim))
}

func (p *plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (
	map[types.UID]error, error,
) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		err := os.Remove(p.path(claim.UID))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // the kubelet may ask again
		}
		for id, holder := range p.holders {
			if holder == claim.UID {
				delete(p.holders, id)
			}
		}
		results[claim.UID] = err
		klog.InfoS("unprepared", "claim", claim.String(), "err", err)
	}
	return results, nil
}

func (p *plugin) HandleError(_ context.Context, err error, message string) {
	klog.ErrorS(err, message)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

func (p *plugin) path(claim types.UID) string {
	return filepath.Join(p.folder, string(claim)+".json")
}
