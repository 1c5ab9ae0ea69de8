// Network-policies enforces the NetworkPolicies of a cluster with a single node, by
// nftables: between pods, and between pods and what is outside the node.
//
//	network-policies --kubeconfig FILE --address HOST:PORT
//
// Every change of a pod, a namespace or a policy loads the whole table anew, in
// one transaction. Ready, once it was loaded: GET http://ADDRESS/healthz.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "network-policies:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
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
	var ready atomic.Bool
	failed := make(chan error, 2)
	go func() { failed <- enforce(ctx, client, &ready) }()
	http.HandleFunc("/healthz", func(response http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			response.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	go func() { failed <- http.ListenAndServe(*address, nil) }()
	return <-failed
}

// enforce keeps the table in line, until it cannot.
func enforce(ctx context.Context, client kubernetes.Interface, ready *atomic.Bool) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	namespaces := factory.Core().V1().Namespaces()
	policies := factory.Networking().V1().NetworkPolicies()

	// Changes that come while the table is loaded need one more load, however many.
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { note() },
		UpdateFunc: func(any, any) { note() },
		DeleteFunc: func(any) { note() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		pods.Informer(), namespaces.Informer(), policies.Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("no list of %s", kind)
		}
	}

	loaded := ""
	for note(); ; {
		<-changed
		var state state
		var errs [3]error
		state.pods, errs[0] = pods.Lister().List(labels.Everything())
		state.namespaces, errs[1] = namespaces.Lister().List(labels.Everything())
		state.policies, errs[2] = policies.Lister().List(labels.Everything())
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		table := state.table()
		if table == loaded {
			continue
		}
		if err := load(ctx, table); err != nil {
			return err
		}
		loaded = table
		ready.Store(true)
	}
}

func load(ctx context.Context, table string) error {
	nft := exec.CommandContext(ctx, "nft", "-f", "-")
	nft.Stdin = strings.NewReader(table)
	if said, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\nof the table\n%s", err, said, table)
	}
	return nil
}
