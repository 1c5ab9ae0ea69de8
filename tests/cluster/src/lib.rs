//! A real single-node Kubernetes with Crossplane, without Docker.
