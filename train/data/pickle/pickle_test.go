package pickle

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"
)

// values are pickles that Python 3.11 wrote, in protocols 2 and 4, of
// {"a": [1, -2, 300, 70000, -(2**40), 2.5], "b": (None, True, False), "c": b"\x00\xff", "d": {"e": ()}}.
var values = []string{
	"gAJ9cQAoWAEAAABhcQFdcQIoSwFK/v///00sAUpwEQEAigYAAAAAAP9HQAQAAAAAAABlWAEAAABicQNOiImHcQRYAQAAAGNxBWNfY29kZWNzCmVuY29kZQpxBlgDAAAAAMO/cQdYBgAAAGxhdGluMXEIhnEJUnEKWAEAAABkcQt9cQxYAQAAAGVxDSlzdS4=",
	"gASVSwAAAAAAAAB9lCiMAWGUXZQoSwFK/v///00sAUpwEQEAigYAAAAAAP9HQAQAAAAAAABljAFilE6IiYeUjAFjlEMCAP+UjAFklH2UjAFllClzdS4=",
}

func TestLoad(t *testing.T) {
	want := &Dict{map[string]any{
		"a": &List{[]any{int64(1), int64(-2), int64(300), int64(70000), int64(-1 << 40), 2.5}},
		"b": Tuple{nil, true, false},
		"c": "\x00\xff",
		"d": &Dict{map[string]any{"e": Tuple{}}},
	}}
	for i, text := range values {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("pickle %d: %v, %v", i, got, err)
		}
	}
}

// TestCallsAreWrittenDown: what a pickle would call is told, not done.
func TestCallsAreWrittenDown(t *testing.T) {
	got, err := Load([]byte("\x80\x02cposix\nsystem\n\x8c\x09touch evil\x85R."))
	if err == nil {
		t.Fatalf("a string that is cut short gives %v", got)
	}
	got, err = Load([]byte("\x80\x02cposix\nsystem\n\x8c\x0atouch evil\x85R."))
	if want := (&Object{Func: Global{"posix", "system"}, Args: Tuple{"touch evil"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	for pickle, says := range map[string]string{
		"":                           "before its STOP",
		"\x80\x01.":                  "protocol 1",
		"\x80\x02.":                  "empty stack",
		"\x80\x02(.":                 "a mark for a value",
		"\x80\x02Q.":                 "0x51", // BINPERSID
		"\x80\x02\x82\x01.":          "0x82", // EXT1
		"\x80\x02h\x05.":             "recalls 5",
		"\x80\x02X\xff\xff\xff\xff.": "in the middle",
		"\x80\x02\x8e\xff\xff\xff\xff\xff\xff\xff\xff.": "in the middle",
		"\x80\x02\x8a\x09123456789.":                    "9 bytes",
		"\x80\x02}K\x01K\x02s.":                         "key of type int64",
		"\x80\x02}(K\x01u.":                             "key without a value",
		"\x80\x02K\x01K\x02a.":                          "adds to a int64",
		"\x80\x02K\x01)R.":                              "makes an object",
		"\x80\x02e.":                                    "no mark",
		"\x80\x02cos":                                   "in the middle",
		"\x80\x02c_codecs\nencode\n)R.":                 "encodes something else",
	} {
		if v, err := Load([]byte(pickle)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, error %v, want one that says %q", pickle, v, err, says)
		}
	}
}

// TestEncodeIsBounded: encoding one text again and again cannot make more than the pickle has.
func TestEncodeIsBounded(t *testing.T) {
	text := strings.Repeat("x", 200)
	again := "\x80\x02X\xc8\x00\x00\x00" + text + "q\x00c_codecs\nencode\nq\x01X\x06\x00\x00\x00latin1q\x02" + strings.Repeat("h\x01h\x00h\x02\x86R", 3) + "."
	if _, err := Load([]byte(again)); err == nil {
		t.Error("three times the text is encoded")
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range values {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = Load(b) })
}
