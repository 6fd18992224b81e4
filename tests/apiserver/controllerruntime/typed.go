package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// typed creates, reads and updates built-in kinds, which clients of this library send and ask for as protobuf.
func typed(b *bench) {
	made := configMap(b.place, "typed", map[string]string{"k": "v", "words": "grüße 日本"})
	made.BinaryData = map[string][]byte{"raw": {0, 255, 10}}
	made.Labels = map[string]string{"app": "typed"}
	b.must(b.Create(b.ctx, made.DeepCopy(), client.FieldOwner("maker")))
	b.tell("create again", b.Create(b.ctx, made.DeepCopy()))
	var got corev1.ConfigMap
	key := client.ObjectKeyFromObject(made)
	b.must(b.Get(b.ctx, key, &got))
	b.seen["read"] = account{
		"data": got.Data, "raw": got.BinaryData["raw"], "labels": got.Labels, "hollow": hollow(&got),
		"managers": managers(&got), "generation": got.Generation,
	}
	b.tell("get a missing one", b.Get(b.ctx, types.NamespacedName{Namespace: b.namespace, Name: "absent"}, &corev1.ConfigMap{}))

	stale := got.DeepCopy()
	before := got.ResourceVersion
	b.must(b.Update(b.ctx, &got))
	b.seen["update of nothing keeps the version"] = got.ResourceVersion == before
	got.Data["k"] = "w"
	b.must(b.Update(b.ctx, &got))
	b.seen["update gives a new version"] = got.ResourceVersion != before
	stale.Data["k"] = "x"
	b.tell("update a stale one", b.Update(b.ctx, stale))
	stale.ResourceVersion = ""
	b.tell("update without a version", b.Update(b.ctx, stale))
	b.tell("update a missing one", b.Update(b.ctx, configMap(b.place, "absent", nil)))
	retried(b, key)
	orUpdated(b)

	secret := &corev1.Secret{StringData: map[string]string{"user": "me"}, Type: "example.com/own"}
	secret.Namespace, secret.GenerateName = b.namespace, "secret-"
	b.must(b.Create(b.ctx, secret))
	b.seen["secret"] = account{
		"data": fmt.Sprintf("%s", secret.Data["user"]), "plain": len(secret.StringData), "type": secret.Type,
		"named": len(secret.Name) - len(secret.GenerateName),
	}
	probe := configMap(b.place, "probe", nil)
	b.must(b.Create(b.ctx, probe, client.DryRunAll))
	b.seen["dry run"] = account{"uid": probe.UID != "", "version": probe.ResourceVersion}
	b.tell("get after a dry run", b.Get(b.ctx, client.ObjectKeyFromObject(probe), &corev1.ConfigMap{}))
}

// retried updates an object that somebody else changes in between.
func retried(b *bench, key client.ObjectKey) {
	attempts := 0
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		attempts++
		var mine, theirs corev1.ConfigMap
		b.must(b.Get(b.ctx, key, &mine))
		if attempts == 1 {
			b.must(b.Get(b.ctx, key, &theirs))
			theirs.Data["theirs"] = "yes"
			b.must(b.Update(b.ctx, &theirs))
		}
		mine.Data["mine"] = "yes"
		return b.Update(b.ctx, &mine)
	})
	var got corev1.ConfigMap
	b.must(b.Get(b.ctx, key, &got))
	b.seen["retried"] = account{"outcome": outcome(err), "attempts": attempts, "data": got.Data}
}

// orUpdated brings an object into shape whether it is there or not.
func orUpdated(b *bench) {
	results := []string{}
	for _, value := range []string{"1", "1", "2"} {
		object := configMap(b.place, "either", nil)
		result, err := controllerutil.CreateOrUpdate(b.ctx, b, object, func() error {
			object.Data = map[string]string{"n": value}
			return nil
		})
		b.must(err)
		results = append(results, string(result))
	}
	for _, value := range []string{"2", "3"} {
		object := configMap(b.place, "either", nil)
		result, err := controllerutil.CreateOrPatch(b.ctx, b, object, func() error {
			object.Data = map[string]string{"n": value}
			return nil
		})
		b.must(err)
		results = append(results, string(result))
	}
	b.seen["create or update"] = results
}

// lists reads pages, and what selectors choose.
func lists(b *bench) {
	for number := range 7 {
		object := configMap(b.place, fmt.Sprintf("listed-%d", number), nil)
		object.Labels = map[string]string{"listed": "yes", "odd": fmt.Sprint(number % 2)}
		b.must(b.Create(b.ctx, object))
	}
	in, ours := client.InNamespace(b.namespace), client.MatchingLabels{"listed": "yes"}
	pages, versions, next := [][]string{}, map[string]bool{}, ""
	for {
		var page corev1.ConfigMapList
		b.must(b.List(b.ctx, &page, in, ours, client.Limit(3), client.Continue(next)))
		pages = append(pages, names(&page))
		versions[page.ResourceVersion] = true
		if next = page.Continue; next == "" {
			break
		}
		// What is written meanwhile belongs to a later state than the pages show.
		late := configMap(b.place, fmt.Sprintf("listed-%d-late", len(pages)), nil)
		late.Labels = map[string]string{"listed": "yes"}
		b.must(b.Create(b.ctx, late))
	}
	b.seen["pages"], b.seen["one state"] = pages, len(versions) == 1
	b.tell("go on from nowhere", b.List(b.ctx, &corev1.ConfigMapList{}, in, client.Limit(1), client.Continue("nowhere")))

	chosen := func(what string, options ...client.ListOption) {
		var list corev1.ConfigMapList
		b.must(b.List(b.ctx, &list, append(options, in)...))
		b.seen[what] = names(&list)
	}
	expression, err := labels.Parse("odd in (1),listed,!late")
	b.must(err)
	chosen("by expression", client.MatchingLabelsSelector{Selector: expression})
	chosen("by labels", client.MatchingLabels{"odd": "0"})
	chosen("by field", client.MatchingFields{"metadata.name": "listed-3"})
	b.tell("by an unknown field", b.List(b.ctx, &corev1.ConfigMapList{}, in, client.MatchingFields{"data.k": "v"}))
	var all corev1.ConfigMapList
	b.must(b.List(b.ctx, &all, ours))
	b.seen["everywhere"] = len(all.Items)
}

