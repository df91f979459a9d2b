// Package guides finds the second network of guided samples, D₀ in D₀ + s (D₁ − D₀): the model's own without a label,
// or another model.
//
// It imports catalog and batch, which mixes the two. Begin reading with New.
package guides
