package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (p *place) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: p.group, Version: "v1", Kind: "Gadget"}
}

func (p *place) gadget(name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(p.kind())
	made.SetNamespace(p.namespace)
	made.SetName(name)
	if spec != nil {
		made.Object["spec"] = spec
	}
	return made
}

func (p *place) gadgets() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.kind())
	return list
}

func definition(group string) *apiextensionsv1.CustomResourceDefinition {
	type props = map[string]apiextensionsv1.JSONSchemaProps
	one, keyed := 1.0, "map"
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	condition := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"type"}, Properties: props{"type": text, "status": text, "reason": text},
	}
	conditions := apiextensionsv1.JSONSchemaProps{
		Type: "array", XListType: &keyed, XListMapKeys: []string{"type"},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
	}
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer"}
	size := apiextensionsv1.JSONSchemaProps{
		Type: "integer", Minimum: &one, Default: &apiextensionsv1.JSON{Raw: []byte("3")},
	}
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: props{"size": size, "note": text}}
	status := apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: props{"phase": text, "size": integer, "seen": integer, "conditions": conditions},
	}
	made := &apiextensionsv1.CustomResourceDefinition{}
	made.Name = "gadgets." + group
	made.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group,
		Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "gadgets", Kind: "Gadget", ShortNames: []string{"gdt"}, Categories: []string{"things"},
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: props{"spec": spec, "status": status},
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale: &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
				},
			},
		}},
	}
	return made
}

// discovering defines the kind Gadget and finds it, and others, by each way of discovery.
func discovering(b *bench) {
	mapping := func(kind schema.GroupKind) string {
		found, err := b.RESTMapper().RESTMapping(kind)
		if err != nil {
			return outcome(err)
		}
		return fmt.Sprintf("%s %s", found.Resource.GroupVersion().WithResource(found.Resource.Resource), found.Scope.Name())
	}
	gadget := b.kind().GroupKind()
	b.seen["before the definition"] = mapping(gadget)
	made := definition(b.group)
	b.must(b.Create(b.ctx, made))
	b.eventually("the definition is established", func(ctx context.Context) (bool, error) {
		if err := b.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
			return false, err
		}
		return slices.ContainsFunc(made.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), nil
	})
	// A client that did not find a kind finds it once it is there.
	b.eventually("the kind is found", func(ctx context.Context) (bool, error) {
		err := b.List(ctx, b.gadgets(), client.InNamespace(b.namespace))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	b.seen["definition"] = account{
		"accepted": made.Status.AcceptedNames, "stored": made.Status.StoredVersions, "strategy": made.Spec.Conversion.Strategy,
	}
	b.seen["mapped"] = []string{
		mapping(gadget), mapping(schema.GroupKind{Kind: "ConfigMap"}), mapping(schema.GroupKind{Kind: "Namespace"}),
		mapping(schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}), mapping(schema.GroupKind{Kind: "Nothing"}),
	}
	client, err := discovery.NewDiscoveryClientForConfig(b.config)
	b.must(err)
	aggregated, err := catalogue(client, b.group)
	b.must(err)
	b.seen["aggregated"] = aggregated
	legacy := client.WithLegacy()
	plain, err := catalogue(legacy, b.group)
	b.must(err)
	b.seen["plain"] = plain
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	expanded := []string{}
	for _, word := range []string{"cm", "gdt", "gadget", "gadgets." + b.group, "nothing"} {
		found, err := mapper.KindFor(schema.ParseGroupResource(word).WithVersion(""))
		if err != nil {
			expanded = append(expanded, outcome(err))
			continue
		}
		expanded = append(expanded, found.GroupKind().String())
	}
	b.seen["words"] = expanded
}

// catalogue is what discovery says of some kinds.
func catalogue(from discovery.DiscoveryInterface, group string) (account, error) {
	_, lists, err := from.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	found := account{}
	for _, list := range lists {
		for _, each := range list.APIResources {
			name, _, _ := strings.Cut(each.Name, "/")
			if !slices.Contains([]string{"configmaps", "secrets", "namespaces", "leases", "events", "gadgets"}, name) {
				continue
			}
			if name == "gadgets" && list.GroupVersion != group+"/v1" {
				continue
			}
			slices.Sort(each.Verbs)
			found[list.GroupVersion+" "+each.Name] = fmt.Sprintf("%s %s %t %v %v %v",
				each.Kind, each.SingularName, each.Namespaced, each.ShortNames, each.Categories, each.Verbs)
		}
	}
	return found, nil
}

