package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/function-sdk-go/errors"
	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	"github.com/crossplane/function-sdk-go/resource/composite"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/runtime"
)

// Function composes on-demand workspaces.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log   logging.Logger
	files constantFiles
}

// RunFunction runs the Function.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	f.log.Debug("Running function", "tag", req.GetMeta().GetTag())
	rsp := response.To(req, response.DefaultTTL)

	policy := &Policy{OnDemandProviderConfigRef: object{"kind": "ClusterProviderConfig", "name": "default"}}
	if err := request.GetInput(req, policy); err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}
	ttl, err := time.ParseDuration(policy.RefreshInterval)
	if err != nil {
		response.Fatal(rsp, err)
		return rsp, nil
	}
	rsp.Meta.Ttl = durationpb.New(ttl)
	rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{
		"catalogue": {
			ApiVersion: "apiextensions.crossplane.io/v1beta1",
			Kind:       "EnvironmentConfig",
			Match:      &fnv1.ResourceSelector_MatchName{MatchName: policy.Catalogue.Name},
		},
	}}
	if err := f.compose(req, rsp, policy); err != nil {
		response.Fatal(rsp, err)
	}
	return rsp, nil
}

func (f *Function) compose(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, policy *Policy) error {
	xr, err := request.GetObservedCompositeResource(req)
	if err != nil {
		return errors.Wrap(err, "cannot get the XR")
	}
	var params Parameters
	if err := xr.Resource.GetValueInto("spec.parameters", &params); err != nil {
		return errors.Wrap(err, "cannot get spec.parameters")
	}
	catalogue, err := getCatalogue(req)
	if err != nil {
		return err
	}
	image := catalogue.Images[params.Region]["default"]
	keys := append(slices.Clone(catalogue.Owners[params.Owner].PublicKeys), params.SSH.PublicKeys...)
	described := describe(params, image)
	data, err := userData(params, described, keys, policy, f.files)
	if err != nil {
		return errors.Wrap(err, "cannot write user data")
	}
	observed, err := request.GetObservedComposedResources(req)
	if err != nil {
		return errors.Wrap(err, "cannot get observed resources")
	}
	claim := xr.Resource.GetClaimReference()
	w := &workspace{
		policy:    policy,
		params:    params,
		namespace: claim.Namespace,
		claim:     claim.Name,
		composite: xr.Resource.GetName(),
		uid:       string(xr.Resource.GetUID()),
		image:     image.ID,
		software:  described,
		userData:  data,
		observed:  observed,
	}
	rsp.Requirements.Resources["attachments"] = &fnv1.ResourceSelector{
		ApiVersion: apiVersion,
		Kind:       "VolumeAttachment",
		Namespace:  &w.namespace,
		Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{
			Labels: map[string]string{workspaceLabel: w.composite},
		}},
	}
	network := catalogue.Networks[params.Region]
	if err := w.compose(req, rsp, network.VPCID, network.SubnetIDs); err != nil {
		return err
	}
	return w.report(rsp, xr)
}

