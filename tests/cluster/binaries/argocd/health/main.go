// Health judges resources as `argocd admin settings resource-overrides health` does: it
// runs that command for each file that it is given, in one process. The command line itself
// needs a fifth of a second to start.
//
//	argocd-health argocd-cm.yaml resource.yaml...
//
// Before each answer it prints a line with "--- " and the file's name. Argo CD ends the
// process where it cannot read one.
//
// Other commands of `argocd admin settings resource-overrides` follow "--":
//
//	argocd-health argocd-cm.yaml -- run-action resource.yaml ACTION
package main

import (
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/v3/cmd/argocd/commands/admin"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: argocd-health CONFIG_MAP RESOURCE...")
		os.Exit(2)
	}
	configMap := os.Args[1]
	if len(os.Args) > 2 && os.Args[2] == "--" {
		run(configMap, os.Args[3:]...)
		return
	}
	for _, resource := range os.Args[2:] {
		fmt.Println("---", resource)
		run(configMap, "health", resource)
	}
}

func run(configMap string, arguments ...string) {
	command := admin.NewSettingsCommand()
	command.SetArgs(append(
		[]string{"resource-overrides", "--argocd-cm-path", configMap}, arguments...,
	))
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