// custom writes objects whose kind no Go type describes.
func custom(b *bench) {
	made := b.gadget("custom", map[string]any{"note": "hi", "unknown": "x"})
	b.must(b.Create(b.ctx, made))
	b.seen["created"] = account{"spec": made.Object["spec"], "generation": made.GetGeneration(), "hollow": hollow(made)}
	err := b.Create(b.ctx, b.gadget("wrong", map[string]any{"size": int64(0), "note": int64(1)}))
	b.seen["invalid"] = append([]string{outcome(err)}, causes(err)...)
	err = b.Create(b.ctx, b.gadget("wrong", map[string]any{"sise": int64(1)}), client.FieldValidation("Strict"))
	b.tell("unknown field", err)

	stale := made.DeepCopy()
	b.must(unstructured.SetNestedField(made.Object, int64(4), "spec", "size"))
	b.must(unstructured.SetNestedField(made.Object, "Odd", "status", "phase"))
	b.must(b.Update(b.ctx, made))
	b.seen["updated"] = shown(made)
	b.tell("update a stale one", b.Update(b.ctx, stale))
	b.must(unstructured.SetNestedField(made.Object, int64(9), "spec", "size"))
	b.must(unstructured.SetNestedField(made.Object, "Ready", "status", "phase"))
	b.must(b.Status().Update(b.ctx, made))
	b.seen["status updated"] = shown(made)
	b.tell("status update of a stale one", b.Status().Update(b.ctx, stale))

	before := made.DeepCopy()
	conditions := []any{map[string]any{"type": "Ready", "status": "True"}}
	b.must(unstructured.SetNestedSlice(made.Object, conditions, "status", "conditions"))
	b.must(b.Status().Patch(b.ctx, made, client.MergeFrom(before)))
	b.seen["status patched"] = shown(made)
	version := made.GetResourceVersion()
	b.must(b.Status().Patch(b.ctx, made, client.MergeFrom(before)))
	b.seen["patch of nothing keeps the version"] = made.GetResourceVersion() == version
	b.tell("strategic", b.Patch(b.ctx, made.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{}`))))

	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	b.must(b.SubResource("scale").Get(b.ctx, made, scale))
	b.seen["scale"] = account{"spec": scale.Object["spec"], "status": scale.Object["status"]}
	b.must(unstructured.SetNestedField(scale.Object, int64(6), "spec", "replicas"))
	b.must(b.SubResource("scale").Update(b.ctx, made, client.WithSubResourceBody(scale)))
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(made), made))
	b.seen["scaled"] = shown(made)
	b.seen["managers"] = managers(made)
}

func shown(object *unstructured.Unstructured) account {
	return account{"spec": object.Object["spec"], "status": object.Object["status"], "generation": object.GetGeneration()}
}

// metadata reads and writes objects of which only the metadata is wanted.
func metadata(b *bench) {
	made := b.gadget("bare", map[string]any{"size": int64(2)})
	made.SetLabels(map[string]string{"part": "metadata"})
	b.must(b.Create(b.ctx, made))
	bare := &metav1.PartialObjectMetadata{}
	bare.SetGroupVersionKind(b.kind())
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(made), bare))
	b.seen["got"] = account{"name": bare.Name, "labels": bare.Labels, "kind": bare.Kind, "version": bare.APIVersion}
	before := bare.DeepCopy()
	bare.Annotations = map[string]string{"seen": "yes"}
	b.must(b.Patch(b.ctx, bare, client.MergeFrom(before)))
	b.seen["patched"] = bare.Annotations
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(b.kind())
	b.must(b.List(b.ctx, list, client.InNamespace(b.namespace), client.MatchingLabels{"part": "metadata"}))
	b.seen["listed"] = names(list)
	maps := &metav1.PartialObjectMetadataList{}
	maps.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	b.must(b.List(b.ctx, maps, client.InNamespace(b.namespace), client.MatchingFields{"metadata.name": "typed"}))
	b.seen["built in"] = names(maps)
	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(made), made))
	b.seen["whole"] = shown(made)
	converted := struct {
		Spec struct {
			Size int64 `json:"size"`
		} `json:"spec"`
	}{}
	b.must(runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, &converted))
	b.seen["as a type"] = converted.Spec.Size
}
