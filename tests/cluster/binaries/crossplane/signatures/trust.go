package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore/pkg/tuf"
	repository "github.com/theupdateframework/go-tuf"
)

// trust makes a repository of TUF with what the validator asks for by name, and fills the
// folder from it, as `cosign initialize` does for an installation of Sigstore's programs.
func trust(folder string) error {
	made, err := filepath.Abs(filepath.Join(folder, "made"))
	if err != nil {
		return err
	}
	targets, err := targets()
	if err != nil {
		return err
	}
	ends := time.Now().AddDate(1, 0, 0)
	repo, err := repository.NewRepo(repository.FileSystemStore(made, nil))
	if err != nil {
		return err
	}
	if err := repo.Init(false); err != nil {
		return err
	}
	for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
		if _, err := repo.GenKeyWithExpires(role, ends); err != nil {
			return err
		}
	}
	staged := filepath.Join(made, "staged", "targets")
	if err := os.MkdirAll(staged, 0o755); err != nil {
		return err
	}
	for name, content := range targets {
		if err := os.WriteFile(filepath.Join(staged, name), content, 0o644); err != nil {
			return err
		}
		if err := repo.AddTargetWithExpires(name, nil, ends); err != nil {
			return err
		}
	}
	if err := repo.SnapshotWithExpires(ends); err != nil {
		return err
	}
	if err := repo.TimestampWithExpires(ends); err != nil {
		return err
	}
	if err := repo.Commit(); err != nil {
		return err
	}
	published := filepath.Join(made, "repository")
	root, err := os.ReadFile(filepath.Join(published, "root.json"))
	if err != nil {
		return err
	}
	if err := os.Setenv(tuf.TufRootEnv, folder); err != nil {
		return err
	}
	return tuf.Initialize(context.Background(), "file://"+published, root)
}

// targets are a certificate authority and two logs of nobody: their key is thrown away.
func targets() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "nobody"},
		NotAfter:     time.Now().AddDate(1, 0, 0),
		IsCA:         true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	log := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return map[string][]byte{
		"fulcio.crt.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"ctfe.pub":       log,
		"rekor.pub":      log,
	}, nil
}
