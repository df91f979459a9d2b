//go:build noparquet

package source

// openParquet says that the program reads no Parquet. The tag leaves out Arrow's kernels of
// computation, which reading Parquet brings along: instrumented for fuzzing they take
// minutes to compile.
func openParquet(path string) (*Source, error) {
	return nil, failf(path, "", "is Parquet, and this program was built without it (tag noparquet)")
}
