// Package suggest finds what a mistyped word was meant to be.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// longest is the number of bytes of a word that messages show, and that are compared.
const longest = 40

// OneOf says that a value is none of those allowed, and which one was probably meant: `must be one of heun, ab, got
// "huen"; did you mean "heun"?`, to go on after the name of what it is a value of. It is empty where the value is
// allowed.
func OneOf(value string, allowed []string) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	says := fmt.Sprintf("must be one of %s, got %s", strings.Join(allowed, ", "), quote(value))
	if ask := DidYouMean(value, allowed); ask != "" {
		says += "; " + ask
	}
	return says
}

func quote(word string) string {
	if len(word) > longest {
		word = word[:longest] + "…"
	}
	return fmt.Sprintf("%q", word)
}

// Nearest returns the one of the known words that is nearest to a word in edits (insert, remove or replace a letter, or
// swap two neighbours), the first of several. It is empty where none is near: within a third of the word's letters, and
// within one of short words. Capitals make no difference.
func Nearest(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	nearest, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			nearest, least = k, d
		}
	}
	return nearest
}

// DidYouMean returns the question, `did you mean "digits"?`, or an empty text where nothing is near.
func DidYouMean(word string, known []string) string {
	if nearest := Nearest(word, known); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return ""
}

// distance is that of optimal string alignment, in bytes.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
