//go:build !noparquet

package source

import (
	"context"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// parquetRows is the number of rows that are read at a time.
const parquetRows = 256

// openParquet opens a Parquet file.
func openParquet(path string) (*Source, error) {
	return openTable(path, "Parquet", func() (table, func() error, error) {
		f, err := file.OpenParquetFile(path, false)
		if err != nil {
			return nil, nil, err
		}
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: parquetRows}, allocator)
		if err != nil {
			_ = f.Close()
			return nil, nil, err
		}
		rows, err := r.GetRecordReader(context.Background(), nil, nil)
		if err != nil {
			_ = f.Close()
			return nil, nil, err
		}
		return rows, f.Close, nil
	})
}
