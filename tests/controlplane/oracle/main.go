// Command oracle answers what kube-scheduler's own plugins say of a pod, node by node.
//
// It reads one JSON object a line from standard input,
//
//	{"objects": [...], "pod": {...}, "config": {...}, "bind": false}
//
// and writes one a line to standard output,
//
//	{"prefilter": null | {"rejected", "code", "reasons"},
//	 "nodes": {name: {"rejected", "code", "reasons"}
//	                 | {"scores": {plugin: weighted}, "total",
//	                    "allocations": [{"claim", "requests", "allocation"}]}},
//	 "bound": {"node", "claims": [...], "error"},
//	 "deallocation": {"message", "claims": [name]},
//	 "preemption": null | {"candidates": {name: {"victims": ["ns/name"], "pdbViolations"}},
//	                       "best": [name], "message"}}
//
// or {"error": "...", "errors": {node: "..."}} for a cycle that ends with an error, of which
// "errors" are those that the nodes' filters report; {"error": "..."} also stands for a line that
// cannot be answered. "allocations" are those of the pod's claims that have none yet, with their
// requests for the claim that stands for extended resources. "deallocation" is there when no node
// can have a pod with claims; its claims are those of which one is deallocated or deleted. "bound"
// is there if "bind" asks for it: the feasible node with the highest total, of several the first by
// name, and the claims as DynamicResources writes them for it. "objects" are API objects with their
// kinds, as an API server would have stored them: nothing is defaulted here. "config" is a
// KubeSchedulerConfiguration of which the first profile counts; without it the default profile.
// Pods without a node and with a nominated one are nominated. "preemption" is there when no node
// can have the pod and the profile preempts; "best" are the candidates of which DefaultPreemption
// picks one by chance, "message" is what it says when there is no candidate.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type answer struct {
	Error     string             `json:"error,omitempty"`
	Errors    map[string]string  `json:"errors,omitempty"`
	PreFilter *rejection         `json:"prefilter"`
	Nodes     map[string]verdict `json:"nodes"`

	Bound        *bound            `json:"bound,omitempty"`
	Deallocation *deallocation     `json:"deallocation,omitempty"`
	Preemption   *preemptionAnswer `json:"preemption"`
}

type rejection struct {
	Rejected string   `json:"rejected"`
	Code     int      `json:"code"`
	Reasons  []string `json:"reasons"`
}

// verdict is a rejection or scores: exactly one of the two is there.
type verdict struct {
	*rejection
	*ranking
}

type ranking struct {
	Scores map[string]int64 `json:"scores"`
	Total  int64            `json:"total"`

	Allocations []allocation `json:"allocations,omitempty"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// serve answers line by line until the input ends; it flushes after each answer, so that a
// caller may wait for one before asking the next.
func serve(input io.Reader, output io.Writer) error {
	reader := bufio.NewReaderSize(input, 1<<20)
	writer := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, readErr := reader.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answerLine(line)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// answerLine keeps a panic of a plugin, which some impossible objects provoke, to its own line.
func answerLine(line []byte) (result answer) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = answer{Error: fmt.Sprint("panic: ", trouble)}
		}
	}()
	question, err := decodeCase(line)
	if err != nil {
		return answer{Error: err.Error()}
	}
	result, err = question.answer()
	if err != nil {
		return answer{Error: err.Error()}
	}
	return result
}
