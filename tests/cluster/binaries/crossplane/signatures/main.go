// Signatures judges the signature of a package as Crossplane does: by the validator that
// Crossplane calls where it is started with `--enable-signature-verification`.
//
//	signatures verify REFERENCE PUBLIC_KEY
//	signatures trust FOLDER
//
// It exits with 1 where Crossplane would not install the package, and says why.
//
// The validator wants certificates and keys of Sigstore, also for packages that a key of
// ours signs. It reads them from the folder that TUF_ROOT names, and else from the internet.
// `trust` writes such a folder, with keys that sign nothing.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg/signature"
	core "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespace, account = "crossplane-system", "crossplane"

func main() {
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "verify":
		err = verify(arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "trust":
		err = trust(arguments[1])
	default:
		err = fmt.Errorf("usage: signatures verify REFERENCE PUBLIC_KEY | trust FOLDER")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verify(reference, keyFile string) error {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: account}
	cluster := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: meta})
	secret := reader{data: map[string][]byte{"cosign.pub": key}}
	validator, err := signature.NewCosignValidator(secret, cluster, namespace, account)
	if err != nil {
		return err
	}
	return validator.Validate(context.Background(), ref, &v1beta1.ImageVerification{
		Provider: v1beta1.ImageVerificationProviderCosign,
		Cosign: &v1beta1.CosignVerificationConfig{Authorities: []v1beta1.CosignAuthority{{
			Name: "ours",
			Key: &v1beta1.KeyRef{
				HashAlgorithm: "sha256",
				SecretRef: v1beta1.LocalSecretKeySelector{
					LocalSecretReference: core.LocalSecretReference{Name: "any"},
					Key:                  "cosign.pub",
				},
			},
		}}},
	})
}

// reader answers each request with the same Secret.
type reader struct {
	client.Reader
	data map[string][]byte
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, to client.Object, _ ...client.GetOption) error {
	to.(*corev1.Secret).Data = r.data
	return nil
}
