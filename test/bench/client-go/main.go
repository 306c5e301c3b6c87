// client-go's typed informer of Pods, on JSON, with a handler that does nothing, or (`paced`) notes when it began. Prints
// a line of JSON once it has been told of so many events.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	total, err := strconv.Atoi(os.Args[1])
	fatal(err)
	paced := len(os.Args) > 2 && os.Args[2] == "paced"
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	fatal(err)
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	delays := map[int64]int{}
	seen := 0
	told := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && paced {
			sent, _ := strconv.ParseInt(pod.Annotations["bench/sent"], 10, 64)
			delays[max(0, time.Now().UnixMilli()-sent)]++
		}
		if seen++; seen == total {
			fatal(json.NewEncoder(os.Stdout).Encode(map[string]any{"delays": delays}))
		}
	}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    told,
		UpdateFunc: func(_, object any) { told(object) },
		DeleteFunc: told,
	})
	fatal(err)
	forever := make(chan struct{})
	factory.Start(forever)
	<-forever
}

func fatal(err error) {
	if err != nil {
		panic(err)
	}
}
