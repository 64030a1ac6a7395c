// Command cel answers what kube-scheduler's CEL says of an expression and a device.
//
// It reads one JSON object a line from standard input,
//
//	{"expression": "...", "driver": "...", "attributes": {...}, "capacity": {...},
//	 "allowMultipleAllocations": null | true | false}
//
// with attributes and capacity as in a ResourceSlice, and writes one a line to standard output,
//
//	{"compileError": "..."} | {"error": "...", "cost": n} | {"matches": true | false, "cost": n}
//
// or {"failed": "..."} for a line that cannot be answered. Expressions are compiled as those that
// are stored already, with the feature gates that are on by default, as the DynamicResources
// plugin does. The cost is the actual one, absent where there is none.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// programs is how many compiled expressions are kept.
const programs = 100

type question struct {
	Expression               string                                                    `json:"expression"`
	Driver                   string                                                    `json:"driver"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
}

type answer struct {
	Failed       string  `json:"failed,omitempty"`
	CompileError string  `json:"compileError,omitempty"`
	Error        string  `json:"error,omitempty"`
	Matches      *bool   `json:"matches,omitempty"`
	Cost         *uint64 `json:"cost,omitempty"`
}

func main() {
	cache := cel.NewCache(programs, cel.Features{EnableConsumableCapacity: true})
	if err := serve(cache, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cel:", err)
		os.Exit(1)
	}
}

// serve answers line by line until the input ends; it flushes when no further line waits.
func serve(cache *cel.Cache, input io.Reader, output io.Writer) error {
	reader := bufio.NewReaderSize(input, 1<<20)
	writer := bufio.NewWriterSize(output, 1<<20)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, readErr := reader.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answerLine(cache, line)); err != nil {
				return err
			}
		}
		if reader.Buffered() == 0 || readErr != nil {
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

// answerLine keeps a panic to its own line.
func answerLine(cache *cel.Cache, line []byte) (result answer) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = answer{Failed: fmt.Sprint("panic: ", trouble)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Failed: err.Error()}
	}
	program := cache.GetOrCompile(asked.Expression)
	if program.Error != nil {
		return answer{CompileError: program.Error.Error()}
	}
	matches, details, err := program.DeviceMatches(context.Background(), cel.Device{
		Driver:                   asked.Driver,
		AllowMultipleAllocations: asked.AllowMultipleAllocations,
		Attributes:               asked.Attributes,
		Capacity:                 asked.Capacity,
	})
	if details != nil {
		result.Cost = details.ActualCost()
	}
	if err != nil {
		result.Error = err.Error()
		return result
	}
	result.Matches = &matches
	return result
}
