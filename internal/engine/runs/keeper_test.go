package runs

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Stores that nobody asks for take at most a twentieth of the time, and one that failed is tried again soon.
func TestKeeperInterval(t *testing.T) {
	for _, test := range []struct {
		cost   time.Duration
		failed int
		want   time.Duration
	}{
		{0, 0, time.Second},
		{20 * time.Millisecond, 0, time.Second},
		{3 * time.Second, 0, 57 * time.Second},
		{3 * time.Second, 1, 2 * time.Second},
		{0, 3, 8 * time.Second},
		{0, 1000, 30 * time.Second},
	} {
		k := keeper{cost: test.cost, failed: test.failed}
		got := k.interval()
		if got != test.want {
			t.Errorf("a cost of %v after %d failures makes %v, want %v", test.cost, test.failed, got, test.want)
		}
		if share := float64(test.cost) / float64(test.cost+got); test.failed == 0 && share > 0.05 {
			t.Errorf("a cost of %v takes %.3f of the time", test.cost, share)
		}
	}
	if k := (&keeper{err: errors.New("/a/path")}); k.storeError() == "" || k.storeError() == "/a/path" {
		t.Errorf("an unknown error becomes %q", k.storeError())
	}
}

// A status is read back as it was written, with any bit of it changed it is refused, and one of an older program, which
// has no hash, is read.
func TestStatusIsHashed(t *testing.T) {
	for _, s := range []status{
		{State: Created, Created: time.Unix(1, 2).UTC()},
		{State: Failed, Created: time.Unix(1, 2).UTC(), Target: 0.1, Error: "<\u2028\xff\"", Restored: "from 3"},
	} {
		text, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, sealed, err := decodeStatus(text)
		if err != nil || !sealed || got.State != s.State || got.Restored != s.Restored {
			t.Errorf("%s becomes %+v, %t, %v", text, got, sealed, err)
		}
		for i := range 8 * len(text) {
			text[i/8] ^= 1 << (i % 8)
			if s, _, err := decodeStatus(text); err == nil {
				t.Errorf("%s is read as %+v", text, s)
			}
			text[i/8] ^= 1 << (i % 8)
		}
		rest, _, _ := hashed(text)
		if got, sealed, err := decodeStatus(rest); err != nil || sealed || got.State != s.State {
			t.Errorf("without its hash %s becomes %+v, %t, %v", rest, got, sealed, err)
		}
	}
}

// Whatever is decoded is a status that may be stored; the rest is an error.
func FuzzStatus(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `{"state":"paused"}`, `{"state":"done","target_kimg":1,"step":3,"kimg":0.1,"config":{"a":[1]}}`,
		`{"state":"paused","state":"done"}`, `{"state":"running"}{}`, `{"state":"sleeping"}`, `[1]`, "{\"state\":\"pau\x00",
		`{"state":"done","sha256":"00"}`, `{"state":"done","sha256":"` + strings.Repeat("0", 64) + `"}`,
		`{"state":"created","created":"2026-01-02T03:04:05Z","memory":{"microbatch":1,"needed_bytes":2}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, _, err := decodeStatus(text); err == nil && s.State == "" {
			t.Errorf("%q has no state", text)
		}
	})
}