func getCatalogue(req *fnv1.RunFunctionRequest) (*Catalogue, error) {
	found, _, err := request.GetRequiredResource(req, "catalogue")
	if err != nil {
		return nil, errors.Wrap(err, "cannot get the catalogue")
	}
	if len(found) == 0 {
		return nil, errors.New("there is no catalogue")
	}
	data, _ := found[0].Resource.Object["data"].(object)
	catalogue := &Catalogue{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(data, catalogue)
	return catalogue, errors.Wrap(err, "cannot read the catalogue")
}

func (w *workspace) compose(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse, vpc string, subnets []string) error {
	desired, err := request.GetDesiredComposedResources(req)
	if err != nil {
		return errors.Wrap(err, "cannot get desired resources")
	}
	add := func(name string, content object, ready bool) {
		cd := &resource.DesiredComposed{Resource: composed.New(), Ready: resource.ReadyFalse}
		cd.Resource.Object = content
		if ready {
			cd.Ready = resource.ReadyTrue
		}
		desired[resource.Name(name)] = cd
	}
	addManaged := func(name string, content object) {
		add(name, content, isReady(w.observed[resource.Name(name)].Resource))
	}

	group := w.observed["security-group"].Resource
	if made := at(group, "spec.forProvider.vpcId"); made != "" {
		vpc = made
	}
	addManaged("security-group", w.securityGroup(vpc))
	addManaged("egress", w.rule("egress", "-1", 0, "0.0.0.0/0"))
	cidrs := w.params.SSH.AllowedCIDRs
	if len(cidrs) == 0 {
		cidrs = w.policy.Defaults.SSHCIDRs
	}
	for _, cidr := range cidrs {
		addManaged("ssh-"+strings.NewReplacer(".", "-", "/", "-").Replace(cidr), w.rule("ingress", "tcp", 22, cidr))
	}

	home := w.observed["home"].Resource
	instanceName, instance := w.find("instance-")
	attachmentName, attachment := w.find("home-attachment-")
	volume := at(home, "metadata.annotations[crossplane.io/external-name]")
	subnet := ""
	if len(subnets) > 0 {
		subnet = subnets[0]
	}
	zone := at(instance, "status.atProvider.availabilityZone")
	addManaged(instanceName, w.instance(subnet, at(instance, "spec.forProvider.availabilityZone")))
	addManaged("home", w.home(zone, volume))
	addManaged(attachmentName, w.attachment(at(instance, "status.atProvider.id"), volume))

	add("usage-security-group-by-"+instanceName,
		w.usage(group, instance, "EC2 refuses to delete a group that an instance is in"), true)
	add("usage-home-by-"+attachmentName,
		w.usage(home, attachment, "EC2 refuses to delete a volume that is attached"), true)
	add("usage-"+instanceName+"-by-"+attachmentName,
		w.usage(instance, attachment, "the home volume is detached in order before its instance goes"), true)
	return errors.Wrap(response.SetDesiredComposedResources(rsp, desired), "cannot set desired resources")
}

func (w *workspace) report(rsp *fnv1.RunFunctionResponse, xr *resource.Composite) error {
	_, instance := w.find("instance-")
	_, attachment := w.find("home-attachment-")
	ready := isReady(instance) && isReady(attachment)
	id := at(instance, "status.atProvider.id")
	ip := at(instance, "status.atProvider.publicIp")
	zone := at(instance, "status.atProvider.availabilityZone")
	ssh := "ssh developer@" + ip

	status := object{
		"phase":        "Ready",
		"owner":        w.params.Owner,
		"region":       w.params.Region,
		"ssh":          ssh,
		"instanceId":   id,
		"instanceType": at(instance, "status.atProvider.instanceType"),
		"machine":      at(instance, "status.atProvider.instanceType"),
		"capacityType": "OnDemand",
		"zone":         zone,
		"publicIp":     ip,
		"privateIp":    at(instance, "status.atProvider.privateIp"),
		"home": object{
			"volumeId":   at(attachment, "spec.forProvider.volumeId"),
			"zone":       zone,
			"attachedTo": id,
		},
	}
	status["opencvVersion"] = w.software.OpenCVVersion
	if w.software.PyTorchVersion != "" {
		status["pytorchVersion"] = w.software.PyTorchVersion
	}
	if image, err := xr.Resource.GetValue("status.image"); err == nil {
		status["image"] = image
	}
	desired := resource.Composite{
		Resource: composite.New(),
		ConnectionDetails: resource.ConnectionDetails{
			"host": []byte(ip), "port": []byte("22"), "ssh": []byte(ssh), "user": []byte("developer"),
		},
		Ready: resource.ReadyFalse,
	}
	desired.Resource.Object = object{"status": status}
	if ready {
		desired.Ready = resource.ReadyTrue
	}
	if err := response.SetDesiredCompositeResource(rsp, &desired); err != nil {
		return errors.Wrap(err, "cannot set the XR's status")
	}
	response.ConditionTrue(rsp, "ConfigResolved", "Resolved").TargetCompositeAndClaim()
	if isReady(instance) {
		response.ConditionTrue(rsp, "ComputeReady", "Available").TargetCompositeAndClaim()
	} else {
		response.ConditionFalse(rsp, "ComputeReady", "Creating").TargetCompositeAndClaim()
	}
	if isReady(attachment) {
		response.ConditionTrue(rsp, "HomeReady", "Attached").TargetCompositeAndClaim()
	} else {
		response.ConditionFalse(rsp, "HomeReady", "Attaching").TargetCompositeAndClaim()
	}
	return nil
}
