// Volumes provisions the volumes of a cluster with a single node: for each claim
// a folder, deleted with its volume.
//
//	volumes --kubeconfig FILE --provisioner NAME --folder DIR --node NAME --address HOST:PORT
//
// The volumes are `local` and not `hostPath` ones: only for those does the
// kubelet hand the folder to the pod's fsGroup. Ready: GET http://ADDRESS/healthz.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "volumes:", err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	provisioner := flag.String("provisioner", "", "how storage classes call it")
	folder := flag.String("folder", "", "the folder that holds every volume's")
	node := flag.String("node", "", "the node on which the volumes are")
	address := flag.String("address", "", "where to say that it is ready")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	folders := folders{root: *folder, node: *node}
	// Alone in its cluster, it need not be elected.
	loop := controller.NewProvisionController(ctx, client, *provisioner, folders,
		controller.LeaderElection(false))
	go loop.Run(ctx)
	http.HandleFunc("/healthz", func(response http.ResponseWriter, _ *http.Request) {
		if !loop.HasRun() {
			response.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	return http.ListenAndServe(*address, nil)
}

// folders makes and removes the volumes' folders.
type folders struct{ root, node string }

// Provision makes the folder of a claim. Neither size nor access modes are enforced.
func (f folders) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*core.PersistentVolume, controller.ProvisioningState, error) {
	if mode := options.PVC.Spec.VolumeMode; mode != nil && *mode != core.PersistentVolumeFilesystem {
		err := fmt.Errorf("spec.volumeMode is %s: only %s can be provisioned", *mode,
			core.PersistentVolumeFilesystem)
		return nil, controller.ProvisioningFinished, err
	}
	path := f.path(options.PVName)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			AccessModes: options.PVC.Spec.AccessModes,
			Capacity: core.ResourceList{
				core.ResourceStorage: options.PVC.Spec.Resources.Requests[core.ResourceStorage],
			},
			NodeAffinity:                  on(f.node),
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			PersistentVolumeSource: core.PersistentVolumeSource{
				Local: &core.LocalVolumeSource{Path: path},
			},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the volume's folder with what is in it.
func (f folders) Delete(_ context.Context, volume *core.PersistentVolume) error {
	return os.RemoveAll(f.path(volume.Name))
}

func (f folders) path(volume string) string {
	return filepath.Join(f.root, volume)
}

// A local volume without the name of its node is refused.
func on(node string) *core.VolumeNodeAffinity {
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{
		NodeSelectorTerms: []core.NodeSelectorTerm{{
			MatchExpressions: []core.NodeSelectorRequirement{{
				Key:      core.LabelHostname,
				Operator: core.NodeSelectorOpIn,
				Values:   []string{node},
			}},
		}},
	}}
}