// patches changes parts of objects in each form that the library has.
func patches(b *bench) {
	made := configMap(b.place, "patched", map[string]string{"a": "1", "b": "2"})
	made.Finalizers = []string{"example.com/first"}
	b.must(b.Create(b.ctx, made))
	changed := func(change func(*corev1.ConfigMap), from func(client.Object) client.Patch) error {
		object := made.DeepCopy()
		change(object)
		return b.Patch(b.ctx, object, from(made))
	}
	show := func(what string) {
		var got corev1.ConfigMap
		b.must(b.Get(b.ctx, client.ObjectKeyFromObject(made), &got))
		b.seen[what] = account{"data": got.Data, "labels": got.Labels, "finalizers": got.Finalizers}
	}
	b.must(changed(func(o *corev1.ConfigMap) { delete(o.Data, "a"); o.Data["c"] = "3" }, client.MergeFrom))
	show("merge")
	locked := func(o client.Object) client.Patch {
		return client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
	}
	b.tell("merge into a stale one", changed(func(o *corev1.ConfigMap) { o.Data["d"] = "4" }, locked))
	strategic := func(o client.Object) client.Patch { return client.StrategicMergeFrom(o) }
	b.must(changed(func(o *corev1.ConfigMap) {
		o.Labels = map[string]string{"l": "1"}
		o.Finalizers = append(o.Finalizers, "example.com/second")
	}, strategic))
	b.must(changed(func(o *corev1.ConfigMap) { o.Finalizers = append(o.Finalizers, "example.com/third") }, strategic))
	show("strategic")
	raw := func(how types.PatchType, text string) error {
		return b.Patch(b.ctx, made.DeepCopy(), client.RawPatch(how, []byte(text)))
	}
	b.must(raw(types.JSONPatchType, `[{"op":"test","path":"/data/c","value":"3"},{"op":"move","from":"/data/c","path":"/data/e"}]`))
	b.must(raw(types.JSONPatchType, `[{"op":"remove","path":"/metadata/finalizers"}]`))
	show("json")
	b.tell("json whose test fails", raw(types.JSONPatchType, `[{"op":"test","path":"/data/e","value":"4"}]`))
	b.tell("json of nothing", raw(types.JSONPatchType, `[]`))
	b.tell("merge that is no object", raw(types.MergePatchType, `[]`))
	b.tell("another form", raw("application/other", `{}`))
	b.tell("patch a missing one", b.Patch(b.ctx, configMap(b.place, "absent", nil), client.RawPatch(types.MergePatchType, []byte(`{}`))))
}

// refusals are what a controller has to tell from each other.
func refusals(b *bench) {
	refused := func(what string, err error) {
		b.seen[what] = append([]string{outcome(err)}, causes(err)...)
	}
	named := configMap(b.place, "Not A Name", nil)
	named.Labels = map[string]string{"not a label": "-"}
	refused("names", b.Create(b.ctx, named))
	elsewhere := configMap(b.place, "lost", nil)
	elsewhere.Namespace = "absent"
	refused("no such namespace", b.Create(b.ctx, elsewhere))
	versioned := configMap(b.place, "versioned", nil)
	versioned.ResourceVersion = "7"
	err := b.Create(b.ctx, versioned)
	// The library refuses this by itself in some releases.
	b.seen["version at creation"] = err != nil
	fixed := configMap(b.place, "fixed", map[string]string{"k": "v"})
	fixed.Immutable = ptr.To(true)
	b.must(b.Create(b.ctx, fixed))
	fixed.Data["k"] = "w"
	refused("immutable data", b.Update(b.ctx, fixed))
	secret := &corev1.Secret{Type: corev1.SecretTypeOpaque}
	secret.Namespace, secret.Name = b.namespace, "typed"
	b.must(b.Create(b.ctx, secret))
	secret.Type = "example.com/other"
	refused("immutable type", b.Update(b.ctx, secret))
	strict := client.RawPatch(types.MergePatchType, []byte(`{"nothing":1}`))
	refused("unknown field", b.Patch(b.ctx, configMap(b.place, "fixed", nil), strict, client.FieldValidation("Strict")))
	owned := configMap(b.place, "owned", nil)
	b.must(controllerutil.SetControllerReference(fixed, owned, scheme))
	var taken *controllerutil.AlreadyOwnedError
	b.seen["second controller"] = errors.As(controllerutil.SetControllerReference(secret, owned, scheme), &taken)
	owned.OwnerReferences[0].UID = ""
	refused("owner without uid", b.Create(b.ctx, owned))
	b.seen["told apart"] = apierrors.IsNotFound(b.Delete(b.ctx, configMap(b.place, "absent", nil)))
}
