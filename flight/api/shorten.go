package api

import "regexp"

// Bounds on the text of errors, in characters. gRPC's C++ clients take 8 KiB of trailers in all, and fail beyond.
const (
	mostQuoted = 80   // of what was sent
	mostText   = 1000 // of a sentence, or a hint
)

// shortened returns text with at most mostQuoted characters, and "…" for the rest.
func shortened(text string) string { return cut(text, mostQuoted) }

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// longQuote is a quoted Go string of more than mostQuoted characters.
var longQuote = regexp.MustCompile(`"((?:[^"\\]|\\.){80})(?:[^"\\]|\\.)+"?`)

// readable cuts the quoted words of an error's text, and the text.
func readable(text string) string {
	if len(text) <= mostQuoted {
		return text
	}
	return cut(longQuote.ReplaceAllString(cut(text, 16*mostText), `"$1…"`), mostText)
}
