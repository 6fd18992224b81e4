package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	election  = "gadget-controller"
	bySize    = "spec.size"
	secretRef = "example.com/secret"
)

// reconciler gives each Gadget a ConfigMap and a status.
type reconciler struct {
	client.Client
	events events.EventRecorder
	older  record.EventRecorder
}

// manage runs a manager that elects a leader, until it is told to stop; each line says what happened.
func manage(ctx context.Context, p *place) error {
	var lines sync.Mutex
	note := func(what string, more account) error {
		lines.Lock()
		defer lines.Unlock()
		told := account{"event": what}
		for name, value := range more {
			told[name] = value
		}
		return say(told)
	}
	selected := labels.SelectorFromSet(labels.Set{"gadget": "yes"})
	mgr, err := ctrl.NewManager(p.config, manager.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              election,
		LeaderElectionNamespace:       p.namespace,
		LeaderElectionReleaseOnCancel: true,
		// The lease is long, because it is given back and a busy machine must not lose it; who waits looks often.
		LeaseDuration: ptr.To(60 * time.Second),
		RenewDeadline: ptr.To(40 * time.Second),
		RetryPeriod:   ptr.To(200 * time.Millisecond),
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{p.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selected}},
		},
		// Reads of Gadgets come from the cache as well.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	gadget := p.gadget("", nil)
	err = mgr.GetFieldIndexer().IndexField(ctx, gadget, bySize, func(object client.Object) []string {
		size, _, _ := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "size")
		return []string{fmt.Sprint(size)}
	})
	if err != nil {
		return err
	}
	controller := &reconciler{mgr.GetClient(), mgr.GetEventRecorder("gadgets"), mgr.GetEventRecorderFor("gadgets-older")} //nolint:staticcheck // both are in use
	mentioned := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
		name, found := secret.GetAnnotations()[secretRef]
		if !found {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: p.namespace, Name: name}}}
	})
	err = ctrl.NewControllerManagedBy(mgr).
		Named("gadget").
		For(gadget).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, mentioned, builder.OnlyMetadata).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			if err := controller.reconcile(ctx, p.gadget(request.Name, nil)); err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, note("reconciled", account{"name": request.Name})
		}))
	if err != nil {
		return err
	}
	if err := mgr.Add(standby(func(ctx context.Context) error {
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return nil
		}
		return note("synced", nil)
	})); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return note("leading", nil) })); err != nil {
		return err
	}
	failed := mgr.Start(ctx)
	return note("ended", account{"failure": outcome(failed), "wire": p.wire.seen()})
}

// standby is what runs without being the leader.
type standby func(context.Context) error

func (s standby) Start(ctx context.Context) error { return s(ctx) }

func (standby) NeedLeaderElection() bool { return false }

func (r *reconciler) reconcile(ctx context.Context, gadget *unstructured.Unstructured) error {
	if err := r.Get(ctx, client.ObjectKeyFromObject(gadget), gadget); err != nil {
		return client.IgnoreNotFound(err)
	}
	if gadget.GetDeletionTimestamp() != nil {
		return r.let(ctx, gadget)
	}
	before := gadget.DeepCopy()
	if controllerutil.AddFinalizer(gadget, finalizer) {
		if err := r.Patch(ctx, gadget, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	size, _, err := unstructured.NestedInt64(gadget.Object, "spec", "size")
	if err != nil {
		return err
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gadget.GetNamespace(), Name: gadget.GetName()}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Labels = map[string]string{"gadget": "yes"}
		child.Data = map[string]string{"size": fmt.Sprint(size)}
		return controllerutil.SetControllerReference(gadget, child, scheme)
	})
	if err != nil {
		return err
	}
	if result != controllerutil.OperationResultNone {
		// Twice, for recorders sum up what is said again by patches.
		for range 2 {
			r.events.Eventf(gadget, child, corev1.EventTypeNormal, "Sized", "Size", "size is %d", size)
			r.older.Eventf(gadget, corev1.EventTypeNormal, "Sized", "size is %d", size)
		}
	}
	peers := &unstructured.UnstructuredList{}
	peers.SetGroupVersionKind(gadget.GroupVersionKind())
	in, same := client.InNamespace(gadget.GetNamespace()), client.MatchingFields{bySize: fmt.Sprint(size)}
	if err := r.List(ctx, peers, in, same); err != nil {
		return err
	}
	before = gadget.DeepCopy()
	gadget.Object["status"] = map[string]any{
		"phase": "Ready", "seen": gadget.GetGeneration(), "size": int64(len(peers.Items)),
	}
	return r.Status().Patch(ctx, gadget, client.MergeFrom(before))
}

// let takes away what a Gadget has, and lets it go.
func (r *reconciler) let(ctx context.Context, gadget *unstructured.Unstructured) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gadget.GetNamespace(), Name: gadget.GetName()}}
	if err := r.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(gadget, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, gadget))
}
