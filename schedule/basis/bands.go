package basis

import "math"

// Bands divide the frequencies (u, v) of the DCT of H×W planes of C channels by their radial frequency
//
//	ρ = √((u/H)² + (v/W)²),   from ρ₁ = 1/max(H, W), the lowest above 0, to ρ₂, the highest.
//
// Band 0 has the mean, ρ = 0, alone. The others have equal width in ln ρ,
//
//	band(u, v) = 1 + min(N − 2, ⌊(N − 1) ln(ρ/ρ₁)/ln(ρ₂/ρ₁) + 10⁻⁹⌋),
//
// and those without frequencies are left out. N = 0 makes each frequency a band.
type Bands struct{ H, W, C, N int }

// Index returns the band of each frequency, [H·W] with u slow, and the number of bands.
func (b Bands) Index() (band []int, count int) {
	band = make([]int, b.H*b.W)
	if b.N == 0 {
		for f := range band {
			band[f] = f
		}
		return band, len(band)
	}
	square := func(u, v int) float64 { return math.Pow(float64(u*b.W), 2) + math.Pow(float64(v*b.H), 2) } // (ρ H W)²
	least := math.Pow(float64(min(b.H, b.W)), 2)
	whole := math.Log(square(b.H-1, b.W-1) / least)
	number := make([]int, b.N)
	for f := range band {
		if s := square(f/b.W, f%b.W); s > 0 && b.N > 1 {
			band[f] = 1
			if whole > 0 {
				band[f] += min(b.N-2, int(float64(b.N-1)*math.Log(s/least)/whole+1e-9))
			}
		}
		number[band[f]] = 1
	}
	for i, there := range number {
		number[i], count = count, count+there
	}
	for f, i := range band {
		band[f] = number[i]
	}
	return band, count
}

// Parts returns the number of parts of an image: C axes of the channels in each band.
func (b Bands) Parts() int {
	if b.N == 0 {
		return b.H * b.W * b.C
	}
	_, count := b.Index()
	return count * b.C
}

// Frequencies returns the transform to the frequencies with the channels' axes of each band, [bands·C·C]; nil means the
// channels themselves.
func (b Bands) Frequencies(axes []float64) *Frequencies {
	if axes == nil || b.N == 0 {
		return NewFrequencies(b.H, b.W, b.C, axes)
	}
	band, _ := b.Index()
	size := b.C * b.C
	all := make([]float64, 0, len(band)*size)
	for _, i := range band {
		all = append(all, axes[i*size:(i+1)*size]...)
	}
	return NewFrequencies(b.H, b.W, b.C, all)
}
