package rewrite

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

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

// numbers reads a list of digits, which the rules' expressions have found to be such.
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
