package latent

import "testing"

// The known answers published with the generator (Random123, kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	const f = 0xffffffff
	for _, q := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(q.ctr, q.key); got != q.want {
			t.Errorf("counter %x, key %x: %x, want %x", q.ctr, q.key, got, q.want)
		}
	}
}

// Seed, stream, position and purpose each reach the counter or the key in full.
func TestBlocksDiffer(t *testing.T) {
	seen := map[uint64]string{}
	add := func(what string, v uint64) {
		t.Helper()
		if was, ok := seen[v]; ok {
			t.Errorf("%s draws the same bits as %s", what, was)
		}
		seen[v] = what
	}
	for _, why := range []purpose{forBits, forNormal, forUniform, forLabel, forPerm} {
		a, b := pair(1, 2, 3, why)
		add("a purpose", a)
		add("a purpose's second word", b)
	}
	for bit := range 64 {
		a, _ := pair(1^1<<bit, 2, 3, forBits)
		add("a seed", a)
		a, _ = pair(1, 2, 3^1<<bit, forBits)
		add("a position", a)
	}
	for bit := range 32 {
		a, _ := pair(1, 2^1<<bit, 3, forBits)
		add("a stream", a)
	}
}
