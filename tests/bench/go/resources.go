package main

import (
	"strings"

	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	corev1 "k8s.io/api/core/v1"
)

const (
	apiVersion     = "ec2.aws.m.upbound.io/v1beta1"
	workspaceLabel = "platform.acme.io/workspace"
)

type object = map[string]any

// A workspace, and everything that its resources depend on.
type workspace struct {
	policy    *Policy
	params    Parameters
	namespace string
	claim     string
	composite string
	uid       string
	image     string
	software  software
	userData  string
	observed  map[resource.Name]resource.ObservedComposed
}

// find returns the first observed resource whose name starts with prefix.
func (w *workspace) find(prefix string) (string, *composed.Unstructured) {
	for name, r := range w.observed {
		if strings.HasPrefix(string(name), prefix) {
			return string(name), r.Resource
		}
	}
	return "", nil
}

func (w *workspace) tags(name string) object {
	tags := object{"owner": w.params.Owner, "workspace": w.namespace + "/" + w.claim}
	for key, value := range w.policy.Instance.Tags {
		tags[key] = value
	}
	if name != "" {
		tags["Name"] = name
	}
	return tags
}

func (w *workspace) managed(kind string, forProvider object) object {
	forProvider["region"] = w.params.Region
	return object{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   object{"namespace": w.namespace},
		"spec": object{
			"providerConfigRef": w.policy.OnDemandProviderConfigRef,
			"forProvider":       forProvider,
		},
	}
}

func (w *workspace) securityGroup(vpc string) object {
	group := object{
		"name":        "gpu-workspace-" + w.composite + "-" + strings.Split(w.uid, "-")[0],
		"description": "SSH to the workspace " + w.namespace + "/" + w.claim,
		"tags":        w.tags(""),
	}
	if vpc != "" {
		group["vpcId"] = vpc
	}
	return w.managed("SecurityGroup", group)
}

func (w *workspace) rule(direction, protocol string, port int64, cidr string) object {
	return w.managed("SecurityGroupRule", object{
		"securityGroupIdSelector": object{"matchControllerRef": true},
		"type":                    direction,
		"protocol":                protocol,
		"fromPort":                port,
		"toPort":                  port,
		"cidrBlocks":              []any{cidr},
	})
}

func (w *workspace) instance(subnet, zone string) object {
	root := object{"encrypted": true, "volumeType": "gp3", "deleteOnTermination": true}
	if size := w.policy.Instance.RootVolumeSizeGib; size != 0 {
		root["volumeSize"] = size
	}
	instance := object{
		"ami":                        w.image,
		"instanceType":               w.params.InstanceType,
		"userData":                   w.userData,
		"vpcSecurityGroupIdSelector": object{"matchControllerRef": true},
		"metadataOptions": object{
			"httpEndpoint":            "enabled",
			"httpTokens":              "required",
			"httpPutResponseHopLimit": int64(1),
			"instanceMetadataTags":    "disabled",
		},
		"rootBlockDevice": root,
		"tags":            w.tags(w.namespace + "/" + w.claim),
		"volumeTags":      w.tags(w.namespace + "/" + w.claim + " home"),
	}
	if profile := w.policy.Instance.IAMInstanceProfile; profile != "" {
		instance["iamInstanceProfile"] = profile
	}
	if subnet != "" {
		instance["subnetId"] = subnet
	} else if zone != "" {
		instance["availabilityZone"] = zone
	}
	return w.managed("Instance", instance)
}

func (w *workspace) home(zone, volume string) object {
	home := w.managed("EBSVolume", object{
		"availabilityZone": zone,
		"size":             w.params.Home.SizeGiB,
		"type":             "gp3",
		"encrypted":        true,
		"tags":             w.tags(w.namespace + "/" + w.claim + " home"),
	})
	actions := []any{"Observe", "Create", "Update", "LateInitialize"}
	if volume != "" {
		actions = []any{"Observe", "Update", "LateInitialize"}
		home["metadata"].(object)["annotations"] = object{"crossplane.io/external-name": volume}
	}
	home["spec"].(object)["managementPolicies"] = actions
	return home
}

func (w *workspace) attachment(instance, volume string) object {
	attachment := w.managed("VolumeAttachment", object{
		"deviceName":                  "/dev/sdf",
		"instanceId":                  instance,
		"volumeId":                    volume,
		"stopInstanceBeforeDetaching": true,
	})
	attachment["metadata"].(object)["labels"] = object{workspaceLabel: w.composite}
	return attachment
}

// usage keeps one resource until another is gone.
func (w *workspace) usage(of, by *composed.Unstructured, reason string) object {
	end := func(r *composed.Unstructured) object {
		return object{
			"apiVersion":  apiVersion,
			"kind":        r.GetKind(),
			"resourceRef": object{"name": r.GetName()},
		}
	}
	spec := object{
		"of":     end(of),
		"by":     end(by),
		"reason": reason,
	}
	if of.GetKind() == "SecurityGroup" {
		spec["replayDeletion"] = true
	}
	return object{
		"apiVersion": "protection.crossplane.io/v1beta1",
		"kind":       "Usage",
		"metadata":   object{"namespace": w.namespace},
		"spec":       spec,
	}
}

func isReady(r *composed.Unstructured) bool {
	return r != nil && r.GetCondition("Ready").Status == corev1.ConditionTrue &&
		r.GetCondition("Synced").Status == corev1.ConditionTrue
}

func at(r *composed.Unstructured, path string) string {
	if r == nil {
		return ""
	}
	value, _ := r.GetString(path) // Absent fields are empty.
	return value
}
