// The function as somebody would write it with function-sdk-go, for comparison.
package main

import (
	"flag"
	"log"
	"os"

	function "github.com/crossplane/function-sdk-go"
	"google.golang.org/grpc/health"
)

func main() {
	address := flag.String("address", ":9443", "Address to listen on")
	flag.Parse()

	constant, err := readConstantFiles(os.Getenv("USER_DATA_FILES"))
	if err != nil {
		log.Fatal(err)
	}
	logger, err := function.NewLogger(false)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(function.Serve(&Function{log: logger, files: constant},
		function.Listen("tcp", *address),
		function.MTLSCertificates(os.Getenv("TLS_SERVER_CERTS_DIR")),
		function.WithHealthServer(health.NewServer()),
		function.WithMetricsServer(os.Getenv("METRICS_ADDRESS")),
	))
}
