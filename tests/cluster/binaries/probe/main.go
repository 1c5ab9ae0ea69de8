// Probe is what the lifecycle test runs in a pod.
//
//	probe wait          until it is told to end
//	probe resolve NAME  prints the addresses of NAME, one a line
//	probe get URL       prints the status code that URL answers with
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "wait":
		fmt.Println("waiting")
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
		<-end
		return nil
	case len(arguments) == 2 && arguments[0] == "resolve":
		addresses, err := net.LookupHost(arguments[1])
		for _, address := range addresses {
			fmt.Println(address)
		}
		return err
	case len(arguments) == 2 && arguments[0] == "get":
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(arguments[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		fmt.Println(response.StatusCode)
		return nil
	default:
		return fmt.Errorf("unknown arguments %q", arguments)
	}
}
