package client

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/anisoflight/anisoflight/flight/api"
)

// ServerInfo returns version, device, load and memory. It needs no token.
func (c *Client) ServerInfo(ctx context.Context) (api.ServerInfo, error) {
	return act[api.ServerInfo](ctx, c, "ServerInfo", nil, nil)
}

// ListModels lists the models.
func (c *Client) ListModels(ctx context.Context) ([]api.ModelInfo, error) {
	reply, err := act[struct {
		All []api.ModelInfo `json:"models"`
	}](ctx, c, "ListModels", nil, nil)
	return reply.All, err
}

// DescribeModel describes one model with its configuration.
func (c *Client) DescribeModel(ctx context.Context, model string) (api.ModelInfo, error) {
	return act[api.ModelInfo](ctx, c, "DescribeModel", api.ModelName{Model: model}, nil)
}

// LoadModel reads a model folder and serves it under a name.
func (c *Client) LoadModel(ctx context.Context, req api.LoadModel) (api.ModelInfo, error) {
	return act[api.ModelInfo](ctx, c, "LoadModel", req, nil)
}

// MakeModel makes a Gaussian mixture and serves it as a model. It may take long: progress, which may be nil, is called
// as it goes on.
func (c *Client) MakeModel(ctx context.Context, req api.MakeModel, progress func(api.Meta)) (api.ModelInfo, error) {
	return act[api.ModelInfo](ctx, c, "MakeModel", req, progress)
}

// UnloadModel stops serving a model; its folder stays.
func (c *Client) UnloadModel(ctx context.Context, model string) error {
	_, err := act[json.RawMessage](ctx, c, "UnloadModel", api.ModelName{Model: model}, nil)
	return err
}

// DeleteModel deletes a model and its folder.
func (c *Client) DeleteModel(ctx context.Context, model string) error {
	_, err := act[json.RawMessage](ctx, c, "DeleteModel", api.ModelName{Model: model}, nil)
	return err
}

// ListSchedules lists the schedules, those of models included.
func (c *Client) ListSchedules(ctx context.Context) ([]api.ScheduleInfo, error) {
	reply, err := act[struct {
		All []api.ScheduleInfo `json:"schedules"`
	}](ctx, c, "ListSchedules", nil, nil)
	return reply.All, err
}

// MakeSchedule makes a schedule of a kind, such as an *api.GeodesicSchedule, and stores it. It may take long: progress,
// which may be nil, is called as it goes on.
func (c *Client) MakeSchedule(ctx context.Context, req api.ScheduleKind, progress func(api.Meta)) (api.ScheduleInfo,
	error,
) {
	fields := map[string]any{"kind": req.Kind()}
	gather(fields, reflect.ValueOf(req).Elem())
	return act[api.ScheduleInfo](ctx, c, "MakeSchedule", fields, progress)
}

// ExportSchedule returns a schedule as its file.
func (c *Client) ExportSchedule(ctx context.Context, req api.ExportSchedule) (json.RawMessage, error) {
	return act[json.RawMessage](ctx, c, "ExportSchedule", req, nil)
}

// ExportStatistics returns the statistics of a schedule as their safetensors file.
func (c *Client) ExportStatistics(ctx context.Context, req api.ExportPart) (api.SchedulePart, error) {
	return act[api.SchedulePart](ctx, c, "ExportStatistics", req, nil)
}

// ExportStart returns the start of a schedule as its safetensors file.
func (c *Client) ExportStart(ctx context.Context, req api.ExportPart) (api.SchedulePart, error) {
	return act[api.SchedulePart](ctx, c, "ExportStart", req, nil)
}

// PlanSampler returns a sampler as numbers.
func (c *Client) PlanSampler(ctx context.Context, req api.PlanSampler) (api.Plan, error) {
	return act[api.Plan](ctx, c, "PlanSampler", req, nil)
}

// ImportSchedule stores a schedule file.
func (c *Client) ImportSchedule(ctx context.Context, req api.ImportSchedule) (api.ScheduleInfo, error) {
	return act[api.ScheduleInfo](ctx, c, "ImportSchedule", req, nil)
}

