// Command hints answers which events kube-scheduler sees in a change of an object, and what the
// queueing hints of its own plugins say to each of them.
//
// It reads one JSON object a line from standard input,
//
//	{"pod": {...}, "old": {...} | null, "new": {...} | null}
//
// where "pod" is pending and "old" and "new" are one object of the API before and after, and
// writes one a line to standard output,
//
//	{"events": [{"label", "plugins": {plugin: "Queue" | "QueueSkip" | "Error"}}]}
//
// or {"error": "..."} for a line that cannot be answered. A plugin that has not registered an
// event is not among its plugins. The one argument, if there is one, is a
// KubeSchedulerConfiguration of which the first profile counts; without it the default profile.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type answer struct {
	Error  string  `json:"error,omitempty"`
	Events []event `json:"events"`
}

type event struct {
	Label   string            `json:"label"`
	Plugins map[string]string `json:"plugins"`
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hints:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	configuration := ""
	if len(arguments) > 0 {
		configuration = arguments[0]
	}
	asked, err := registrations(ctx, configuration)
	if err != nil {
		return err
	}
	return serve(asked, os.Stdin, os.Stdout)
}

// serve answers line by line until the input ends; it flushes after each answer, so that a
// caller may wait for one before asking the next.
func serve(asked hintMap, input io.Reader, output io.Writer) error {
	reader := bufio.NewReaderSize(input, 1<<20)
	writer := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(writer)
	for {
		line, readErr := reader.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answerLine(asked, line)); err != nil {
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

// answerLine keeps a panic of a hint, which some impossible objects provoke, to its own line.
func answerLine(asked hintMap, line []byte) (result answer) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = answer{Error: fmt.Sprint("panic: ", trouble)}
		}
	}()
	change, err := decodeChange(line)
	if err != nil {
		return answer{Error: err.Error()}
	}
	result.Events = []event{}
	for _, happened := range change.events() {
		result.Events = append(result.Events, event{
			Label:   happened.Label(),
			Plugins: asked.ask(happened, change),
		})
	}
	return result
}
