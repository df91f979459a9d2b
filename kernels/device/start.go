package device

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
)

// start opens the first backend that works.
func (d *Device) start() error {
	d.report = Report{}
	if d.cfg.Plugin != "go" {
		for _, c := range search(d.cfg) {
			b, version, err := openXLA(c.Path, c.Kind, d.cfg)
			if err != nil {
				c.Reason = err.Error()
				d.report.Candidates = append(d.report.Candidates, c)
				continue
			}
			c.Used = true
			d.backend, d.hostVisible = b, c.Kind == CPU
			d.report.Name, d.report.Plugin, d.report.APIVersion = "xla:"+string(c.Kind), c.Path, version
			d.report.Candidates = append(d.report.Candidates, c)
			return nil
		}
	}
	b, err := simplego.New("ops_sequential")
	if err != nil {
		return fmt.Errorf("pure-Go backend: %w", err)
	}
	d.backend, d.pureGo = b, true
	d.report.Name = "go"
	return nil
}

var _ backends.Backend = (*capturing)(nil)
