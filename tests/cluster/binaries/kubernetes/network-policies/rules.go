package main

import (
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rule is an ingress or an egress rule. Without peers it is for all, without ports too.
type rule struct {
	peers []networking.NetworkPolicyPeer
	ports []networking.NetworkPolicyPort
}

func rulesOf(policy *networking.NetworkPolicy, direction direction) []rule {
	var rules []rule
	if direction.kind == networking.PolicyTypeIngress {
		for _, each := range policy.Spec.Ingress {
			rules = append(rules, rule{each.From, each.Ports})
		}
		return rules
	}
	for _, each := range policy.Spec.Egress {
		rules = append(rules, rule{each.To, each.Ports})
	}
	return rules
}

// peer is whom a rule allows: a match of the packet's address, and the pods that are
// meant, if pods are.
type peer struct {
	match string
	pods  []*core.Pod
}

func (s state) peers(
	namespace string, peers []networking.NetworkPolicyPeer, direction direction,
) []peer {
	if len(peers) == 0 {
		return []peer{{pods: s.present()}}
	}
	var found []peer
	for _, each := range peers {
		if each.IPBlock != nil {
			found = append(found, peer{match: block(each.IPBlock, direction)})
			continue
		}
		pods := slices.DeleteFunc(s.present(), func(pod *core.Pod) bool {
			return !s.isMeant(namespace, each, pod)
		})
		if len(pods) > 0 {
			var addresses []string
			for _, pod := range pods {
				addresses = append(addresses, pod.Status.PodIP)
			}
			found = append(found, peer{direction.peer + " " + set(addresses), pods})
		}
	}
	return found
}

// isMeant says whether the pod is one of the peer's, in a policy of that namespace.
func (s state) isMeant(namespace string, peer networking.NetworkPolicyPeer, pod *core.Pod) bool {
	if peer.PodSelector != nil && !matches(peer.PodSelector, pod.Labels) {
		return false
	}
	if peer.NamespaceSelector == nil {
		return pod.Namespace == namespace
	}
	return slices.ContainsFunc(s.namespaces, func(each *core.Namespace) bool {
		return each.Name == pod.Namespace && matches(peer.NamespaceSelector, each.Labels)
	})
}

func block(block *networking.IPBlock, direction direction) string {
	if strings.Contains(block.CIDR, ":") {
		// Pods have addresses of version 4 alone: nobody is in such a block.
		return direction.peer + " 255.255.255.255"
	}
	match := direction.peer + " " + block.CIDR
	if len(block.Except) > 0 {
		match += fmt.Sprintf(" %s != %s", direction.peer, set(block.Except))
	}
	return match
}

// portsOf are the matches of the packet's ports: one of them must hold.
func (r rule) portsOf(own *core.Pod, peers []*core.Pod, direction direction) []string {
	if len(r.ports) == 0 {
		return []string{""}
	}
	// A port's name is looked up in the pod that receives.
	receivers := peers
	if direction.kind == networking.PolicyTypeIngress {
		receivers = []*core.Pod{own}
	}
	var matches []string
	for _, port := range r.ports {
		protocol := core.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		field := strings.ToLower(string(protocol))
		switch {
		case port.Port == nil:
			matches = append(matches, "meta l4proto "+field)
		case port.Port.Type == intstr.String:
			for _, receiver := range receivers {
				if number := numberOf(port.Port.StrVal, protocol, receiver); number > 0 {
					matches = append(matches, fmt.Sprintf("ip daddr %s %s dport %d",
						receiver.Status.PodIP, field, number))
				}
			}
		case port.EndPort != nil:
			matches = append(matches, fmt.Sprintf("%s dport %d-%d", field, port.Port.IntVal, *port.EndPort))
		default:
			matches = append(matches, fmt.Sprintf("%s dport %d", field, port.Port.IntVal))
		}
	}
	return matches
}

func numberOf(name string, protocol core.Protocol, pod *core.Pod) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name && port.Protocol == protocol {
				return port.ContainerPort
			}
		}
	}
	return 0
}
