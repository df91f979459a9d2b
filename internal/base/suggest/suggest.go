// Package suggest finds the known word that is nearest to a mistyped one.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// maxBytes is the length of a word that is shown and compared.
const maxBytes = 40

// OneOf returns the end of an error about a value that is not allowed, after the name of its field: `must be one of
// heun, ab, got "huen"; did you mean "heun"?`. It returns nothing if the value is allowed.
func OneOf(value string, allowed []string) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	shown := value
	if len(value) > maxBytes {
		shown = value[:maxBytes] + "…"
	}
	text := fmt.Sprintf("must be one of %s, got %q", strings.Join(allowed, ", "), shown)
	if question := DidYouMean(value, allowed); question != "" {
		text += "; " + question
	}
	return text
}

// Nearest returns the known word with the fewest edits from word: inserted, removed or replaced letters, or swapped
// neighbours, in any case. It returns the first of several. It returns nothing if all known words have more edits than
// a third of the word's length and more than one.
func Nearest(word string, known []string) string {
	if len(word) > maxBytes {
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

// DidYouMean returns a question such as `did you mean "digits"?`, or nothing if no known word is near.
func DidYouMean(word string, known []string) string {
	if nearest := Nearest(word, known); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return ""
}

// distance returns the distance of optimal string alignment, in bytes.
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
