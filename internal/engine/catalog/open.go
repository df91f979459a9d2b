package catalog

import (
	"context"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Open reads the folder. What cannot be read is logged and left out; it never keeps the rest from being served.
func Open(ctx context.Context, cfg Config) (*Catalog, error) {
	folders, err := makeFolders(cfg.Dir)
	if err != nil {
		return nil, err
	}
	c := &Catalog{
		cfg: cfg, log: cfg.Logger, folders: folders,
		models: map[string]*Model{}, versions: map[string]int{}, schedules: map[string]Schedule{},
		bases: map[string]storedBasis{}, broken: broken{}, made: map[basisKey]*basis.Basis{}, datasets: map[string]dataset{},
	}
	for _, folder := range append(folders.all(), cfg.Dir) {
		if err := atomicdir.Sweep(folder); err != nil {
			c.log.Warn("leftovers of an earlier crash stay", "error", err)
		}
	}
	c.hashes.read(folders)
	for _, scan := range []func(){c.scanBases, c.scanSchedules, c.scanModels} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		scan()
	}
	return c, nil
}

// Close lets go of the models.
func (c *Catalog) Close() {
	for _, m := range c.Models() {
		_, _ = c.dropModel(m.Name)
	}
}
