package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applied has two managers of one object, built in and custom.
func applied(b *bench) {
	one, two := client.FieldOwner("one"), client.FieldOwner("two")
	mine := func() *corev1ac.ConfigMapApplyConfiguration { return corev1ac.ConfigMap("applied", b.namespace) }
	b.must(b.Apply(b.ctx, mine().WithData(map[string]string{"a": "1", "b": "1"}).WithLabels(map[string]string{"l": "1"}), one))
	got := configMap(b.place, "applied", nil)
	read := func(what string) {
		b.must(b.Get(b.ctx, client.ObjectKeyFromObject(got), got))
		b.seen[what] = account{"data": got.Data, "labels": got.Labels, "managers": managers(got)}
	}
	read("first")
	version := got.ResourceVersion
	b.must(b.Apply(b.ctx, mine().WithData(map[string]string{"a": "1", "b": "1"}).WithLabels(map[string]string{"l": "1"}), one))
	read("again")
	b.seen["again keeps the version"] = got.ResourceVersion == version
	err := b.Apply(b.ctx, mine().WithData(map[string]string{"a": "2", "c": "2"}), two)
	b.seen["conflict"] = append([]string{outcome(err)}, causes(err)...)
	b.must(b.Apply(b.ctx, mine().WithData(map[string]string{"a": "2", "c": "2"}), two, client.ForceOwnership))
	read("forced")
	// Who applies less gives up the rest, which goes if nobody else has it.
	b.must(b.Apply(b.ctx, mine().WithLabels(map[string]string{"l": "1"}), one))
	read("given up")
	extracted, err := corev1ac.ExtractConfigMap(got, "two")
	b.must(err)
	b.seen["extracted"] = account{"data": extracted.Data, "labels": extracted.Labels}

	custom := b.gadget("applied", map[string]any{"size": int64(5)})
	b.must(b.Apply(b.ctx, client.ApplyConfigurationFromUnstructured(custom), one))
	b.seen["custom"] = account{"spec": custom.Object["spec"], "managers": managers(custom)}
	status := func(owner client.FieldOwner, kind string) error {
		stated := b.gadget("applied", nil)
		conditions := []any{map[string]any{"type": kind, "status": "True", "reason": fmt.Sprint(owner)}}
		b.must(unstructured.SetNestedSlice(stated.Object, conditions, "status", "conditions"))
		return b.Status().Apply(b.ctx, client.ApplyConfigurationFromUnstructured(stated), owner)
	}
	b.must(status(one, "Ready"))
	b.must(status(two, "Cool"))
	err = status(two, "Ready")
	b.seen["custom conflict"] = append([]string{outcome(err)}, causes(err)...)
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(custom), custom))
	b.seen["custom status"] = account{"status": custom.Object["status"], "managers": managers(custom), "generation": custom.GetGeneration()}
	b.tell("without owner", b.Apply(b.ctx, client.ApplyConfigurationFromUnstructured(b.gadget("applied", nil))))
	var secret corev1.Secret
	b.must(b.Apply(b.ctx, corev1ac.Secret("applied", b.namespace).WithStringData(map[string]string{"k": "v"}), one))
	b.must(b.Get(b.ctx, client.ObjectKey{Namespace: b.namespace, Name: "applied"}, &secret))
	b.seen["secret"] = account{"data": string(secret.Data["k"]), "type": secret.Type}
}
