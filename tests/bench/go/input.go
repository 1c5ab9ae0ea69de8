package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Policy is the function's input.
type Policy struct {
	metav1.TypeMeta `json:",inline"`

	BehaviourVersion string `json:"behaviourVersion"`
	Catalogue        struct {
		Name string `json:"name"`
	} `json:"catalogue"`
	ProviderConfigRef         map[string]any `json:"providerConfigRef"`
	OnDemandProviderConfigRef map[string]any `json:"onDemandProviderConfigRef"`
	Defaults                  struct {
		CapacityType string   `json:"capacityType"`
		SSHCIDRs     []string `json:"sshCidrs"`
	} `json:"defaults"`
	AllowedInstanceTypes []string `json:"allowedInstanceTypes"`
	SSHCIDRCeiling       []string `json:"sshCidrCeiling"`
	Instance             struct {
		RootVolumeSizeGib  int64             `json:"rootVolumeSizeGiB"`
		IAMInstanceProfile string            `json:"iamInstanceProfile"`
		Sudo               bool              `json:"sudo"`
		Tags               map[string]string `json:"tags"`
	} `json:"instance"`
	RefreshInterval string `json:"refreshInterval"`
}

// DeepCopyObject makes a Policy what the SDK reads inputs into.
func (p *Policy) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

// Parameters are what the claim asks for.
type Parameters struct {
	Owner          string `json:"owner"`
	Region         string `json:"region"`
	InstanceType   string `json:"instanceType"`
	OpenCVVersion  string `json:"opencvVersion"`
	PyTorchVersion string `json:"pytorchVersion"`
	SSH            struct {
		PublicKeys   []string `json:"publicKeys"`
		AllowedCIDRs []string `json:"allowedCidrs"`
	} `json:"ssh"`
	Home struct {
		SizeGiB int64 `json:"sizeGiB"`
	} `json:"home"`
}

// Image is what a workspace boots.
type Image struct {
	ID      string `json:"id"`
	PyTorch struct {
		Version string `json:"version"`
		Python  string `json:"python"`
	} `json:"pytorch"`
	PyTorchIndexURL string `json:"pytorchIndexUrl"`
}

// Catalogue is the data of the EnvironmentConfig.
type Catalogue struct {
	Images map[string]map[string]Image `json:"images"`
	Owners map[string]struct {
		PublicKeys []string `json:"publicKeys"`
	} `json:"owners"`
	Networks map[string]struct {
		SubnetIDs []string `json:"subnetIds"`
		VPCID     string   `json:"vpcId"`
	} `json:"networks"`
}