// DeleteSchedule deletes a stored schedule.
func (c *Client) DeleteSchedule(ctx context.Context, schedule string) error {
	_, err := act[json.RawMessage](ctx, c, "DeleteSchedule", api.ScheduleName{Schedule: schedule}, nil)
	return err
}

// ListBases lists the bases.
func (c *Client) ListBases(ctx context.Context) ([]api.BasisInfo, error) {
	reply, err := act[struct {
		All []api.BasisInfo `json:"bases"`
	}](ctx, c, "ListBases", nil, nil)
	return reply.All, err
}

// MakeBasis makes a basis from a data set and stores it. It may take long: progress, which may be nil, is called as it
// goes on.
func (c *Client) MakeBasis(ctx context.Context, req api.MakeBasis, progress func(api.Meta)) (api.BasisInfo, error) {
	return act[api.BasisInfo](ctx, c, "MakeBasis", req, progress)
}

// DeleteBasis deletes a basis.
func (c *Client) DeleteBasis(ctx context.Context, basis string) error {
	_, err := act[json.RawMessage](ctx, c, "DeleteBasis", api.BasisName{Basis: basis}, nil)
	return err
}

// ListDatasets lists the data sets.
func (c *Client) ListDatasets(ctx context.Context) ([]api.DatasetInfo, error) {
	reply, err := act[struct {
		All []api.DatasetInfo `json:"datasets"`
	}](ctx, c, "ListDatasets", nil, nil)
	return reply.All, err
}

// MakeDataset draws a data set from a mixture. It may take long: progress, which may be nil, is called as it
// goes on.
func (c *Client) MakeDataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta)) (api.DatasetInfo,
	error,
) {
	return act[api.DatasetInfo](ctx, c, "MakeDataset", req, progress)
}

// DeleteDataset deletes a data set.
func (c *Client) DeleteDataset(ctx context.Context, dataset string) error {
	_, err := act[json.RawMessage](ctx, c, "DeleteDataset", api.DatasetName{Dataset: dataset}, nil)
	return err
}

// ListRuns lists the training runs.
func (c *Client) ListRuns(ctx context.Context) ([]api.RunInfo, error) {
	reply, err := act[struct {
		All []api.RunInfo `json:"runs"`
	}](ctx, c, "ListRuns", nil, nil)
	return reply.All, err
}

// GetRun describes one run with its configuration.
func (c *Client) GetRun(ctx context.Context, run string) (api.RunInfo, error) {
	return act[api.RunInfo](ctx, c, "GetRun", api.RunName{Run: run}, nil)
}

// CreateRun creates a training run.
func (c *Client) CreateRun(ctx context.Context, req api.CreateRun) (api.RunInfo, error) {
	return act[api.RunInfo](ctx, c, "CreateRun", req, nil)
}

// StartRun trains a run in the background.
func (c *Client) StartRun(ctx context.Context, req api.StartRun) (api.RunInfo, error) {
	return act[api.RunInfo](ctx, c, "StartRun", req, nil)
}

// PauseRun pauses a run after its current step and stores its state.
func (c *Client) PauseRun(ctx context.Context, run string) (api.RunInfo, error) {
	return act[api.RunInfo](ctx, c, "PauseRun", api.RunName{Run: run}, nil)
}

// CancelRun ends a run after its current step and stores its state.
func (c *Client) CancelRun(ctx context.Context, run string) (api.RunInfo, error) {
	return act[api.RunInfo](ctx, c, "CancelRun", api.RunName{Run: run}, nil)
}

// DeleteRun deletes a run and its state.
func (c *Client) DeleteRun(ctx context.Context, run string) error {
	_, err := act[json.RawMessage](ctx, c, "DeleteRun", api.RunName{Run: run}, nil)
	return err
}

// SaveModel writes a run's averaged network and schedule as a model.
func (c *Client) SaveModel(ctx context.Context, req api.SaveModel) (api.ModelInfo, error) {
	return act[api.ModelInfo](ctx, c, "SaveModel", req, nil)
}
