// Pause holds a pod's namespaces open until the kubelet ends the pod.
//
// As the first process of a pod with a shared PID namespace it also inherits
// orphans. Ignoring SIGCHLD lets the kernel reap them (wait(2), "SA_NOCLDWAIT").
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
