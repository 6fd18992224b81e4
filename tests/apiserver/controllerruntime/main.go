// Command controllerruntime uses an API server as operators written in Go do, and prints what it saw as JSON.
//
// It judges nothing: the same account must come from every server, and the test that runs it knows which.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

const limit = 4 * time.Minute

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
}

// place is where a command works: a namespace, and the group of its own kind.
type place struct {
	config    *rest.Config
	wire      *wire
	namespace string
	group     string
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	commands := map[string]func(context.Context, *place) error{"exercise": exercise, "manage": manage}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		return fmt.Errorf("usage: %s exercise|manage --kubeconfig FILE --namespace NAME --group NAME", os.Args[0])
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the server")
	namespace := flags.String("namespace", "default", "where to work; it has to exist")
	group := flags.String("group", "gadgets.example.com", "of the kind Gadget; exercise defines it, manage needs it")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	// Logs go to stderr, as JSON, and hold errors only when something went wrong.
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	// The server is there to be asked.
	config.QPS = -1
	// Part of what the server remembers of writes; the name of the program's file is not the same everywhere.
	config.UserAgent = "controllerruntime/1"
	seen := &wire{}
	config.Wrap(seen.around)
	ctx, cancel := context.WithTimeout(ctrl.SetupSignalHandler(), limit)
	defer cancel()
	return commands[os.Args[1]](ctx, &place{config, seen, *namespace, *group})
}

func say(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}

func configMap(p *place, name string, data map[string]string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{Data: data}
	made.Namespace, made.Name = p.namespace, name
	return made
}
