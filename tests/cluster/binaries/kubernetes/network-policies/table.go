package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// state is what decides which traffic is allowed.
type state struct {
	pods       []*core.Pod
	namespaces []*core.Namespace
	policies   []*networking.NetworkPolicy
}

// direction is one of the two in which a pod can be isolated.
type direction struct {
	kind networking.PolicyType
	// The prefix of its chains.
	chain string
	// The packet's addresses: of the pod that is isolated, and of its peer.
	own, peer string
}

var (
	egress  = direction{networking.PolicyTypeEgress, "from", "ip saddr", "ip daddr"}
	ingress = direction{networking.PolicyTypeIngress, "to", "ip daddr", "ip saddr"}
)

const name = "ip network-policies"

// table is the script that puts the rules in the place of those of before. A pod that
// a policy isolates has a chain, from which an allowed connection returns; it must
// pass the chain of the sender and that of the receiver. The rules see forwarded
// packets alone: what the node itself serves is always allowed, as Kubernetes demands
// for the node of a pod.
func (s state) table() string {
	var base, chains strings.Builder
	for _, direction := range []direction{egress, ingress} {
		var verdicts []string
		for _, pod := range s.isolated(direction) {
			chain := direction.chain + "-" + pod.Status.PodIP
			verdicts = append(verdicts, pod.Status.PodIP+" : jump "+chain)
			// A refusal tells the client at once, where silence makes it wait.
			fmt.Fprintf(&chains, "  chain %s {\n    # %s/%s\n%s    reject with icmp admin-prohibited\n  }\n",
				chain, pod.Namespace, pod.Name, lines(s.allowed(pod, direction)))
		}
		if len(verdicts) > 0 {
			fmt.Fprintf(&base, "    %s vmap %s\n", direction.own, set(verdicts))
		}
	}
	return fmt.Sprintf("add table %[1]s\ndelete table %[1]s\ntable %[1]s {\n  chain pods {\n"+
		"    type filter hook forward priority filter; policy accept;\n"+
		"    ct state established,related accept\n%s%s  }\n%s}\n",
		name, s.toThemselves(), base.String(), chains.String())
}

// toThemselves allows a pod to reach itself through a service, as no policy forbids.
func (s state) toThemselves() string {
	var pairs []string
	for _, pod := range s.present() {
		pairs = append(pairs, pod.Status.PodIP+" . "+pod.Status.PodIP)
	}
	if len(pairs) == 0 {
		return ""
	}
	return fmt.Sprintf("    ip saddr . ip daddr %s accept\n", set(pairs))
}

// present are the pods with an address of their own that is still theirs, sorted.
func (s state) present() []*core.Pod {
	var present []*core.Pod
	for _, pod := range s.pods {
		ended := pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
		if pod.Status.PodIP != "" && !pod.Spec.HostNetwork && !ended {
			present = append(present, pod)
		}
	}
	slices.SortFunc(present, func(a, b *core.Pod) int {
		return cmp.Compare(a.Status.PodIP, b.Status.PodIP)
	})
	return slices.CompactFunc(present, func(a, b *core.Pod) bool {
		return a.Status.PodIP == b.Status.PodIP
	})
}

// isolated are the pods that a policy of that direction selects.
func (s state) isolated(direction direction) []*core.Pod {
	return slices.DeleteFunc(s.present(), func(pod *core.Pod) bool {
		return !slices.ContainsFunc(s.policies, func(policy *networking.NetworkPolicy) bool {
			return selects(policy, pod, direction)
		})
	})
}

func selects(policy *networking.NetworkPolicy, pod *core.Pod, direction direction) bool {
	return policy.Namespace == pod.Namespace &&
		slices.Contains(policy.Spec.PolicyTypes, direction.kind) &&
		matches(&policy.Spec.PodSelector, pod.Labels)
}

// matches says whether the labels are selected. The API server lets no selector pass
// that cannot be read.
func matches(selector *meta.LabelSelector, set map[string]string) bool {
	parsed, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

// allowed are the connections that the policies allow to the pod, or from it.
func (s state) allowed(pod *core.Pod, direction direction) []string {
	var rules []string
	for _, policy := range s.policies {
		if !selects(policy, pod, direction) {
			continue
		}
		for _, rule := range rulesOf(policy, direction) {
			for _, peer := range s.peers(policy.Namespace, rule.peers, direction) {
				for _, port := range rule.portsOf(pod, peer.pods, direction) {
					rules = append(rules, strings.Join(strings.Fields(peer.match+" "+port), " "))
				}
			}
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// lines let what a rule matches go on, out of the chain.
func lines(rules []string) string {
	var text strings.Builder
	for _, rule := range rules {
		text.WriteString("    " + strings.TrimSpace(rule+" return") + "\n")
	}
	return text.String()
}

func set(elements []string) string {
	return "{ " + strings.Join(elements, ", ") + " }"
}
