// Package parametrization says how the output F of a network becomes the flow.
//
// A network was trained in a scaling and with a target of its own. In the terms of this repository, x = x_0 + σ ε with
// g = σ², every one is four numbers and a label, functions of g alone:
//
//	y        = in(g) x                          what the network is given
//	c        = noise(ln σ)                      its noise label
//	flow     = skip(g) x + out(g) F(y, c)       flow = (D − x)/√g = E[−ε | x]
//	D        = keep(g) x + √g out(g) F(y, c)    keep = 1 + √g skip
//	flow + ε = keep(g) ε + skip(g) x_0 + out(g) F(y, c)
//
// With noise in several subspaces the four numbers are taken at each g_j, and the label at the geometric mean of the
// noise levels. The kinds:
//
//	kind     in           skip             out           keep       noise             F predicts
//	edm      1/√(g+s)     −√g/(g+s)        σ_d/√(g+s)    s/(g+s)    ln(σ)/4           s = σ_d²
//	vp       1/√(1+g)     0                −1            1          (M−1) t(σ)        ε
//	ve       1            0                1             1          ln(σ/2)           −ε
//	epsilon  1/√(1+g)     0                −1            1          table             ε
//	v        1/√(1+g)     −√g/(1+g)        −1/√(1+g)     1/(1+g)    table             √ᾱ ε − √(1−ᾱ) x_0
//	x0       1/√(1+g)     −1/√g            1/√g          0          table             x_0
//	flow     1/(1+σ)      −1/(1+σ)         −1/(1+σ)      1/(1+σ)    N σ/(1+σ)         ε − x_0
//
// t(σ) is the inverse of σ² = exp(β_d t²/2 + β_min t) − 1. A table lists ᾱ = 1/(1+σ²) of discrete times; between them
// the label is linear in ln σ, beyond them that of the end. A flow network with to_data set runs from noise at time 0
// to data at time 1: it predicts x_0 − ε, and its label is N/(1+σ).
//
// Sources: Karras et al. 2022 (arXiv:2206.00364, table 1) for edm, vp and ve; Ho et al. 2020 (arXiv:2006.11239) for
// epsilon; Salimans and Ho 2022 (arXiv:2202.00512) for v; Liu et al. 2022 (arXiv:2209.03003) and Lipman et al. 2022
// (arXiv:2210.02747) for flow.
package parametrization
