// Package frechet compares the law of images with that of others, through features that
// need no network and no training.
//
// Each set of features sees an image as a few dozen numbers, and a distance is that of
// Fréchet between the normal laws which have the features' means and covariances,
//
//	|m_1 − m_2|² + tr(Σ_1 + Σ_2 − 2 (Σ_1^½ Σ_2 Σ_1^½)^½),
//
// over the total variance of the reference's features. Frequencies are linear: a normal
// law with the data's moments is as good to them as the data. Edges are not.
//
// The package imports schedule/basis, gonum's matrices and the standard library. Begin
// with features.go.
package frechet
