package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// account is what a part of the exercise saw.
type account map[string]any

// bench is what a part works with. A step that must succeed and does not ends the part.
type bench struct {
	*place
	client.WithWatch
	ctx  context.Context
	seen account
}

type failure struct{ error }

// must ends the part at an error.
func (b *bench) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// tell notes how a step ended.
func (b *bench) tell(what string, err error) {
	b.seen[what] = outcome(err)
}

// eventually asks until something is true.
func (b *bench) eventually(what string, check func(context.Context) (bool, error)) {
	if err := wait.PollUntilContextTimeout(b.ctx, 20*time.Millisecond, 40*time.Second, true, check); err != nil {
		b.must(fmt.Errorf("%s: %w", what, err))
	}
}

// gone waits until an object is no more.
func (b *bench) gone(object client.Object) {
	b.eventually(object.GetName()+" goes", func(ctx context.Context) (bool, error) {
		err := b.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// exercise takes an API server through what a client can ask of it, in parts that need nothing of each other.
func exercise(ctx context.Context, p *place) error {
	plain, err := client.NewWithWatch(p.config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	told := account{}
	// The first part defines the kind that later ones use.
	parts := []struct {
		name string
		do   func(*bench)
	}{
		{"discovering", discovering},
		{"typed", typed}, {"lists", lists}, {"patches", patches}, {"refusals", refusals},
		{"custom", custom}, {"applied", applied}, {"metadata", metadata},
		{"deleting", deleting}, {"collecting", collecting}, {"watching", watching},
	}
	for _, part := range parts {
		b := &bench{p, plain, ctx, account{}}
		b.attempt(part.do)
		told[part.name] = b.seen
	}
	told["wire"] = p.wire.seen()
	return say(told)
}

func (b *bench) attempt(part func(*bench)) {
	defer func() {
		if found := recover(); found != nil {
			failed, ok := found.(failure)
			if !ok {
				panic(found)
			}
			b.seen["ended by"] = failed.Error()
		}
	}()
	part(b)
}

// outcome says how a request ended: "ok", or the code and reason of the refusal.
func outcome(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &status):
		return fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason)
	case meta.IsNoMatchError(err):
		return "no match"
	}
	return err.Error()
}

// causes are the fields that a refusal names, with the reason for each.
func causes(err error) []string {
	found := []string{}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			found = append(found, fmt.Sprintf("%s %s", cause.Type, cause.Field))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// managers are who wrote an object, and how.
func managers(object client.Object) []string {
	found := []string{}
	for _, entry := range object.GetManagedFields() {
		found = append(found, fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource))
	}
	slices.Sort(found)
	return found
}

// names of the items of a list, in its order.
func names(list client.ObjectList) []string {
	found := []string{}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		accessor, err := meta.Accessor(item)
		if err == nil {
			found = append(found, accessor.GetName())
		}
		return err
	})
	return found
}

// hollow tells whether an object has what the server gives to each.
func hollow(object metav1.Object) bool {
	created := object.GetCreationTimestamp()
	return object.GetUID() == "" || object.GetResourceVersion() == "" || created.IsZero()
}
