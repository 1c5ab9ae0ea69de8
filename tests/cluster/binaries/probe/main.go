// Probe is what the lifecycle test runs in a pod.
//
//	probe serve         answers every request on port 8080, until it is told to end
//	probe resolve NAME  prints the addresses of NAME, one a line
//	probe get URL       prints the status code that URL answers with
//	probe write FILE TEXT
//	probe read FILE     prints what is in it
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
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
	case len(arguments) == 1 && arguments[0] == "serve":
		fmt.Println("serving")
		return http.ListenAndServe(":8080", http.HandlerFunc(
			func(response http.ResponseWriter, _ *http.Request) {
				fmt.Fprintln(response, "served")
			}))
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
	case len(arguments) == 3 && arguments[0] == "write":
		return os.WriteFile(arguments[1], []byte(arguments[2]), 0o600)
	case len(arguments) == 2 && arguments[0] == "read":
		text, err := os.ReadFile(arguments[1])
		fmt.Print(string(text))
		return err
	default:
		return fmt.Errorf("unknown arguments %q", arguments)
	}
}
