package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "example.com/finalizer"

// deleting deletes under conditions, and with a finalizer in the way.
func deleting(b *bench) {
	made := b.gadget("deleted", nil)
	b.must(b.Create(b.ctx, made))
	b.seen["finalizer added"] = controllerutil.AddFinalizer(made, finalizer)
	b.must(b.Update(b.ctx, made))
	wrong := client.Preconditions{UID: ptr.To(types.UID("another"))}
	b.tell("another uid", b.Delete(b.ctx, made.DeepCopy(), wrong))
	old := client.Preconditions{ResourceVersion: ptr.To("1")}
	b.tell("an old version", b.Delete(b.ctx, made.DeepCopy(), old))
	right := client.Preconditions{UID: ptr.To(made.GetUID()), ResourceVersion: ptr.To(made.GetResourceVersion())}
	b.tell("dry run", b.Delete(b.ctx, made.DeepCopy(), right, client.DryRunAll))
	b.tell("the right ones", b.Delete(b.ctx, made.DeepCopy(), right))
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(made), made))
	b.seen["held"] = account{
		"deleting": made.GetDeletionTimestamp() != nil, "finalizers": made.GetFinalizers(),
		"generation": made.GetGeneration(), "grace": made.GetDeletionGracePeriodSeconds(),
	}
	b.tell("again", b.Delete(b.ctx, made.DeepCopy()))
	late := made.DeepCopy()
	controllerutil.AddFinalizer(late, "example.com/late")
	err := b.Update(b.ctx, late)
	b.seen["late finalizer"] = append([]string{outcome(err)}, causes(err)...)
	b.seen["finalizer removed"] = controllerutil.RemoveFinalizer(made, finalizer)
	b.must(b.Update(b.ctx, made))
	b.tell("afterwards", b.Get(b.ctx, client.ObjectKeyFromObject(made), made))
	b.tell("delete a missing one", b.Delete(b.ctx, made))

	for number := range 3 {
		object := configMap(b.place, fmt.Sprintf("swept-%d", number), nil)
		object.Labels = map[string]string{"swept": fmt.Sprint(number > 0)}
		b.must(b.Create(b.ctx, object))
	}
	in := client.InNamespace(b.namespace)
	b.must(b.DeleteAllOf(b.ctx, &corev1.ConfigMap{}, in, client.MatchingLabels{"swept": "true"}))
	var left corev1.ConfigMapList
	b.must(b.List(b.ctx, &left, in, client.HasLabels{"swept"}))
	b.seen["left of many"] = names(&left)
}

// collecting deletes owners of other objects, which the server or its controllers see to.
func collecting(b *bench) {
	pair := func(name string, finalizers ...string) (*corev1.ConfigMap, *corev1.ConfigMap) {
		owner, owned := configMap(b.place, name, nil), configMap(b.place, name+"-owned", nil)
		b.must(b.Create(b.ctx, owner))
		b.must(controllerutil.SetControllerReference(owner, owned, scheme))
		owned.Finalizers = finalizers
		b.must(b.Create(b.ctx, owned))
		return owner, owned
	}
	background, owned := pair("background")
	b.must(b.Delete(b.ctx, background, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	b.tell("background owner", b.Get(b.ctx, client.ObjectKeyFromObject(background), background))
	b.gone(owned)

	foreground, owned := pair("foreground", finalizer)
	b.must(b.Delete(b.ctx, foreground, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(foreground), foreground))
	b.seen["foreground owner"] = foreground.Finalizers
	b.eventually("the owned is deleted", func(ctx context.Context) (bool, error) {
		err := b.Get(ctx, client.ObjectKeyFromObject(owned), owned)
		return err == nil && owned.DeletionTimestamp != nil, err
	})
	// Even when the garbage collector has to take another look.
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(foreground), foreground))
	before := owned.DeepCopy()
	controllerutil.RemoveFinalizer(owned, finalizer)
	b.must(b.Patch(b.ctx, owned, client.MergeFrom(before)))
	b.gone(owned)
	b.gone(foreground)

	orphan, owned := pair("orphan")
	b.must(b.Delete(b.ctx, orphan, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	b.gone(orphan)
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(owned), owned))
	b.seen["orphan"] = account{"owners": len(owned.OwnerReferences), "deleting": owned.DeletionTimestamp != nil}
}

// watching follows changes, as seen through a selector.
func watching(b *bench) {
	in, ours := client.InNamespace(b.namespace), client.MatchingLabels{"watched": "yes"}
	first := b.gadget("watched-1", nil)
	first.SetLabels(ours)
	b.must(b.Create(b.ctx, first))
	list := b.gadgets()
	b.must(b.List(b.ctx, list, in, ours))
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	stream, err := b.Watch(b.ctx, b.gadgets(), in, ours, from)
	b.must(err)
	defer stream.Stop()
	second := b.gadget("watched-2", nil)
	second.SetLabels(ours)
	b.must(b.Create(b.ctx, second))
	before := first.DeepCopy()
	first.Object["status"] = map[string]any{"phase": "Seen"}
	b.must(b.Status().Patch(b.ctx, first, client.MergeFrom(before)))
	before = first.DeepCopy()
	first.SetLabels(map[string]string{"watched": "no"})
	b.must(b.Patch(b.ctx, first, client.MergeFrom(before)))
	before = first.DeepCopy()
	first.SetLabels(ours)
	b.must(b.Patch(b.ctx, first, client.MergeFrom(before)))
	b.must(b.Delete(b.ctx, second))
	b.seen["custom"] = b.events(stream, 5)

	maps, err := b.Watch(b.ctx, &corev1.ConfigMapList{}, in, ours)
	b.must(err)
	defer maps.Stop()
	made := configMap(b.place, "watched", map[string]string{"k": "v"})
	made.Labels = ours
	b.must(b.Create(b.ctx, made))
	b.must(b.Delete(b.ctx, made))
	b.seen["built in"] = b.events(maps, 2)

	brief := &client.ListOptions{Raw: &metav1.ListOptions{TimeoutSeconds: ptr.To(int64(1))}}
	ending, err := b.Watch(b.ctx, b.gadgets(), in, client.MatchingLabels{"watched": "never"}, brief)
	b.must(err)
	defer ending.Stop()
	select {
	case event, open := <-ending.ResultChan():
		b.seen["at the end of its time"] = account{"open": open, "type": event.Type}
	case <-b.ctx.Done():
		b.must(b.ctx.Err())
	}
	stale := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "none"}}
	_, err = b.Watch(b.ctx, b.gadgets(), in, stale)
	b.seen["from no version"] = err != nil && !apierrors.IsNotFound(err)
}

func (b *bench) events(stream watch.Interface, count int) []string {
	found, version := []string{}, ""
	for range count {
		select {
		case event, open := <-stream.ResultChan():
			if !open {
				return append(found, "the end")
			}
			object, ok := event.Object.(client.Object)
			if !ok {
				return append(found, fmt.Sprintf("%s %T", event.Type, event.Object))
			}
			if object.GetResourceVersion() == version {
				found = append(found, "the same version again")
			}
			version = object.GetResourceVersion()
			found = append(found, fmt.Sprintf("%s %s %s", event.Type, object.GetName(), object.GetLabels()["watched"]))
		case <-b.ctx.Done():
			return append(found, b.ctx.Err().Error())
		}
	}
	return found
}
