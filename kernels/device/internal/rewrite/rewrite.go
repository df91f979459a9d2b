// Package rewrite rewrites programs so that XLA for CPU is faster.
//
// A program is the text of StableHLO that go-xla passes to the plugin. It contains all derivatives, so an operation can
// have a simple derivative in the graph and a fast form here. Each rule gains at least a tenth on a network of
// bench/docs/model.md:
//
//	winograd, winogradGradients  convolutions of many channels by Winograd's method
//	sums                         sums over pixels of computed terms, in four parts
//	repeats                      values of groups of channels repeated by a product
//
// Package selfcheck has a program for each, so that `anisoflight doctor` reports a rule that no longer matches the
// text of go-xla. Names of values that the rules add contain dots, which go-xla's do not. Programs for GPUs are not
// rewritten.
package rewrite

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// ForCPU rewrites a program for XLA's CPU compiler and returns the number of changed places. The program's outputs are
// the same up to rounding.
func ForCPU(code []byte) (out []byte, places int) {
	for _, rule := range []func([]byte) ([]byte, int){winograd, winogradGradients, sums, repeats} {
		var n int
		code, n = rule(code)
		places += n
	}
	return code, places
}

var (
	definition = regexp.MustCompile(`%(\w+) = "stablehlo\.(\w+)"\(`)
	mention    = regexp.MustCompile(`[( ]%(\w+)[,)]`)
)

// definitions returns the operation that defines each value and how often each value is used.
func definitions(code []byte) (defined map[string]string, uses map[string]int) {
	defined, uses = map[string]string{}, map[string]int{}
	for _, m := range definition.FindAllSubmatch(code, -1) {
		defined[string(m[1])] = string(m[2])
	}
	for _, m := range mention.FindAllSubmatch(code, -1) {
		uses[string(m[1])]++
	}
	return defined, uses
}

// numbers reads a list of integers.
func numbers(list []byte, separator string) []int {
	var out []int
	for s := range bytes.SplitSeq(list, []byte(separator)) {
		n, _ := strconv.Atoi(string(s))
		out = append(out, n)
	}
	return out
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// tensor writes a tensor's type.
func tensor(dims []int, dtype string) string { return "tensor<" + join(dims, "x") + "x" + dtype + ">" }

// array writes an attribute.
func array(values []int) string { return "array<i64: " + join(values, ", ") + ">" }

func join(values []int, separator string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = strconv.Itoa(v)
	}
	return strings.Join(words, separator)
}
