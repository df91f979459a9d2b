package processes

import (
	"context"
	"unsafe"
)

// chunk is about how many bytes of an exchange a process sends at a time.
const chunk = 32 << 20

// Sum adds up the terms of all processes, x_{k,m} the m-th of process k, in this order:
//
//	x_{0,0} ← ((x_{0,0} + x_{0,1}) + …) + x_{1,0} + x_{1,1} + …
//
// and each process gets the sum in place of its first term. All terms have the same length, and every process has the
// same number of terms. So N processes with M terms get the bits of one with N·M.
//
// Each process adds up an N-th part of the numbers: it sends and receives (M + 1)(N − 1)/N times the bytes of a term.
//
// With flush, sums that are subnormal in float32 become zero.
func Sum[T float32 | float64](ctx context.Context, w *World, flush bool, terms ...[]T) error {
	var smallest T
	if flush {
		smallest = 0x1p-126
	}
	n, per := len(terms[0]), max(1, chunk/(w.size*len(terms)*int(unsafe.Sizeof(terms[0][0]))))
	per = min(per, (n+w.size-1)/w.size)
	out, in := make([]T, w.size*len(terms)*per), make([]T, w.size*len(terms)*per)
	sums, all := make([]T, w.size*per), make([]T, w.size*per)
	for from := 0; from < n; from += w.size * per {
		for k := range w.size {
			for m, term := range terms {
				to := out[(k*len(terms)+m)*per:][:per]
				clear(to[copy(to, part(term, from+k*per, per)):])
			}
		}
		if err := w.exchange(ctx, bytesOf(out), bytesOf(in)); err != nil {
			return err
		}
		own := sums[:per]
		copy(own, in)
		for at := per; at < len(in); at += per {
			for i, v := range in[at : at+per] {
				if v += own[i]; v < smallest && v > -smallest {
					v *= 0 // with its sign
				}
				own[i] = v
			}
		}
		for k := 1; k < w.size; k++ {
			copy(sums[k*per:], own)
		}
		if err := w.exchange(ctx, bytesOf(sums), bytesOf(all)); err != nil {
			return err
		}
		copy(terms[0][from:], all)
	}
	return nil
}

// part returns n values from one on, or fewer where they end.
func part[T any](x []T, from, n int) []T { return x[min(from, len(x)):min(from+n, len(x))] }

// bytesOf returns the memory of x.
func bytesOf[T float32 | float64](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}
