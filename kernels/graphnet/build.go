package graphnet

import (
	"errors"
	"fmt"
	"slices"
)

// build appends every node and returns the output, [B, H, W, C]. It panics with an error that names the node.
func (b *builder) build(c Config) *Node {
	for i := range b.p.nodes {
		o := &b.p.nodes[i]
		v, err := b.apply(o)
		if err != nil {
			panic(graphError("%s: %v", o.where(), err))
		}
		b.values[i] = v
	}
	out := b.values[b.p.output]
	want := []int{b.batch, c.ImgChannels, c.ImgResolution.Height, c.ImgResolution.Width}
	if out.n == nil || !slices.Equal(out.dims(), want) || !out.n.DType().IsFloat() {
		panic(graphError("the output must be floating of shape [batch %d %d %d], as img_channels and img_resolution say",
			want[1], want[2], want[3]))
	}
	return out.nhwc()
}

// apply appends one node. What a rule, or the graph library on its behalf, refuses is an error.
func (b *builder) apply(o *node) (v value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = asFault(r)
		}
	}()
	v = rules[o.op](&call{b: b, o: o})
	if v.n != nil && o.dtype != "" {
		want := (&call{b: b, o: o}).target()
		if !slices.Equal(v.dims(), want) {
			return v, fmt.Errorf("computes shape %v; the file says %v", v.dims(), want)
		}
		if k := kinds[o.dtype]; kindOf(v.n.DType()) != k {
			return v, fmt.Errorf("computes %s values; the file says %s", kindOf(v.n.DType()), o.dtype)
		}
	}
	return v, nil
}

func asFault(r any) error {
	switch r := r.(type) {
	case fault:
		return errors.New(string(r))
	case error:
		return errors.New(shortLine(r.Error()))
	}
	return errors.New(shortLine(fmt.Sprint(r)))
}

// shortLine returns the first line of what the graph library says.
func shortLine(s string) string {
	for i, c := range s {
		if c == '\n' || i > 300 {
			return s[:i]
		}
	}
	return s
}
